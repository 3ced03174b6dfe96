"""Ternary kernels that look at neighbours on a periodic grid, 1-D or 2-D: what they share on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError, ShapeError
from dashi.kernels._trits import field_of, minus_of, support_of
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Plan, Scalar, Shader, Spec
from dashi.types import HostArray, Shape

GRID: Final = (Scalar("h", "u32"), Scalar("w", "u32"))
RADIUS: Final = Scalar("radius", "u32", 1, "how far the neighbourhood reaches along each axis")
SHAPES: Final[tuple[Shape, ...]] = (
    (0,), (1,), (2,), (3,), (5,), (16,), (63,), (64,), (65,), (257,), (5000,), (0, 4), (1, 1), (1, 16), (3, 5), (2, 2),
    (16, 16), (17, 16), (31, 33), (64, 48), (33, 160), (100, 112),
)  # fmt: skip
"""Rings and grids: smaller than a neighbourhood, around words and vectors, with rows that fill vectors and not."""

ROWS_PUSH: Final = (*LOOP_PUSH, Scalar("h", "u32"), Scalar("vectors", "u32"))
TUNINGS: Final = {"four": {"rows": 4}, "eight": {"rows": 8}}
"""How many rows an invocation goes down: more read less twice, fewer leave more invocations to hide waiting."""


def rows_shader(*push: Scalar) -> Shader:
    """A shader "rows" for boxes of 3 x 3, with `_include/rows3.glsl`."""
    return Shader(
        (Binding("s", "u32x4"), Binding("words", "u32"), Binding("result", "u32x4", "write")),
        (*ROWS_PUSH, *push),
        (Spec("ROWS", 4),),
        local=(LOCAL, 1, 1),
        file="rows.comp",
    )


def fits_rows(shape: Shape, radius: int) -> bool:
    """Whether that shader serves a field: boxes of 3 x 3, and rows of whole vectors."""
    return len(shape) == 2 and shape[0] > 0 and shape[1] > 0 and shape[1] % 16 == 0 and radius == 1


def rows_plan(call: Call, push: Mapping[str, Number]) -> Plan:
    """Plan of one dispatch of the shader "rows": an invocation for each vector of 16 sites in `rows` rows."""
    h, w = call.shapes["s"]
    rows = call.tuning.get("rows", 4)
    items = ceil_div(h, rows) * (w // 16)
    groups, rounds = groups_for(items, LOCAL, call.limits)
    numbers = {"items": items, "stride": groups * LOCAL, "h": h, "vectors": w // 16, **push}
    made = Dispatch("rows", ("s", "s", "result"), numbers, (groups, 1, 1), rounds * (1 + rows), {"ROWS": rows})
    return Plan((made,))


def grid(name: str, shape: Shape) -> tuple[int, int]:
    """(rows, columns); a ring is one row."""
    if len(shape) not in (1, 2):
        raise ShapeError(
            f"kernel {name!r}: s has shape {shape}; neighbours are known on rings and grids.",
            "pass a field of shape (w,) or (h, w).",
        )
    return (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])


def trits(s: HostArray) -> npt.NDArray[np.int32]:
    """The field's values, whatever its bytes hold."""
    return field_of(support_of(s), minus_of(s)).reshape(s.shape).astype(np.int32)


def shifts(shape: Shape, radius: int) -> Iterator[tuple[int, ...]]:
    """Every offset within the box of that radius."""
    if len(shape) == 1:
        yield from ((x,) for x in range(-radius, radius + 1))
    else:
        yield from ((y, x) for y in range(-radius, radius + 1) for x in range(-radius, radius + 1))


def moved(values: npt.NDArray[np.int32], shift: tuple[int, ...]) -> npt.NDArray[np.int32]:
    """The values at that offset from every site, round the ends."""
    return np.roll(values, [-step for step in shift], tuple(range(values.ndim)))


def box_sums(values: npt.NDArray[np.int32], radius: int) -> npt.NDArray[np.int32]:
    """Sums over the periodic box of that radius round every site, modulo 2^32 as on a device. A box wider than the
    field goes round it: whole turns count at once, so that a radius of any size takes the time of the field's."""
    sums = values.astype(np.int64)
    for axis, length in enumerate(values.shape if values.size else ()):
        along = np.moveaxis(sums, axis, -1)
        turns, rest = divmod(2 * radius + 1, length)
        twice = np.cumsum(np.concatenate([along, along], -1), -1)
        before = np.concatenate([np.zeros_like(along[..., :1]), twice], -1)
        first = (np.arange(length) - radius) % length
        boxes = turns * along.sum(-1, keepdims=True) + before[..., first + rest] - before[..., first]
        sums = np.moveaxis(boxes, -1, axis)
    return sums.astype(np.int32)


def box_trips(shape: Shape, radius: int) -> int:
    """Loop iterations for the four sites of a word, each with its box."""
    side = 2 * radius + 1
    return 4 * (1 + (1 if len(shape) == 1 else side) * (1 + side))


def require_weight(name: str, value: int) -> None:
    """An error for a weight whose sums could leave 32 bits."""
    if abs(value) > 1 << 24:
        raise InputError(f"kernel {name!r}: a centre weight of {value} is too large.", "keep it within 2^24.")
