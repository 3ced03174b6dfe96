"""quadratic_step: z' = z + dt (z L + Q(z, z) + f) for m states, L sparse, Q a list of triads (`_triads`)."""

from collections.abc import Mapping
from typing import Final

from dashi.kernels import _lists as lists
from dashi.kernels import _triads as triads
from dashi.kernels.abi import Call, Kernel, Number, Operand, Plan
from dashi.types import Cost, HostArray

LISTS: Final = ("offsets", "ends")


def reference(*arrays: HostArray, dt: float, longest_linear: int, longest_triads: int) -> HostArray:
    scalars = {"dt": dt, "longest_linear": longest_linear, "longest_triads": longest_triads}
    z, values, sources, offsets, weights, pairs, ends, force = arrays
    width = z.shape[1]
    require(width, (offsets.size, ends.size), scalars)
    linear = lists.LinearForm(values, sources, lists.lists_at(offsets, values.size, longest_linear), width)
    form = triads.QuadraticForm(weights, pairs, lists.lists_at(ends, weights.size, longest_triads), width)
    return triads.advance(z, linear, form, force, 1, dt)


def require(width: int, ends: tuple[int, int], scalars: Mapping[str, Number]) -> None:
    """What the shapes alone cannot say."""
    lists.require_lists("quadratic_step", "offsets", width, ends[0], int(scalars["longest_linear"]))
    lists.require_lists("quadratic_step", "ends", width, ends[1], int(scalars["longest_triads"]))
    triads.require_length("quadratic_step", scalars)


def plan(call: Call) -> Plan:
    require(call.dims["d"], (call.dims["columns"], call.dims["lists"]), call.scalars)
    longest = (int(call.scalars["longest_linear"]), int(call.scalars["longest_triads"]))
    return lists.step_dispatches(call, call.size("z"), longest, triads.operands(LISTS), triads.numbers(call), {})


def cost(call: Call) -> Cost:
    """Lists once for each state; states, force and result once."""
    states, entries, count = call.dims["m"], call.dims["entries"], call.dims["triads"]
    moved = states * (entries * (call.dtype.size + 4) + count * (call.dtype.size + 8))
    moved += 4 * (call.dims["columns"] + call.dims["lists"]) + call.bytes("z", "force", "result")
    return Cost(states * (2 * entries + 3 * count) + 4 * call.size("z"), moved, len(plan(call).dispatches))


KERNEL = Kernel(
    summary="z + dt (z L + Q(z, z) + f) for states z, a sparse L and a list of triads Q",
    inputs=triads.inputs(LISTS),
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=triads.SCALARS,
    shaders=lists.step_shaders(triads.bindings(LISTS), triads.PUSH),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        triads.case(1, 1, 1, 1, {}), triads.case(0, 5, 1, 2, {}), triads.case(2, 0, 1, 1, {}),
        triads.case(3, 130, 0, 9, {"dt": 0.5}), triads.case(1, 130, 4, 0, {}), triads.case(2, 66, 5, 50, {"dt": -1.0}),
        triads.case(1, 40, 3, 6, {}, reach=43), triads.case(1, 40, 3, 6, {}, short=2),
        triads.case(1, 20, 1, 3, {}, hot=4200), triads.case(1, 196, 2, 60, {}),
    ),
    bench=(triads.case(1, 1372, 1, 729, {}), triads.case(1, 196, 1, 100, {})),
    tunings=lists.STEP_TUNINGS,
    prefer=lists.prefer_step,
)  # fmt: skip
