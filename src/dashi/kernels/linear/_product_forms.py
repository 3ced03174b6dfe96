"""What a product of operands with strides and batch axes is, in its simplest form; and its NumPy twin.

Batch axes that lie behind one another become one, and those that b does not have become rows of a.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._fused_abi import collapse, stretched
from dashi.kernels.abi import View
from dashi.kernels.portable import contract
from dashi.types import HostArray, Shape

BATCH_AXES: Final = 4
"""Most batch axes that a product walks."""


@dataclass(frozen=True)
class Matrices:
    """An operand of a product: where it starts, and its strides over the batch axes, rows and columns, in elements."""

    start: int
    batch: tuple[int, ...]
    row: int
    column: int


@dataclass(frozen=True)
class Product:
    """result[z, i, j] = sum over k of a[z, i, k] b[z, k, j], then what a tail makes of it with `others` at [z, i, j].
    The result lies in C order."""

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    a: Matrices
    b: Matrices
    others: tuple[Matrices, ...]

    @property
    def batches(self) -> int:
        return math.prod(self.batch)


def result_shape(name: str, a: Shape, b: Shape) -> Shape:
    """The shape of a product of matrices in the last two axes, the axes before stretched by NumPy's rules."""
    if min(len(a), len(b)) < 2:
        raise ShapeError(
            f"kernel {name!r}: a has shape {a} and b {b}, but matrices have two axes or more.",
            "reshape a vector to one row, or to one column.",
        )
    if a[-1] != b[-2]:
        raise ShapeError(
            f"kernel {name!r}: a has {a[-1]} columns (shape {a}), but b has {b[-2]} rows (shape {b}).",
            "pass matrices that fit, or say which of them is transposed.",
        )
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError as error:
        raise ShapeError(
            f"kernel {name!r}: the batch axes of a {a} and b {b} do not stretch to one shape.",
            "pass lengths that agree, or are 1, axis by axis from the last.",
        ) from error
    return (*batch, a[-2], b[-1])


def transposed(view: View) -> View:
    """The view with its last two axes exchanged."""
    shape, steps = view.shape, view.strides
    return View((*shape[:-2], shape[-1], shape[-2]), (*steps[:-2], steps[-1], steps[-2]), view.offset)


def product(a: View, b: View, others: Sequence[View], shape: Shape) -> Product:
    """The simplest form of a product whose result has that shape."""
    *batch, m, n = shape
    k = a.shape[-1]
    left, right = (stretched(View(v.shape[:-2], v.strides[:-2]), tuple(batch)).strides for v in (a, b))
    spread = [stretched(view, shape) for view in others]
    # The last axis of what is walked through is that of rows, over which b stays where it is.
    walks = [(*left, a.strides[-2]), (*right, 0), *(v.strides[:-1] for v in spread)]
    sizes, steps = collapse((*batch, m), walks)
    if not sizes or steps[1][-1] != 0:
        sizes, steps = (*sizes, 1), [(*step, 0) for step in steps]
    if len(sizes) - 1 > BATCH_AXES:
        raise ShapeError(
            f"the operands of a product of shape {shape} have {len(sizes) - 1} batch axes that do not lie behind one "
            f"another in memory; {BATCH_AXES} can be walked.",
            "make one of the operands dense by a copy, or join axes.",
        )
    parts = [
        Matrices(a.offset, steps[0][:-1], steps[0][-1], a.strides[-1]),
        Matrices(b.offset, steps[1][:-1], b.strides[-2], b.strides[-1]),
        *(Matrices(v.offset, s[:-1], s[-1], v.strides[-1]) for v, s in zip(spread, steps[2:], strict=True)),
    ]
    return Product(sizes[:-1], sizes[-1], n, k, parts[0], parts[1], tuple(parts[2:]))


def is_plain(formed: Product) -> bool:
    """Whether it is one product of matrices in C order, from the first element on."""
    a, b = formed.a, formed.b
    dense_a = a.column == 1 and (formed.m == 1 or a.row == formed.k)
    dense_b = b.column == 1 and b.row == formed.n
    return formed.batches == 1 and not a.start and not b.start and dense_a and dense_b


def contract_batches(a: HostArray, b: HostArray) -> HostArray:
    """The products of matrices in the last two axes in the order tree64, not yet canonical: the NumPy twin."""
    shape = result_shape("matmul", a.shape, b.shape)
    batch, (m, n) = shape[:-2], shape[-2:]
    if b.ndim == 2:  # rows of all batches alike
        return contract(a.reshape(math.prod(shape[:-1]), a.shape[-1]), b).reshape(shape)
    count = math.prod(batch)
    left = np.broadcast_to(a, (*batch, *a.shape[-2:])).reshape(count, *a.shape[-2:])
    right = np.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(count, *b.shape[-2:])
    result = np.empty((count, m, n), a.dtype)
    for z, (x, y) in enumerate(zip(left, right, strict=True)):
        result[z] = contract(x, y)
    return result.reshape(shape)
