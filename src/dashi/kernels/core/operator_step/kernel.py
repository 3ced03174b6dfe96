"""operator_step: one affine step of m states with its metrics, and band energies if asked for.

result = psi(z A + b), a row vector times a matrix, with the bits of gemv and activate; with flags & 1 (relax) instead
z + dt (psi(z A + b) - z). metrics and counts are those of state_metrics from z to result, over all states together, and
besides [10] the number of values that are not finite (at most 2^24) and [11] the time after the step, t + dt. energies
are those of qfeat, of the result, for bands > 0: a row to append to a sheet. Pass edges = [0] and bands = 0 for none.
"""

from typing import Final

import numpy as np

from dashi.errors import InputError, LimitError
from dashi.kernels import _lists as lists
from dashi.kernels._psi import FLOPS, NUMBERS, SCALARS, SPEC, apply_psi, require_psi
from dashi.kernels._work import ceil_div, group_sum_trips, split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Limits, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.core import _band_features as band_features
from dashi.kernels.core import _state_metrics as state_metrics
from dashi.kernels.portable import canon, contract, mul
from dashi.types import Cost, HostArray, Shape

RELAX: Final = 1
MOST: Final = 1 << 24
TUNINGS: Final = {
    "lanes256": {"lanes": 256, "wide": 16, "direct": 0},
    "lanes64": {"lanes": 64, "wide": 16, "direct": 1},
}
"""Invocations of a workgroup, the neighbouring outputs that it makes at a time; and how metrics are taken."""
TIME: Final = (Scalar("t", default=0.0, doc="time before the step"), Scalar("dt", default=1.0, doc="its length"))
FLAGS: Final = Scalar("flags", "u32", 0, "1: relax, z + dt (psi(z A + b) - z)")


def reference(
    z: HostArray,
    a: HostArray,
    b: HostArray,
    edges: HostArray,
    t: float,
    dt: float,
    flags: int,
    bands: int,
    psi: int,
    alpha: float,
    low: float,
    high: float,
) -> tuple[HostArray, ...]:
    require_fit(z.shape[1], edges.size, bands, flags, {"psi": psi, "alpha": alpha, "low": low, "high": high})
    here = canon(z)
    with np.errstate(all="ignore"):
        state = apply_psi(psi, canon(contract(z, a)) + canon(b), alpha, low, high)
        length, time = (canon(np.asarray(v, z.dtype)) for v in (dt, t))
        if flags & RELAX:
            state = canon(here + mul(length, canon(state - here)))
        metrics, counts = state_metrics.measure(z, state)
        metrics[10] = min(int(counts[0]), MOST)
        metrics[11] = canon(time + length)
    return state, metrics, counts, band_features.band_energies(state, edges)


def require_fit(width: int, ends: int, bands: int, flags: int, psi: dict[str, Number]) -> None:
    """What the shapes alone cannot say."""
    band_features.require_edges("operator_step", bands, ends)
    require_psi("operator_step", psi)
    if flags & ~RELAX:
        raise InputError(f"kernel 'operator_step': flags is {flags}.", "pass 0, or 1 to relax.")
    if width > lists.LONGEST:
        raise LimitError(
            f"kernel 'operator_step': states of {width} components are longer than {lists.LONGEST}.",
            "split the operator into several, and add what they make.",
        )


def prefer(limits: Limits, variant: str) -> str:
    """Processors wait at barriers for long."""
    return "lanes64" if limits.software or limits.invocations < 256 else "lanes256"


def plan(call: Call) -> Plan:
    psi = {s.name: call.scalars[s.name] for s in SCALARS}
    bands = int(call.scalars["bands"])
    require_fit(call.dims["d"], call.dims["ends"], bands, int(call.scalars["flags"]), psi)
    measured = state_metrics.plan(
        call, "z", "result", bool(call.tuning["direct"]), "metrics_", {s.name: call.scalars[s.name] for s in TIME}
    )
    return Plan((*_steps(call), *measured.dispatches, *_energies(call, bands)), measured.scratch)


