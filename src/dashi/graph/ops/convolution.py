"""Convolutions of one to three axes, transposed ones, and the windows that they multiply with.

Every result is one sum in the order tree64, over the channels of its group and, within a channel, over the taps in C
order, of mul(weight, value). Where a window reaches beyond the values the value is 0, and is an addend like others: so
it is NaN where the weight there is infinite or NaN. A transposed convolution is the one with the taps reversed over
values that are set `stride` apart with zeros between, which are addends too.

So convolutions are products of matrices (channels and taps by windows), or, where a group has few channels, sums over
windows: both have these bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph._values import canonical
from dashi.graph.ir import Node, TensorType, tensor_type
from dashi.graph.op import Op
from dashi.graph.ops._window_products import WINDOW_MATMUL
from dashi.graph.ops._windows import (
    MOST_AXES,
    PAD,
    Padding,
    WindowGrid,
    framed,
    framed_values,
    padded_values,
    transposed_windows,
    whole_numbers,
    window_values,
    window_view,
    windows_of,
)
from dashi.graph.ops.elementwise import compute, one_dtype
from dashi.graph.ops.products import MATMUL
from dashi.graph.ops.rows import sum_
from dashi.kernels.linear._product_forms import contract_batches
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

_TILE: Final = 32
"""Results along each side of the smallest tile of a product with windows."""
_FILL: Final = 64
"""Tiles that leave not much of a device idle. Shapes alone decide, and change no bit."""
_FEW: Final = 2
"""Results of a group up to which they are summed one by one: a product would leave most of its tiles empty."""


@checked
def conv(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution (as a correlation) of x (N, C, *lengths) with w (O, C / groups, *taps), plus bias (O,)."""
    inputs = (x, w) if bias is None else (x, w, bias)
    return x.builder.add(CONV, *inputs, stride=stride, padding=padding, dilation=dilation, groups=groups)


