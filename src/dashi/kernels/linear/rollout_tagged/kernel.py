"""rollout_tagged: many steps of z' = psi(z A + b) in one dispatch, over several workgroups that run at the same time.

Workgroups pass values tagged with their step and poll for them: nothing else orders them. That works only where all
workgroups of the dispatch are on the device at once, which is tried before (`Limits.resident`), and never on a
processor. `flag[0]` is not 0 if a poll ran out; the result then means nothing, and z is as it was.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dashi.errors import LimitError
from dashi.kernels._psi import NUMBERS as PSI_NUMBERS
from dashi.kernels._psi import SPEC, require_psi
from dashi.kernels._work import groups_for
from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.linear import _dense_rollout as dense_rollout
from dashi.kernels.linear import _ensemble_rollout as ensemble_rollout
from dashi.types import Cost, HostArray

US_AT_LEAST: Final = 0.6
BYTES_PER_US: Final = 4e6
"""A step takes about so long: what bounds the steps of a dispatch needs to be no better than that."""
DISPATCH_US: Final = 100_000
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "fitted": {"outs": 0, "each": 0, "set": 0},
    "outs32": {"outs": 32, "each": 1, "set": 4},
    "outs16": {"outs": 16, "each": 2, "set": 2},
}
"""Values of the next state that a workgroup makes of one state; of ensembles: columns of an invocation, and states at a
time. 0: as fits."""


def reference(
    z: HostArray, a: HostArray, b: HostArray, steps: int, psi: int, alpha: float, low: float, high: float
) -> tuple[HostArray, HostArray]:
    return dense_rollout.advance(z, a, b, steps, psi, alpha, low, high), np.zeros(4, np.uint32)


def plan(call: Call) -> Plan:
    m, d = call.dims["m"], call.dims["d"]
    require_psi("rollout_tagged", call.scalars)
    if call.limits.resident:
        problem = ensemble_rollout.why_not_spread(m, d, call.dtype.size, call.limits, call.tuning)
        if problem:
            raise LimitError(f"kernel 'rollout_tagged': {problem}.", "go step by step.")
    shape = dense_rollout.cut(d, call.tuning.get("outs", 0), call.limits)
    words = 2 * m * d * call.dtype.size // 4
    layout = ensemble_rollout.ensemble_layout(m, d, call.dtype.size, call.limits, call.tuning)
    if layout and 0 < call.limits.resident < m * shape.across:
        return Plan((*ensemble_rollout.dispatches(call, layout),), {"words": ("u64", words)})
    ensemble_rollout.require_groups(call, m * shape.across)
    groups, trips = groups_for(words, 256, call.limits)
    clear = Dispatch("clear", ("words", "flag"), {"count": words, "stride": 256 * groups}, (groups, 1, 1), trips)
    if not words:
        return Plan((clear,), {"words": ("u64", 1)})
    return Plan((clear, *_rolling(call, shape, words // 2)), {"words": ("u64", words)})


def _rolling(call: Call, shape: dense_rollout.Cut, parity: int) -> Iterator[Dispatch]:
    d = call.dims["d"]
    # A row of runs must lie within a subgroup to go without a barrier of the workgroup.
    alone = call.limits.subgroup >= shape.outs and shape.lanes % call.limits.subgroup == 0
    numbers = {"d": d, "across": shape.across, "parity": parity}
    scalars = {name: call.scalars[name] for name in ("alpha", "low", "high")}
    spec = {"LANES": shape.lanes, "OUTS": shape.outs, "RUNS_EACH": shape.runs_each, "PSI": int(call.scalars["psi"])}
    most = int(DISPATCH_US / (US_AT_LEAST + d * d * call.dtype.size / BYTES_PER_US))
    trips = 1 + 18 * (shape.runs_each - 1)
    for first, last in dense_rollout.chunks(
        int(call.scalars["steps"]), max(2, min(most, call.limits.loop_trips // trips))
    ):
        buffers = ("result" if first else "z", "A", "b", "words", "flag", "result")
        push = {**numbers, "first": first, "last": last, **scalars}
        groups = (call.dims["m"] * shape.across, 1, 1)
        # The polls are not counted: what they wait for is under way, and they are bounded.
        yield Dispatch("alone" if alone else "barriers", buffers, push, groups, (last - first) * trips, spec)


def cost(call: Call) -> Cost:
    return dense_rollout.cost(call, len(plan(call).dispatches))


def _shader(*, alone: bool) -> Shader:
    return Shader(
        (
            Binding("source"),
            Binding("A"),
            Binding("b"),
            Binding("words", "u64", "readwrite"),
            Binding("flag", "u32", "readwrite"),
            Binding("result", access="write"),
        ),
        (*(Scalar(n, "u32") for n in ("d", "across", "parity", "first", "last")), *PSI_NUMBERS),
        (Spec("LANES", 128), Spec("OUTS", 32), Spec("RUNS_EACH", 1), SPEC),
        local=("LANES", 1, 1),
        includes=("portable.glsl",),
        features=ensemble_rollout.FEATURES | ({"subgroup_quad", "subgroup"} if alone else frozenset[str]()),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude=f"#define ALONE {int(alone)}\n",
    )


KERNEL = Kernel(
    summary="many steps of psi(z A + b) over several workgroups that pass values tagged with their step",
    inputs=dense_rollout.INPUTS,
    outputs=(dense_rollout.RESULT, Operand("flag", "u32", (4,))),
    shaders={
        "alone": _shader(alone=True),
        "barriers": _shader(alone=False),
        **ensemble_rollout.shaders(fast=False),
        "clear": Shader(
            (Binding("words", "u64", "write"), Binding("flag", "u32", "write")),
            (Scalar("count", "u32"), Scalar("stride", "u32")),
            file="clear.comp",
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        *(dense_rollout.case(1, d, 5) for d in (1, 64, 130, 257)),
        *(dense_rollout.case(m, d, 4, psi=p) for m, d, p in ((3, 70, 1), (300, 33, 0), (80, 130, 2), (0, 5, 0))),
    ),
    scalars=dense_rollout.ROLLOUT_SCALARS,
    tunings=TUNINGS,
)
