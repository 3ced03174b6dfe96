"""unpack_u4: the codes that pack_u4 packed, one to a byte."""

import numpy as np

from dashi.kernels._trits import LENGTHS, random_words, words_to_codes
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.types import Cost, HostArray

CODES = Scalar("n", "u32", doc="number of codes")


def reference(packed: HostArray, *, n: int) -> HostArray:
    return words_to_codes(packed, 4)[:n].astype(np.uint8)


def plan(call: Call) -> Plan:
    n = int(call.scalars["n"])
    return loop_plan(call, ceil_div(n, 16), ("packed", "result"), {"n": n})


def cost(call: Call) -> Cost:
    n = int(call.scalars["n"])
    return Cost(bytes=n + 4 * ceil_div(n, 8), dispatches=int(n > 0))


def case(n: int) -> Case:
    return Case({"packed": (ceil_div(n, 8),)}, {"n": n}, {"packed": random_words})


KERNEL = Kernel(
    summary="n four-bit codes out of words that hold eight",
    inputs=(Operand("packed", "u32", ("n/8",)),),
    outputs=(Operand("result", "u8", ("n",)),),
    scalars=(CODES,),
    shaders={
        "main": Shader(
            (Binding("packed", "u32"), Binding("result", "u32x4", "write")), (*LOOP_PUSH, CODES), local=(LOCAL, 1, 1)
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=tuple(map(case, LENGTHS)),
    bench=(case(1 << 26),),
    dtypes=("u32",),
)
