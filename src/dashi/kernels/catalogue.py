"""The kernels as text for the docs: a table per family, from the declarations alone."""

from __future__ import annotations

from collections.abc import Sequence

from dashi.kernels.abi import Kernel, Operand, Scalar


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
