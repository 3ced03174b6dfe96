"""Products of operands with strides and batch axes: `_include/strided_tile.glsl`, its interface and its plan.

A product in its simplest form (`_product_forms`) is one dispatch of tiles for every 4096 of k, in the order tree64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dashi.kernels._work import ceil_div, groups_for, split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Plan, Scalar, Shader, Spec
from dashi.kernels.linear import _strided_rows as strided_rows
from dashi.kernels.linear import _tiles as tiles
from dashi.kernels.linear._product_forms import BATCH_AXES, Matrices, Product

OPERANDS: Final = 4
"""Most operands of a tail."""
SCALARS: Final = 4
BLOCKS: Final = ((16, 8, 8), (16, 8, 4), (16, 4, 4), (8, 4, 4))
"""Invocations along a side of a workgroup, and the rows and columns of an invocation's block."""
FITTED: Final = {"side": 16, "rows": 8, "columns": 8, "fill": 128, **tiles.SMALL, **tiles.FEW}
SMALL: Final = {"side": 8, "rows": 4, "columns": 4, "fill": 0}
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "fitted": FITTED,
    "small_tiles": {**FITTED, "fill": tiles.ALWAYS, **tiles.NOT_FEW},
    "small_tiles_few": {**FITTED, "fill": tiles.ALWAYS, **tiles.NOT_FEW, "block": 8, "processors": 4},
    "few_rows": {**FITTED, "fill": 0, "few": tiles.ALWAYS, "few_fill": 4},
    "blocks_8x8": {**FITTED, "fill": 0, **tiles.NOT_FEW},
    "blocks_4x4": {"side": 16, "rows": 4, "columns": 4, "fill": 0},
    "small": SMALL,
}
"""The largest block to begin with; it is made smaller while there are fewer tiles than fill a device. The other sizes
are those of `_tiles`."""
NUMBERS: Final = (
    "m", "n", "begin", "end", "across", "per_batch", "first_tile", "tiles", "stride", "fresh", "last", "a_start",
    "a_batch", "a_row", "a_depth", "b_start", "b_batch", "b_depth", "b_column",
)  # fmt: skip
WINDOW_NUMBERS: Final = (
    "TAP1", "TAP2", "TAP3", "OUT2", "OUT3",
    "BY_CHANNEL", "BY_TAP1", "BY_TAP2", "BY_TAP3", "BY_OUT1", "BY_OUT2", "BY_OUT3",
)  # fmt: skip
"""Specialisation constants of `_include/windows.glsl`: lengths of axes, and strides."""
WINDOW_TUNINGS: Final = ("fitted", "blocks_8x8", "blocks_4x4", "small")
"""Tunings that products with windows have."""
FAST_BOUND: Final = 2e-6
"""Largest relative error, in the L2 norm, of products whose sums are in any order, for k up to 4096."""
FOLD_NUMBERS: Final = ("m", "n", "elements", "stride", "fresh", "last")
_WORD: Final = 1 << 32
_INNER: Final = tuple(range(1, BATCH_AXES))


def shaders(others: int, scalars: int, *, contracted: bool = True) -> dict[str, Shader]:
    """The shaders of products with so many operands and scalars of a tail: by block, for operands in whole vectors of
    16 bytes, and the smaller ones for any; and the one that adds up levels of the tree."""
    listed: dict[str, Shader] = {}
    for side, rows, columns in BLOCKS:
        for kind, element in (("wide", "V"), ("any", "T"))[: 1 if rows == 8 else 2]:
            name = f"strided_{kind}_{side}_{rows}x{columns}"
            listed[name] = _tiles_shader((side, rows, columns), element, others, scalars)
    rest = strided_rows.Rest(
        _written(others), (*_batch_spec(), *_strides("AB"), *_places(others)), tuple(_scalars(scalars))
    )
    listed |= strided_rows.shaders(rest)
    listed |= {"strided_fold": _fold_shader(others, scalars)}
    return {name: replace(shader, contracted=contracted) for name, shader in listed.items()}


