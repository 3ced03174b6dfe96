"""ternary_popcount: how many sites of a field in two bits per site (pack_trits2) are +1, -1 and 0."""

import numpy as np

from dashi.kernels._counting import counting, shaders
from dashi.kernels._trits import LENGTHS, SITES, random_words, words_to_trits
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan, StreamDefaults
from dashi.types import Cost, HostArray


def reference(packed: HostArray, *, n: int) -> HostArray:
    values = words_to_trits(packed)[:n]
    plus, minus = int(np.count_nonzero(values > 0)), int(np.count_nonzero(values < 0))
    return np.array([plus, minus, n - plus - minus], np.uint64)


def plan(call: Call) -> Plan:
    return counting(call, call.size("packed"), ("packed",), 2, first=call.scalars, second=call.scalars)


def cost(call: Call) -> Cost:
    return Cost(bytes=4 * call.size("packed") + 24, dispatches=2)


def case(n: int) -> Case:
    return Case({"packed": (ceil_div(n, 16),)}, {"n": n}, {"packed": random_words})


KERNEL = Kernel(
    summary="the numbers of +1, -1 and 0 in a field with two bits per site, as u64 of shape (3,)",
    inputs=(Operand("packed", "u32", ("n/16",)),),
    outputs=(Operand("result", "u64", (3,)),),
    scalars=(SITES,),
    shaders=shaders(("packed",), (SITES,), (SITES,)),
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="OBSERVER"),
    cases=tuple(map(case, (*LENGTHS, 1 << 20))),
    bench=(case(1 << 26),),
    dtypes=("u64",),
)
