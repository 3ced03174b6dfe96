"""scale_counts: how the signs of every scale lie on those of the scale before it, counted.

A point is active at a scale where |band| > tau sqrt(power), power being the mean square of that band; its sign is the
band's. Points are counted by their state at a scale (-1 active, 0 not active, +1 active) and at the scale before
(-2 active and negative, -1 negative, 0, 1 positive, 2 active and positive): count 5 (state + 1) + (before + 2). The
first scale is counted against itself. `tiles` squares, a square number of them, are counted apart, row by row.
"""

import math

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._work import LOCAL, ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.kernels.portable import canon, mul, sqrt
from dashi.types import Cost, HostArray, Shape

STATES = 15
PARTS = 64
SPREAD = 16
"""Points for each invocation, at least, before a tile is divided among several workgroups."""


def reference(bands: HostArray, power: HostArray, *, tau: float, tiles: int) -> HostArray:
    members, scales, h, w = bands.shape
    side = tiles_along(h, w, tiles)
    values = canon(bands)
    edge = mul(canon(np.asarray(tau, bands.dtype)), sqrt(canon(power)))[:, :, None, None]
    active = np.abs(values) > edge
    sign = (values > 0).astype(np.int64) - (values < 0)
    before = np.concatenate([(sign * (1 + active))[:, :1], (sign * (1 + active))[:, :-1]], axis=1)
    state = 5 * (sign * active + 1) + before + 2
    split = state.reshape(members, scales, side, h // side, side, w // side)
    flat = split.transpose(0, 1, 2, 4, 3, 5).reshape(members, scales, tiles, h * w // tiles)
    return np.stack([(flat == number).sum(axis=-1) for number in range(STATES)], axis=-1).astype(np.uint32)


def tiles_along(h: int, w: int, tiles: int) -> int:
    """Tiles along a side of the field."""
    side = math.isqrt(tiles)
    if side < 1 or side * side != tiles or h % side or w % side:
        raise ShapeError(
            f"kernel 'scale_counts': {h} x {w} points are not {tiles} equal squares.",
            "use 1, 4, 9, 16, ... tiles whose number along a side divides the field's.",
        )
    return side


def plan(call: Call) -> Plan:
    dims, tiles = call.dims, int(call.scalars["tiles"])
    side = tiles_along(dims["h"], dims["w"], tiles)
    planes = dims["members"] * dims["scales"] * tiles
    if planes == 0:
        return Plan(())
    groups, rounds = groups_for(STATES * planes, LOCAL, call.limits)
    push = {"total": STATES * planes, "stride": groups * LOCAL}
    clear = Dispatch("clear", ("result",), push, (groups, 1, 1), rounds)
    points = dims["h"] * dims["w"] // tiles
    parts = max(1, min(PARTS, ceil_div(points, SPREAD * LOCAL)))
    groups, rounds = groups_for(planes * parts, 1, call.limits)
    push = {
        "total": planes * parts, "stride": groups, "scales": dims["scales"], "h": dims["h"], "w": dims["w"],
        "side": side, "parts": parts, "tau": call.scalars["tau"],
    }  # fmt: skip
    trips = rounds * (1 + 2 * STATES + ceil_div(points, parts * LOCAL) * (1 + STATES))
    return Plan((clear, Dispatch("main", ("bands", "power", "result"), push, (groups, 1, 1), trips)))


def cost(call: Call) -> Cost:
    size = call.size("bands")
    return Cost(4 * size, call.bytes("bands", "power", "result"), 2 * int(call.size("result") > 0))


def case(shape: Shape, tau: float = 1.0, tiles: int = 1) -> Case:
    return Case({"bands": shape, "power": shape[:2]}, {"tau": tau, "tiles": tiles}, {"power": squares})


def squares(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Mean squares: 0, and small numbers."""
    return rng.integers(0, 4, shape).astype(np.float32)


NUMBERS = (Scalar("total", "u32"), Scalar("stride", "u32"))
TAU = Scalar("tau", default=1.5, doc="what counts as active, in root mean squares of the band")
TILES = Scalar("tiles", "u32", 1, "squares that are counted apart: 1, 4, 9, 16, ...")

KERNEL = Kernel(
    summary="how the signs of every scale lie on those of the scale before it, counted",
    inputs=(Operand("bands", shape=("members", "scales", "h", "w")), Operand("power", shape=("members", "scales"))),
    outputs=(Operand("result", "u32", ("members", "scales", "tiles", STATES)),),
    scalars=(TAU, TILES),
    shaders={
        "main": Shader(
            (Binding("bands"), Binding("power"), Binding("result", "u32", "readwrite")),
            (*NUMBERS, *(Scalar(name, "u32") for name in ("scales", "h", "w", "side", "parts")), Scalar("tau")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        ),
        "clear": Shader((Binding("result", "u32", "write"),), NUMBERS, local=(LOCAL, 1, 1), file="clear.comp"),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="OBSERVER"),
    cases=(
        case((1, 1, 1, 1)), case((2, 3, 8, 8), 0.5, 4), case((1, 2, 6, 9), 0.0, 9), case((1, 4, 64, 64), 1.5, 16),
        case((0, 2, 4, 4)), case((1, 0, 4, 4)), case((3, 1, 5, 7), -1.0), case((1, 2, 130, 127), 1.0),
    ),
    bench=(case((1, 9, 1024, 1024), 1.5),),
)  # fmt: skip
