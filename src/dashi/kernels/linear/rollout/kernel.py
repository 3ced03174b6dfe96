"""rollout: many steps of z' = psi(z A + b) in one dispatch, each state in one workgroup, which holds it on chip.

The operator is held in registers where a column fits (`held`), or read once a step (`streamed`). The bits are those of
gemv, or gemm, and activate, step by step.
"""

from typing import Final

from dashi.errors import LimitError
from dashi.kernels._psi import NUMBERS as PSI_NUMBERS
from dashi.kernels._psi import SPEC, require_psi
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Limits, Plan, Scalar, Shader, Spec
from dashi.kernels.linear import _dense_rollout as dense_rollout
from dashi.types import Cost, HostArray

HELD_BYTES: Final = 512
"""Bytes of a column that the registers of an invocation hold."""
TUNINGS: Final[dict[str, dict[str, int]]] = {
    "held": {"held": 1, "lanes": 1024, "batch": 16},
    "streamed": {"held": 0, "lanes": 1024, "batch": 16},
    "streamed_256": {"held": 0, "lanes": 256, "batch": 8},
}


def prefer(limits: Limits, variant: str) -> str:
    """Processors have few registers, and their caches are as good."""
    return "streamed_256" if limits.software else "held"


def reference(
    z: HostArray, a: HostArray, b: HostArray, steps: int, psi: int, alpha: float, low: float, high: float
) -> HostArray:
    return dense_rollout.advance(z, a, b, steps, psi, alpha, low, high)


def plan(call: Call) -> Plan:
    m, d, steps = call.dims["m"], call.dims["d"], int(call.scalars["steps"])
    require_psi("rollout", call.scalars)
    problem = dense_rollout.on_chip(d, call.dtype.size, call.limits)
    if problem:
        raise LimitError(f"kernel 'rollout': {problem}.", "go step by step, or choose a device with more.")
    if m * d == 0:
        return Plan(())
    numbers = call.tuning or TUNINGS[prefer(call.limits, call.dtype.name)]
    runs = ceil_div(d, dense_rollout.RUN)
    held = numbers["held"] and runs * dense_rollout.RUN * call.dtype.size <= HELD_BYTES
    if held:
        shader, per_step, before = "held", 1, 1
        spec = {"LANES": runs * dense_rollout.RUN, "RUNS": runs, "PSI": int(call.scalars["psi"])}
    else:
        lanes = min(ceil_div(d, 32) * 32, numbers["lanes"], call.limits.invocations)
        turns = ceil_div(d, lanes)
        batch = numbers["batch"]
        column = 1 + ceil_div(d, dense_rollout.RUN**2) + runs * (1 + dense_rollout.RUN // batch) + dense_rollout.RUN
        shader, per_step, before = "streamed", 1 + turns * column, turns * (3 + d)
        spec = {"LANES": lanes, "LENGTH": d, "BATCH": batch, "PSI": int(call.scalars["psi"])}
    most = max(1, (call.limits.loop_trips - before) // per_step)
    if call.limits.software:
        # About 100 ms, of which a processor does some 2^27 products.
        most = max(1, min(most, (1 << 27) // (d * d)))
    scalars = {name: call.scalars[name] for name in ("alpha", "low", "high")}
    dispatches: list[Dispatch] = []
    for first, last in dense_rollout.chunks(steps, min(most, 50_000)):
        buffers = ("z" if first == 0 else "result", "A", "b", "result")
        for row in range(0, m, call.limits.groups):
            push = {"d": d, "steps": last - first, "first_row": row, **scalars}
            groups = (min(m - row, call.limits.groups), 1, 1)
            dispatches.append(Dispatch(shader, buffers, push, groups, before + (last - first) * per_step, spec))
    return Plan(tuple(dispatches))


def cost(call: Call) -> Cost:
    return dense_rollout.cost(call, len(plan(call).dispatches))


def _shader(file: str, spec: tuple[Spec, ...]) -> Shader:
    return Shader(
        (Binding("source"), Binding("A"), Binding("b"), Binding("result", access="write")),
        (Scalar("d", "u32"), Scalar("steps", "u32"), Scalar("first_row", "u32"), *PSI_NUMBERS),
        (Spec("LANES", 64), *spec, SPEC),
        local=("LANES", 1, 1),
        file=file,
        includes=("portable.glsl",),
        extensions=("GL_EXT_control_flow_attributes",),
    )


KERNEL = Kernel(
    summary="many steps of psi(z A + b), each state on chip in one workgroup",
    inputs=dense_rollout.INPUTS,
    outputs=(dense_rollout.RESULT,),
    shaders={
        "held": _shader("held.comp", (Spec("RUNS", 1),)),
        "streamed": _shader("kernel.comp", (Spec("LENGTH", 64), Spec("BATCH", 8))),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        *(dense_rollout.case(1, d, 4) for d in (1, 63, 64, 65, 127, 128, 129, 257)),
        *(dense_rollout.case(m, 40, n, psi=p) for m, n, p in ((3, 0, 0), (3, 1, 1), (2, 7, 2), (5, 3, 3), (0, 3, 0))),
        dense_rollout.case(2, 130, 600),
    ),
    scalars=dense_rollout.ROLLOUT_SCALARS,
    tunings=TUNINGS,
    prefer=prefer,
)