def _steps(call: Call) -> list[Dispatch]:
    width, states, lanes = call.dims["d"], call.dims["m"], call.tuning["lanes"]
    if width * states == 0:
        return []
    held = min(lists.RUN, ceil_div(width, lists.RUN))
    each = lanes // call.tuning["wide"]
    across, tiles = ceil_div(width, call.tuning["wide"]), -(-width // lists.RUN**2)
    trips = 2 + tiles * (2 + ceil_div(held, each) * (lists.RUN_TRIPS + 1) + held)
    push = {s.name: call.scalars[s.name] for s in (*NUMBERS, FLAGS)} | {"dt": call.scalars["dt"]}
    push |= {"width": width, "across": across, "tiles": tiles}
    spec = {"LOCAL": lanes, "EACH": each, "HELD": held, "PSI": int(call.scalars["psi"])}
    return [
        Dispatch(
            "main",
            ("z", "A", "b", "result"),
            {**push, "first_item": s.first, "items": s.beyond, "stride": s.groups},
            (s.groups, 1, 1),
            s.trips,
            spec,
        )
        for s in split_work(states * across, trips, call.limits)
    ]


def _energies(call: Call, bands: int) -> list[Dispatch]:
    trips = 1 + group_sum_trips(call.dims["d"], call.tuning["lanes"])
    push = {"bands": bands, "width": call.dims["d"]}
    return band_features.dispatches(
        call, "energies", ("result", "edges", "energies"), push, call.dims["m"] * bands, trips
    )


def cost(call: Call) -> Cost:
    """The matrix once for each state, states once for each part; the metrics as state_metrics counts them."""
    states, width = call.dims["m"], call.dims["d"]
    flops = 2 * states * width * width + (3 + FLOPS[call.dtype.name][int(call.scalars["psi"])]) * call.size("z")
    moved = states * call.bytes("A") + call.bytes("z", "b", "result")
    energy = Cost(2 * call.size("z"), call.bytes("result", "energies")) if call.size("energies") else Cost()
    measured = state_metrics.cost(call, "z", "result")
    dispatches = len(plan(call).dispatches) - measured.dispatches
    return Cost(flops, moved, dispatches) + measured + energy


def case(m: int, d: int, bands: int, scalars: dict[str, Number]) -> Case:
    """Bands of equal slices."""

    def edges(rng: np.random.Generator, shape: Shape) -> HostArray:
        return np.linspace(0, d, bands + 1).astype(np.uint32)

    shapes: dict[str, Shape] = {"z": (m, d), "A": (d, d), "b": (d,), "edges": (bands + 1,)}
    return Case(shapes, {**scalars, "bands": bands}, {"edges": edges})


NUMBERED: Final = tuple(Scalar(name, "u32") for name in ("width", "first_item", "items", "stride"))
KERNEL = Kernel(
    summary="one affine step psi(z A + b) with its metrics, and band energies if asked for",
    inputs=(
        Operand("z", shape=("m", "d")),
        Operand("A", shape=("d", "d")),
        Operand("b", shape=("d",)),
        Operand("edges", "u32", ("ends",)),
    ),
    outputs=(
        Operand("result", shape=("m", "d")),
        Operand("metrics", shape=(16,)),
        Operand("counts", "u32", (4,)),
        Operand("energies", shape=("m", "bands")),
    ),
    scalars=(*TIME, FLAGS, Scalar("bands", "u32", 0, "bands: one less than edges"), *SCALARS),
    shaders={
        "main": Shader(
            (Binding("z"), Binding("A"), Binding("b"), Binding("result", access="write")),
            (*NUMBERED, Scalar("across", "u32"), Scalar("tiles", "u32"), FLAGS, TIME[1], *NUMBERS),
            (Spec("LOCAL", 128), Spec("EACH", 8), Spec("HELD", 1), SPEC),
            local=("LOCAL", 1, 1),
            includes=lists.INCLUDES,
        ),
        **state_metrics.shaders("metrics_", *TIME, prelude="#define TIMED\n"),
        "energies": band_features.shader(
            "energies.comp",
            (Binding("z"), Binding("edges", "u32"), Binding("energies", access="write")),
            (*NUMBERED, Scalar("bands", "u32")),
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 0, {}), case(0, 5, 2, {}), case(2, 0, 1, {}), case(1, 64, 4, {"psi": 1, "alpha": 0.5}),
        case(3, 130, 7, {"psi": 2, "t": 1.5, "dt": 0.25, "flags": 1}), case(2, 65, 0, {"psi": 3, "dt": 0.1}),
        case(1, 300, 16, {"t": -2.0}),
    ),
    bench=(case(1, 654, 16, {"psi": 1}),),
    tunings=TUNINGS,
    prefer=prefer,
)  # fmt: skip
