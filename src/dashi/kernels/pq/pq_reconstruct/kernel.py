"""pq_reconstruct: the real field of planes and magnitudes: sign times magnitude where there is support, 0 elsewhere.

Magnitude r belongs to the supported site of rank r. The sign is applied once: it comes from the sign plane, and what
sign a magnitude has itself does not count. Where the list of magnitudes has ended the field is 0.
"""

import numpy as np

from dashi.kernels._trits import SITES, all_set, all_zero, one_site, random_trits, words_to_bits
from dashi.kernels._work import LOCAL
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Fill, Kernel, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.kernels.portable import canon
from dashi.kernels.pq._planes import (
    BLOCK,
    PLANES,
    SUPER,
    TILE_WORDS,
    WORD,
    pieces,
    plane_case,
    ranks,
    signs_at,
)
from dashi.types import Cost, HostArray


def reference(
    support: HostArray, signs: HostArray, blocks: HostArray, supers: HostArray, magnitudes: HostArray, *, n: int
) -> HostArray:
    rank = ranks(support, blocks, supers, n)
    known = words_to_bits(support, n) & (rank < magnitudes.size)
    field = np.zeros(n, magnitudes.dtype)
    sizes = np.abs(canon(magnitudes))[rank[known]]
    field[known] = np.where(signs_at(signs, rank[known]), -sizes, sizes)
    return canon(field)


def plan(call: Call) -> Plan:
    n = int(call.scalars["n"])
    words = pieces(n, WORD)
    if n == 0:
        return Plan(())
    groups = min(pieces(words, TILE_WORDS), call.limits.groups)
    push = {"n": n, "words": words, "m": call.dims["m"], "stride": groups}
    buffers = ("support", "signs", "blocks", "supers", "magnitudes", "result")
    return Plan((Dispatch("main", buffers, push, (groups, 1, 1), pieces(words, TILE_WORDS * groups) * 37),))


def cost(call: Call) -> Cost:
    n, m = int(call.scalars["n"]), call.dims["m"]
    planes = pieces(n, WORD) + pieces(n, BLOCK) + pieces(n, SUPER) + pieces(min(m, n), WORD)
    return Cost(bytes=(n + min(m, n)) * call.dtype.size + 4 * planes, dispatches=int(n > 0))


def case(n: int, m: int, fill: Fill) -> Case:
    made = plane_case(n, fill)
    return Case({**made.shapes, "magnitudes": (m,)}, made.scalars, made.fill)


KERNEL = Kernel(
    summary="sign times magnitude at the supported sites of a field (n,), 0 elsewhere",
    inputs=(*PLANES, Operand("magnitudes", shape=("m",))),
    outputs=(Operand("result", shape=("n",)),),
    scalars=(SITES,),
    shaders={
        "main": Shader(
            (*(Binding(o.name, "u32") for o in PLANES), Binding("magnitudes"), Binding("result", access="write")),
            (Scalar("n", "u32"), Scalar("words", "u32"), Scalar("m", "u32"), Scalar("stride", "u32")),
            local=(LOCAL, 1, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    stream=StreamDefaults(io_class="PQ"),
    cases=(
        case(0, 0, random_trits), case(1, 1, all_set), case(33, 40, random_trits), case(512, 512, all_set),
        case(513, 100, random_trits), case(5000, 1, one_site), case(5000, 0, all_zero), case(20000, 20000, all_set),
    ),
    bench=(case(1 << 26, 1 << 26, all_set),),
)  # fmt: skip
