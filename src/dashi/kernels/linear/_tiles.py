"""Matrix products: the levels of tree64 over k, and the dispatches of `_include/gemm_tile.glsl`.

A dispatch of a portable product sums two levels of the tree, 4096 of k; the levels above are kept in buffers, one per
level, which one addend after the other is added to. Up to 64 x 4096 of k that is the result alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from dashi.kernels._work import RUN, ceil_div, groups_for, split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Plan, Scalar, Shader
from dashi.kernels.linear import _columns as vector_products
from dashi.kernels.linear import _few_rows as few_rows
from dashi.kernels.linear import _small_tiles as small_tiles
from dashi.types import Cost

CHUNK: Final = RUN * RUN
LOCAL: Final = 256
VECTOR_BYTES: Final = 16
SIDE: Final = 16
"""A workgroup is 16 x 16 invocations, each with a block of `rows` x `columns` results."""

SMALL: Final = {"block": 4, "slab": 16, "invocations": 512, "processors": 132}
"""Sizes of `small_tiles`: the rows of an invocation's block, how much of k a team stages at a time, the most
invocations of a workgroup, and how many workgroups a device works on at full speed."""
ALWAYS: Final = 1 << 16
FEW: Final = {"few": 32, "few_invocations": 128, "few_fill": 256}
"""Sizes of `few_rows`: the most rows of a that it is for, the invocations of a workgroup, and how many workgroups fill
a device."""
NOT_FEW: Final = {**FEW, "few": 0}
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "fitted": {"rows": 8, "columns": 8, "fill": 128, **SMALL, **FEW},
    "blocks_8x8": {"rows": 8, "columns": 8, "fill": 0, **SMALL, **NOT_FEW},
    "blocks_4x4": {"rows": 4, "columns": 4, "fill": 0, **SMALL, **NOT_FEW},
    "small": {"rows": 4, "columns": 4, "fill": ALWAYS, **SMALL, **NOT_FEW},
    "small_few": {"rows": 4, "columns": 4, "fill": ALWAYS, **SMALL, **NOT_FEW, "block": 8, "processors": 4},
    "few_rows": {"rows": 4, "columns": 4, "fill": 0, **SMALL, **FEW, "few": ALWAYS, "few_fill": 4},
    "few_rows_deep": {"rows": 4, "columns": 4, "fill": 0, **SMALL, **FEW, "few": ALWAYS},
}
"""The block of an invocation; it is made smaller while there are not so many tiles as fill a device. Where even the
smallest do not, `small_tiles` multiplies; few rows of a, `few_rows`."""
SOFTWARE_FILL: Final = 3
"""Tiles that keep a processor's cores busy."""
BLOCKS: Final = ((8, 8), (8, 4), (4, 4))
FLAGS: Final = (Scalar("fresh", "u32"), Scalar("last", "u32"))
"""1 where a sum begins (its buffer is not read), and where it is the result (it is made canonical)."""

FOLD: Final = Shader(
    (Binding("part"), Binding("result", access="readwrite")),
    (Scalar("n", "u32"), Scalar("stride", "u32"), *FLAGS),
    local=(LOCAL, 1, 1),
    file="fold.comp",
    includes=("portable.glsl",),
)
"""Adds one more addend to the sums of the next level."""

Multiply = Callable[[Call, tuple[int, int], str, Mapping[str, Number]], Iterable[Dispatch]]
"""Dispatches that add the products over k from the first number to the second to a buffer."""


Fold = Callable[[Call, tuple[str, str], bool, bool], Dispatch]
"""The dispatch that adds the first buffer to the second, which may be fresh, or the last."""


def in_levels(call: Call, multiply: Multiply, fold: Fold | None = None, depth: int | None = None) -> Plan:
    """The plan of a product whose dispatches sum two levels of the tree each; k, unless `depth` says otherwise."""
    if call.size("result") == 0:
        return Plan(())
    k = call.dims["k"] if depth is None else depth
    add = fold or _fold
    chunks = max(1, ceil_div(k, CHUNK))
    sums = _sums(chunks)
    dispatches: list[Dispatch] = []
    for c in range(chunks):
        end = c == chunks - 1
        reach = (c * CHUNK, min((c + 1) * CHUNK, k))
        flags = {"fresh": int(c % RUN == 0), "last": int(end and len(sums) == 1)}
        dispatches += multiply(call, reach, sums[0], flags)
        # Whenever a run of 64 addends is complete its sum is an addend of the next level.
        level, place = 0, c
        while level + 1 < len(sums) and (place % RUN == RUN - 1 or end):
            place //= RUN
            level += 1
            last = end and level + 1 == len(sums)
            dispatches.append(add(call, (sums[level - 1], sums[level]), place % RUN == 0, last))
    return Plan(tuple(dispatches), dict.fromkeys(sums[:-1], ("T", call.size("result"))))


def _sums(chunks: int) -> tuple[str, ...]:
    """The buffers of the tree's levels above the second; the last is the result."""
    names: list[str] = []
    while chunks > RUN:
        names.append(f"sums{len(names)}")
        chunks = ceil_div(chunks, RUN)
    return (*names, "result")


def _fold(call: Call, buffers: tuple[str, str], fresh: bool, last: bool) -> Dispatch:
    n = call.size("result")
    groups, trips = groups_for(n, LOCAL, call.limits)
    push = {"n": n, "stride": groups * LOCAL, "fresh": int(fresh), "last": int(last)}
    return Dispatch("fold", buffers, push, (groups, 1, 1), trips)


