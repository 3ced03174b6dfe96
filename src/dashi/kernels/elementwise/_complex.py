"""Complex numbers as pairs: arrays of shape (..., 2) hold real and imaginary parts side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dashi.errors import ShapeError
from dashi.kernels.abi import Call, Kernel, Number, Plan, Scalar
from dashi.kernels.patterns import LARGE, elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray, Shape

SHAPES: Final[tuple[Shape, ...]] = (
    (2,), (31, 2), (32, 2), (33, 2), (129, 2), (2050, 2), (3, 4, 11, 2), (0, 2), (1 << 16, 2),
)  # fmt: skip
"""Pairs around the sizes of runs, workgroups and vectors; of one, four and no dimensions before the pair."""


def require_pairs(name: str, shape: Shape) -> None:
    """An error for arrays that do not hold pairs."""
    if not shape or shape[-1] != 2:
        raise ShapeError(
            f"kernel {name!r}: complex numbers are pairs (re, im), but the last axis of shape {shape} is no pair.",
            "pass arrays of shape (..., 2), for instance z.view(np.float32).reshape(*z.shape, 2) of a complex64 z.",
        )


def parts(z: HostArray) -> tuple[Any, Any]:
    """Real and imaginary parts, canonical."""
    values = canon(z)
    return values[..., 0], values[..., 1]


def complex_elementwise(
    name: str,
    *,
    summary: str,
    reference: Callable[..., HostArray],
    inputs: Sequence[str] = ("x",),
    scalars: Sequence[Scalar] = (),
    flops: int,
    examples: Sequence[Mapping[str, Number]] = ({},),
    in_place: bool = False,
) -> Kernel:
    """An elementwise kernel over the parts of pairs; `flops` counts per part. Where a part of the result depends on
    both parts of an input it cannot work in place: they may belong to different invocations."""
    base = elementwise(
        summary=summary,
        takes="index",
        reference=reference,
        inputs=inputs,
        scalars=scalars,
        flops=flops,
        examples=examples,
        in_place=in_place,
        wide=True,  # a vector holds whole pairs
        shapes=SHAPES,
        bench=tuple((n // 2, 2) for (n,) in LARGE),
    )

    def plan(call: Call) -> Plan:
        require_pairs(name, call.shapes[inputs[0]])
        return base.plan(call)

    return replace(base, plan=plan)
