"""cholesky: the lower triangular L with L L^T = a + shift I, from the lower triangle of a.

L[i, j] = (a[i, j] - S) / L[j, j] and L[j, j] = sqrt(a[j, j] + shift - S), with S the sum over k < j of L[i, k] L[j, k]
in the order tree64. Columns are made 64 at a time: first the square on the diagonal, then the rows below, then the run
of 64 that these columns add to the sums of all later elements. `margin[j]` is the part of the diagonal element that is
left under the root. Where it is no more than rounding (or negative, or NaN) the matrix is not positive definite, and
what follows in L means nothing. (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002,
chapter 10, doi 10.1137/1.9780898718027.)
"""

from typing import Any, Final

import numpy as np

from dashi.kernels._work import ceil_div, groups_for
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Operand, Plan, Scalar
from dashi.kernels.learn._triangles import RUN, require_fit, shader
from dashi.kernels.portable import canon, contract, divide, mul, sqrt
from dashi.types import Cost, HostArray, Shape


def reference(a: HostArray, shift: float) -> tuple[HostArray, HostArray]:
    whole: Any = np.tril(canon(a))
    n = len(whole)
    factor, sums, margin = np.zeros_like(whole), np.zeros_like(whole), np.zeros(n, whole.dtype)
    with np.errstate(all="ignore"):
        whole[np.diag_indices(n)] += canon(whole.dtype.type(shift))
        for first in range(0, n, RUN):
            end = min(first + RUN, n)
            run = np.zeros((n - first, end - first), whole.dtype)
            for j in range(first, end):
                rest = whole[j:, j] - (sums[j:, j] + run[j - first :, j - first])
                margin[j] = divide(rest[0], whole[j, j])
                factor[j, j] = sqrt(rest[0])
                factor[j + 1 :, j] = divide(rest[1:], factor[j, j])
                columns = factor[j + 1 :, j]
                run[j + 1 - first :, j + 1 - first :] += mul(columns[:, None], columns[None, : end - j - 1])
            columns = factor[end:, first:end]
            sums[end:, end:] += contract(columns, columns.T)
    return factor, margin


def plan(call: Call) -> Plan:
    n, limits = call.dims["n"], call.limits
    require_fit("cholesky factors matrices of", n)
    dispatches: list[Dispatch] = []
    for first in range(0, n, RUN):
        push = {"n": n, "first": first, "fresh": int(first == 0)}
        left = n - first - RUN
        pivot = {**push, "shift": call.scalars["shift"]}
        dispatches.append(Dispatch("pivot", ("a", "sums", "factor", "margin"), pivot, (1, 1, 1), RUN + RUN * (RUN + 1)))
        groups, rounds = groups_for(n, RUN, limits)
        strided = {**push, "stride": groups * RUN}
        trips = rounds * (1 + RUN * (RUN + 1) // 2 + RUN)
        if n > RUN:
            dispatches.append(Dispatch("panel", ("a", "sums", "factor"), strided, (groups, 1, 1), trips))
        if left > 0:
            dispatches.append(Dispatch("trail", ("factor", "sums"), push, (ceil_div(left, RUN), left, 1), RUN))
    return Plan(tuple(dispatches), {"sums": ("T", n * n)} if n else {})


def cost(call: Call) -> Cost:
    n = call.dims["n"]
    # A third of n^3 for the products and sums; a and the factor once, though the sums pass through memory too.
    return Cost(n**3 // 3 + n * n, 2 * n * n * call.dtype.size, len(plan(call).dispatches))


def definite(rank: int) -> Any:
    """A Gram matrix of rows of very different sizes; with fewer rows than columns it is not definite by itself."""

    def fill(rng: np.random.Generator, shape: Shape) -> HostArray:
        rows = rng.standard_normal((rank, shape[0])) * np.exp2(rng.integers(-6, 7, shape[0]))
        return rows.T @ rows

    return fill


def case(n: int, shift: float, rank: int | None = None) -> Case:
    """Some matrix of the harness, or one of that rank."""
    return Case({"a": (n, n)}, {"shift": shift}, {} if rank is None else {"a": definite(rank)})


NUMBERS: Final = (Scalar("n", "u32"), Scalar("first", "u32"), Scalar("fresh", "u32"))

KERNEL = Kernel(
    summary="lower triangular factor of a + shift I, and what is left of each diagonal element under the root",
    inputs=(Operand("a", shape=("n", "n")),),
    outputs=(Operand("factor", shape=("n", "n")), Operand("margin", shape=("n",))),
    scalars=(Scalar("shift", default=0.0, doc="added to the diagonal"),),
    shaders={
        "pivot": shader(
            "pivot.comp",
            (Binding("a"), Binding("sums"), Binding("factor", access="write"), Binding("margin", access="write")),
            (*NUMBERS, Scalar("shift")),
        ),
        "panel": shader(
            "panel.comp",
            (Binding("a"), Binding("sums"), Binding("factor", access="readwrite")),
            (*NUMBERS, Scalar("stride", "u32")),
        ),
        "trail": shader("trail.comp", (Binding("factor"), Binding("sums", access="readwrite")), NUMBERS),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(0, 1.0), case(1, 2.0), case(5, 0.5, 9), case(5, 30.0), case(64, 0.0, 80), case(65, 1e-3, 30),
        case(66, 64.0), case(63, 1e-3, 70), case(130, 1e-2, 50), case(200, 1.0, 90),
    ),
    bench=(case(1024, 1.0, 512),),
)  # fmt: skip
