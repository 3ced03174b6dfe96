"""Products of matrices, batched and broadcast: every element is summed over k in the order tree64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph._values import canonical
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops.elementwise import broadcast, one_dtype
from dashi.types import HostArray, Shape
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


@checked
def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a b over the last two axes; those before are stretched to one shape."""
    return a @ b


def product_type(types: Sequence[TensorType]) -> TensorType:
    """The type of a product, (..., m, n)."""
    a, b = types
    kind = one_dtype(types)
    if kind.dtype.name not in ("f32", "f64"):
        raise GraphError(f"there is no product of {kind.dtype}.", "cast to float32.")
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise GraphError(f"{a.shape} and {b.shape} are no matrices that fit.", "pass (..., m, k) and (..., k, n).")
    batch = broadcast([TensorType(t.shape[:-2], t.dtype) for t in types])
    return TensorType((*batch, a.shape[-2], b.shape[-1]), kind.dtype)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    """With the attribute `shape` the result is written in that shape, in C order: so tails see that one."""
    kind = product_type(types)
    if node.get("shape") is None:
        return kind
    shape = node.integers("shape")
    if min(shape, default=0) < 0 or math.prod(shape) != kind.size:
        raise GraphError(f"a product of {kind.shape} is no array of shape {shape}.", "keep the number of elements.")
    return TensorType(shape, kind.dtype)


def _evaluate(node: Node, a: HostArray, b: HostArray) -> HostArray:
    """tree64 over k of mul(a[..., i, k], b[..., k, j])."""
    result = np.asarray(kernels.get("matmul").reference(a, b, transpose_a=0, transpose_b=0))
    return result if node.get("shape") is None else result.reshape(node.integers("shape"))


def is_matrix_product(types: Sequence[TensorType]) -> bool:
    """Whether the second factor is one matrix, so that the rows of all batches of the first are rows of one product."""
    return len(types[1].shape) == 2


def matrix_shapes(a: TensorType, b: TensorType) -> tuple[Shape, Shape]:
    """The two matrices of such a product."""
    return (math.prod(a.shape[:-1]), a.shape[-1]), (b.shape[0], b.shape[1])


def _infer_halves(node: Node, types: Sequence[TensorType]) -> TensorType:
    a, b = types
    if (a.dtype.name, b.dtype.name) != ("f16", "f16") or not is_matrix_product(types):
        raise GraphError(f"{a} and {b} are no matrices of halves.", "round them to float16.")
    (rows, _), (_, columns) = matrix_shapes(a, b)
    if rows % 16 or columns % 16 or a.shape[-1] != b.shape[0]:
        raise GraphError(f"{a} and {b} make no result of whole squares of 16 x 16.", "use another product.")
    return TensorType((*a.shape[:-1], columns), dtype_of("f32"))


def _halves(node: Node, a: HostArray, b: HostArray) -> HostArray:
    """Sums in fp32, in NumPy's order: what devices give is near it."""
    return canonical(np.matmul(a.astype(np.float32), b.astype(np.float32)))


def _launch_halves(node: Node, types: Sequence[TensorType]) -> Launch:
    shapes = matrix_shapes(*types)
    return Launch(kernels.get("gemm_coop"), shapes, (shapes[0][0], shapes[1][1]))


MATMUL: Final = Op("matmul", _infer, _evaluate, "product", arity=(2, 2))
HALVES_PRODUCT: Final = Op("halves_product", _infer_halves, _halves, arity=(2, 2), launch=_launch_halves)
"""What the class `device` makes of products where cooperative matrices were asked for."""
OPS: Final = (MATMUL, HALVES_PRODUCT)
