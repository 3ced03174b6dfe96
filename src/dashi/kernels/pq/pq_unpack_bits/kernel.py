"""pq_unpack_bits: the ternary field of its planes (dashi.kernels.pq._planes); the very one that pq_pack_bits took."""

from dashi.kernels._trits import LENGTHS, SITES, field_of, random_trits, words_to_bits
from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.kernels.pq._planes import BLOCK, PLANES, SUPER, WORD, pieces, plane_case, plane_cases, ranks, signs_at
from dashi.types import Cost, HostArray

MEMBERS = 256
EACH = 4
"""Words of the support plane that an invocation reads at once."""
TUNINGS = {"resident": {"groups": 1024}}
"""Workgroups at most: more tiles than that are taken in turn, with one table."""


def reference(support: HostArray, signs: HostArray, blocks: HostArray, supers: HostArray, *, n: int) -> HostArray:
    held = words_to_bits(support, n)
    return field_of(held, held & signs_at(signs, ranks(support, blocks, supers, n)))


def plan(call: Call) -> Plan:
    n = int(call.scalars["n"])
    words = pieces(n, WORD)
    if n == 0:
        return Plan(())
    tiles = pieces(words, EACH * MEMBERS)
    groups = min(tiles, call.limits.groups, call.tuning.get("groups", tiles))
    push = {"n": n, "words": words, "stride": groups}
    buffers = ("support", "signs", "blocks", "supers", "result")
    # For every tile eight vectors.
    trips = pieces(tiles, groups) * (1 + 2 * EACH)
    return Plan((Dispatch("main", buffers, push, (groups, 1, 1), trips),))


def cost(call: Call) -> Cost:
    n = int(call.scalars["n"])
    # How many bits of the sign plane must be read the planes alone know: counted as if half the sites had support.
    read = pieces(n, WORD) + pieces(n, 2 * WORD) + pieces(n, BLOCK) + pieces(n, SUPER)
    return Cost(bytes=n + 4 * read, dispatches=int(n > 0))


KERNEL = Kernel(
    summary="the ternary field (n,) of a support plane, a sign plane and their tables of ranks",
    inputs=PLANES,
    outputs=(Operand("result", "i8", ("n",)),),
    scalars=(SITES,),
    shaders={
        "main": Shader(
            (
                Binding("support", "u32x4"),
                Binding("signs", "u32"),
                Binding("blocks", "u32"),
                Binding("supers", "u32"),
                Binding("result", "u32x4", "write"),
            ),
            (Scalar("n", "u32"), Scalar("words", "u32"), Scalar("stride", "u32")),
            local=(MEMBERS, 1, 1),
            extensions=("GL_EXT_control_flow_attributes",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=plane_cases(LENGTHS),
    bench=(plane_case(1 << 26, random_trits),),
    dtypes=("u32",),
    tunings=TUNINGS,
)
