"""ternary_dot: the sum of a[i] * b[i] over two fields in two bits per site (pack_trits2); exact.

Both fields must be zero past their last site, as pack_trits2 leaves them.
"""

import numpy as np

from dashi.kernels._counting import counting, shaders
from dashi.kernels._trits import random_words, words_to_trits
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.types import Cost, HostArray, Shape


def reference(a: HostArray, b: HostArray) -> HostArray:
    return np.array([np.sum(words_to_trits(a) * words_to_trits(b), dtype=np.int64)], np.int64)


def plan(call: Call) -> Plan:
    return counting(call, call.dims["words"], ("a", "b"), 1)


def cost(call: Call) -> Cost:
    return Cost(bytes=8 * call.dims["words"] + 8, dispatches=2)


def case(words: int, value: int | None = None) -> Case:
    def fill(rng: np.random.Generator, shape: Shape) -> HostArray:
        return random_words(rng, shape) if value is None else np.full(shape, value, np.uint32)

    return Case({"a": (words,), "b": (words,)}, fill={"a": fill, "b": fill})


KERNEL = Kernel(
    summary="the integer dot product of two fields in two bits per site, as i64 of shape (1,)",
    inputs=(Operand("a", "u32", ("words",)), Operand("b", "u32", ("words",))),
    outputs=(Operand("result", "i64", (1,)),),
    shaders=shaders(("a", "b")),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(*map(case, (0, 1, 2, 63, 255, 256, 257, 5000, 70000)), case(300, 0xFFFFFFFF), case(300, 0x55555555)),
    bench=(case(1 << 22),),
    dtypes=("i64",),
)
