"""Windows over the last axes of a value: where they lie, the frame that they need, the index map that shows them.

A window has `kernel` taps along each of one to three axes, `dilation` apart; windows begin `stride` apart.
Values are put inside a frame first (the op `pad_dilated`), unless no window reaches beyond them; windows are then a
strided view, which kernels read through.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._views import view_attribute
from dashi.graph.ir import Attribute, Node, TensorType, tensor_type
from dashi.graph.op import Launch, Op
from dashi.graph.ops.movement import VIEW
from dashi.kernels.abi import Number, View
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

MOST_AXES: Final = 3
LONGEST: Final = 1 << 24
"""Most taps, and elements from one to the next."""
Padding = int | Sequence[int] | Sequence[tuple[int, int]] | Literal["valid", "same", "same_lower"]
"""One number for all sides, or one for both sides of each axis, or (before, after) for each axis; or no padding, or so
much that there is a window for every `stride` elements, an odd one behind ("same") or before ("same_lower")."""


@dataclass(frozen=True)
class WindowGrid:
    """Windows over axes of these lengths; `low` and `high` are the padding before and behind. With `ceil` a last window
    may reach beyond the padding, if it begins before that."""

    lengths: Shape
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    ceil: bool = False

    @property
    def spans(self) -> Shape:
        """From the first tap of a window to the last."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def counts(self) -> Shape:
        """How many windows there are along each axis."""
        axes = zip(self.lengths, self.low, self.high, self.spans, self.stride, strict=True)
        return tuple(self._count(n, low, high, span, step) for n, low, high, span, step in axes)

    def _count(self, length: int, low: int, high: int, span: int, step: int) -> int:
        room = length + low + high - span
        if room < 0:
            return 0
        count = (room + step - 1 if self.ceil else room) // step + 1
        return count - 1 if self.ceil and (count - 1) * step >= length + low else count

    @property
    def frame(self) -> Shape:
        """Lengths, padding included, that the windows reach over."""
        axes = zip(self.counts, self.stride, self.spans, strict=True)
        return tuple((count - 1) * step + span for count, step, span in axes)

    @property
    def needs_frame(self) -> bool:
        """Whether a window reaches beyond the values."""
        return any(self.low) or any(f > n for f, n in zip(self.frame, self.lengths, strict=True))

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return math.prod(self.kernel)

    def source(self) -> Shape:
        """Lengths of what the windows are a view of."""
        return self.frame if self.needs_frame else self.lengths

    def view(self, lead: Shape, taps_first: bool) -> View:
        """The windows of a dense value of the shape (*lead, *source()): the axes (*lead, *taps, *windows), or (*lead,
        *windows, *taps)."""
        whole = (*lead, *self.source())
        steps = [math.prod(whole[axis + 1 :]) for axis in range(len(whole))]
        axes = steps[len(lead) :]
        taps = tuple(d * s for d, s in zip(self.dilation, axes, strict=True))
        moves = tuple(n * s for n, s in zip(self.stride, axes, strict=True))
        shape = (*lead, *self.kernel, *self.counts) if taps_first else (*lead, *self.counts, *self.kernel)
        strides = (*steps[: len(lead)], *taps, *moves) if taps_first else (*steps[: len(lead)], *moves, *taps)
        return View(shape, strides if math.prod(shape) else tuple(0 for _ in shape))

    def tap_counts(self, padding: bool) -> HostArray:
        """How many taps of each window lie on values, or on values and padding."""
        total = np.ones((), np.int64)
        for axis, count in enumerate(self.counts):
            first = np.arange(count) * self.stride[axis] - self.low[axis]
            at = first[:, None] + np.arange(self.kernel[axis]) * self.dilation[axis]
            begin, end = (-self.low[axis], self.lengths[axis] + self.high[axis]) if padding else (0, self.lengths[axis])
            total = total[..., None] * ((at >= begin) & (at < end)).sum(1)
        return total


def windows_of(node: Node, lengths: Shape, kernel: Sequence[int] | None = None) -> WindowGrid:
    """The windows of a node over axes of these lengths, by its attributes stride, dilation, padding and (unless it is
    passed) kernel, each one number or one for each axis; a GraphError where there are none."""
    taps = node.integers("kernel") if kernel is None else tuple(kernel)
    _require_axes(lengths, taps)
    stride, dilation = (whole_numbers(node, name, len(lengths)) for name in ("stride", "dilation"))
    low, high = _padding(node, lengths, taps, stride, dilation)
    return _checked(WindowGrid(lengths, taps, stride, dilation, low, high, node.get("ceil_mode") is True))


