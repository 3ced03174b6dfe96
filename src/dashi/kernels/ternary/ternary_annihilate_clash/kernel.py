"""ternary_annihilate_clash: 0 where a neighbour has the other sign and the encounter is strong, else the site as it is.

The strength kappa of an encounter of two sites is the smaller of their two strengths; it is strong where kappa >=
theta. Neighbours are the eight round a site of a periodic grid (h, w); with `head_on` = 1 the four along the axes. A
clash takes both sites, so that no survivor has one: a second application changes nothing, no sign changes, and pairs of
other signs become fewer or stay. A NaN is no strength.
"""

import numpy as np

from dashi.kernels._torus import trits
from dashi.kernels._trits import FIELDS, random_trits
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray, Shape

THETA = Scalar("theta", default=0.0, doc="from which strength on an encounter annihilates")
HEAD_ON = Scalar("head_on", "u32", 0, "1: only neighbours along the axes clash")
NEIGHBOURS = tuple((dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx)


def reference(s: HostArray, strength: HostArray, *, theta: float, head_on: int) -> HostArray:
    field = trits(s)
    enough = canon(strength) >= canon(np.asarray(theta, strength.dtype))
    strong = np.where(enough, field, 0)
    clash = np.zeros(field.shape, np.bool_)
    for dy, dx in NEIGHBOURS:
        if not (head_on and dy and dx):
            clash |= strong * np.roll(strong, (-dy, -dx), (0, 1)) < 0
    return np.where(clash, 0, field).astype(np.int8)


def plan(call: Call) -> Plan:
    h, w = call.shapes["s"]
    push = {"h": h, "w": w, "theta": call.scalars["theta"], "head_on": call.scalars["head_on"]}
    return loop_plan(call, ceil_div(h * w, 4), ("s", "strength", "result"), push, trips=4 * 9)


def cost(call: Call) -> Cost:
    n = call.size("s")
    return Cost(bytes=n * (2 + call.dtype.size), dispatches=int(n > 0))


def case(number: int, shape: Shape, head_on: int = 0) -> Case:
    theta = (0.0, 0.5, -10.0, 2.0**-101)[number % 4]
    return Case(
        {"s": shape, "strength": shape}, {"theta": theta, "head_on": head_on}, {"s": FIELDS[number % len(FIELDS)]}
    )


SHAPES = ((1, 1), (1, 2), (2, 1), (1, 5), (3, 3), (4, 4), (5, 7), (8, 16), (64, 65), (0, 4))

KERNEL = Kernel(
    summary="a ternary field without sites whose encounters with the other sign are strong",
    inputs=(Operand("s", "i8", ("h", "w")), Operand("strength", shape=("h", "w"))),
    outputs=(Operand("result", "i8", ("h", "w")),),
    scalars=(THETA, HEAD_ON),
    shaders={
        "main": Shader(
            (Binding("s", "u32"), Binding("strength"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, Scalar("h", "u32"), Scalar("w", "u32"), THETA, Scalar("head_on", "u32")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(case(i, shape, head_on) for i, shape in enumerate(SHAPES) for head_on in (0, 1)),
    bench=(Case({"s": (1 << 13, 1 << 13), "strength": (1 << 13, 1 << 13)}, {"theta": 0.5}, {"s": random_trits}),),
)
