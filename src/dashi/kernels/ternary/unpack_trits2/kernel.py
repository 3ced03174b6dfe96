"""unpack_trits2: the field that pack_trits2 packed. A sign without support (10) is 0."""

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Shader
from dashi.kernels.trits import EACH, LENGTHS, LOCAL, SITES, each, random_words, words_to_trits
from dashi.types import Array, Cost


def reference(packed: Array, *, n: int) -> Array:
    return words_to_trits(packed)[:n]


def plan(call: Call) -> Plan:
    n = int(call.scalars["n"])
    return each(call, -(-n // 16), ("packed", "result"), {})


def cost(call: Call) -> Cost:
    n = int(call.scalars["n"])
    return Cost(bytes=n + 4 * -(-n // 16), dispatches=int(n > 0))


def case(n: int) -> Case:
    return Case({"packed": (-(-n // 16),)}, {"n": n}, {"packed": random_words})


KERNEL = Kernel(
    summary="the ternary field (n,) of words with two bits per site",
    inputs=(Operand("packed", "u32", ("n/16",)),),
    outputs=(Operand("result", "i8", ("n",)),),
    scalars=(SITES,),
    shaders={
        "main": Shader((Binding("packed", "u32"), Binding("result", "u32x4", "write")), EACH, local=(LOCAL, 1, 1))
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(map(case, LENGTHS)),
    bench=(case(1 << 26),),
    dtypes=("u32",),
)
