"""pq_pack_bits: a ternary field to its support plane, sign plane and rank tables (dashi.kernels.planes), lossless.

First every superblock by itself: planes, counts of its blocks, its signs close together in scratch memory. Then the
ranks that superblocks start from, and the sign plane: the signs of each superblock go to their ranks. The field is read
once; the second pass reads the signs alone, a tenth of it.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.kernels.planes import BLOCK, SUPER, WORD, encode, pieces
from dashi.kernels.trits import LENGTHS, in_turn, random_trits, support_of
from dashi.types import Array, Cost

LOCAL = 256
TUNINGS = {
    "one": {"each": 1, "shares": 1024},
    "two": {"each": 2, "shares": 1024},
    "shares2048": {"each": 1, "shares": 2048},
}
"""Superblocks that a workgroup of the first pass takes in turn, with one table; and workgroups of the second pass at
most: each adds all the counts before its own, so that more of them read more."""
MANY = Scalar("many", "u32", doc="superblocks")


def reference(s: Array) -> tuple[Array, ...]:
    return (*encode(s), np.array([support_of(s).sum()], np.uint32))


def plan(call: Call) -> Plan:
    n = call.size("s")
    words, supers = pieces(n, WORD), pieces(n, SUPER)
    sizes = call.tuning or TUNINGS["one"]
    share = max(1, pieces(supers, min(sizes["shares"], call.limits.groups)))
    shares = max(1, pieces(supers, share))
    # Counts by fours, 16 sums, and for every superblock at most three words.
    placing = pieces(supers, 4 * LOCAL) + 16 + share * 4
    place = Dispatch(
        "signs",
        ("dense", "counts", "supers", "signs", "count"),
        {"many": supers, "share": share},
        (shares, 1, 1),
        placing,
    )
    scratch = {"dense": ("u32", max(1, supers * (SUPER // WORD))), "counts": ("u32", max(1, supers))}
    if n == 0:
        return Plan((place,), scratch)
    groups = min(pieces(supers, sizes["each"]), call.limits.groups)
    # The table; for every superblock four vectors twice, eight sums of blocks, and two loops over two words.
    trips = 4 + pieces(supers, groups) * (1 + 8 + 8 + 4)
    made = ("s", "support", "signs", "dense", "blocks", "counts")
    numbers = {"n": n, "words": words, "many": supers, "stride": groups}
    return Plan((Dispatch("pack", made, numbers, (groups, 1, 1), trips), place), scratch)


def cost(call: Call) -> Cost:
    n = call.size("s")
    tables = pieces(n, BLOCK) + pieces(n, SUPER) + 1
    return Cost(bytes=n + 4 * (2 * pieces(n, WORD) + tables), dispatches=2 if n else 1)


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
            local=(LOCAL, 1, 1),
            extensions=("GL_EXT_control_flow_attributes",),
            file="pack.comp",
        ),
        "signs": Shader(
            (
                Binding("dense", "u32"),
                Binding("counts", "u32"),
                Binding("supers", "u32", "write"),
                Binding("signs", "u32", "readwrite"),
                Binding("count", "u32", "write"),
            ),
            (MANY, Scalar("share", "u32", doc="superblocks of a workgroup")),
            local=(LOCAL, 1, 1),
            extensions=("GL_EXT_control_flow_attributes",),
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
    tunings=TUNINGS,
)