def window_shaders(others: int, scalars: int) -> dict[str, Shader]:
    """The shaders of products whose b is windows: by block, element by element; and the one that adds up levels."""
    listed: dict[str, Shader] = {}
    for block in BLOCKS:
        plain = _tiles_shader(block, "T", others, scalars, WINDOW_NUMBERS)
        listed["windows_{}_{}x{}".format(*block)] = replace(plain, file="windows_{}_{}x{}.comp".format(*block))
    return {**listed, "strided_fold": _fold_shader(others, scalars)}


def _tiles_shader(
    block: tuple[int, int, int], element: str, others: int, scalars: int, numbers: Sequence[str] = ()
) -> Shader:
    """`numbers` are more specialisation constants; those of the tail's operands are the last."""
    side, rows, columns = block
    walked = (*_batch_spec(), *_strides("AB"), *(Spec(name, 1) for name in numbers))
    return Shader(
        (Binding("a", element), Binding("b", element), *_written(others)),
        (*(Scalar(number, "u32") for number in NUMBERS), *_scalars(scalars)),
        (Spec("A_ACROSS", 0), Spec("B_ALONG", 0), *walked, *_places(others)),
        local=(side * side, 1, 1),
        file=f"strided_{side}_{rows}x{columns}.comp",
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
    )


def _fold_shader(others: int, scalars: int) -> Shader:
    return Shader(
        (Binding("part"), *_written(others)),
        (*(Scalar(number, "u32") for number in FOLD_NUMBERS), *_scalars(scalars)),
        (*_batch_spec(), *_places(others)),
        local=(tiles.LOCAL, 1, 1),
        file="strided_fold.comp",
        includes=("portable.glsl",),
    )


def _written(others: int) -> tuple[Binding, ...]:
    return (*(Binding(f"x{j}") for j in range(others)), Binding("result", access="readwrite"))


def _scalars(scalars: int) -> Iterator[Scalar]:
    yield from (Scalar(f"number{j}") for j in range(scalars))


def _batch_spec() -> Iterator[Spec]:
    yield from (Spec(f"SIZE{axis}", 1) for axis in _INNER)


def _strides(names: str) -> Iterator[Spec]:
    yield from (Spec(f"{name}_Z{axis}", 0) for name in names for axis in _INNER)


def _places(others: int) -> Iterator[Spec]:
    for j in range(others):
        yield from (Spec(f"X{j}_{part}", 0) for part in ("START", "ROW", "COLUMN"))
        yield from (Spec(f"X{j}_Z{axis}", 0) for axis in range(BATCH_AXES))


@dataclass(frozen=True)
class OperandLayout:
    """How a matrix is read: in vectors of `lanes` elements, along its rows or along its columns."""

    lanes: int
    down: bool


def _layout(rows: int, columns: int, matrix: Matrices, per_vector: int, nbytes: int) -> OperandLayout:
    """Whole vectors, where everything that is a multiple of them allows it."""
    steps = (matrix.start, *matrix.batch)
    even = nbytes % tiles.VECTOR_BYTES == 0 and all(s >= 0 and s % per_vector == 0 for s in steps)
    for down, unit, other, length in (
        (False, matrix.column, matrix.row, columns),
        (True, matrix.row, matrix.column, rows),
    ):
        if even and unit == 1 and other >= 0 and other % per_vector == 0 and length % per_vector == 0:
            return OperandLayout(per_vector, down)
    return OperandLayout(1, matrix.row == 1 and matrix.column != 1)


@dataclass(frozen=True)
class Operands:
    """Names of what is bound: a, b and the operands of the tail; and the tail's scalars."""

    a: str
    b: str
    others: tuple[str, ...]
    scalars: tuple[Number, ...]
    nbytes: tuple[int, int]
    """Sizes of the arrays that a and b are part of."""
    windows: Mapping[str, int] | None = None
    """`WINDOW_NUMBERS`, where b is windows: then its strides along k and columns mean nothing."""


