"""state_metrics: what a step did to a state (or an ensemble, all states together), in few bytes.

metrics: [0] L2 norm before, [1] L2 norm after, [2] contraction ratio after / before (0 / 0 is 0), [3] max |after|,
[4] defect max |after - before|, [5] L2 norm of the difference, [6] sum after, [7] sum of squares after, [8] min after,
[9] max after; the rest +0. A NaN anywhere shows in every one that it touches. No values at all give 0 everywhere.
counts: [0] values after that are not finite, [1] and [2] low and high word of the place of the first of them in the
flattened state, all ones if there is none; [3] is 0.

Sums are tree64, so norms are those of reduce_l2, bit for bit. Up to 4096 values take one dispatch of one workgroup.
"""

from typing import Final

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan, StreamDefaults
from dashi.kernels.core import _state_metrics as state_metrics
from dashi.types import Cost


def plan(call: Call) -> Plan:
    return state_metrics.plan(call, "before", "after", bool(call.tuning["direct"]))


def cost(call: Call) -> Cost:
    return state_metrics.cost(call, "before", "after")


SIZES: Final = (
    (1, 1), (1, 2), (0, 3), (1, 63), (1, 64), (1, 65), (2, 130), (1, 654), (4, 1024), (1, 4097), (17, 654), (1, 70000),
)  # fmt: skip
KERNEL = Kernel(
    summary="norms, contraction ratio, defect, extremes and non-finite values of a state before and after a step",
    inputs=(Operand("before"), Operand("after")),
    outputs=(Operand("metrics", shape=(16,)), Operand("counts", "u32", (4,))),
    shaders=state_metrics.shaders(),
    plan=plan,
    reference=state_metrics.measure,
    cost=cost,
    cases=(
        *(Case(dict.fromkeys(("before", "after"), shape)) for shape in SIZES),
        Case({"before": (2, 9, 4), "after": (2, 9, 4)}),
    ),
    bench=(
        Case({"before": (1 << 15, 1 << 12), "after": (1 << 15, 1 << 12)}),
        Case({"before": (1, 654), "after": (1, 654)}),
    ),
    tunings=state_metrics.TUNINGS,
    prefer=state_metrics.prefer,
    stream=StreamDefaults(io_class="OBSERVER"),
)
