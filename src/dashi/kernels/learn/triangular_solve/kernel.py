"""triangular_solve: x with L x = b or L^T x = b, for a lower triangular L and any number of columns of b.

x[i] = (b[i] - S) / L[i, i] with S the sum over k < i of L[i, k] x[k] in the order tree64. The transposed system is
solved from the last row to the first: there the addends come in the order of falling k. Rows are made 64 at a time,
then the run of 64 that they add to the sums of all later rows. What is above the diagonal of L is not read.
"""

from typing import Any, Final

import numpy as np

from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar
from dashi.kernels.learn._triangles import RUN, require_fit, shader
from dashi.kernels.portable import canon, contract, divide, mul
from dashi.types import Cost, HostArray, Shape


def reference(triangle: HostArray, b: HostArray, transposed: int) -> HostArray:
    if transposed:
        return reference(np.ascontiguousarray(triangle.T[::-1, ::-1]), b[::-1], 0)[::-1]
    whole, right_side = canon(triangle), canon(b)
    n = len(whole)
    result, sums = np.zeros_like(right_side), np.zeros_like(right_side)
    with np.errstate(all="ignore"):
        for first in range(0, n, RUN):
            end = min(first + RUN, n)
            run = np.zeros((end - first, right_side.shape[1]), right_side.dtype)
            for i in range(first, end):
                result[i] = divide(right_side[i] - (sums[i] + run[i - first]), whole[i, i])
                run[i + 1 - first :] += mul(whole[i + 1 : end, i, None], result[i])
            if end < n:
                sums[end:] += contract(whole[end:, first:end], result[first:end])
    return result


def plan(call: Call) -> Plan:
    n, m = call.dims["n"], call.dims["m"]
    require_fit("triangular_solve takes", n)
    if n * m == 0:
        return Plan(())
    groups, rounds = groups_for(m, RUN, call.limits)
    same = {"n": n, "m": m, "transposed": call.scalars["transposed"], "stride": groups * RUN}
    dispatches: list[Dispatch] = []
    for first in range(0, n, RUN):
        push = {**same, "first": first, "fresh": int(first == 0)}
        trips = rounds * (1 + RUN * (RUN + 1) // 2)
        dispatches.append(Dispatch("block", ("L", "b", "sums", "result"), push, (groups, 1, 1), trips))
        left = n - first - RUN
        if left > 0:
            dispatches.append(Dispatch("update", ("L", "result", "sums"), push, (groups, left, 1), rounds * (1 + RUN)))
    return Plan(tuple(dispatches), {"sums": ("T", n * m)})


def cost(call: Call) -> Cost:
    n, m = call.dims["n"], call.dims["m"]
    moved = (n * (n + 1) // 2 + 2 * n * m) * call.dtype.size
    return Cost(n * n * m, moved, len(plan(call).dispatches)) if n * m else Cost()


def triangle(rng: np.random.Generator, shape: Shape) -> HostArray:
    """A lower triangle whose solutions do not grow; above the diagonal stands what must not be read."""
    values = rng.standard_normal(shape) / np.sqrt(1 + shape[0])
    return np.tril(values, -1) + np.diag(1 + rng.random(shape[0])) + np.triu(np.full(shape, np.nan), 1)


def case(n: int, m: int, transposed: int, tame: bool = True) -> Case:
    fill: Any = {"L": triangle} if tame else {}
    return Case({"L": (n, n), "b": (n, m)}, {"transposed": transposed}, fill)


NUMBERS: Final = tuple(Scalar(name, "u32") for name in ("n", "m", "transposed", "first", "fresh", "stride"))
PLACES: Final = "triangle_places.glsl"

KERNEL = Kernel(
    summary="x of L x = b, or of L^T x = b, for a lower triangular L",
    inputs=(Operand("L", shape=("n", "n")), Operand("b", shape=("n", "m"))),
    outputs=(Operand("result", shape=("n", "m")),),
    scalars=(Scalar("transposed", "u32", default=0, doc="1: solve with L^T"),),
    shaders={
        "block": shader(
            "block.comp",
            (Binding("L"), Binding("b"), Binding("sums"), Binding("result", access="write")),
            NUMBERS,
            PLACES,
        ),
        "update": shader(
            "update.comp", (Binding("L"), Binding("result"), Binding("sums", access="readwrite")), NUMBERS, PLACES
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(0, 3, 0), case(3, 0, 0), case(1, 1, 0, tame=False), case(5, 2, 1, tame=False), case(64, 3, 0),
        case(65, 65, 1), case(63, 70, 0), case(130, 5, 1), case(200, 1, 0), case(129, 130, 1), case(70, 9, 0, False),
    ),
    bench=(case(1024, 1024, 0),),
)  # fmt: skip