@dataclass(frozen=True)
class Share:
    """A part of k, from reach[0] to reach[1]: where its sums go, with which push and specialisation constants."""

    reach: tuple[int, int]
    target: str
    flags: Mapping[str, Number]
    places: Mapping[str, int]


def plan(call: Call, formed: Product, names: Operands) -> Plan:
    """Dispatches of tiles, level by level of the tree over k; a tail comes in the last."""
    size = call.size("result")
    if size == 0:
        return Plan(())
    numbers = {f"number{j}": value for j, value in enumerate(names.scalars)}
    places = _place_numbers(formed)

    def multiply(_: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number]) -> Iterator[Dispatch]:
        yield from _multiply(call, formed, names, Share(reach, target, {**flags, **numbers}, places))

    def fold(_: Call, buffers: tuple[str, str], fresh: bool, last: bool) -> Dispatch:
        groups, trips = groups_for(size, tiles.LOCAL, call.limits)
        push = {"m": formed.m, "n": formed.n, "elements": size, "stride": groups * tiles.LOCAL, **numbers}
        push |= {"fresh": int(fresh), "last": int(last)}
        return Dispatch("strided_fold", (buffers[0], *names.others, buffers[1]), push, (groups, 1, 1), trips, places)

    return tiles.in_levels(call, multiply, fold, formed.k)


def _place_numbers(formed: Product) -> dict[str, int]:
    """Specialisation constants: lengths of the inner batch axes, and where the tail's operands lie."""
    sizes = _outer_first(formed.batch, 1)
    spec = {f"SIZE{axis}": sizes[axis] for axis in _INNER}
    for j, other in enumerate(formed.others):
        steps = _outer_first(other.batch, 0)
        spec |= {f"X{j}_START": other.start, f"X{j}_ROW": other.row % _WORD, f"X{j}_COLUMN": other.column % _WORD}
        spec |= {f"X{j}_Z{axis}": steps[axis] % _WORD for axis in range(BATCH_AXES)}
    return spec


def _outer_first(values: Sequence[int], missing: int) -> tuple[int, ...]:
    """Four numbers: a single axis is the outermost, whose length and strides no pipeline depends on."""
    return (*values, *(missing for _ in range(BATCH_AXES - len(values))))


