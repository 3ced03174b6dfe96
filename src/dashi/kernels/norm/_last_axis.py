"""Kernels over the last axis that lie in folders of their own: a map of `dashi.kernels.row_map`, written out in GLSL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dashi.kernels import _rows_abi as rows
from dashi.kernels.abi import Case, Kernel, Scalar
from dashi.types import Shape

SHAPES: Final[tuple[Shape, ...]] = (
    (1,), (70, 16), (5, 17), (3, 64), (2, 3, 65), (2, 384), (3, 0), (2, 4097),
)  # fmt: skip
"""Around runs and teams; several dimensions; no elements; rows that are read again."""
LARGE: Final[tuple[Shape, ...]] = ((4096, 4096), (128, 384))
EPS: Final = Scalar("eps", default=1e-5, doc="added to the mean of squares")


def over_last_axis(made: Kernel, summary: str, aliases: tuple[str, ...] = (), scalars: Sequence[Scalar] = ()) -> Kernel:
    """The kernel of a folder whose kernel.comp computes what a map over rows does; all inputs but the first have the
    length of the last axis."""

    def case(shape: Shape, number: int) -> Case:
        shapes = {o.name: shape if k == 0 else shape[-1:] for k, o in enumerate(made.inputs)}
        return Case(shapes, {s.name: (1e-5, 1e-3, 0.0)[number % 3] for s in scalars})

    return replace(
        made,
        summary=summary,
        shaders=rows.shaders(len(made.inputs), 1, places=False, file="kernel.comp"),
        cases=tuple(case(shape, number) for number, shape in enumerate(SHAPES)),
        bench=tuple(case(shape, 0) for shape in LARGE),
        scalars=tuple(scalars),
        aliases=aliases,
        binaries=None,
    )
