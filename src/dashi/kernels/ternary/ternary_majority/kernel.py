"""ternary_majority: M(r, eta): on the support, the sign of the sum over a box where it reaches eta, else 0.

The field is periodic, 1-D or 2-D; the box of radius r holds the site itself, which counts `centre` times. A box that
tells nothing (a sum of 0, or one below eta) gives 0. Support never grows, unless `grow` is 1: then sites without
support vote too.
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
    require_weight,
    rows_plan,
    rows_shader,
    trits,
)
from dashi.kernels._trits import FIELDS, random_trits
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.types import Cost, HostArray, Shape

NAME = "ternary_majority"
ETA = Scalar("eta", "i32", 1, "the least magnitude of a sum that decides; below 1 it is 1")
CENTRE = Scalar("centre", "i32", 1, "how often the site itself counts")
GROW = Scalar("grow", "u32", 0, "1: sites without support may gain it")


def reference(s: HostArray, *, radius: int, eta: int, centre: int, grow: int) -> HostArray:
    grid(NAME, s.shape)
    require_weight(NAME, centre)
    field = trits(s)
    sums = box_sums(field, radius) + (centre - 1) * field
    chosen = np.where(np.abs(sums) >= max(eta, 1), np.sign(sums), 0)
    return np.where((field != 0) | bool(grow), chosen, 0).astype(np.int8)


def plan(call: Call) -> Plan:
    shape = call.shapes["s"]
    h, w = grid(NAME, shape)
    radius, eta, centre, grow = (int(call.scalars[name]) for name in ("radius", "eta", "centre", "grow"))
    require_weight(NAME, centre)
    eta = max(eta, 1)
    if fits_rows(shape, radius) and 0 <= centre <= 32:
        ones, middle = 0x01010101, 8 + centre
        # What makes the top bit of a byte: a raised sum of at least middle + eta; of more than middle - eta.
        above, under = 128 - min(middle + eta, 128), 128 - max(middle - eta + 1, 0)
        extra = (centre - 1) % (1 << 32)
        return rows_plan(call, {"above": ones * above, "under": ones * under, "extra": extra, "grow": grow})
    rise = 0 if len(shape) == 1 else radius
    push = {"h": h, "w": w, "radius": radius, "rise": rise, "eta": eta, "centre": centre, "grow": grow}
    return loop_plan(call, ceil_div(h * w, 4), ("s", "result"), push, trips=box_trips(shape, radius))


def cost(call: Call) -> Cost:
    n = call.size("s")
    return Cost(bytes=2 * n, dispatches=int(n > 0))


def case(number: int, shape: Shape) -> Case:
    scalars: tuple[dict[str, int], ...] = (
        {}, {"eta": 3}, {"radius": 2, "eta": 2}, {"grow": 1}, {"centre": 0}, {"centre": 3, "eta": -1},
        {"eta": 200, "grow": 1}, {"centre": 32, "eta": 5}, {"radius": 0}, {"centre": 40}, {"grow": 1, "eta": 9},
    )  # fmt: skip
    return Case({"s": shape}, scalars[number % len(scalars)], {"s": FIELDS[number % len(FIELDS)]})


KERNEL = Kernel(
    summary="on the support, the sign of the sum over a periodic neighbourhood where it reaches eta, else 0",
    inputs=(Operand("s", "i8"),),
    outputs=(Operand("result", "i8"),),
    scalars=(RADIUS, ETA, CENTRE, GROW),
    shaders={
        "main": Shader(
            (Binding("s", "u32"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, *GRID, RADIUS, Scalar("rise", "u32"), ETA, CENTRE, GROW),
            local=(LOCAL, 1, 1),
        ),
        "rows": rows_shader(Scalar("above", "u32"), Scalar("under", "u32"), Scalar("extra", "u32"), GROW),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        *(case(i, shape) for i, shape in enumerate(SHAPES)),
        *(case(i, (37, 48)) for i in range(11)),
        *(case(i, (13, 21)) for i in range(11)),
    ),
    bench=(Case({"s": (1 << 13, 1 << 13)}, fill={"s": random_trits}),),
    dtypes=("u32",),
    tunings=TUNINGS,
)
