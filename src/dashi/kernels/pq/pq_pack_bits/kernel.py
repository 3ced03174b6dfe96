"""pq_pack_bits: a ternary field to its support plane, sign plane and rank tables (dashi.kernels.planes), lossless.

First every superblock by itself: planes, counts of its blocks, its signs close together in scratch memory. Then the
ranks that superblocks start from. Last the sign plane: the signs of each superblock go to their ranks.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec, StreamDefaults
from dashi.kernels.planes import BLOCK, SUPER, WORD, encode, pieces
from dashi.kernels.trits import LENGTHS, in_turn, random_trits, support_of
from dashi.types import Array, Cost

OFFSETS = 256
MEMBERS = Spec("MEMBERS", 128)
MANY = Scalar("many", "u32", doc="superblocks")


def reference(s: Array) -> tuple[Array, ...]:
    return (*encode(s), np.array([support_of(s).sum()], np.uint32))


def plan(call: Call) -> Plan:
    n = call.size("s")
    words, supers = pieces(n, WORD), pieces(n, SUPER)
    share = pieces(supers, OFFSETS)
    offsets = Dispatch("offsets", ("counts", "supers", "count"), {"many": supers}, (1, 1, 1), 2 * share + 8)
    if n == 0:
        return Plan((offsets,), {"counts": ("u32", 1)})
    groups = min(supers, call.limits.groups)
    rounds = pieces(supers, groups)
    pack = {"n": n, "words": words, "many": supers, "stride": groups}
    spec = {"MEMBERS": call.tuning.get("members", MEMBERS.default)}
    # For every superblock: two loops of rows, with six steps of a compression in each row; eight steps of sums; words.
    trips = rounds * (1 + 8 + 24 + 8 + 4)
    made = ("s", "support", "signs", "dense", "blocks", "counts")
    first = Dispatch("pack", made, pack, (groups, 1, 1), trips, spec)
    numbers = {"many": supers, "stride": groups}
    placed = ("dense", "counts", "supers", "signs")
    last = Dispatch("signs", placed, numbers, (groups, 1, 1), rounds * (1 + 5), spec)
    return Plan((first, offsets, last), {"dense": ("u32", supers * (SUPER // WORD)), "counts": ("u32", supers)})


def cost(call: Call) -> Cost:
    n = call.size("s")
    tables = pieces(n, BLOCK) + pieces(n, SUPER) + 1
    return Cost(bytes=n + 4 * (2 * pieces(n, WORD) + tables), dispatches=3 if n else 1)


KERNEL = Kernel(
    summary="a ternary field as support plane, sign plane, tables of ranks, and the number of supported sites",
    inputs=(Operand("s", "i8"),),
    outputs=(
        Operand("support", "u32", ("size/32",)),
        Operand("signs", "u32", ("size/32",)),
        Operand("blocks", "u32", ("size/512",)),
        Operand("supers", "u32", ("size/16384",)),
        Operand("count", "u32", (1,)),
    ),
    shaders={
        "pack": Shader(
            (
                Binding("s", "u32x4"),
                Binding("support", "u32", "write"),
                Binding("signs", "u32", "write"),
                Binding("dense", "u32", "write"),
                Binding("blocks", "u32", "write"),
                Binding("counts", "u32", "write"),
            ),
            (Scalar("n", "u32"), Scalar("words", "u32"), MANY, Scalar("stride", "u32")),
            (MEMBERS,),
            local=("MEMBERS", 1, 1),
            file="pack.comp",
        ),
        "offsets": Shader(
            (Binding("counts", "u32"), Binding("supers", "u32", "write"), Binding("count", "u32", "write")),
            (MANY,),
            local=(OFFSETS, 1, 1),
            file="offsets.comp",
        ),
        "signs": Shader(
            (
                Binding("dense", "u32"),
                Binding("counts", "u32"),
                Binding("supers", "u32"),
                Binding("signs", "u32", "readwrite"),
            ),
            (MANY, Scalar("stride", "u32")),
            (MEMBERS,),
            local=("MEMBERS", 1, 1),
            file="signs.comp",
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=(
        *(Case({"s": (n,)}, fill={"s": fill}) for n, fill in in_turn(LENGTHS)),
        Case({"s": (33, 70)}, fill={"s": random_trits}),
    ),
    bench=(Case({"s": (1 << 26,)}, fill={"s": random_trits}),),
    dtypes=("u32",),
    tunings={"four_rows": {"members": 128}, "two_rows": {"members": 256}},
)
