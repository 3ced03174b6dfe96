"""ternary_defect: [sites where two fields differ, those of them with opposite signs], in two bits per site; exact.

The fields are packed by pack_trits2, and zero past their last site as it leaves them; a sign without support is 0. The
sum of |b - a| over all sites is the sum of the two counts: sites of opposite sign are 2 apart, the others 1.
"""

import numpy as np

from dashi.kernels._counting import counting, shaders
from dashi.kernels._trits import random_words, words_to_trits
from dashi.kernels.abi import Call, Case, Fill, Kernel, Operand, Plan, StreamDefaults
from dashi.types import Cost, HostArray, Shape


def reference(a: HostArray, b: HostArray) -> HostArray:
    left, right = words_to_trits(a), words_to_trits(b)
    return np.array([np.count_nonzero(left != right), np.count_nonzero(left * right < 0)], np.uint64)


def plan(call: Call) -> Plan:
    return counting(call, call.dims["words"], ("a", "b"), 2)


def cost(call: Call) -> Cost:
    return Cost(bytes=8 * call.dims["words"] + 16, dispatches=2)


def case(words: int, a: int | None = None, b: int | None = None) -> Case:
    def fill(value: int | None) -> Fill:
        def words_of(rng: np.random.Generator, shape: Shape) -> HostArray:
            return random_words(rng, shape) if value is None else np.full(shape, value, np.uint32)

        return words_of

    return Case({"a": (words,), "b": (words,)}, fill={"a": fill(a), "b": fill(b)})


KERNEL = Kernel(
    summary="[sites that differ, sites of opposite sign] of two fields in two bits per site, as u64 of shape (2,)",
    inputs=(Operand("a", "u32", ("words",)), Operand("b", "u32", ("words",))),
    outputs=(Operand("result", "u64", (2,)),),
    shaders=shaders(("a", "b")),
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="OBSERVER"),
    cases=(
        *map(case, (0, 1, 2, 63, 255, 256, 257, 5000, 70000)),
        case(300, 0xFFFFFFFF, 0x55555555), case(300, 0x55555555, 0xAAAAAAAA), case(300, 0xAAAAAAAA, 0),
    ),
    bench=(case(1 << 22),),
    dtypes=("u64",),
)  # fmt: skip
