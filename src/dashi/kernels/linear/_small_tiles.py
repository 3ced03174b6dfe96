"""Matrix products so small that large tiles would leave most of a device idle: `_include/gemm_small.glsl`.

The results are cut into tiles of a size that gives every part of a device about as much to do; k is divided among the
teams of a workgroup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dashi.kernels._work import RUN, ceil_div
from dashi.kernels.abi import Binding, Call, Dispatch, Number, Scalar, Shader, Spec

VECTOR_BYTES: Final = 16
BLOCK_ROWS: Final = (8, 4)
TILES: Final = tuple((rows, columns) for rows in (64, 32, 16) for columns in (32, 28, 24, 20, 16))
"""Rows and columns of results that a workgroup makes."""
MOST_RUNS: Final = 24
"""Runs of k up to which a workgroup may have all the invocations that a tuning names."""
STAGING: Final = 64
"""Products in whose time an element is brought through shared memory and read from there, measured on an H200."""
NUMBERS: Final = ("m", "n", "k", "begin", "end", "across", "span", "fresh", "last")


@dataclass(frozen=True)
class TileShape:
    """How a workgroup works: teams of `across` x `down` invocations with blocks of `block` x 4 results, side by side
    through `slab` of k each."""

    across: int
    down: int
    block: int
    teams: int
    slab: int

    @property
    def rows(self) -> int:
        return self.down * self.block

    @property
    def columns(self) -> int:
        return self.across * 4

    @property
    def pool(self) -> int:
        """Vectors of four elements in shared memory: slabs of every team, or the sums of every team."""
        slabs = self.slab * (self.rows // 4 + 1 + self.across)
        return self.teams * max(slabs, self.block * self.across * self.down)

    def tiles(self, m: int, n: int) -> int:
        return ceil_div(m, self.rows) * ceil_div(n, self.columns)


def shaders() -> dict[str, Shader]:
    """Shaders by rows of an invocation's block; for rows of whole vectors of 16 bytes, of pairs, and for any rows."""
    return {
        f"small_{kind}_{rows}": _shader(element, rows)
        for kind, element in (("wide", "V"), ("pairs", "P"), ("any", "T"))
        for rows in BLOCK_ROWS
    }


def _shader(element: str, rows: int) -> Shader:
    return Shader(
        (Binding("a", element), Binding("b", element), Binding("result", element, access="readwrite")),
        tuple(Scalar(name, "u32") for name in NUMBERS),
        (Spec("ACROSS", 4), Spec("DOWN", 4), Spec("GROUPS", 2), Spec("SLAB", 8), Spec("POOL", 256)),
        local=("ACROSS", "DOWN", "GROUPS"),
        file=f"small_{rows}.comp",
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude="#define V P\n#define V_LANES 2\n" if element == "P" else "",
    )


def multiply(
    call: Call,
    reach: tuple[int, int],
    target: str,
    flags: Mapping[str, Number],
    *,
    ordered: bool,
    vectors: tuple[int, ...] = (),
    chosen: TileShape | None = None,
) -> Dispatch | None:
    """The dispatch that adds the products over k from reach[0] to reach[1] to `target`, in the order tree64 or in any;
    None where there is not enough room for it. `vectors` are the lengths of vectors to try, the best first;
    `chosen` is a shape for the workgroups."""
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    depth = reach[1] - reach[0]
    shape = chosen or shape_for(call, depth)
    if shape is None or depth == 0 or shape.tiles(m, n) > call.limits.groups:
        return None
    widest = VECTOR_BYTES // call.dtype.size
    per_vector = next(p for p in (vectors or (widest, 2, 1)) if k % p == 0 and n % p == 0)
    kind = "wide" if per_vector == widest else "pairs" if per_vector == 2 else "any"
    span = RUN if ordered else shape.slab  # side by side, the teams read whole lines of the cache
    trips = _trips(shape, depth, span, per_vector)
    if trips > call.limits.loop_trips:
        return None
    push = {
        "m": m,
        "n": n,
        "k": k,
        "begin": reach[0],
        "end": reach[1],
        "across": ceil_div(n, shape.columns),
        "span": span,
    }
    names = ("ACROSS", "DOWN", "GROUPS", "SLAB", "POOL")
    sizes = (shape.across, shape.down, shape.teams, shape.slab, shape.pool)
    name = f"small_{kind}_{shape.block}"
    groups = (shape.tiles(m, n), 1, 1)
    return Dispatch(name, ("a", "b", target), {**push, **flags}, groups, trips, dict(zip(names, sizes, strict=True)))


def shape_for(call: Call, depth: int) -> TileShape | None:
    """The tile that keeps a device busy for the shortest time, with as many teams as k has runs for and fit in; the
    tuning's own, where it names `tile_rows` and `tile_columns`, and no more than its `teams`."""
    numbers, m, n = call.tuning, call.dims["m"], call.dims["n"]
    slab = numbers["slab"] if call.dtype.size == 4 else numbers["slab"] // 2

    def time(tile: tuple[int, int]) -> int:
        rows, columns = tile
        waves = -(-(ceil_div(m, rows) * ceil_div(n, columns)) // numbers["processors"])
        return waves * (rows * columns + STAGING * (rows + columns))

    if "tile_rows" in numbers:
        rows, columns = numbers["tile_rows"], numbers["tile_columns"]
    else:
        rows, columns = _shared_evenly(min(TILES, key=time), m, n, numbers["processors"])
    block = numbers["block"] if call.dtype.size == 4 and rows > 16 else 4
    runs = max(1, ceil_div(depth, RUN))
    # With more rounds the registers of a large workgroup cost more than its teams bring.
    wide = numbers["invocations"] if runs <= MOST_RUNS else min(256, numbers["invocations"])
    for most in range(min(runs, numbers.get("teams", runs), wide), 0, -1):
        teams = -(-runs // ceil_div(runs, most))
        shape = TileShape(columns // 4, rows // block, block, teams, slab)
        invocations = min(wide, call.limits.invocations)
        room = call.limits.shared_bytes - VECTOR_BYTES
        if teams * shape.across * shape.down <= invocations and shape.pool * 4 * call.dtype.size <= room:
            return shape
    return None


def _shared_evenly(tile: tuple[int, int], m: int, n: int, processors: int) -> tuple[int, int]:
    """The tile, or one near it that hides more of what is waited for, as measured on an H200: the widest of 16 rows
    while most processors have one, and two low ones for each processor rather than one that is high."""
    rows, columns = tile
    widest = TILES[0][1]
    if rows == TILES[-1][0] and 3 * ceil_div(m, rows) * ceil_div(n, widest) >= 2 * processors:
        return rows, widest
    if rows == TILES[0][0] and ceil_div(m, rows) * ceil_div(n, columns) <= processors:
        return rows // 2, columns
    return tile


def _trips(shape: TileShape, depth: int, span: int, per_vector: int) -> int:
    """Loop iterations of an invocation, short loops that are unrolled included."""
    team = shape.across * shape.down
    rows_at_once, depth_at_once = team * per_vector // shape.slab, team * per_vector // shape.columns
    brought = 2 * ceil_div(shape.rows, rows_at_once) + ceil_div(shape.slab, depth_at_once)
    own = ceil_div(shape.block, shape.teams)
    rounds = ceil_div(depth, shape.teams * span)
    join = shape.block + own * (1 + shape.teams)
    slabs = rounds * (span // shape.slab)
    return 3 * shape.block + 6 * own + brought + slabs * (1 + 2 * (brought + 1) + shape.slab) + (rounds + 1) * join
