"""gemm_tiled: result = a b, every element summed over k in the order tree64, so one row of a gives the bits of gemv.

A dispatch sums two levels of the tree, 4096 of k; the levels above are kept in buffers, one per level, which one
addend after the other is added to. Up to 64 x 4096 of k that is the result alone.
"""

from collections.abc import Iterator
from typing import Final

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar, Shader, groups_for
from dashi.kernels.portable import canon, contract
from dashi.kernels.reductions import shares
from dashi.types import Array, Cost

RUN: Final = 64
CHUNK: Final = RUN * RUN
SIDE: Final = 64
STEP: Final = 16
LOCAL: Final = 256
FLAGS: Final = (Scalar("fresh", "u32"), Scalar("last", "u32"))
"""1 where a sum begins (its buffer is not read), and where it is the result (it is made canonical)."""


def plan(call: Call) -> Plan:
    m, n = call.dims["m"], call.dims["n"]
    if m * n == 0:
        return Plan(())
    chunks = _chunks(call)
    sums = _sums(chunks)
    dispatches: list[Dispatch] = []
    for c in range(chunks):
        end = c == chunks - 1
        dispatches += _multiply(call, c, sums[0], last=end and len(sums) == 1)
        # Whenever a run of 64 addends is complete its sum is an addend of the next level.
        level, place = 0, c
        while level + 1 < len(sums) and (place % RUN == RUN - 1 or end):
            place //= RUN
            level += 1
            last = end and level + 1 == len(sums)
            dispatches.append(_fold(call, (sums[level - 1], sums[level]), fresh=place % RUN == 0, last=last))
    return Plan(tuple(dispatches), dict.fromkeys(sums[:-1], ("T", m * n)))


def _chunks(call: Call) -> int:
    return max(1, -(-call.dims["k"] // CHUNK))


def _sums(chunks: int) -> tuple[str, ...]:
    """The buffers of the tree's levels above the second; the last is the result."""
    names: list[str] = []
    while chunks > RUN:
        names.append(f"sums{len(names)}")
        chunks = -(-chunks // RUN)
    return (*names, "result")


def _multiply(call: Call, chunk: int, target: str, last: bool) -> Iterator[Dispatch]:
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    begin, end = chunk * CHUNK, min((chunk + 1) * CHUNK, k)
    across = -(-n // SIDE)
    tiles = across * -(-m // SIDE)
    trips = 1 + -(-(end - begin) // RUN) + -(-(end - begin) // STEP) * (1 + STEP)
    numbers = {"m": m, "n": n, "k": k, "begin": begin, "end": end, "across": across}
    flags = {"fresh": int(chunk % RUN == 0), "last": int(last)}
    for share in shares(tiles, trips, call.limits):
        place = {"first_tile": share.first, "tiles": share.beyond, "stride": share.groups}
        yield Dispatch("main", ("a", "b", target), {**numbers, **place, **flags}, (share.groups, 1, 1), share.trips)


def _fold(call: Call, buffers: tuple[str, str], fresh: bool, last: bool) -> Dispatch:
    n = call.size("result")
    groups, trips = groups_for(n, LOCAL, call.limits)
    push = {"n": n, "stride": groups * LOCAL, "fresh": int(fresh), "last": int(last)}
    return Dispatch("fold", buffers, push, (groups, 1, 1), trips)


def reference(a: Array, b: Array) -> Array:
    return canon(contract(a, b))


def cost(call: Call) -> Cost:
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    if m * n == 0:
        return Cost()
    dispatches = plan(call).dispatches
    # a and b are counted once: a tile of one serves a whole row or column of tiles of the other from the cache. Sums
    # are written, read unless they are fresh, and a fold reads one more; a dispatch of some tiles is part of another.
    sums = sum(2 - int(d.push["fresh"]) + (d.shader == "fold") for d in dispatches if not d.push.get("first_tile"))
    return Cost(2 * m * n * k, (m * k + k * n + sums * m * n) * call.dtype.size, len(dispatches))


SIZES: Final = (
    (1, 1, 1), (2, 0, 3), (0, 4, 3), (1, 64, 1), (3, 5, 7), (1, 300, 70), (16, 16, 16), (63, 65, 64), (64, 64, 64),
    (65, 63, 66), (70, 130, 129), (128, 256, 64), (5, 4096, 3), (3, 4097, 5), (66, 5000, 3), (2, 9000, 3),
)  # fmt: skip
"""(m, k, n)"""

KERNEL = Kernel(
    summary="matrix product a b",
    inputs=(Operand("a", shape=("m", "k")), Operand("b", shape=("k", "n"))),
    outputs=(Operand("result", shape=("m", "n")),),
    shaders={
        "main": Shader(
            (Binding("a"), Binding("b"), Binding("result", access="readwrite")),
            tuple(
                Scalar(name, "u32")
                for name in ("m", "n", "k", "begin", "end", "across", "first_tile", "tiles", "stride")
            )
            + FLAGS,
            local=(16, 16, 1),
            includes=("portable.glsl",),
        ),
        "fold": Shader(
            (Binding("part"), Binding("result", access="readwrite")),
            (Scalar("n", "u32"), Scalar("stride", "u32"), *FLAGS),
            local=(LOCAL, 1, 1),
            file="fold.comp",
            includes=("portable.glsl",),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"a": (m, k), "b": (k, n)}) for m, k, n in SIZES),
    aliases=("gemm",),
)
