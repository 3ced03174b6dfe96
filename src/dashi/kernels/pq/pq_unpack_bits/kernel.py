"""pq_unpack_bits: the ternary field of its planes (dashi.kernels.planes); exactly the one that pq_pack_bits took."""

from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.kernels.planes import (
    BLOCK,
    PLANES,
    SUPER,
    TILE_WORDS,
    WORD,
    pieces,
    plane_case,
    plane_cases,
    ranks,
    signs_at,
)
from dashi.kernels.trits import LENGTHS, LOCAL, SITES, field_of, random_trits, words_to_bits
from dashi.types import Array, Cost


def reference(support: Array, signs: Array, blocks: Array, supers: Array, *, n: int) -> Array:
    held = words_to_bits(support, n)
    return field_of(held, held & signs_at(signs, ranks(support, blocks, supers, n)))


def plan(call: Call) -> Plan:
    n = int(call.scalars["n"])
    words = pieces(n, WORD)
    if n == 0:
        return Plan(())
    groups = min(pieces(words, TILE_WORDS), call.limits.groups)
    push = {"n": n, "words": words, "stride": groups}
    buffers = ("support", "signs", "blocks", "supers", "result")
    # For every tile four steps of sums and six of the expansion.
    trips = pieces(words, TILE_WORDS * groups) * 11
    return Plan((Dispatch("main", buffers, push, (groups, 1, 1), trips),))


def cost(call: Call) -> Cost:
    n = int(call.scalars["n"])
    # Of the sign plane only as many bits must be read as there are supported sites: unknown here, so not counted.
    return Cost(bytes=n + 4 * (pieces(n, WORD) + pieces(n, BLOCK) + pieces(n, SUPER)), dispatches=int(n > 0))


KERNEL = Kernel(
    summary="the ternary field (n,) of a support plane, a sign plane and their tables of ranks",
    inputs=PLANES,
    outputs=(Operand("result", "i8", ("n",)),),
    scalars=(SITES,),
    shaders={
        "main": Shader(
            (*(Binding(o.name, "u32") for o in PLANES), Binding("result", "u32x4", "write")),
            (Scalar("n", "u32"), Scalar("words", "u32"), Scalar("stride", "u32")),
            local=(LOCAL, 1, 1),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=plane_cases(LENGTHS),
    bench=(plane_case(1 << 26, random_trits),),
    dtypes=("u32",),
)