def transposed_windows(node: Node, lengths: Shape, kernel: Sequence[int]) -> WindowGrid:
    """The windows of a transposed convolution: `dilation` as it is, one for every place of values that lie `stride`
    apart, and so much padding that they begin and end with the first and the last value, less the node's padding."""
    taps, rank = tuple(kernel), len(lengths)
    _require_axes(lengths, taps)
    names = ("stride", "dilation", "output_padding")
    stride, dilation, more = (whole_numbers(node, name, rank) for name in names)
    if isinstance(node.get("padding"), str):
        raise GraphError(f"padding={node.get('padding')!r} of a transposed convolution.", "pass numbers.")
    low, high = _padding(node, lengths, taps, stride, dilation)
    if any(not 0 <= m < max(s, d) for m, s, d in zip(more, stride, dilation, strict=True)):
        raise GraphError(f"output_padding {more} is not below stride or dilation.", "take less.")
    spread = tuple((n - 1) * s + 1 if n else 0 for n, s in zip(lengths, stride, strict=True))
    spans = [(k - 1) * d for k, d in zip(taps, dilation, strict=True)]
    before = tuple(span - side for span, side in zip(spans, low, strict=True))
    behind = tuple(span - side + m for span, side, m in zip(spans, high, more, strict=True))
    return _checked(WindowGrid(spread, taps, (1,) * rank, dilation, before, behind))


def whole_numbers(node: Node, name: str, rank: int) -> tuple[int, ...]:
    """An attribute that is one whole number for each axis, or the same for all."""
    return _each(name, node.get(name), rank)


def _each(name: str, value: Attribute, rank: int) -> tuple[int, ...]:
    listed = value if isinstance(value, tuple) else (value,) * rank
    numbers = tuple(number for number in listed if type(number) is int)
    if len(listed) != rank or len(numbers) != rank:
        raise GraphError(f"{name}={value!r} says nothing of {rank} axes.", f"pass a number, or {rank} of them.")
    return numbers


