"""The kernels as text and as documents: tables for the docs, signatures, examples, from the declarations alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from dashi import kernels as registry
from dashi.errors import InputError, suggestion
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Case, Kernel, Operand, Scalar, variant_features
from dashi.types import DTYPES, Cost


def matching(pattern: str | None, family: str | None, *, portable: bool) -> list[Kernel]:
    """The kernels that are asked for, in the order of their names; InputError where there are none."""

    def fits(kernel: Kernel) -> bool:
        if pattern is None:
            return True
        text = pattern.lower()
        if any(sign in text for sign in "*?["):
            return any(fnmatchcase(name, text) for name in (kernel.name, *kernel.aliases))
        return any(text in words.lower() for words in (kernel.name, *kernel.aliases, kernel.summary))

    every = [registry.get(name) for name in registry.names()]
    families = sorted({kernel.family for kernel in every})
    if family is not None and family not in families:
        raise InputError(
            f"there is no family {family!r}.", f"{suggestion(family, families)}use one of {', '.join(families)}."
        )
    some = [k for k in every if family in (None, k.family) and (k.portable or not portable) and fits(k)]
    if not some:
        near = suggestion(pattern or "", registry.names())
        raise InputError(
            f"no kernel matches {pattern!r}{f' in the family {family}' if family else ''}.",
            f"{near}leave the pattern away to see all.",
        )
    return some


def describe(kernel: Kernel) -> dict[str, Any]:
    """A kernel as a document."""
    return {
        "name": kernel.name,
        "family": kernel.family,
        "summary": kernel.summary,
        "dtypes": list(kernel.dtypes),
        "portable": kernel.portable,
        "bound": kernel.bound,
        "features": {variant: sorted(variant_features(kernel, variant)) for variant in kernel.dtypes},
        "aliases": list(kernel.aliases),
        "inputs": [operand.name for operand in kernel.inputs],
        "outputs": [operand.name for operand in kernel.outputs],
        "operands": [_operand_document(operand) for operand in (*kernel.inputs, *kernel.outputs)],
        "scalars": [scalar.name for scalar in kernel.scalars],
        "scalar_defaults": {scalar.name: scalar.default for scalar in kernel.scalars},
        "tunings": {name: dict(numbers) for name, numbers in kernel.tunings.items()},
    }


def _operand_document(operand: Operand) -> dict[str, Any]:
    shape = None if operand.shape is None else list(operand.shape)
    return {"name": operand.name, "dtype": operand.dtype, "shape": shape}


def markdown(kernels: Sequence[Kernel]) -> str:
    """A heading and a table for every family, in alphabetical order."""
    parts: list[str] = []
    for family in sorted({k.family for k in kernels}):
        rows = [_row(k) for k in sorted(kernels, key=lambda k: k.name) if k.family == family]
        head = ["| kernel | computes | types | same bits everywhere |", "|---|---|---|---|"]
        parts.append("\n".join([f"### {family}", "", *head, *rows]) + "\n")
    return "\n".join(parts)


def signature(kernel: Kernel) -> str:
    """How it is called and what it makes: `gemv(x[k], A[k, n]) -> result[n]`. Without brackets: any shape."""
    arguments = ", ".join([*map(_operand, kernel.inputs), *map(_scalar, kernel.scalars)])
    return f"{kernel.name}({arguments}) -> {', '.join(map(_operand, kernel.outputs))}"


def example(kernel: Kernel) -> str:
    """A program that runs the kernel's example case, in its first type, and prints what it makes."""
    case, variant = example_case(kernel), kernel.dtypes[0]
    lines = ["import dashi", "import numpy as np"]
    if case.fill:
        lines += [
            "from dashi.kernels._cases import inputs",
            "",
            f'kernel = dashi.kernels.get("{kernel.name}")',
            f'arrays = inputs(kernel, kernel.cases[{kernel.cases.index(case)}], "{variant}", "normal", seed=0)',
        ]
        arguments = ["*arrays.values()"]
    else:
        lines.append("")
        for operand in kernel.inputs:
            kind = DTYPES[variant if operand.dtype == "T" else operand.dtype]
            shape = case.shapes[operand.name]
            lines.append(f"{operand.name} = np.ones({shape[0] if len(shape) == 1 else shape}, np.{kind.stored})")
        arguments = [operand.name for operand in kernel.inputs]
    arguments += [f"{name}={value}" for name, value in case.scalars.items()]
    results = ", ".join(operand.name for operand in kernel.outputs)
    call = ", ".join([f'"{kernel.name}"', *arguments])
    shown = ", ".join(f"{operand.name}.numpy()" for operand in kernel.outputs)
    return "\n".join([*lines, "with dashi.open() as d:", f"    {results} = d.run({call})", f"    print({shown})"])


def example_case(kernel: Kernel) -> Case:
    """The first case that is neither trivial nor large."""

    def order(at: int) -> tuple[bool, bool, bool, int]:
        shapes = kernel.cases[at].shapes.values()
        size = sum(math.prod(shape) for shape in shapes)
        idle = not _cost(kernel, kernel.cases[at]).bytes
        return idle, not 8 <= size <= 1 << 14, any(1 in shape for shape in shapes), at

    return kernel.cases[min(range(len(kernel.cases)), key=order)]


def example_cost(kernel: Kernel) -> tuple[str, Cost]:
    """What the example case counts: its shapes in words, and its cost."""
    case, variant = example_case(kernel), kernel.dtypes[0]
    shapes = ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in case.shapes.items())
    return f"{shapes}; {variant}" if shapes else variant, _cost(kernel, case)


def _cost(kernel: Kernel, case: Case) -> Cost:
    shapes = [case.shapes[one.name] for one in kernel.inputs]
    return kernel.cost(resolve_call(kernel, kernel.dtypes[0], shapes, case.scalars))


def _row(kernel: Kernel) -> str:
    portable = "yes" if kernel.portable else f"no: within {kernel.bound:g}"
    also = f" (also `{'`, `'.join(kernel.aliases)}`)" if kernel.aliases else ""
    # A bar would end the cell.
    says = kernel.summary.replace("|", "\\|")
    return f"| `{signature(kernel)}`{also} | {says} | {' '.join(kernel.dtypes)} | {portable} |"


def _operand(operand: Operand) -> str:
    return operand.name if operand.shape is None else f"{operand.name}[{', '.join(map(str, operand.shape))}]"


def _scalar(scalar: Scalar) -> str:
    return f"{scalar.name}=" + ("..." if scalar.default is None else f"{scalar.default:g}")
