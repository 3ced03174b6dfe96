"""rollout_fast: many steps of z' = psi(z A + b) for an ensemble, as fast as the device multiplies.

The same as rollout_tagged for many states, with products and sums fused: repeatable on one device and driver, not
the same bits on others. `flag[0]` is not 0 if a poll ran out; the result then means nothing, and z is as it was.
"""

from typing import Any, Final

import numpy as np

from dashi.errors import LimitError
from dashi.kernels._psi import require_psi
from dashi.kernels.abi import Call, Kernel, Operand, Plan
from dashi.kernels.linear import _dense_rollout as dense_rollout
from dashi.kernels.linear import _ensemble_rollout as ensemble_rollout
from dashi.types import Cost, HostArray

TUNINGS: Final[dict[str, dict[str, int]]] = {
    "fitted": {"each": 0, "set": 0},
    "one_by_four": {"each": 1, "set": 4},
    "two_by_two": {"each": 2, "set": 2},
}
"""Columns of an invocation and states at a time; 0: as fits."""


def reference(
    z: Any, a: Any, b: Any, steps: int, psi: int, alpha: float, low: float, high: float
) -> tuple[HostArray, HostArray]:
    state: Any = z
    for _ in range(steps):
        x: Any = state @ a + b
        state = (x, np.tanh(alpha * x), np.logaddexp(0, x), np.clip(x, low, high))[psi].astype(z.dtype)
    return state, np.zeros(4, np.uint32)


def plan(call: Call) -> Plan:
    m, d = call.dims["m"], call.dims["d"]
    require_psi("rollout_fast", call.scalars)
    layout = ensemble_rollout.ensemble_layout(m, d, call.dtype.size, call.limits, call.tuning)
    if layout is None or m * d == 0:
        raise LimitError(f"kernel 'rollout_fast' cannot hold {m} states of {d} values here.", "go step by step.")
    words = 2 * m * d * call.dtype.size // 4
    return Plan((*ensemble_rollout.dispatches(call, layout),), {"words": ("u64", words)})


def cost(call: Call) -> Cost:
    return dense_rollout.cost(call, len(plan(call).dispatches))


KERNEL = Kernel(
    summary="many steps of psi(z A + b) for an ensemble, products and sums fused",
    inputs=dense_rollout.INPUTS,
    outputs=(dense_rollout.RESULT, Operand("flag", "u32", (4,))),
    shaders=ensemble_rollout.shaders(fast=True),
    plan=plan,
    reference=reference,
    cost=cost,
    # One step of a nonlinearity: where values change sign, further steps would measure the dynamics, not the kernel.
    cases=tuple(dense_rollout.case(m, d, n, psi=p) for m, d, n, p in ((300, 33, 3, 0), (80, 130, 1, 1), (9, 64, 1, 3))),
    scalars=dense_rollout.ROLLOUT_SCALARS,
    portable=False,
    bound=1e-5,
    tunings=TUNINGS,
)
