"""gated_sum: low + g rest, where g is 1 (gate 0), 1 on the support of the mask and 0 elsewhere (gate 1), or the mask
itself with its signs (gate 2)."""

import numpy as np

from dashi.errors import InputError
from dashi.kernels._trits import FIELDS, minus_of, support_of
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon
from dashi.kernels.spectral._modes import shader, spread
from dashi.types import Cost, HostArray, Shape

GATE = Scalar("gate", "u32", 1, "0: everywhere, 1: on the support, 2: with the signs")


def reference(low: HostArray, rest: HostArray, mask: HostArray, gate: int) -> HostArray:
    require(gate)
    values = canon(rest)
    support, minus = (flags.reshape(mask.shape) for flags in (support_of(mask), minus_of(mask)))
    signed = np.where(minus, -values, values) if gate == 2 else values
    gated = np.where(support, signed, 0).astype(low.dtype) if gate else values
    return canon(canon(low) + gated)


def require(gate: int) -> None:
    if gate not in (0, 1, 2):
        raise InputError(f"there is no gate {gate}.", "use 0 (open), 1 (support) or 2 (signed).")


def plan(call: Call) -> Plan:
    require(int(call.scalars["gate"]))
    n = call.size("low")
    push = {"n": n, "gate": int(call.scalars["gate"])}
    return spread(call, ("low", "rest", "mask", "result"), ceil_div(n, 4), push, trips=4)


def cost(call: Call) -> Cost:
    n = call.size("low")
    return Cost(n, call.bytes("low", "rest", "result") + n, int(n > 0))


def case(number: int, shape: Shape, gate: int) -> Case:
    return Case(dict.fromkeys(("low", "rest", "mask"), shape), {"gate": gate}, {"mask": FIELDS[number % len(FIELDS)]})


SHAPES = ((1, 1, 1), (2, 8, 8), (1, 3, 5), (3, 64, 64), (0, 4, 4), (1, 33, 65))

KERNEL = Kernel(
    summary="a field plus another one through a ternary gate",
    inputs=(Operand("low"), Operand("rest"), Operand("mask", "i8")),
    outputs=(Operand("result"),),
    shaders={
        "main": shader(
            Binding("low"),
            Binding("rest"),
            Binding("mask", "u32"),
            Binding("result", access="write"),
            push=(Scalar("n", "u32"), GATE),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(case(i + gate, shape, gate) for i, shape in enumerate(SHAPES) for gate in (0, 1, 2)),
    bench=(case(0, (1, 128, 128), 1), case(0, (1, 4096, 4096), 1)),
    scalars=(GATE,),
)
