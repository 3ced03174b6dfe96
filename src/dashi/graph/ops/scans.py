"""Running sums and products along an axis, in the order of the kernels `cumsum_rows` and `cumprod_rows`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.op import Launch, Op
from dashi.graph.ops._places import axis_of, narrowed, widened
from dashi.graph.ops.elementwise import BOOL, converted, is_narrow
from dashi.graph.ops.movement import reverse as reversed_
from dashi.graph.ops.movement import swap_with_last
from dashi.kernels._storage import COMPUTE
from dashi.types import HostArray, Shape
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

_KERNELS: Final = {"cumsum": "cumsum_rows", "cumprod": "cumprod_rows"}


@checked
def cumsum(x: Tensor, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Sums of the elements up to each one along an axis; `exclusive` leaves that one out, `reverse` sums from the last
    on."""
    return _scan("cumsum", x, axis, exclusive, reverse)


@checked
def cumprod(x: Tensor, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Products of the elements up to each one along an axis, as `cumsum` has sums."""
    return _scan("cumprod", x, axis, exclusive, reverse)


def _scan(op: str, x: Tensor, axis: int, exclusive: bool, reverse: bool) -> Tensor:
    place = axis_of(x, axis)
    turned = swap_with_last(x, place)
    scanned = x.builder.apply(op, reversed_(turned, -1) if reverse else turned, exclusive=exclusive)
    return swap_with_last(reversed_(scanned, -1) if reverse else scanned, place)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    if types[0].dtype == BOOL or not types[0].shape:
        raise GraphError(f"{node.op} is not defined for {types[0]}.", "pass numbers with an axis.")
    return types[0]


def _form(shape: Shape) -> Shape:
    return (math.prod(shape[:-1]), shape[-1])


def _scalars(node: Node) -> dict[str, int]:
    return {"exclusive": int(bool(node.get("exclusive")))}


def _evaluate(node: Node, x: HostArray) -> HostArray:
    own = dtype_of(x.dtype)
    wide = converted(x, COMPUTE[own.name]) if is_narrow(own) else x
    rows = np.ascontiguousarray(wide).reshape(_form(x.shape))
    scanned = np.asarray(kernels.get(_KERNELS[node.op]).reference(rows, **_scalars(node))).reshape(x.shape)
    return converted(scanned, own.name) if is_narrow(own) else scanned


def _expand(node: Node, x: Tensor) -> Tensor | None:
    if not is_narrow(node.dtype):
        return None
    return narrowed(x.builder.apply(node.op, widened(x), exclusive=bool(node.get("exclusive"))), node.type)


def _launch(node: Node, types: Sequence[TensorType]) -> Launch | None:
    form = _form(node.shape)
    return Launch(kernels.get(_KERNELS[node.op]), (form,), form, _scalars(node))


OPS: Final = tuple(Op(name, _infer, _evaluate, arity=(1, 1), expand=_expand, launch=_launch) for name in _KERNELS)
