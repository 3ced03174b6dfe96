"""Quantised integers: real numbers as (q - zero_point) scale, with one scale and zero point for all, or for each place
along an axis. Quotients and products are rounded once, halves to the even integer; what is out of range saturates, and
NaN becomes the integer 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType
from dashi.graph.ops._compositions import composition
from dashi.graph.ops.elementwise import cast, clip, round_
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

_SMALL: Final = ("u8", "i8", "u16", "i16")
"""Integers that, and whose differences, fp32 has exactly."""


@checked
def quantize_linear(
    x: Tensor, scale: Tensor, zero_point: Tensor | None = None, *, axis: int = 1, to: object = "u8"
) -> Tensor:
    """round(x / scale) + zero_point, saturated: integers of the zero point's type, or of `to` where there is none (and
    it is 0). `scale` and `zero_point` are single numbers, or one for each place along an axis."""
    inputs = (x, scale) if zero_point is None else (x, scale, zero_point)
    kind = dtype_of(to) if zero_point is None else zero_point.dtype  # pyright: ignore[reportArgumentType]
    return x.builder.add(QUANTIZE, *inputs, axis=_from_front(axis, x), to=kind.name)


@checked
def dequantize_linear(x: Tensor, scale: Tensor, zero_point: Tensor | None = None, *, axis: int = 1) -> Tensor:
    """(x - zero_point) * scale in the type of the scale; `scale` and `zero_point` are single numbers, or one for each
    place along an axis."""
    inputs = (x, scale) if zero_point is None else (x, scale, zero_point)
    return x.builder.add(DEQUANTIZE, *inputs, axis=_from_front(axis, x))


def _from_front(axis: int, x: Tensor) -> int:
    return axis + len(x.shape) if isinstance(axis, int) and axis < 0 else axis  # pyright: ignore[reportUnnecessaryIsInstance]


def _infer_quantize(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, kind = types[0], dtype_of(str(node.get("to")))
    if x.dtype.name not in ("f32", "f64") or types[1].dtype != x.dtype:
        raise GraphError(f"{x.dtype} is not quantised by a scale of {types[1].dtype}.", "pass floats of one type.")
    if kind.name not in _SMALL or (len(types) == 3 and types[2].dtype != kind):
        raise GraphError(f"there are no quantised numbers of {kind}.", f"use one of {', '.join(_SMALL)}.")
    _require_weights(node, types)
    return TensorType(x.shape, kind)


def _infer_dequantize(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, scale = types[:2]
    if scale.dtype.name not in ("f32", "f64"):
        raise GraphError(f"a scale of {scale.dtype}.", "pass floats.")
    if x.dtype.name not in (*_SMALL, "i32") or (len(types) == 3 and types[2].dtype != x.dtype):
        raise GraphError(
            f"there are no quantised numbers of {x.dtype} with such a zero point.",
            f"use one of {', '.join(_SMALL)}, or int32, and a zero point of that type.",
        )
    if x.dtype.name == "i32" and len(types) == 3:
        raise GraphError("int32 has no zero point here.", "leave it out: it is 0.")
    _require_weights(node, types)
    return TensorType(x.shape, scale.dtype)


def _require_weights(node: Node, types: Sequence[TensorType]) -> None:
    """Single numbers, or as many as the axis is long."""
    x, axis = types[0], node.integer("axis")
    for weights in types[1:]:
        if weights.shape in ((), (1,)):
            continue
        if not 0 <= axis < len(x.shape) or weights.shape != (x.shape[axis],):
            raise GraphError(
                f"{weights.shape} are no scales or zero points along axis {axis} of {x.shape}.",
                "pass a single number, or one for each place along the axis.",
            )


def _along(weights: Tensor, node: Node, x: Tensor) -> Tensor:
    """Numbers along the axis, or a single one, as they are stretched."""
    if weights.node.type.size == 1 and weights.shape in ((), (1,)):
        return weights.reshape()
    return weights.reshape(*weights.shape, *(1 for _ in x.shape[node.integer("axis") + 1 :]))


def _expand_quantize(node: Node, x: Tensor, scale: Tensor, *zero: Tensor) -> Tensor:
    limits = np.iinfo(node.dtype.numpy.name)
    steps = round_(x / _along(scale, node, x))
    if zero:
        steps = steps + _along(cast(zero[0], x.dtype), node, x)
    return cast(clip(steps, limits.min, limits.max), node.dtype)


def _expand_dequantize(node: Node, x: Tensor, scale: Tensor, *zero: Tensor) -> Tensor:
    values = cast(x, scale.dtype)
    if zero:
        values = values - _along(cast(zero[0], scale.dtype), node, x)
    return values * _along(scale, node, x)


QUANTIZE: Final = composition("quantize_linear", _infer_quantize, _expand_quantize, (2, 3))
DEQUANTIZE: Final = composition("dequantize_linear", _infer_dequantize, _expand_dequantize, (2, 3))
OPS: Final = (QUANTIZE, DEQUANTIZE)
