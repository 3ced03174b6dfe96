"""description_length: bits of a coded field: n for the support, k for the signs, k codes, and a residual in bytes.

n + k + k * bits_per_code + 8 * residual_bytes, k being the number of supported sites, counted on the device. Exact.
"""

import numpy as np

from dashi.kernels._counting import counting, shaders
from dashi.kernels._trits import LENGTHS, SITES, random_words, words_to_bits
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan, Scalar, StreamDefaults
from dashi.types import Cost, HostArray

CODE = Scalar("bits_per_code", "u32", 0, "bits of the code that each supported site has")
RESIDUAL = Scalar("residual_bytes", "u32", 0, "bytes of what the codes leave")


def reference(support: HostArray, *, n: int, bits_per_code: int, residual_bytes: int) -> HostArray:
    k = int(words_to_bits(support, n).sum())
    return np.array([n + k + k * bits_per_code + 8 * residual_bytes], np.uint64)


def plan(call: Call) -> Plan:
    n = call.scalars["n"]
    return counting(call, call.size("support"), ("support",), 1, first={"n": n}, second=call.scalars)


def cost(call: Call) -> Cost:
    return Cost(bytes=4 * call.size("support") + 8, dispatches=2)


def case(n: int, bits_per_code: int = 4, residual_bytes: int = 1000) -> Case:
    scalars = {"n": n, "bits_per_code": bits_per_code, "residual_bytes": residual_bytes}
    return Case({"support": (ceil_div(n, 32),)}, scalars, {"support": random_words})


KERNEL = Kernel(
    summary="bits that describe a coded field: n + k + k * bits_per_code + 8 * residual_bytes, as u64 of shape (1,)",
    inputs=(Operand("support", "u32", ("n/32",)),),
    outputs=(Operand("result", "u64", (1,)),),
    scalars=(SITES, CODE, RESIDUAL),
    shaders=shaders(("support",), (SITES,), (SITES, CODE, RESIDUAL)),
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=(*(case(n) for n in LENGTHS), case(70000, 0xFFFFFFFF, 0xFFFFFFFF), case(1 << 20, 1 << 20, 0)),
    bench=(case(1 << 26),),
    dtypes=("u64",),
)
