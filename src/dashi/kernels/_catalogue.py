"""The kernels as text for the docs: a table per family, from the declarations alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Case, Kernel, Operand, Scalar
from dashi.types import DTYPES, Cost


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
            lines.append(f"{operand.name} = np.ones({shape[0] if len(shape) == 1 else shape}, np.{kind.numpy})")
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
