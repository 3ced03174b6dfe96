"""bands_rollout: `steps` steps of band energies on a graph with the bits of bands_step, each state in one workgroup, on
chip (dashi.kernels.core._bands). What does not fit into shared memory is refused."""

from typing import Final

from dashi.errors import LimitError
from dashi.kernels import _lists as lists
from dashi.kernels._psi import FLOPS, NUMBERS, SPEC
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.core import _bands as bands
from dashi.types import Cost, HostArray

OPERANDS: Final = ("energy", "weights", "neighbours", "offsets", "kappa", "coupling", "result")


def reference(
    *arrays: HostArray, steps: int, strength: float, longest: int, psi: int, alpha: float, low: float, high: float
) -> HostArray:
    scalars = {"strength": strength, "longest": longest, "psi": psi, "alpha": alpha, "low": low, "high": high}
    bands.require_fit("bands_rollout", arrays[0].shape[1], arrays[3].size, scalars)
    return bands.advance(arrays, steps, scalars)


def plan(call: Call) -> Plan:
    bands.require("bands_rollout", call)
    numbers = call.tuning or lists.ROLLOUT_TUNINGS[lists.prefer_rollout(call.limits, call.dtype.name)]
    size, states = call.dims["v"] * call.dims["bands"], call.dims["m"]
    longest = int(call.scalars["longest"])
    problem = bands.too_large(size, call.dims["bands"], longest, call.dtype.size, call.limits, numbers["lanes"])
    if problem:
        raise LimitError(
            f"kernel 'bands_rollout': {problem}.", "take one step in a dispatch instead (strategy stepwise)."
        )
    if size * states == 0:
        return Plan(())
    local = bands.lanes_of(size, numbers["lanes"], call.limits)
    per_step, ends = bands.step_trips(size, call.dims["bands"], longest, local), 2 * ceil_div(size, local)
    push = {**bands.numbers(call), **bands.phi_numbers(call), "strength": call.scalars["strength"]}
    spec = {"LOCAL": local, "SIZE": size, "PSI": int(call.scalars["psi"])}
    steps, most = int(call.scalars["steps"]), max(1, (call.limits.loop_trips - ends) // per_step)
    counts = [min(most, steps - done) for done in range(0, steps, most)] or [0]
    dispatches: list[Dispatch] = []
    source = "energy"
    for i, count in enumerate(counts):
        # The last dispatch writes the result; before it, states lie in scratch and in the result, in turn.
        target = "result" if (len(counts) - i) % 2 else "between"
        buffers = (source, *OPERANDS[1:-1], target)
        for first in range(0, states, call.limits.groups):
            groups = (min(call.limits.groups, states - first), 1, 1)
            place = {"steps": count, "first_state": first}
            dispatches.append(Dispatch("main", buffers, {**push, **place}, groups, count * per_step + ends, spec))
        source = target
    return Plan(tuple(dispatches), {"between": ("T", size * states)} if len(counts) > 1 else {})


def cost(call: Call) -> Cost:
    """The graph once for each state and step; energies once."""
    items, count, steps = call.size("energy"), call.dims["bands"], int(call.scalars["steps"])
    each = call.dims["m"] * call.dims["edges"]
    phi = FLOPS[call.dtype.name][int(call.scalars["psi"])]
    moved = each * (call.dtype.size + 4) + call.dims["m"] * (4 * call.dims["ends"] + call.bytes("kappa", "coupling"))
    flops = 3 * each * count + items * (4 + phi + 2 * count)
    return Cost(steps * flops, steps * moved + call.bytes("energy", "result"), len(plan(call).dispatches))


KERNEL = Kernel(
    summary="many steps of band energies on a graph, each state in one workgroup",
    inputs=bands.INPUTS,
    outputs=(Operand("result", shape=("m", "v", "bands")),),
    scalars=(Scalar("steps", "u32", doc="steps to take"), *bands.SCALARS),
    shaders={
        "main": Shader(
            (*bands.GRAPH, Binding("coupling"), Binding("result", access="write")),
            (
                Scalar("steps", "u32"),
                Scalar("first_state", "u32"),
                *bands.COUNTS,
                Scalar("strength"),
                *NUMBERS,
            ),
            (Spec("LOCAL", 128), Spec("SIZE", 128), SPEC),
            local=("LOCAL", 1, 1),
            includes=lists.INCLUDES,
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        bands.case(1, 1, 1, 0, {"steps": 2}), bands.case(0, 3, 2, 1, {"steps": 2}),
        bands.case(1, 4, 3, 1, {"steps": 0}), bands.case(2, 31, 8, 2, {"psi": 1, "steps": 4}),
        bands.case(1, 1, 70, 0, {"psi": 2, "steps": 3}),
        bands.case(3, 13, 5, 3, {"psi": 3, "low": 0.0, "high": 1.5, "steps": 3}),
        bands.case(1, 20, 3, 2, {"steps": 2}, reach=22), bands.case(1, 20, 3, 3, {"steps": 2}, longest=4),
        bands.case(1, 6, 2, 1, {"steps": 60, "psi": 1}, longest=4096),
    ),
    bench=(bands.case(1, 127, 8, 2, {"psi": 1, "steps": 1000}),),
    tunings=lists.ROLLOUT_TUNINGS,
    prefer=lists.prefer_rollout,
)  # fmt: skip
