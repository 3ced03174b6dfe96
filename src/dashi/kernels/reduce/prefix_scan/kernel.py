"""prefix_scan: inclusive prefix sums of the flattened array, in the canonical order.

Within runs of 64 from +0, plus the carry of the run: the scan, by the same rule, of the run totals before it. On the
way up each tile of 64 x 64 is summed; on the way down it is read again and finished, starting with the shortest list.
"""

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, prefix64
from dashi.kernels.reductions import LOCAL, PUSH, RUN, SHAPES, Pass, join_trips, passes
from dashi.types import Array, Cost

NUMBERS = (*PUSH, Scalar("first", "u32"))


def reference(x: Array) -> Array:
    return canon(prefix64(canon(x.reshape(-1)))).reshape(x.shape)


def plan(call: Call) -> Plan:
    if call.size("x") == 0:
        return Plan(())
    levels = passes(call.size("x"), call.dtype.size, call.limits)
    up = tuple(_dispatch("up", (_list(p), p.target("totals")), p, p.trips) for p in levels if not p.last)
    down = tuple(_down(p, call) for p in reversed(levels))
    scratch = {f"{name}{p.index}": ("T", p.tiles) for p in levels if not p.last for name in ("totals", "scanned")}
    return Plan(up + down, scratch)


def _list(p: Pass) -> str:
    """What is scanned at this level: the elements, or the totals of the tiles of the level below."""
    return "x" if p.index == 0 else p.source("totals")


def _down(p: Pass, call: Call) -> Dispatch:
    # A list of one tile has no carries: the two buffers are bound to something, but not read.
    carries = (_list(p), _list(p)) if p.last else (p.target("totals"), p.target("scanned"))
    made = "result" if p.index == 0 else p.source("scanned")
    # Each run's total, the carries of a tile's runs, then each element fetched, put, added and written.
    per_block = 1 + join_trips(call.dtype.size) + RUN + call.dtype.size + 4 * RUN
    return _dispatch("main", (_list(p), *carries, made), p, p.rounds * per_block)


def _dispatch(shader: str, buffers: tuple[str, ...], p: Pass, trips: int) -> Dispatch:
    return Dispatch(shader, buffers, {**p.push, "first": int(p.index == 0)}, (p.groups, 1, 1), trips)


def cost(call: Call) -> Cost:
    if call.size("x") == 0:
        return Cost()
    levels = passes(call.size("x"), call.dtype.size, call.limits)
    # Every level is read once and written once; all but the last are read once more for their tiles' totals, which
    # are then written, and read again as carries (one of each, and one of their scan, per tile).
    elements = sum(2 * p.n if p.last else 3 * p.n + 3 * p.tiles for p in levels)
    return Cost(flops=2 * call.size("x"), bytes=elements * call.dtype.size, dispatches=2 * len(levels) - 1)


KERNEL = Kernel(
    summary="inclusive prefix sums of the flattened array, in its shape",
    inputs=(Operand("x"),),
    outputs=(Operand("result"),),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("totals"), Binding("scanned"), Binding("result", access="write")),
            NUMBERS,
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        ),
        "up": Shader(
            (Binding("x"), Binding("totals", access="write")),
            NUMBERS,
            local=(LOCAL, 1, 1),
            file="up.comp",
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(*(Case({"x": shape}) for shape in SHAPES), Case({"x": (300001,)})),
    aliases=("scan", "cumsum"),
)
