"""pack_trits2: sixteen trits to a word, two bits each: bit 0 the support, bit 1 the sign (0 -> 00, +1 -> 01, -1 -> 11).

Of each byte of s bit 0 is the support and bit 1 the sign; the sign of a site without support is dropped. The bits past
the last site are 0.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.trits import EACH, LENGTHS, LOCAL, codes_to_words, each, in_turn, minus_of, random_trits, support_of
from dashi.types import Array, Cost


def reference(s: Array) -> Array:
    return codes_to_words(support_of(s) + 2 * minus_of(s).astype(np.uint32), 2)


def plan(call: Call) -> Plan:
    n = call.size("s")
    return each(call, -(-n // 16), ("s", "result"), {"n": n})


def cost(call: Call) -> Cost:
    n = call.size("s")
    return Cost(bytes=n + 4 * -(-n // 16), dispatches=int(n > 0))


KERNEL = Kernel(
    summary="a ternary field in two bits per site, sixteen to a word",
    inputs=(Operand("s", "i8"),),
    outputs=(Operand("result", "u32", ("size/16",)),),
    shaders={
        "main": Shader(
            (Binding("s", "u32x4"), Binding("result", "u32", "write")),
            (*EACH, Scalar("n", "u32")),
            local=(LOCAL, 1, 1),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        *(Case({"s": (n,)}, fill={"s": fill}) for n, fill in in_turn(LENGTHS)),
        Case({"s": (9, 11)}, fill={"s": random_trits}),
    ),
    bench=(Case({"s": (1 << 26,)}, fill={"s": random_trits}),),
    dtypes=("u32",),
)
