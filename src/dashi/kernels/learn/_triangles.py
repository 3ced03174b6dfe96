"""Shaders of kernels that work through a triangle 64 rows or columns at a time: cholesky and triangular_solve.

An invocation makes a row or a column of the block at hand; then its run of 64 is added to the sums of all later ones.
"""

from __future__ import annotations

from typing import Final

from dashi.errors import ShapeError
from dashi.kernels._work import RUN
from dashi.kernels.abi import Binding, Scalar, Shader

LARGEST: Final = RUN * RUN
"""Two levels of tree64: run sums are added one after the other."""


def shader(file: str, buffers: tuple[Binding, ...], push: tuple[Scalar, ...], *includes: str) -> Shader:
    """A workgroup as wide as a run."""
    return Shader(buffers, push, local=(RUN, 1, 1), file=file, includes=("portable.glsl", *includes))


def require_fit(takes: str, n: int) -> None:
    """Refuses triangles of more than two levels of sums."""
    if n > LARGEST:
        raise ShapeError(f"{takes} up to {LARGEST} rows, not {n}.", "use fewer features.")
