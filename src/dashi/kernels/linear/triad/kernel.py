"""triad: the sparse quadratic form Q(z, z) of m states, result[s, k] = tree64 sum of weights[e] z[s, i] z[s, j].

The triads of output k are e = ends[k] up to ends[k + 1], with i, j = pairs[e]; z[i] z[j] is rounded first. A list of
more than `longest` triads, one that leaves them, and a component past the end give NaN.
"""

from typing import Any

import numpy as np

from dashi.kernels import _lists as lists
from dashi.kernels import _triads as triads
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray


def reference(z: HostArray, weights: HostArray, pairs: HostArray, ends: HostArray, longest: int) -> HostArray:
    lists.require_lists("triad", "ends", z.shape[1], ends.size, longest)
    with np.errstate(all="ignore"):
        found = lists.lists_at(ends, weights.size, longest)
        return triads.QuadraticForm(weights, pairs, found, z.shape[1])(canon(z))


def plan(call: Call) -> Plan:
    longest = int(call.scalars["longest"])
    lists.require_lists("triad", "ends", call.dims["d"], call.dims["lists"], longest)
    push = {"width": call.dims["d"], "triads": call.dims["triads"], "longest": longest}
    buffers = ("z", "weights", "pairs", "ends", "result")
    return lists.step_dispatches(call, call.size("z"), (longest,), buffers, push, {})


def cost(call: Call) -> Cost:
    """The triads once for each state; states and result once."""
    states, count = call.dims["m"], call.dims["triads"]
    moved = states * count * (call.dtype.size + 8) + 4 * call.dims["lists"] + call.bytes("z", "result")
    return Cost(3 * states * count, moved, len(plan(call).dispatches))


def case(m: int, d: int, each: int, **more: Any) -> Case:
    """A case of quadratic_step without its other parts."""
    whole = triads.case(m, d, 0, each, {}, **more)
    names = ("z", "weights", "pairs", "ends")
    return Case(
        {name: whole.shapes[name] for name in names},
        {"longest": whole.scalars["longest_triads"]},
        {name: whole.fill[name] for name in ("pairs", "ends")},
    )


KERNEL = Kernel(
    summary="sparse quadratic form of states: sum of weights z_i z_j over the triads of every output",
    inputs=(Operand("z", shape=("m", "d")), *triads.triad_inputs("ends")),
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=(Scalar("longest", "u32", 4096, "no output has more triads; at most 262144"),),
    shaders=lists.step_shaders(
        (
            Binding("z"),
            Binding("weights"),
            Binding("pairs", "u32"),
            Binding("ends", "u32"),
            Binding("result", access="write"),
        ),
        tuple(Scalar(name, "u32") for name in ("width", "triads", "longest")),
    ),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1), case(0, 5, 2), case(2, 0, 1), case(3, 130, 9), case(1, 130, 0), case(2, 66, 50),
        case(1, 40, 6, reach=43), case(1, 40, 6, short=2), case(1, 20, 3, hot=4200), case(1, 196, 60),
    ),
    bench=(case(1, 1372, 729), case(1, 196, 100)),
    tunings=lists.STEP_TUNINGS,
    prefer=lists.prefer_step,
)  # fmt: skip
