"""trit_counts: how many sites of every member are +1 and -1."""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._trits import FIELDS, minus_of, support_of
from dashi.kernels._work import LOCAL, ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.types import Cost, HostArray, Shape

PARTS = 64


def reference(s: HostArray) -> HostArray:
    require(s.shape)
    support, minus = (flags.reshape(len(s), s.shape[1] * s.shape[2]) for flags in (support_of(s), minus_of(s)))
    return np.stack([(support & ~minus).sum(axis=1), minus.sum(axis=1)], axis=1).astype(np.uint32)


def require(shape: Shape) -> None:
    members, h, w = shape
    if members > 1 and h * w % 4:
        raise ShapeError(
            f"kernel 'trit_counts': several members of {h} x {w} sites do not start at whole words.",
            "pass them one by one, or fields of a multiple of 4 sites.",
        )


def plan(call: Call) -> Plan:
    require(call.shapes["s"])
    members, plane = call.dims["members"], call.dims["h"] * call.dims["w"]
    if members == 0:
        return Plan(())
    groups, rounds = groups_for(2 * members, LOCAL, call.limits)
    push = {"total": 2 * members, "stride": groups * LOCAL}
    clear = Dispatch("clear", ("result",), push, (groups, 1, 1), rounds)
    parts = max(1, min(PARTS, ceil_div(plane, 4 * LOCAL)))
    groups, rounds = groups_for(members * parts, 1, call.limits)
    push = {"total": members * parts, "stride": groups, "plane": plane, "parts": parts}
    trips = rounds * (9 + ceil_div(plane, 4 * parts * LOCAL))
    return Plan((clear, Dispatch("main", ("s", "result"), push, (groups, 1, 1), trips)))


def cost(call: Call) -> Cost:
    return Cost(bytes=call.size("s") + 16 * call.dims["members"], dispatches=2 * int(call.dims["members"] > 0))


def case(number: int, shape: Shape) -> Case:
    return Case({"s": shape}, fill={"s": FIELDS[number % len(FIELDS)]})


SHAPES = ((1, 1, 1), (1, 3, 5), (2, 8, 8), (3, 64, 64), (0, 4, 4), (1, 130, 127), (2, 300, 300))
NUMBERS = (Scalar("total", "u32"), Scalar("stride", "u32"))

KERNEL = Kernel(
    summary="the numbers of +1 and -1 of every member",
    inputs=(Operand("s", "i8", ("members", "h", "w")),),
    outputs=(Operand("result", "u32", ("members", 2)),),
    shaders={
        "main": Shader(
            (Binding("s", "u32"), Binding("result", "u32", "readwrite")),
            (*NUMBERS, Scalar("plane", "u32"), Scalar("parts", "u32")),
            local=(LOCAL, 1, 1),
        ),
        "clear": Shader((Binding("result", "u32", "write"),), NUMBERS, local=(LOCAL, 1, 1), file="clear.comp"),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="OBSERVER"),
    cases=tuple(case(i, shape) for i, shape in enumerate(SHAPES)),
    bench=(case(0, (1, 4096, 4096)),),
    dtypes=("u32",),
)
