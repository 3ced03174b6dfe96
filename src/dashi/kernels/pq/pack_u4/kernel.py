"""pack_u4: eight four-bit codes to a word, the first in the lowest bits; of every byte the low four bits count."""

import numpy as np

from dashi.kernels._trits import LENGTHS, codes_to_words
from dashi.kernels._work import LOCAL, LOOP_PUSH, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.types import Cost, HostArray, Shape


def reference(codes: HostArray) -> HostArray:
    return codes_to_words(codes.reshape(-1).astype(np.uint32) & 15, 4)


def plan(call: Call) -> Plan:
    n = call.size("codes")
    return loop_plan(call, ceil_div(n, 16), ("codes", "result"), {"n": n})


def cost(call: Call) -> Cost:
    n = call.size("codes")
    return Cost(bytes=n + 4 * ceil_div(n, 8), dispatches=int(n > 0))


def random_codes(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(0, 256, shape, dtype=np.uint8)


KERNEL = Kernel(
    summary="four-bit codes, eight to a word",
    inputs=(Operand("codes", "u8"),),
    outputs=(Operand("result", "u32", ("size/8",)),),
    shaders={
        "main": Shader(
            (Binding("codes", "u32x4"), Binding("result", "u32", "write")),
            (*LOOP_PUSH, Scalar("n", "u32")),
            local=(LOCAL, 1, 1),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=(
        *(Case({"codes": (n,)}, fill={"codes": random_codes}) for n in LENGTHS),
        Case({"codes": (7, 3, 5)}, fill={"codes": random_codes}),
    ),
    bench=(Case({"codes": (1 << 26,)}, fill={"codes": random_codes}),),
    dtypes=("u32",),
)
