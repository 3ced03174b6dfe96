"""ternary_census: of a periodic field (h, w): sites +1, sites -1, and neighbours along rows and columns of other signs.

Every site is compared with the next along its row and along its column, once; a field one site wide has no neighbours
that way.
"""

import numpy as np

from dashi.kernels._torus import trits
from dashi.kernels._trits import FIELDS, random_trits
from dashi.kernels._work import LOCAL, ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.types import Cost, HostArray, Shape

MOST = 1024
"""Workgroups, each of which adds to the counts once."""


def reference(s: HostArray) -> HostArray:
    field = trits(s)
    pairs = sum(
        int((field * np.roll(field, -1, axis) < 0).sum()) for axis in (0, 1) if field.shape[axis] > 1
    )  # fmt: skip
    return np.array([(field > 0).sum(), (field < 0).sum(), pairs], np.uint32)


def plan(call: Call) -> Plan:
    h, w = call.shapes["s"]
    clear = Dispatch("clear", ("result",), {"total": 3, "stride": LOCAL}, (1, 1, 1), 1)
    if h * w == 0:
        return Plan((clear,))
    groups, rounds = groups_for(min(h * w, MOST * LOCAL), LOCAL, call.limits)
    push = {"total": h * w, "stride": groups * LOCAL, "h": h, "w": w}
    trips = 8 + rounds * ceil_div(h * w, groups * LOCAL)
    return Plan((clear, Dispatch("main", ("s", "result"), push, (groups, 1, 1), trips)))


def cost(call: Call) -> Cost:
    return Cost(bytes=call.size("s") + 24, dispatches=1 + int(call.size("s") > 0))


def case(number: int, shape: Shape) -> Case:
    return Case({"s": shape}, fill={"s": FIELDS[number % len(FIELDS)]})


SHAPES = ((1, 1), (1, 2), (2, 1), (1, 7), (3, 5), (8, 8), (64, 65), (0, 3), (300, 301), (2, 2))
NUMBERS = (Scalar("total", "u32"), Scalar("stride", "u32"))

KERNEL = Kernel(
    summary="sites of each sign, and neighbours of other signs",
    inputs=(Operand("s", "i8", ("h", "w")),),
    outputs=(Operand("result", "u32", (3,)),),
    shaders={
        "main": Shader(
            (Binding("s", "u32"), Binding("result", "u32", "readwrite")),
            (*NUMBERS, Scalar("h", "u32"), Scalar("w", "u32")),
            local=(LOCAL, 1, 1),
        ),
        "clear": Shader((Binding("result", "u32", "write"),), NUMBERS, local=(LOCAL, 1, 1), file="clear.comp"),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="OBSERVER"),
    cases=tuple(case(i, shape) for i, shape in enumerate(SHAPES)),
    bench=(Case({"s": (1 << 12, 1 << 12)}, fill={"s": random_trits}),),
    dtypes=("u32",),
)
