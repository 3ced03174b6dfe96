"""energy_limit: a tendency that feeds a state no more energy than is allowed.

T - rate w, of which <psi, T - rate w> is the smaller of <psi, T> and allowance <w, w> (dashi.kernels.spectral._energy).
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral import _energy as energies
from dashi.kernels.spectral._modes import MODES
from dashi.types import Cost, HostArray

NAMES = ("state", "raw", "drain", "inverse", "count", "result")


def reference(
    state: HostArray, raw: HostArray, drain: HostArray, inverse: HostArray, count: HostArray, allowance: float
) -> HostArray:
    with np.errstate(all="ignore"):
        w = canon(state)
        tendency = energies.tendency_of(w, raw, drain)
        rate = energies.rate_of(*energies.excess_and_energy(w, tendency, inverse, count, allowance))
        return canon(tendency - mul(rate[:, None, None, None], w))


def plan(call: Call) -> Plan:
    return energies.plan(call, NAMES, 2)


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(14 * size, call.bytes(*NAMES), int(size > 0))


KERNEL = Kernel(
    summary="a tendency that feeds no more energy than is allowed",
    inputs=energies.operands("state", "raw"),
    outputs=(Operand("result", shape=MODES),),
    shaders={"main": energies.shader(*energies.bindings("state", "raw"), Binding("result", "P", "write"))},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=energies.cases("state", "raw"),
    bench=(Case({**dict.fromkeys(("state", "raw"), (16, 56, 29, 2)),
                 **dict.fromkeys(("drain", "inverse", "count"), (56, 29))}, {"allowance": 0.0}),),
    scalars=(energies.ALLOWANCE,),
)  # fmt: skip
