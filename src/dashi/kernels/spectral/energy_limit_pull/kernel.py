"""energy_limit_pull: pulls a gradient back through energy_limit: from that in its result to those in T and in w.

With c = <g, w> / energy where the limit acts, else 0 (dashi.kernels.spectral._energy has the other names):

    in raw: h = g - c psi,   in w: -(rate g + drain h + c (T / k^2 - 2 allowance w - 2 rate psi))
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan
from dashi.kernels.portable import canon, divide, mul
from dashi.kernels.spectral import _energy as energies
from dashi.kernels.spectral._modes import MODES
from dashi.types import Cost, HostArray

NAMES = ("state", "raw", "gradient", "drain", "inverse", "count", "raw_gradient", "state_gradient")


def reference(
    state: HostArray, raw: HostArray, gradient: HostArray, drain: HostArray, inverse: HostArray, count: HostArray,
    allowance: float,
) -> tuple[HostArray, HostArray]:  # fmt: skip
    with np.errstate(all="ignore"):
        w, g = canon(state), canon(gradient)
        tendency = energies.tendency_of(w, raw, drain)
        excess, energy = energies.excess_and_energy(w, tendency, inverse, count, allowance)
        rate = energies.rate_of(excess, energy)
        aligned = energies.totals(energies.dots(g, w), canon(count))
        feeds = (excess > 0) & (energy > 0)
        c = np.where(feeds, divide(aligned, np.where(feeds, energy, energy.dtype.type(1))), energy.dtype.type(0))
        c, rate = c[:, None, None, None], rate[:, None, None, None]
        less, allowed = canon(inverse)[..., None], canon(np.asarray(allowance, w.dtype))
        psi = mul(less, w)
        h = canon(g - mul(c, psi))
        own = canon(mul(less, tendency) - canon(mul(allowed, w) + mul(allowed, w)))
        own = canon(own - canon(mul(rate, psi) + mul(rate, psi)))
        back = canon(canon(mul(rate, g) + mul(canon(drain)[..., None], h)) + mul(c, own))
        return h, canon(-back)


def plan(call: Call) -> Plan:
    return energies.plan(call, NAMES, 3)


def cost(call: Call) -> Cost:
    size = call.size("raw_gradient")
    return Cost(30 * size, call.bytes(*NAMES), int(size > 0))


KERNEL = Kernel(
    summary="a gradient pulled back through energy_limit",
    inputs=energies.operands("state", "raw", "gradient"),
    outputs=(Operand("raw_gradient", shape=MODES), Operand("state_gradient", shape=MODES)),
    shaders={
        "main": energies.shader(
            *energies.bindings("state", "raw", "gradient"),
            Binding("raw_gradient", "P", "write"),
            Binding("state_gradient", "P", "write"),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=energies.cases("state", "raw", "gradient"),
    bench=(Case({**dict.fromkeys(("state", "raw", "gradient"), (16, 56, 29, 2)),
                 **dict.fromkeys(("drain", "inverse", "count"), (56, 29))}, {"allowance": 0.0}),),
    scalars=(energies.ALLOWANCE,),
)  # fmt: skip
