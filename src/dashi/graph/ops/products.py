"""Products of matrices, batched and broadcast: every element is summed over k in the order tree64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph.builder import Tensor
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops.elementwise import broadcast, one_dtype
from dashi.kernels.portable import canon, contract, prepare
from dashi.types import HostArray


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


def product(a: HostArray, b: HostArray) -> HostArray:
    """The definition: tree64 over k of mul(a[..., i, k], b[..., k, j])."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if b.ndim == 2:
        return canon(contract(a.reshape(-1, a.shape[-1]), b)).reshape(*a.shape[:-1], b.shape[-1])
    left = np.broadcast_to(a, (*batch, *a.shape[-2:])).reshape(-1, *a.shape[-2:])
    right = np.broadcast_to(b, (*batch, *b.shape[-2:])).reshape(-1, *b.shape[-2:])
    out = np.empty((len(left), a.shape[-2], b.shape[-1]), a.dtype)
    for i in range(len(left)):
        out[i] = canon(contract(np.ascontiguousarray(left[i]), prepare(right[i])))
    return out.reshape(*batch, *out.shape[1:])


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    a, b = types
    if math.prod(b.shape[:-2]) != 1 or len(b.shape) > len(a.shape):
        return None
    k, n = b.shape[-2:]
    rows = math.prod(a.shape[:-1])
    return Launch(kernels.get("gemm_tiled"), ((rows, k), (k, n)), (rows, n))


def _evaluate(node: Node, a: HostArray, b: HostArray) -> HostArray:
    return product(a, b)


MATMUL: Final = Op("matmul", _infer, _evaluate, launch=_launch)
OPS: Final = (MATMUL,)
