"""ternary_relative: +1 where x >= tau (peak + eps), -1 where x <= -tau (peak + eps), else 0.

The peak is the largest |x| of a member. That is the threshold tau of x / (peak + eps), without a division, and without
the host: peaks are found and used on the device. A site that is 0 has no sign, so it is never admitted; a member that
holds a NaN has a peak of NaN and no support.
"""

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.kernels._work import ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, mul, order_key, order_value
from dashi.types import Cost, HostArray, Shape

LANES = 256
PARTS = 256
"""Workgroups that look for the peak of one member, at most: no more than the invocations that join what they find."""
TAU = Scalar("tau", default=0.35, doc="the least part of the peak that is admitted; not negative")
EPS = Scalar("eps", default=1e-12, doc="added to the peak, so that a field of nothing has no support")


def reference(x: HostArray, tau: float, eps: float) -> tuple[HostArray, HostArray]:
    require(x.shape, tau)
    values = canon(x).reshape(len(x), x.shape[1] * x.shape[2])
    kind = x.dtype.type
    keys = order_key(canon(np.abs(values)))
    peak = order_value(keys.max(axis=1, initial=order_key(np.zeros(1, x.dtype))[0]))
    least = canon(mul(canon(kind(tau)), canon(peak + canon(kind(eps)))))[:, None]
    made = np.where((np.abs(values) >= least) & (values != 0), np.where(values < 0, -1, 1), 0)
    return made.astype(np.int8).reshape(x.shape), canon(peak)


def require(shape: Shape, tau: float) -> None:
    members, h, w = shape
    if not tau >= 0:
        raise InputError(f"a threshold of {tau} admits nothing sensible.", "pass tau >= 0.")
    if members > 1 and h * w % 4:
        raise ShapeError(
            f"kernel 'ternary_relative': several members of {h} x {w} sites do not start at whole words.",
            "pass them one by one, or fields of a multiple of 4 sites.",
        )


def plan(call: Call) -> Plan:
    require(call.shapes["x"], float(call.scalars["tau"]))
    members, plane = call.dims["members"], call.dims["h"] * call.dims["w"]
    if members == 0:
        return Plan(())
    parts = max(1, min(PARTS, ceil_div(plane, LANES)))
    tiles = max(1, min(1024, ceil_div(plane, 4 * LANES)))
    groups, rounds = groups_for(members * parts, 1, call.limits)
    push = {"total": members * parts, "stride": groups, "plane": plane, "parts": parts}
    trips = rounds * (10 + ceil_div(plane, parts * LANES))
    peaks = Dispatch("peaks", ("x", "found"), push, (groups, 1, 1), trips)
    groups, rounds = groups_for(members * tiles, 1, call.limits)
    push = {
        "total": members * tiles, "stride": groups, "plane": plane, "parts": parts, "tiles": tiles,
        "tau": call.scalars["tau"], "eps": call.scalars["eps"],
    }  # fmt: skip
    trips = rounds * (10 + 5 * ceil_div(plane, 4 * tiles * LANES))
    decide = Dispatch("main", ("x", "found", "result", "peaks"), push, (groups, 1, 1), trips)
    return Plan((peaks, decide), {"found": ("T", members * parts)})


def cost(call: Call) -> Cost:
    size = call.size("x")
    return Cost(2 * size, 2 * call.bytes("x") + size + call.bytes("peaks"), 2 * int(size > 0))


def case(shape: Shape, tau: float = 0.35, eps: float = 1e-12) -> Case:
    return Case({"x": shape}, {"tau": tau, "eps": eps})


def nothing(rng: np.random.Generator, shape: Shape) -> HostArray:
    made = rng.standard_normal(shape)
    made[0] = 0
    return made


WORDS = tuple(Scalar(name, "u32") for name in ("total", "stride", "plane", "parts"))

KERNEL = Kernel(
    summary="ternary threshold of members relative to their largest magnitudes",
    inputs=(Operand("x", shape=("members", "h", "w")),),
    outputs=(Operand("result", "i8", ("members", "h", "w")), Operand("peaks", shape=("members",))),
    shaders={
        "peaks": Shader(
            (Binding("x"), Binding("found", access="write")),
            WORDS,
            local=(LANES, 1, 1),
            file="peaks.comp",
            includes=("portable.glsl",),
        ),
        "main": Shader(
            (Binding("x"), Binding("found"), Binding("result", "u32", "write"), Binding("peaks", access="write")),
            (*WORDS, Scalar("tiles", "u32"), Scalar("tau"), Scalar("eps")),
            local=(LANES, 1, 1),
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((1, 1, 1)), case((1, 3, 5), 0.0), case((2, 8, 8), 0.5, 0.0), case((3, 64, 64)), case((1, 100, 130), 1.0),
        case((0, 4, 4)), case((2, 6, 10), 0.1, 1.0), case((1, 257, 65), 0.9), case((2, 300, 400), 0.3),
        Case({"x": (2, 8, 8)}, {"tau": 0.0, "eps": 0.0}, {"x": nothing}),
    ),
    bench=(case((1, 128, 128)), case((1, 2048, 2048))),
    scalars=(TAU, EPS),
)  # fmt: skip
