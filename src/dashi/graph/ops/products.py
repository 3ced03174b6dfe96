"""Products of matrices, batched and broadcast: every element is summed over k in the order tree64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Op
from dashi.graph.ops.elementwise import broadcast, one_dtype
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """a b over the last two axes; those before are stretched to one shape."""
    return a @ b


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    a, b = types
    kind = one_dtype(types)
    if kind.dtype.name not in ("f32", "f64"):
        raise GraphError(f"there is no product of {kind.dtype}.", "cast to float32.")
    if len(a.shape) < 2 or len(b.shape) < 2 or a.shape[-1] != b.shape[-2]:
        raise GraphError(f"{a.shape} and {b.shape} are no matrices that fit.", "pass (..., m, k) and (..., k, n).")
    batch = broadcast([TensorType(t.shape[:-2], t.dtype) for t in types])
    return TensorType((*batch, a.shape[-2], b.shape[-1]), kind.dtype)


def _evaluate(node: Node, a: HostArray, b: HostArray) -> HostArray:
    """tree64 over k of mul(a[..., i, k], b[..., k, j])."""
    return np.asarray(kernels.get("matmul").reference(a, b, transpose_a=0, transpose_b=0))


MATMUL: Final = Op("matmul", _infer, _evaluate, "product", arity=(2, 2))
OPS: Final = (MATMUL,)
