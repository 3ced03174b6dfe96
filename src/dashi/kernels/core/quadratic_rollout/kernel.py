"""quadratic_rollout: `steps` times z' = z + dt (z L + Q(z, z) + f) with the bits of quadratic_step, each state in one
workgroup, on chip (dashi.kernels._triads).

The lists lie side by side (dashi.kernels._interleaved_lists), each with at most 4096 entries. What does not fit into
shared memory is refused.
"""

from collections.abc import Mapping
from typing import Final

from dashi.kernels import _interleaved_lists as interleaved_lists
from dashi.kernels import _lists as lists
from dashi.kernels import _triads as triads
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Call, Case, Kernel, Number, Operand, Plan, Scalar, Spec
from dashi.types import Cost, HostArray

LISTS: Final = ("heads", "heads_triads")


def reference(*arrays: HostArray, steps: int, dt: float, longest_linear: int, longest_triads: int) -> HostArray:
    scalars = {"dt": dt, "longest_linear": longest_linear, "longest_triads": longest_triads}
    z, values, sources, heads, weights, pairs, heads_triads, force = arrays
    width = z.shape[1]
    require(width, (heads.size, heads_triads.size), scalars)
    columns = interleaved_lists.lists_in_slabs(heads, width, values.size, longest_linear)
    found = interleaved_lists.lists_in_slabs(heads_triads, width, weights.size, longest_triads)
    form = triads.QuadraticForm(weights, pairs, found, width)
    return triads.advance(z, lists.LinearForm(values, sources, columns, width), form, force, steps, dt)


def require(width: int, heads: tuple[int, int], scalars: Mapping[str, Number]) -> None:
    """What the shapes alone cannot say."""
    for count in heads:
        interleaved_lists.require_heads("quadratic_rollout", width, count)
    triads.require_length("quadratic_rollout", scalars)


def plan(call: Call) -> Plan:
    require(call.dims["d"], (call.dims["columns"], call.dims["lists"]), call.scalars)
    numbers = call.tuning or lists.ROLLOUT_TUNINGS[lists.prefer_rollout(call.limits, call.dtype.name)]
    longest = (int(call.scalars["longest_linear"]), int(call.scalars["longest_triads"]))
    chip = lists.on_chip(call.dims["d"], longest, numbers["lanes"], call.limits)
    spec = {"RUNS_LINEAR": ceil_div(longest[0], lists.RUN)}
    return lists.rollout_dispatches(call, "quadratic_rollout", chip, triads.operands(LISTS), triads.numbers(call), spec)


def cost(call: Call) -> Cost:
    """Lists once for each state and step; states once."""
    states, entries, count = call.dims["m"], call.dims["entries"], call.dims["triads"]
    steps = int(call.scalars["steps"])
    moved = entries * (call.dtype.size + 4) + count * (call.dtype.size + 8)
    moved += 4 * (call.dims["columns"] + call.dims["lists"]) + call.bytes("force")
    flops = steps * (states * (2 * entries + 3 * count) + 4 * call.size("z"))
    return Cost(flops, steps * states * moved + call.bytes("z", "result"), len(plan(call).dispatches))


def case(m: int, d: int, linear: int, each: int, scalars: Mapping[str, Number], **more: int) -> Case:
    return triads.case(m, d, linear, each, scalars, **more, slabs=True)


KERNEL = Kernel(
    summary="many steps z + dt (z L + Q(z, z) + f), each state in one workgroup",
    inputs=triads.inputs(LISTS),
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=(Scalar("steps", "u32", doc="steps to take"), *triads.SCALARS),
    shaders=lists.rollout_shaders(triads.bindings(LISTS), triads.PUSH, Spec("RUNS_LINEAR", 0)),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1, 1, {"steps": 3}), case(0, 5, 1, 2, {"steps": 2}),
        case(2, 9, 1, 1, {"steps": 0}), case(3, 130, 0, 9, {"dt": 0.5, "steps": 3}),
        case(1, 130, 4, 0, {"steps": 4}), case(2, 66, 40, 50, {"dt": -1.0, "steps": 3}),
        case(1, 40, 3, 6, {"steps": 2}, reach=43), case(1, 40, 3, 6, {"steps": 2}, short=2),
        case(1, 20, 1, 3, {"steps": 2}, hot=900), case(1, 196, 2, 30, {"steps": 3}),
    ),
    bench=(case(1, 196, 1, 100, {"steps": 1000}),),
    tunings=lists.ROLLOUT_TUNINGS,
    prefer=lists.prefer_rollout,
)  # fmt: skip
