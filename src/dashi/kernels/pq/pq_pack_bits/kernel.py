"""pq_pack_bits: a ternary field to its support plane, sign plane and rank tables (dashi.kernels.pq._planes), lossless.

First every superblock by itself: planes, counts of its blocks, its signs close together in scratch memory. Then the
ranks that superblocks start from, and the sign plane: the signs of each superblock go to their ranks. The field is read
once; the second pass reads the signs alone, a tenth of it.
"""

import numpy as np

from dashi.kernels._trits import LENGTHS, in_turn, random_trits, support_of
from dashi.kernels.abi import (
    Binding,
    Call,
    Case,
    Dispatch,
    Kernel,
    Limits,
    Operand,
    Plan,
    Scalar,
    Shader,
    StreamDefaults,
)
from dashi.kernels.pq._planes import BLOCK, SUPER, WORD, encode, pieces
from dashi.types import Cost, HostArray

LOCAL = 256
TOGETHER = 4
"""Superblocks that a workgroup of the second pass takes at once."""
SHARES = 1024
"""Workgroups of the second pass at most: each adds all the counts before its own, so that more of them read more."""
WORDS = 2
"""Words of 32 sites that an invocation of the first pass takes."""
TUNINGS = {"direct": {"staged": 0}, "shared": {"staged": 1}}
"""Whether the field is read side by side, its bits and counts going through shared memory; else every invocation reads
its own sites, and subgroups add the counts."""
MANY = Scalar("many", "u32", doc="superblocks")


def packing(staged: bool) -> Shader:
    return Shader(
        (
            Binding("s", "u32x4"),
            Binding("support", "u32", "write"),
            Binding("signs", "u32", "write"),
            Binding("dense", "u32", "write"),
            Binding("blocks", "u32", "write"),
            Binding("counts", "u32", "write"),
        ),
        (Scalar("n", "u32"), Scalar("words", "u32"), MANY, Scalar("stride", "u32")),
        local=(SUPER // WORD // WORDS, 1, 1),
        extensions=("GL_EXT_control_flow_attributes",),
        features=frozenset() if staged else frozenset({"subgroup"}),
        prelude="#define STAGED\n" if staged else "",
        file="pack.comp",
    )


def reference(s: HostArray) -> tuple[HostArray, ...]:
    return (*encode(s), np.array([support_of(s).sum()], np.uint32))


def plan(call: Call) -> Plan:
    n = call.size("s")
    words, supers = pieces(n, WORD), pieces(n, SUPER)
    share = TOGETHER * max(1, pieces(supers, TOGETHER * min(SHARES, call.limits.groups)))
    shares = max(1, pieces(supers, share))
    # Counts by fours, 16 sums, and for every four superblocks as many loops over two words.
    placing = pieces(supers, 16 * LOCAL) + 16 + share // TOGETHER * (1 + 2 * TOGETHER * (1 + 2))
    place = Dispatch(
        "signs",
        ("dense", "counts", "supers", "signs", "count"),
        {"many": supers, "share": share},
        (shares, 1, 1),
        placing,
    )
    scratch = {
        "dense": ("u32", max(1, supers * (SUPER // WORD))),
        "counts": ("u32", TOGETHER * max(1, pieces(supers, TOGETHER))),
    }
    if n == 0:
        return Plan((place,), scratch)
    groups = min(supers, call.limits.groups)
    # For every superblock: the sums of every subgroup, at most as many as invocations, and loops over words.
    trips = pieces(supers, groups) * (1 + LOCAL + 16)
    buffers = ("s", "support", "signs", "dense", "blocks", "counts")
    numbers = {"n": n, "words": words, "many": supers, "stride": groups}
    shader = "shared" if call.tuning.get("staged", 1) else "direct"
    return Plan((Dispatch(shader, buffers, numbers, (groups, 1, 1), trips), place), scratch)


def prefer(limits: Limits, _: str) -> str:
    return "direct" if "subgroup" in limits.features and not limits.software else "shared"


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
        "direct": packing(staged=False),
        "shared": packing(staged=True),
        "signs": Shader(
            (
                Binding("dense", "u32"),
                Binding("counts", "u32x4"),
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
    prefer=prefer,
)
