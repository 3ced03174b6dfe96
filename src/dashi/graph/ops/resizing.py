"""Resize: the last axes of a value with other lengths, by the nearest element or mixed linearly between two.

Element i of an axis of the result lies at the coordinate c of the axis before, where scale = new length / old length,
unless scales are passed:

    half_pixel           (i + 0.5) / scale - 0.5
    pytorch_half_pixel   the same, but 0 where the new length is 1
    asymmetric           i / scale
    align_corners        i (old - 1) / (new - 1), and 0 where the new length is 1

Coordinates are computed on the host in fp64 and cut to the axis; weights are rounded once. Linear mixes are
p (1 - t) + q t along the last axis first, and p where t is 0, whatever q is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dashi import kernels
from dashi.errors import GraphError
from dashi.graph._arguments import checked
from dashi.graph.ir import Node, TensorType, tensor_type
from dashi.graph.op import Launch, Op
from dashi.graph.ops._compositions import composition
from dashi.types import HostArray, Shape

if TYPE_CHECKING:
    from dashi.graph.builder import Tensor

Coordinates = npt.NDArray[np.float64]
COORDINATES: Final = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
MODES: Final = ("nearest", "linear")
ROUNDING: Final = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_MOST_AXES: Final = 3
_LONGEST: Final = 1 << 24
"""Entries of a table."""


@checked
def resize(
    x: Tensor,
    lengths: Sequence[int] | None = None,
    *,
    scales: Sequence[float] | None = None,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    rounding: str = "round_prefer_floor",
) -> Tensor:
    """The last axes of x with these lengths, or with floor(length * scale). `mode` is nearest or linear; `coordinates`
    half_pixel, pytorch_half_pixel, asymmetric or align_corners; the nearest element is taken by `rounding`:
    round_prefer_floor, round_prefer_ceil, floor or ceil."""
    return x.builder.add(
        RESIZE, x, lengths=lengths, scales=scales, mode=mode, coordinates=coordinates, rounding=rounding
    )


def _axes(node: Node, shape: Shape) -> list[tuple[int, int, float]]:
    """Old length, new length and scale of each of the last axes."""
    scales, listed = node.get("scales"), node.get("lengths")
    count = len(scales) if isinstance(scales, tuple) else len(node.integers("lengths"))
    if not 1 <= count <= min(_MOST_AXES, len(shape)):
        raise GraphError(f"{count} axes of {shape} to resize.", f"name 1 to {_MOST_AXES} of the last.")
    old = shape[-count:]
    if scales is None:
        new = node.integers("lengths")
        return [(n, m, m / n if n else 1.0) for n, m in zip(old, new, strict=True)]
    factors = [s for s in scales if isinstance(s, (int, float))] if isinstance(scales, tuple) else []
    if len(factors) != count or not all(0 < s < math.inf for s in factors):
        raise GraphError(f"scales={scales!r} are none.", "pass a number above 0 for each of the last axes.")
    new = tuple(min(int(n * s), 1 << 40) for n, s in zip(old, factors, strict=True))
    if listed is not None and node.integers("lengths") != new:
        raise GraphError(f"lengths={listed} and scales={scales} do not agree.", "pass one of them.")
    return list(zip(old, new, factors, strict=True))


def _infer(node: Node, types: Sequence[TensorType]) -> TensorType:
    (x,) = types
    if x.dtype.name not in ("f32", "f64"):
        raise GraphError(f"{node.op} is not defined for {x.dtype}.", "cast to float32.")
    for name, values in (("mode", MODES), ("coordinates", COORDINATES), ("rounding", ROUNDING)):
        if node.get(name) not in values:
            raise GraphError(f"{name}={node.get(name)!r} is none.", f"use one of {', '.join(values)}.")
    axes = _axes(node, x.shape)
    if any(n < 1 or not 1 <= m <= _LONGEST for n, m, _ in axes):
        raise GraphError(
            f"axes of {[n for n, _, _ in axes]} elements do not become {[m for _, m, _ in axes]}.",
            f"resize 1 or more elements to 1 ... {_LONGEST}.",
        )
    return tensor_type((*x.shape[: -len(axes)], *(m for _, m, _ in axes)), x.dtype)


def _coordinates(kind: str, old: int, new: int, scale: float) -> Coordinates:
    """Where the elements of the result lie along an axis, cut to it."""
    i = np.arange(new, dtype=np.float64)
    if kind == "asymmetric":
        at = i / scale
    elif kind == "align_corners":
        at = i * (old - 1) / (new - 1) if new > 1 else i
    elif kind == "pytorch_half_pixel" and new == 1:
        at = i
    else:
        at = (i + 0.5) / scale - 0.5
    return at


def _rounded(at: Coordinates, rounding: str) -> Coordinates:
    """The nearest places: halves go down (round_prefer_floor), or up."""
    if rounding.endswith("floor"):
        return np.floor(at) if rounding == "floor" else np.ceil(at - 0.5)
    return np.ceil(at) if rounding == "ceil" else np.floor(at + 0.5)


def _table(node: Node, axis: tuple[int, int, float]) -> tuple[HostArray, HostArray]:
    """The two neighbours of each element of the result along an axis, and their weights."""
    old, new, scale = axis
    at = _coordinates(str(node.get("coordinates")), old, new, scale)
    if node.get("mode") == "nearest":
        place = np.clip(_rounded(at, str(node.get("rounding"))), 0, old - 1)
        places, share = np.stack([place, place], -1), np.zeros(new)
    else:
        at = np.clip(at, 0, old - 1)
        place = np.floor(at)
        places, share = np.stack([place, np.minimum(place + 1, old - 1)], -1), at - place
    return places.astype(np.uint32), np.stack([1 - share, share], -1)


def _same(length: int) -> tuple[HostArray, HostArray]:
    """The table of an axis that stays as it is."""
    places = np.repeat(np.arange(length, dtype=np.uint32)[:, None], 2, 1)
    return places, np.tile([1.0, 0.0], (length, 1))


def _expand(node: Node, x: Tensor) -> Tensor:
    axes = _axes(node, x.shape)
    tables = [_table(node, axis) for axis in axes]
    lead = x.shape[: -len(axes)]
    if len(axes) == 1:
        tables = [_same(1), *tables]
    if not x.node.type.size:
        return x.reshape(*node.shape)
    height, width = (len(places) for places, _ in tables[-2:])
    planes = x.reshape(-1, *(x.shape[-2:] if len(axes) > 1 else (1, x.shape[-1])))
    planes = _resized(planes, tables[-2], tables[-1])
    if len(axes) == _MOST_AXES:
        boxes = planes.reshape(math.prod(lead), x.shape[-3], height * width)
        planes = _resized(boxes, tables[0], _same(height * width))
    return planes.reshape(*node.shape)


def _resized(x: Tensor, rows: tuple[HostArray, HostArray], columns: tuple[HostArray, HostArray]) -> Tensor:
    places, weights = (np.concatenate(pair) for pair in zip(rows, columns, strict=True))
    shape = (x.shape[0], len(rows[0]), len(columns[0]))
    tables = x.builder.constant(places), x.builder.constant(weights.astype(x.dtype.numpy))
    return x.builder.add(PLANES, x, *tables, height=shape[1], width=shape[2])


def _infer_planes(node: Node, types: Sequence[TensorType]) -> TensorType:
    x, places, weights = types
    height, width = node.integer("height"), node.integer("width")
    table = (height + width, 2)
    if len(x.shape) != 3 or places != TensorType(table, places.dtype) or weights != TensorType(table, x.dtype):
        raise GraphError(
            f"{x}, {places} and {weights} are no planes and tables of {height} x {width}.",
            "pass (planes, h, w), and two places and weights for each row and column.",
        )
    if x.dtype.name not in ("f32", "f64") or places.dtype.name != "u32" or 0 in x.shape:
        raise GraphError(f"planes {x} by places of {places.dtype}.", "pass floats that are not empty, and uint32.")
    return tensor_type((x.shape[0], height, width), x.dtype)


def _launch_planes(node: Node, types: Sequence[TensorType]) -> Launch:
    numbers = {name: node.integer(name) for name in ("height", "width")}
    return Launch(kernels.get("resize"), tuple(kind.shape for kind in types), node.shape, numbers)


def _evaluate_planes(node: Node, x: HostArray, places: HostArray, weights: HostArray) -> HostArray:
    numbers = {name: node.integer(name) for name in ("height", "width")}
    return np.asarray(kernels.get("resize").reference(np.ascontiguousarray(x), places, weights, **numbers))


PLANES: Final = Op("resize_planes", _infer_planes, _evaluate_planes, arity=(3, 3), launch=_launch_planes)
"""Planes with tables of neighbours and weights."""
RESIZE: Final = composition("resize", _infer, _expand, (1, 1))
OPS: Final = (RESIZE, PLANES)