def cost(call: Call, dispatches: int) -> Cost:
    """a, b and the result are counted once: a tile of one serves a whole row or column of tiles of the other."""
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    return Cost(2 * m * n * k, call.bytes("a", "b", "result"), dispatches) if m * n else Cost()


def shaders() -> dict[str, Shader]:
    """One per block shape for rows of whole vectors of 16 bytes, and the smallest for any rows; and small tiles."""
    wide = {f"wide_{rows}x{columns}": _shader("V", rows, columns) for rows, columns in BLOCKS}
    return {
        **wide,
        "any_4x4": _shader("T", 4, 4),
        **small_tiles.shaders(),
        **few_rows.shaders(),
        **vector_products.row_shaders(),
    }


def _shader(element: str, rows: int, columns: int) -> Shader:
    numbers = ("m", "n", "k", "begin", "end", "across", "first_tile", "tiles", "stride")
    return Shader(
        (Binding("a", element), Binding("b", element), Binding("result", element, access="readwrite")),
        tuple(Scalar(name, "u32") for name in numbers) + FLAGS,
        local=(SIDE * SIDE, 1, 1),
        file=f"blocks_{rows}x{columns}.comp",
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
    )


def multiply(call: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number]) -> Iterator[Dispatch]:
    """Dispatches that add the products over k from reach[0] to reach[1] to `target`, in the order tree64."""
    yield from multiply_tiles(call, reach, target, flags, ordered=True)


def multiply_tiles(
    call: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number], *, ordered: bool
) -> Iterator[Dispatch]:
    """Dispatches that add the products over k from reach[0] to reach[1] to `target`: in the order tree64 if `ordered`,
    else in any."""
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    per_vector = VECTOR_BYTES // call.dtype.size
    wide = k % per_vector == 0 and n % per_vector == 0
    if has_few_rows(call):
        few = few_rows.multiply(call, reach, target, flags)
        if few is not None:
            yield few
            return
    if is_small(call, wide):
        small = small_tiles.multiply(call, reach, target, flags, ordered=ordered)
        if small is not None:
            yield small
            return
    rows, columns = _block(call) if wide else BLOCKS[-1]
    shader = f"wide_{rows}x{columns}" if wide else "any_4x4"
    across = ceil_div(n, SIDE * columns)
    tiles = across * ceil_div(m, SIDE * rows)
    trips = step_trips(reach[1] - reach[0], rows, columns, call.dtype.size)
    numbers = {"m": m, "n": n, "k": k, "begin": reach[0], "end": reach[1], "across": across}
    for share in split_work(tiles, trips, call.limits):
        place = {"first_tile": share.first, "tiles": share.beyond, "stride": share.groups}
        push = {**numbers, **place, **flags}
        yield Dispatch(shader, ("a", "b", target), push, (share.groups, 1, 1), share.trips)


def is_row(call: Call) -> bool:
    """Whether a is one row, and a vector times a matrix is the best way to multiply it."""
    per_vector = VECTOR_BYTES // call.dtype.size
    k, n, few = call.dims["k"], call.dims["n"], call.tuning.get("few", 1)
    # Large matrices of few rows in whole vectors are read faster by `few_rows`: 68 us against 90 on an H200.
    wide = k <= CHUNK and k % per_vector == 0 and n % per_vector == 0
    better = wide and few > 1 and call.bytes("b") > vector_products.HELD_VECTOR_BYTES and not call.limits.software
    return call.dims["m"] == 1 and few > 0 and not better


def has_few_rows(call: Call) -> bool:
    """Whether reading b takes longer than multiplying; a processor reads it from a cache."""
    most = call.tuning.get("few", 0)
    return most == ALWAYS or (call.dims["m"] <= most and not call.limits.software)


def is_small(call: Call, wide: bool) -> bool:
    """Whether tiles of the smallest blocks would leave much of a device idle (those that are not read in vectors, twice
    as many: they are slower); a processor's few cores never are."""
    fill = call.tuning.get("fill", 0)
    rows, columns = BLOCKS[-1]
    count = ceil_div(call.dims["m"], SIDE * rows) * ceil_div(call.dims["n"], SIDE * columns)
    return fill == ALWAYS or (count < (fill if wide else 2 * fill) and not call.limits.software)


def _block(call: Call) -> tuple[int, int]:
    """Rows and columns of an invocation's block."""
    sizes = call.tuning or next(iter(TUNINGS.values()))
    first = BLOCKS.index((sizes["rows"], sizes["columns"]))
    # A double takes two registers.
    first = max(first, 1) if call.dtype.name == "f64" else first
    fill = least_tiles(call, sizes["fill"])
    for rows, columns in BLOCKS[first:]:
        if ceil_div(call.dims["m"], SIDE * rows) * ceil_div(call.dims["n"], SIDE * columns) >= fill:
            return rows, columns
    return BLOCKS[-1]


def least_tiles(call: Call, fill: int) -> int:
    """Tiles needed to keep this device busy: `fill` on a GPU, fewer on a CPU."""
    return min(fill, SOFTWARE_FILL) if call.limits.software else fill


def step_trips(depth: int, rows: int, columns: int, element: int) -> int:
    """Loop iterations of an invocation for one tile over that much of k, short loops that are unrolled included."""
    step = 16 if element == 4 else 8
    each = 1 + 2 * step + 2 * (rows + columns) + rows
    return 1 + 3 * rows + 4 * 2 * rows + rows + columns + ceil_div(depth, step) * each