def _padding(
    node: Node, lengths: Shape, kernel: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Elements before and behind each axis."""
    padding, rank = node.get("padding"), len(kernel)
    if isinstance(padding, str):
        if padding == "valid":
            return (0,) * rank, (0,) * rank
        if padding not in ("same", "same_lower"):
            raise GraphError(f"padding={padding!r} is no padding.", "use 'same', 'same_lower', 'valid', or numbers.")
        axes = zip(lengths, kernel, stride, dilation, strict=True)
        short = [max(0, (-(-n // max(s, 1)) - 1) * s + (k - 1) * d + 1 - n) for n, k, s, d in axes]
        less, more = tuple(s // 2 for s in short), tuple(s - s // 2 for s in short)
        return (less, more) if padding == "same" else (more, less)
    if isinstance(padding, tuple) and any(isinstance(side, tuple) for side in padding):
        sides = [_each("padding", side, 2) for side in padding]
        if len(sides) != rank:
            raise GraphError(f"padding={padding!r} says nothing of {rank} axes.", "pass (before, after) for each.")
        return tuple(low for low, _ in sides), tuple(high for _, high in sides)
    both = _each("padding", padding, rank)
    return both, both


def _require_axes(lengths: Shape, kernel: Shape) -> None:
    if not 1 <= len(lengths) <= MOST_AXES or len(kernel) != len(lengths):
        raise GraphError(
            f"windows of {kernel} over axes {lengths}.",
            f"pass (N, C, *lengths) with 1 to {MOST_AXES} lengths, and as many taps.",
        )


def _checked(windows: WindowGrid) -> WindowGrid:
    numbers = windows.kernel + windows.stride + windows.dilation
    if min(numbers) < 1 or max(numbers) > LONGEST:
        raise GraphError(
            f"kernel {windows.kernel}, stride {windows.stride} and dilation {windows.dilation} are out of range.",
            f"use numbers from 1 to {LONGEST}.",
        )
    if max(map(abs, windows.low + windows.high)) > 2 * LONGEST:
        raise GraphError(f"padding {windows.low} and {windows.high} is beyond {LONGEST}.", "pad less.")
    if min(windows.counts) < 1:
        raise GraphError(
            f"no window that spans {windows.spans} fits {windows.lengths} with padding {windows.low} and "
            f"{windows.high}.",
            "pad more, or take smaller windows.",
        )
    tensor_type(windows.frame, "f32")
    return windows


def framed(x: Tensor, windows: WindowGrid, value: float) -> Tensor:
    """A value (*lead, *lengths) with what the windows reach beyond it, if they do."""
    if not windows.needs_frame:
        return x
    rank = len(windows.lengths)
    return x.builder.add(PAD, x, low=windows.low, apart=(1,) * rank, lengths=windows.frame, value=value)


def window_view(x: Tensor, windows: WindowGrid, taps_first: bool) -> Tensor:
    """The windows of a value that has its frame."""
    view = windows.view(x.shape[: -len(windows.lengths)], taps_first)
    return x.builder.add(VIEW, x, view=view_attribute(view))


def framed_values(x: HostArray, windows: WindowGrid, value: float) -> HostArray:
    """What `framed` computes."""
    if not windows.needs_frame:
        return np.ascontiguousarray(x)
    rank = len(windows.lengths)
    return padded_values(x, windows.low, (1,) * rank, windows.frame, value)


def window_values(x: HostArray, windows: WindowGrid, taps_first: bool) -> HostArray:
    """What `window_view` shows, as NumPy strides."""
    view = windows.view(x.shape[: -len(windows.lengths)], taps_first)
    strides = tuple(step * x.itemsize for step in view.strides)
    return np.lib.stride_tricks.as_strided(x, view.shape, strides, writeable=False)


def padded_values(
    x: HostArray, low: Sequence[int], apart: Sequence[int], lengths: Sequence[int], value: float
) -> HostArray:
    """The kernel `pad_dilated` over the last axes."""
    rank = len(low)
    kind = np.asarray(value, x.dtype).item()
    result = kernels.get("pad_dilated").reference(
        np.ascontiguousarray(x).reshape(_boxes(x.shape, rank)), **_scalars(low, apart, lengths, kind)
    )
    return np.asarray(result).reshape(*x.shape[:-rank], *lengths)


def _boxes(shape: Shape, rank: int) -> Shape:
    """A shape as rows of boxes of three axes."""
    return (math.prod(shape[:-rank]), *(1,) * (MOST_AXES - rank), *shape[-rank:])


def _scalars(low: Sequence[int], apart: Sequence[int], lengths: Sequence[int], value: Number) -> dict[str, Number]:
    missing = MOST_AXES - len(low)
    numbers: dict[str, Number] = dict(zip(("depth", "height", "width"), (*(1,) * missing, *lengths), strict=True))
    numbers |= {f"low_{axis}": n for axis, n in zip("dhw", (*(0,) * missing, *low), strict=True)}
    numbers |= {f"apart_{axis}": n for axis, n in zip("dhw", (*(1,) * missing, *apart), strict=True)}
    return {**numbers, "value": value}


def _infer_pad(node: Node, types: Sequence[TensorType]) -> TensorType:
    (x,) = types
    low, apart, lengths = (node.integers(name) for name in ("low", "apart", "lengths"))
    rank = len(low)
    if x.dtype.name not in ("f32", "f64"):
        raise GraphError(f"{node.op} is not defined for {x.dtype}.", "cast to float32.")
    if not 1 <= rank <= min(MOST_AXES, len(x.shape)) or {len(apart), len(lengths)} != {rank}:
        raise GraphError(f"low={low}, apart={apart}, lengths={lengths} over {x.shape}.", "give 1 to 3 last axes.")
    node.number("value")
    if min(apart) < 1 or min(lengths) < 0 or max(*map(abs, low), *apart, *lengths) >= 1 << 31:
        raise GraphError(f"low={low}, apart={apart}, lengths={lengths} are out of range.", "stay below 2^31.")
    if max(n * step for n, step in zip(x.shape[-rank:], apart, strict=True)) >= 1 << 31:
        raise GraphError(f"{x.shape[-rank:]} elements {apart} apart are too many.", "set them less far apart.")
    return tensor_type((*x.shape[:-rank], *lengths), x.dtype)


def _evaluate_pad(node: Node, x: HostArray) -> HostArray:
    return padded_values(
        x, node.integers("low"), node.integers("apart"), node.integers("lengths"), node.number("value")
    )


def _launch_pad(node: Node, types: Sequence[TensorType]) -> Launch:
    low, apart, lengths = (node.integers(name) for name in ("low", "apart", "lengths"))
    scalars = _scalars(low, apart, lengths, node.number("value"))
    rank = len(low)
    boxes = _boxes(types[0].shape, rank)
    result = (boxes[0], *(1,) * (MOST_AXES - rank), *lengths)
    return Launch(kernels.get("pad_dilated"), (boxes,), result, scalars)


PAD: Final = Op("pad_dilated", _infer_pad, _evaluate_pad, arity=(1, 1), launch=_launch_pad)
"""The last axes inside a frame of one value, which also lies between the elements where they are set apart."""
