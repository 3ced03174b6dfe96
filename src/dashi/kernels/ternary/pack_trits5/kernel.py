"""pack_trits5: five trits to a byte, in base 3, the first the lowest digit (0 -> 0, +1 -> 1, -1 -> 2); four bytes to a
word.

The first ceil(n / 5) bytes of the result hold the field; digits past the last site are 0.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.trits import EACH, LENGTHS, LOCAL, each, in_turn, minus_of, padded, random_trits, support_of
from dashi.types import Array, Cost

SIZES = (*LENGTHS, 9, 10, 11, 19, 20, 21, 24, 25, 26)


def reference(s: Array) -> Array:
    digits = padded(support_of(s) + minus_of(s).astype(np.uint32), 20).reshape(-1, 5)
    data = (digits @ np.array([1, 3, 9, 27, 81])).astype(np.uint8)
    return data.view("<u4").astype(np.uint32)


def plan(call: Call) -> Plan:
    n = call.size("s")
    return each(call, -(-n // 20), ("s", "result"), {"n": n}, trips=25)


def cost(call: Call) -> Cost:
    n = call.size("s")
    return Cost(bytes=n + 4 * -(-n // 20), dispatches=int(n > 0))


KERNEL = Kernel(
    summary="a ternary field with five trits to a byte, twenty to a word",
    inputs=(Operand("s", "i8"),),
    outputs=(Operand("result", "u32", ("size/20",)),),
    shaders={
        "main": Shader(
            (Binding("s", "u32"), Binding("result", "u32", "write")), (*EACH, Scalar("n", "u32")), local=(LOCAL, 1, 1)
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        *(Case({"s": (n,)}, fill={"s": fill}) for n, fill in in_turn(SIZES)),
        Case({"s": (9, 11)}, fill={"s": random_trits}),
    ),
    bench=(Case({"s": (1 << 26,)}, fill={"s": random_trits}),),
    dtypes=("u32",),
)