def _multiply(
    call: Call,
    formed: Product,
    names: Operands,
    share: Share,
) -> Iterator[Dispatch]:
    (begin, end), target, flags, places = share.reach, share.target, share.flags, share.places
    per_vector = tiles.VECTOR_BYTES // call.dtype.size
    left = _layout(formed.m, formed.k, formed.a, per_vector, names.nbytes[0])
    right = _layout(formed.k, formed.n, formed.b, per_vector, names.nbytes[1])
    wide = left.lanes == right.lanes == per_vector and names.windows is None
    if (
        names.windows is None
        and formed.a.column == 1
        and formed.b.column == 1
        and not (left.down or right.down)
        and end > begin
    ):
        by_rows = _by_rows(call, formed, share, wide)
        if by_rows is not None:
            yield _bound(by_rows, formed, names, share, per_vector if wide else 1)
            return
    side, rows, columns = _block(call, formed, wide or names.windows is not None)
    across = ceil_div(formed.n, side * columns)
    per_batch = across * ceil_div(formed.m, side * rows)
    push = {"m": formed.m, "n": formed.n, "begin": begin, "end": end, "across": across, "per_batch": per_batch}
    spec = {"A_ACROSS": int(left.down), "B_ALONG": int(right.down), **places}
    for name, matrix, layout, axes in (
        ("a", formed.a, left, ("row", "depth")),
        ("b", formed.b, right, ("depth", "column")),
    ):
        lanes = layout.lanes if wide else 1
        steps = [step // lanes for step in _outer_first(matrix.batch, 0)]
        push |= {f"{name}_start": matrix.start // lanes, f"{name}_batch": steps[0] % _WORD}
        for axis, step, unit in zip(axes, (matrix.row, matrix.column), (layout.down, not layout.down), strict=True):
            push[f"{name}_{axis}"] = (step if unit else step // lanes) % _WORD
        spec |= {f"{name.upper()}_Z{axis}": steps[axis] % _WORD for axis in _INNER}
    shader = f"strided_{'wide' if wide else 'any'}_{side}_{rows}x{columns}"
    if names.windows is not None:
        shader, spec = f"windows_{side}_{rows}x{columns}", {**spec, "B_ALONG": 0, **names.windows}
    trips = _trips(end - begin, (side, rows, columns), call.dtype.size)
    for part in split_work(per_batch * formed.batches, trips, call.limits):
        place = {"first_tile": part.first, "tiles": part.beyond, "stride": part.groups}
        bound = (names.a, names.b, *names.others, target)
        yield Dispatch(shader, bound, {**push, **place, **flags}, (part.groups, 1, 1), part.trips, spec)


def _by_rows(
    call: Call,
    formed: Product,
    share: Share,
    wide: bool,
) -> Dispatch | None:
    """The dispatch for few rows, or for what leaves much of a device idle, if it is such a product."""
    reach, flags = share.reach, share.flags
    dims = {"m": formed.m, "n": formed.n, "k": formed.k}
    shapes = {"a": (formed.m * formed.batches, formed.k), "b": (formed.k, formed.n), "result": (formed.m, formed.n)}
    plain = replace(call, dims=dims, shapes=shapes)
    whole = replace(plain, dims={**dims, "m": formed.m * formed.batches})
    numbers = call.tuning
    for few, chosen in ((True, "few" in numbers and tiles.has_few_rows(plain)), (False, tiles.is_small(whole, wide))):
        if chosen and (few or "slab" in numbers):
            dispatch = strided_rows.multiply(plain, formed.batches, reach, flags, vectors=wide, few=few)
            if dispatch is not None:
                return dispatch
    return None


def _bound(dispatch: Dispatch, formed: Product, names: Operands, share: Share, lanes: int) -> Dispatch:
    """The dispatch with strides, and on its buffers."""
    push, spec = dict(dispatch.push), {**dispatch.spec, **share.places}
    for name, matrix, step in (("a", formed.a, "a_row"), ("b", formed.b, "b_depth")):
        steps = [stride // lanes for stride in _outer_first(matrix.batch, 0)]
        push |= {f"{name}_start": matrix.start // lanes, f"{name}_batch": steps[0] % _WORD}
        push[step] = matrix.row // lanes % _WORD
        spec |= {f"{name.upper()}_Z{axis}": steps[axis] % _WORD for axis in _INNER}
    return replace(dispatch, buffers=(names.a, names.b, *names.others, share.target), push=push, spec=spec)


def _block(call: Call, formed: Product, wide: bool) -> tuple[int, int, int]:
    """The largest block of which there are enough to fill the device, and which fits it."""
    sizes = {**FITTED, **call.tuning}
    first = BLOCKS.index((sizes["side"], sizes["rows"], sizes["columns"]))
    if call.dtype.size == 8:
        first = max(first, 1)
    fill = tiles.least_tiles(call, sizes["fill"])
    for side, rows, columns in BLOCKS[max(first, 0 if wide else 2) : -1]:
        count = formed.batches * ceil_div(formed.m, side * rows) * ceil_div(formed.n, side * columns)
        pitches = side * (rows + columns) // 4 + 2
        fits = side * side <= call.limits.invocations and pitches * 256 + 16 <= call.limits.shared_bytes
        if fits and count >= fill:
            return side, rows, columns
    return BLOCKS[-1]


def _trips(depth: int, block: tuple[int, int, int], element: int) -> int:
    """Loop iterations of an invocation for one tile over that much of k, short loops that are unrolled included."""
    side, rows, columns = block
    step = 16 if element == 4 else 8
    brought = (rows + columns) * step // side
    each = 1 + 2 * step + 2 * brought + rows
    written = rows * columns // 4 * (5 + rows)
    return 1 + 3 * rows + written + brought + ceil_div(depth, step) * each
