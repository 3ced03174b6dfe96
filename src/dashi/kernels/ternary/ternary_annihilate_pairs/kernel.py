"""ternary_annihilate_pairs: 0 where both signs are present in the periodic box round a site, else the site as it is.

The cheap form of annihilation, which needs no coherence. A projector: no sign changes, no support appears, and a second
application changes nothing.
"""

import numpy as np

from dashi.kernels._torus import (
    GRID,
    RADIUS,
    SHAPES,
    TUNINGS,
    box_sums,
    box_trips,
    fits_rows,
    grid,
    rows_plan,
    rows_shader,
    trits,
)
from dashi.kernels._trits import FIELDS, random_trits
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray, Shape

NAME = "ternary_annihilate_pairs"


def reference(s: HostArray, *, radius: int) -> HostArray:
    grid(NAME, s.shape)
    field = trits(s)
    reach = min(radius, max(s.shape))  # once round the field is everywhere
    plus, minus = (box_sums((sign * field > 0).astype(np.int32), reach) > 0 for sign in (1, -1))
    both = plus & minus
    return np.where(both, 0, field).astype(np.int8)


def plan(call: Call) -> Plan:
    shape = call.shapes["s"]
    h, w = grid(NAME, shape)
    radius = int(call.scalars["radius"])
    if fits_rows(shape, radius):
        return rows_plan(call, {})
    push = {"h": h, "w": w, "radius": radius, "rise": 0 if len(shape) == 1 else radius}
    return loop_plan(call, ceil_div(h * w, 4), ("s", "result"), push, trips=box_trips(shape, radius))


def cost(call: Call) -> Cost:
    n = call.size("s")
    return Cost(bytes=2 * n, dispatches=int(n > 0))


def case(number: int, shape: Shape) -> Case:
    return Case({"s": shape}, {"radius": (1, 2, 0)[number % 3]}, {"s": FIELDS[number % len(FIELDS)]})


KERNEL = Kernel(
    summary="a ternary field without the sites that have both signs in their periodic neighbourhood",
    inputs=(Operand("s", "i8"),),
    outputs=(Operand("result", "i8"),),
    scalars=(RADIUS,),
    shaders={
        "main": Shader(
            (Binding("s", "u32"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, *GRID, RADIUS, Scalar("rise", "u32")),
            local=(LOCAL, 1, 1),
        ),
        "rows": rows_shader(),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(*(case(i, shape) for i, shape in enumerate(SHAPES)), *(case(3 * i, (37, 48)) for i in range(5))),
    bench=(Case({"s": (1 << 13, 1 << 13)}, fill={"s": random_trits}),),
    dtypes=("u32",),
    tunings=TUNINGS,
)