@checked
def conv_transpose(
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | Sequence[tuple[int, int]] = 0,
    output_padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """The transposed convolution of x (N, C, *lengths) with w (C, O / groups, *taps), plus bias (O,). Along each axis
    the result has (length - 1) stride + dilation (taps - 1) + 1 + output_padding elements, less the padding on both
    sides."""
    attributes: dict[str, Any] = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    inputs = (x, w) if bias is None else (x, w, bias)
    return x.builder.add(CONV_TRANSPOSE, *inputs, output_padding=output_padding, **attributes)


@checked
def im2col(
    x: Tensor,
    kernel: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    padding: Padding = 0,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """The windows of x (N, C, *lengths) as columns: (N, C * taps, windows), zeros where they reach beyond."""
    return x.builder.add(IM2COL, x, kernel=tuple(kernel), stride=stride, padding=padding, dilation=dilation)


def _infer_conv(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, w, groups = _operands(node, types)
    if w.shape[0] % groups or x.shape[1] != w.shape[1] * groups:
        raise GraphError(
            f"{groups} groups of {x.shape[1]} channels do not fit weights {w.shape}.",
            "pass (O, C / groups, *taps), O a multiple of groups.",
        )
    windows = windows_of(node, x.shape[2:], w.shape[2:])
    return _with_bias(types, windows, w.shape[0])


def _infer_transpose(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, w, groups = _operands(node, types)
    if x.shape[1] % groups or x.shape[1] != w.shape[0]:
        raise GraphError(
            f"{groups} groups of {x.shape[1]} channels do not fit weights {w.shape}.",
            "pass (C, O / groups, *taps), C a multiple of groups.",
        )
    windows = transposed_windows(node, x.shape[2:], w.shape[2:])
    return _with_bias(types, windows, w.shape[1] * groups)


def _operands(node: Node, types: Sequence[TensorType]) -> tuple[TensorType, TensorType, int]:
    kind, groups = one_dtype(types), node.integer("groups")
    if kind.dtype.name not in ("f32", "f64"):
        raise GraphError(f"{node.op} is not defined for {kind.dtype}.", "cast to float32.")
    x, w = types[:2]
    if len(x.shape) != len(w.shape) or not 3 <= len(x.shape) <= MOST_AXES + 2 or groups < 1:
        raise GraphError(
            f"{x.shape} is not convolved with {w.shape} in {groups} groups.", "pass (N, C, *lengths) and weights."
        )
    if 0 in w.shape:
        raise GraphError(f"weights of shape {w.shape} are none.", "pass at least one channel and one tap.")
    return x, w, groups


def _with_bias(types: Sequence[TensorType], windows: WindowGrid, channels: int) -> TensorType:
    x = types[0]
    tensor_type((x.shape[0], x.shape[1] * windows.taps, *windows.counts), x.dtype)  # the windows side by side
    result = TensorType((x.shape[0], channels, *windows.counts), x.dtype)
    if len(types) == 3 and types[2].shape != result.shape[1:2]:
        raise GraphError(f"a bias of shape {types[2].shape} for {result.shape[1]} channels.", "pass one for each.")
    return result


def _expand_conv(node: Node, x: Tensor, w: Tensor, *bias: Tensor) -> Tensor:
    windows = windows_of(node, x.shape[2:], w.shape[2:])
    return _convolved(node, framed(x, windows, 0.0), w, windows, bias)


def _convolved(node: Node, x: Tensor, w: Tensor, windows: WindowGrid, bias: Sequence[Tensor]) -> Tensor:
    """A convolution over values that have their frame; w (O, C / groups, *taps)."""
    groups, channels = node.integer("groups"), x.shape[1]
    if groups == channels and w.shape[0] // groups <= _FEW and len(windows.kernel) < MOST_AXES:
        result = _by_sums(node, x, w, windows)
    else:
        result = _by_products(node, x, w, windows)
    return result + bias[0].reshape(-1, *(1 for _ in windows.counts)) if bias else result


def _by_products(node: Node, x: Tensor, w: Tensor, windows: WindowGrid) -> Tensor:
    """Weights times windows: read where they lie or, if that makes few tiles, or the windows of a place are its value,
    as matrices, which products of all sizes are fast for."""
    groups, (batch, channels) = node.integer("groups"), x.shape[:2]
    weights = w.reshape(groups, w.shape[0] // groups, -1)
    shown, columns = window_view(x, windows, taps_first=True), math.prod(windows.counts)
    tiles = batch * groups * -(-weights.shape[1] // _TILE) * -(-columns // _TILE)
    if windows.taps > 1 and tiles >= _FILL:
        return x.builder.add(WINDOW_MATMUL, weights, shown, shape=node.shape)
    matrices = shown.reshape(batch, groups, channels // groups * windows.taps, columns)
    return x.builder.add(MATMUL, weights, matrices, shape=node.shape)


def _by_sums(node: Node, x: Tensor, w: Tensor, windows: WindowGrid) -> Tensor:
    """Each channel by itself, without a matrix of windows."""
    shown = window_view(x, windows, taps_first=False)
    channels, rank = x.shape[1], len(windows.counts)
    taps, ones = windows.kernel, (1,) * rank
    last = tuple(range(-rank, 0))
    if w.shape[0] == channels:
        return sum_(w.reshape(channels, *ones, *taps) * shown, last)
    shown = shown.reshape(x.shape[0], channels, 1, *shown.shape[2:])
    weights = w.reshape(channels, w.shape[0] // channels, *ones, *taps)
    return sum_(weights * shown, last).reshape(*node.shape)


def _expand_transpose(node: Node, x: Tensor, w: Tensor, *bias: Tensor) -> Tensor:
    windows = transposed_windows(node, x.shape[2:], w.shape[2:])
    groups, stride = node.integer("groups"), whole_numbers(node, "stride", len(windows.kernel))
    spread = x
    if windows.needs_frame or max(stride) > 1:
        spread = x.builder.add(PAD, x, low=windows.low, apart=stride, lengths=windows.frame, value=0.0)
    inside = w.shape[0] // groups
    taps = w.shape[2:]
    reversed_taps = w.builder.apply(
        "slice",
        w,
        starts=[0, 0, *(n - 1 for n in taps)],
        stops=[None] * len(w.shape),
        steps=[1, 1, *(-1 for _ in taps)],
    )
    parted = reversed_taps.reshape(groups, inside, w.shape[1], *taps)
    turned = parted.transpose(0, 2, 1, *range(3, 3 + len(taps)))
    weights = turned.reshape(groups * w.shape[1], inside, *taps)
    return _convolved(node, spread, weights, _over_frame(windows), bias)


def _over_frame(windows: WindowGrid) -> WindowGrid:
    """The windows over values that have their frame already."""
    zeros = (0,) * len(windows.low)
    return WindowGrid(windows.frame, windows.kernel, windows.stride, windows.dilation, zeros, zeros)


def _evaluate_conv(node: Node, x: HostArray, w: HostArray, *bias: HostArray) -> HostArray:
    windows = windows_of(node, x.shape[2:], w.shape[2:])
    return _convolved_values(node, framed_values(x, windows, 0.0), w, windows, bias)


def _convolved_values(
    node: Node, x: HostArray, w: HostArray, windows: WindowGrid, bias: Sequence[HostArray]
) -> HostArray:
    groups, (batch, channels) = node.integer("groups"), x.shape[:2]
    depth = channels // groups * windows.taps
    columns = window_values(x, windows, taps_first=True).reshape(batch, groups, depth, math.prod(windows.counts))
    matrices = np.ascontiguousarray(w).reshape(groups, -1, depth)
    result = canonical(contract_batches(matrices, columns)).reshape(node.shape)
    return compute("add", result, bias[0].reshape(-1, *(1 for _ in windows.counts))) if bias else result


def _evaluate_transpose(node: Node, x: HostArray, w: HostArray, *bias: HostArray) -> HostArray:
    windows = transposed_windows(node, x.shape[2:], w.shape[2:])
    groups, stride = node.integer("groups"), whole_numbers(node, "stride", x.ndim - 2)
    spread = padded_values(x, windows.low, stride, windows.frame, 0.0)
    taps = w.shape[2:]
    flipped = np.flip(w, tuple(range(2, w.ndim))).reshape(groups, -1, w.shape[1], *taps)
    weights = np.moveaxis(flipped, 2, 1).reshape(groups * w.shape[1], -1, *taps)
    return _convolved_values(node, spread, weights, _over_frame(windows), bias)


def _infer_columns(node: Node, types: Sequence[TensorType]) -> TensorType:
    (x,) = types
    if x.dtype.name not in ("f32", "f64"):
        raise GraphError(f"{node.op} is not defined for {x.dtype}.", "cast to float32.")
    windows = windows_of(node, x.shape[2:])
    return TensorType((x.shape[0], x.shape[1] * windows.taps, math.prod(windows.counts)), x.dtype)


def _expand_columns(node: Node, x: Tensor) -> Tensor:
    windows = windows_of(node, x.shape[2:])
    return window_view(framed(x, windows, 0.0), windows, taps_first=True).reshape(*node.shape)


def _evaluate_columns(node: Node, x: HostArray) -> HostArray:
    windows = windows_of(node, x.shape[2:])
    return window_values(framed_values(x, windows, 0.0), windows, taps_first=True).reshape(node.shape)


CONV: Final = Op("conv", _infer_conv, _evaluate_conv, arity=(2, 3), expand=_expand_conv)
CONV_TRANSPOSE: Final = Op(
    "conv_transpose", _infer_transpose, _evaluate_transpose, arity=(2, 3), expand=_expand_transpose
)
IM2COL: Final = Op("im2col", _infer_columns, _evaluate_columns, arity=(1, 1), expand=_expand_columns)
OPS: Final = (PAD, CONV, CONV_TRANSPOSE, IM2COL)
