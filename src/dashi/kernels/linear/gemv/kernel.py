"""gemv: row vector times matrix, result[j] = sum over i of x[i] A[i, j]; products flushed, summed in the order tree64.

A pass adds up runs of 64 rows, or 64 such runs at once where that leaves enough workgroups to fill a device. The bits
do not depend on the choice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Limits, Operand, Plan, Scalar, Shader
from dashi.kernels.portable import canon, contract
from dashi.kernels.reductions import shares
from dashi.types import Array, Cost

RUN: Final = 64
WIDTH: Final = 32
DEPTH: Final = 8
BATCH: Final = 16
NUMBERS: Final = ("n", "rows", "made", "across", "first_block", "blocks", "stride", "whole", "first", "last")
FEW_ROWS: Final = 1024
MANY_BLOCKS: Final = 256
"""Up to FEW_ROWS a second pass costs more than it saves; MANY_BLOCKS workgroups keep a large device busy."""


@dataclass(frozen=True)
class Pass:
    """One dispatch: `rows` rows of n columns to `made` rows."""

    rows: int
    made: int
    whole: bool
    across: int
    blocks: int


def passes(rows: int, n: int) -> tuple[Pass, ...]:
    """The passes that bring a matrix down to one row."""
    across = -(-n // WIDTH)
    steps: list[Pass] = []
    while not steps or rows > 1:
        tiles = max(1, -(-rows // RUN**2))
        runs = max(1, -(-rows // RUN))
        whole = rows <= FEW_ROWS or across * tiles >= MANY_BLOCKS
        made = tiles if whole else runs
        steps.append(Pass(rows, made, whole, across, across * (made if whole else -(-runs // DEPTH))))
        rows = made
    return tuple(steps)


def plan(call: Call) -> Plan:
    n = call.dims["n"]
    if n == 0:
        return Plan(())
    steps = passes(call.dims["k"], n)
    end = len(steps) - 1
    dispatches: list[Dispatch] = []
    for i, p in enumerate(steps):
        buffers = ("x", "A" if i == 0 else f"sums{i - 1}", "result" if i == end else f"sums{i}")
        dispatches += _dispatches(p, n, buffers, call.limits)
    return Plan(tuple(dispatches), {f"sums{i}": ("T", p.made * n) for i, p in enumerate(steps) if i < end})


def _dispatches(p: Pass, n: int, buffers: tuple[str, str, str], limits: Limits) -> Iterator[Dispatch]:
    per_run = RUN // BATCH + 2 * RUN
    per_block = 1 + (RUN // DEPTH * (1 + per_run) + RUN if p.whole else per_run)
    numbers = {"n": n, "rows": p.rows, "made": p.made, "across": p.across, "whole": int(p.whole)}
    flags = {"first": int(buffers[1] == "A"), "last": int(buffers[2] == "result")}
    for share in shares(p.blocks, per_block, limits):
        place = {"first_block": share.first, "blocks": share.beyond, "stride": share.groups}
        yield Dispatch("main", buffers, {**numbers, **place, **flags}, (share.groups, 1, 1), share.trips)


def reference(x: Array, a: Array) -> Array:
    return canon(contract(x, a))


def cost(call: Call) -> Cost:
    k, n = call.dims["k"], call.dims["n"]
    if n == 0:
        return Cost()
    steps = passes(k, n)
    moved = k + sum(p.rows + p.made for p in steps) * n
    return Cost(flops=2 * k * n, bytes=moved * call.dtype.size, dispatches=len(plan(call).dispatches))


SIZES: Final = (
    (0, 3), (1, 1), (1, 70), (63, 31), (64, 32), (65, 33), (128, 128), (257, 65), (1000, 5), (1025, 3), (4095, 2),
    (4096, 1), (4097, 3), (5000, 40), (70000, 1), (130, 8200), (262145, 1), (5, 0),
)  # fmt: skip

KERNEL = Kernel(
    summary="row vector times matrix: sum over i of x[i] A[i, j]",
    inputs=(Operand("x", shape=("k",)), Operand("A", shape=("k", "n"))),
    outputs=(Operand("result", shape=("n",)),),
    shaders={
        "main": Shader(
            (Binding("x"), Binding("A"), Binding("result", access="write")),
            tuple(Scalar(name, "u32") for name in NUMBERS),
            local=(WIDTH, DEPTH, 1),
            includes=("portable.glsl",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case({"x": (k,), "A": (k, n)}) for k, n in SIZES),
    aliases=("row_times_matrix",),
)
