"""Pools: the maximum or the average of each window of a channel, as reductions that read windows through strides.

A maximum is over the taps that lie on values: those in the padding are -inf. An average is the sum of its taps in C
order, in the order tree64, divided by their number: of those that lie on values or, with `count_padding`, on values and
padding. Either way taps beyond are addends of 0; a window without any tap that counts has the average NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph._values import canonical
from dashi.graph.ir import Node, TensorType, attributes_of, tensor_type
from dashi.graph.op import Op
from dashi.graph.ops._windows import Padding, WindowGrid, framed, framed_values, window_values, window_view, windows_of
from dashi.graph.ops.elementwise import compute
from dashi.graph.ops.rows import KINDS, max_, mean, sum_
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

_PADDING: Final = {"max_pool": float("-inf"), "average_pool": 0.0}


@checked
def max_pool(
    x: Tensor,
    kernel: Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The maximum of every window of x (N, C, *lengths); NaN wins. Windows lie side by side, unless `stride` says
    otherwise; with `ceil_mode` a last one may reach beyond the padding."""
    step = tuple(kernel) if stride is None else stride
    return x.builder.add(
        MAX_POOL, x, kernel=tuple(kernel), stride=step, padding=padding, dilation=dilation, ceil_mode=ceil_mode
    )


@checked
def average_pool(
    x: Tensor,
    kernel: Sequence[int],
    *,
    stride: int | Sequence[int] | None = None,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    count_padding: bool = False,
) -> Tensor:
    """The mean of every window of x (N, C, *lengths): of the values in it or, with `count_padding`, of values and
    zeros of the padding."""
    step = tuple(kernel) if stride is None else stride
    return x.builder.add(
        AVERAGE_POOL, x, kernel=tuple(kernel), stride=step, padding=padding, dilation=dilation, ceil_mode=ceil_mode,
        count_padding=count_padding,
    )  # fmt: skip


@checked
def global_max_pool(x: Tensor) -> Tensor:
    """The maximum of every channel of x (N, C, *lengths), with lengths of 1."""
    return max_(x, range(2, len(x.shape)), keepdims=True)


@checked
def global_average_pool(x: Tensor) -> Tensor:
    """The mean of every channel of x (N, C, *lengths), with lengths of 1."""
    return mean(x, range(2, len(x.shape)), keepdims=True)


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    (x,) = types
    if x.dtype.name not in ("f32", "f64"):
        raise GraphError(f"{node.op} is not defined for {x.dtype}.", "cast to float32.")
    windows = windows_of(node, x.shape[2:])
    tensor_type((*x.shape[:2], windows.taps, *windows.counts), x.dtype)  # what kernels read
    return TensorType((*x.shape[:2], *windows.counts), x.dtype)


def _counts(node: Node, windows: WindowGrid) -> HostArray:
    """What sums are divided by, one number for every window of a channel."""
    return windows.tap_counts(node.get("count_padding") is True).astype(node.dtype.numpy)


def _expand(node: Node, x: Tensor) -> Tensor:
    windows = windows_of(node, x.shape[2:])
    shown = window_view(framed(x, windows, _PADDING[node.op]), windows, taps_first=False)
    taps = range(len(node.shape), len(shown.shape))
    if node.op == "max_pool":
        return max_(shown, taps)
    return sum_(shown, taps) / x.builder.constant(_counts(node, windows))


def _evaluate(node: Node, x: HostArray) -> HostArray:
    windows = windows_of(node, x.shape[2:])
    shown = window_values(framed_values(x, windows, _PADDING[node.op]), windows, taps_first=False)
    taps = tuple(range(len(node.shape), shown.ndim))
    if node.op == "max_pool":
        return canonical(shown.max(taps))
    total = KINDS["sum"].evaluate(Node(node.name, "sum", (), node.type, attributes_of({"axes": taps})), shown)
    return compute("div", total, np.broadcast_to(_counts(node, windows), total.shape))


MAX_POOL: Final = Op("max_pool", _infer, _evaluate, arity=(1, 1), expand=_expand)
AVERAGE_POOL: Final = Op("average_pool", _infer, _evaluate, arity=(1, 1), expand=_expand)
OPS: Final = (MAX_POOL, AVERAGE_POOL)
