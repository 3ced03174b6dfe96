"""prefix_scan: inclusive prefix sums of the flattened array, in the canonical order.

Within runs of 64 from +0, plus the carry of the run: the scan, by the same rule, of the run totals before it. On the
way up each tile of 64 x 64 is summed; on the way down it is read again and finished, starting with the shortest list.
"""

from dataclasses import replace

from dashi.kernels._reductions import (
    SHAPES,
    SPEC,
    TUNINGS,
    ReductionPass,
    first_shaders,
    passes,
    prefer,
    quad_trips,
    quads_shader,
    spec_of,
    tile_trips,
    vectors,
)
from dashi.kernels._work import RUN
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader
from dashi.kernels.patterns import LARGE, VECTOR
from dashi.kernels.portable import canon, prefix64
from dashi.types import Cost, HostArray

NUMBERS = (Scalar("n", "u32"), Scalar("tiles", "u32"), Scalar("stride", "u32"), Scalar("first", "u32"))


def reference(x: HostArray) -> HostArray:
    return canon(prefix64(canon(x.reshape(-1)))).reshape(x.shape)


def plan(call: Call) -> Plan:
    if call.size("x") == 0:
        return Plan(())
    levels = passes(call.size("x"), call.limits)
    up = tuple(_up(p, call) for p in levels if not p.last)
    down = tuple(_down(p, call) for p in reversed(levels))
    # Whole vectors, so that they can be written as such.
    scratch = {f"{name}{p.index}": ("T", p.tiles + -p.tiles % 4) for p in levels[:-1] for name in ("totals", "scanned")}
    return Plan(up + down, scratch)


def _list(p: ReductionPass) -> str:
    """What is scanned at this level: the elements, or the totals of the tiles of the level below."""
    return "x" if p.index == 0 else p.source("totals")


def _up(p: ReductionPass, call: Call) -> Dispatch:
    made = p.first_dispatch("up", (_list(p), p.target("totals")), call)
    return replace(made, push=_numbers(p, made.push["stride"]))


def _down(p: ReductionPass, call: Call) -> Dispatch:
    # A list of one tile has no carries: the two buffers are bound to something, but not read.
    carries = (_list(p), _list(p)) if p.last else (p.target("totals"), p.target("scanned"))
    made = "result" if p.index == 0 else p.source("scanned")
    odd = p.index == 0 and p.n * call.dtype.size % VECTOR != 0
    return _dispatch("odd" if odd else "main", (_list(p), *carries, made), p, call)


def _dispatch(shader: str, buffers: tuple[str, ...], p: ReductionPass, call: Call) -> Dispatch:
    # On top of what a pass up does: back through shared memory or the totals of runs, and out by elements.
    each = vectors(RUN, call.dtype)
    if call.tuning["quads"]:
        trips, spec = quad_trips(call.dtype) + 2 * RUN + each * (1 + VECTOR // call.dtype.size), {}
        shader = f"{shader}_quads"
    else:
        lanes, spec = call.tuning["lanes"], spec_of(call.tuning)
        trips = tile_trips(call.dtype, lanes) + 3 * RUN
        trips += 2 * each + RUN * each // lanes * (2 + VECTOR // call.dtype.size)
    return Dispatch(shader, buffers, _numbers(p, p.groups), (p.groups, 1, 1), p.rounds * trips, spec)


def _numbers(p: ReductionPass, stride: Number) -> dict[str, Number]:
    return {"n": p.n, "tiles": p.tiles, "stride": stride, "first": int(p.index == 0)}


def cost(call: Call) -> Cost:
    """The floor: every element read once and written once. The dispatches read each of them a second time."""
    if call.size("x") == 0:
        return Cost()
    levels = passes(call.size("x"), call.limits)
    return Cost(flops=2 * call.size("x"), bytes=call.bytes("x", "result"), dispatches=2 * len(levels) - 1)


def shader(*buffers: Binding, file: str = "kernel.comp") -> Shader:
    return Shader(
        (Binding("x", "u32x4"), *buffers),
        NUMBERS,
        SPEC,
        local=("LANES", 1, 1),
        file=file,
        includes=("portable.glsl", "vectors.glsl"),
        extensions=("GL_EXT_control_flow_attributes",),
    )


CARRIES = (Binding("totals"), Binding("scanned"))
DOWN = {
    "main": shader(*CARRIES, Binding("result", "V", "write")),
    "odd": shader(*CARRIES, Binding("result", "T", "write")),
}
KERNEL = Kernel(
    summary="inclusive prefix sums of the flattened array, in its shape",
    inputs=(Operand("x"),),
    outputs=(Operand("result"),),
    shaders={
        **DOWN,
        **{f"{name}_quads": quads_shader(down) for name, down in DOWN.items()},
        **first_shaders("up", shader(Binding("totals", access="write"), file="up.comp")),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(*(Case({"x": shape}) for shape in SHAPES), Case({"x": (300001,)})),
    bench=tuple(Case({"x": shape}) for shape in LARGE),
    tunings=TUNINGS,
    prefer=prefer,
    aliases=("scan", "cumsum"),
)
