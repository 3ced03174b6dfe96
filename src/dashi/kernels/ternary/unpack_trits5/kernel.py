"""unpack_trits5: the field that pack_trits5 packed. Bytes from 243 on, which it never makes, count modulo 243."""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Shader
from dashi.kernels.trits import EACH, LENGTHS, LOCAL, SITES, each, random_words
from dashi.types import Array, Cost


def reference(packed: Array, *, n: int) -> Array:
    data = packed.astype("<u4").view(np.uint8)
    digits = data[:, None] // np.array([1, 3, 9, 27, 81], np.uint8) % 3
    return np.array([0, 1, -1], np.int8)[digits.reshape(-1)[:n]]


def plan(call: Call) -> Plan:
    n = int(call.scalars["n"])
    return each(call, -(-n // 20), ("packed", "result"), {"n": n}, trips=25)


def cost(call: Call) -> Cost:
    n = int(call.scalars["n"])
    return Cost(bytes=n + 4 * -(-n // 20), dispatches=int(n > 0))


def case(n: int) -> Case:
    return Case({"packed": (-(-n // 20),)}, {"n": n}, {"packed": random_words})


KERNEL = Kernel(
    summary="the ternary field (n,) of words with five trits to a byte",
    inputs=(Operand("packed", "u32", ("n/20",)),),
    outputs=(Operand("result", "i8", ("n",)),),
    scalars=(SITES,),
    shaders={
        "main": Shader(
            (Binding("packed", "u32"), Binding("result", "u32", "write")), (*EACH, SITES), local=(LOCAL, 1, 1)
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(map(case, (*LENGTHS, 9, 10, 11, 19, 20, 21, 24, 25, 26))),
    bench=(case(1 << 26),),
    dtypes=("u32",),
)
