"""qfeat: features of states z: the energies of their bands, norms, and the entropy of the energies.

energies[s, j] is the sum of squares of z[s, edges[j] : edges[j + 1]], summed in the order tree64 within the band; a
band that leaves the state or ends before it begins gives NaN. features[s] is [L2 norm, L1 norm, max |z|, entropy]: the
norms of the whole state, and -sum p log p (in nats) over the shares p of its bands in their total; 0 without energy.
"""

from typing import Final

import numpy as np

from dashi.kernels._work import ceil_div, group_sum_trips
from dashi.kernels.abi import Binding, Call, Case, Fill, Kernel, Limits, Operand, Plan, Scalar, StreamDefaults
from dashi.kernels.core._band_features import band_energies, dispatches, entropy, require_edges, shader
from dashi.kernels.portable import canon, mul, order_key, order_value, sqrt, sum64
from dashi.types import Cost, HostArray, Shape

TUNINGS: Final = {"lanes256": {"lanes": 256}, "lanes64": {"lanes": 64}}
PUSH: Final = tuple(Scalar(name, "u32") for name in ("bands", "first_item", "items", "stride"))


def reference(z: HostArray, edges: HostArray, bands: int) -> tuple[HostArray, HostArray]:
    require_edges("qfeat", bands, edges.size)
    values = canon(z)
    energies, sizes = band_energies(values, edges), np.abs(values)
    most = order_value(order_key(sizes).max(axis=1)) if z.shape[1] else np.zeros(len(z), z.dtype)
    features = np.stack([sqrt(sum64(mul(values, values))), sum64(sizes), most, entropy(energies)], axis=1)
    return energies, canon(features)


def prefer(limits: Limits, variant: str) -> str:
    """Where lanes are few, barriers between many of them cost."""
    return "lanes64" if limits.software or limits.invocations < TUNINGS["lanes256"]["lanes"] else "lanes256"


def plan(call: Call) -> Plan:
    states, width, bands = call.dims["m"], call.dims["d"], int(call.scalars["bands"])
    require_edges("qfeat", bands, call.dims["ends"])
    lanes = call.tuning["lanes"]
    whole = 2 * group_sum_trips(width, lanes) + 2 * ceil_div(width, lanes) + lanes + 2
    buffers = ("z", "edges", "energies", "features")
    measured = dispatches(call, "main", buffers, {"bands": bands, "width": width}, states * (bands + 1), whole)
    trips = 1 + 2 * group_sum_trips(bands, lanes)
    told = dispatches(call, "entropy", ("energies", "features"), {"bands": bands}, states, trips)
    return Plan((*measured, *told))


def cost(call: Call) -> Cost:
    """The state once for its bands and once for its norms."""
    log_flops = {"f32": 35, "f64": 41}[call.dtype.name]
    moved = 2 * call.bytes("z") + call.bytes("energies") * 3 + call.bytes("features") + 4 * call.dims["ends"]
    flops = 5 * call.size("z") + (log_flops + 25) * call.size("energies")
    return Cost(flops, moved, len(plan(call).dispatches))


def case(m: int, d: int, bands: int, wrong: bool = False, once: bool = False) -> Case:
    """Bands of uneven lengths from 0 to d, some of them empty; `wrong`: also ones that have no meaning. `once`: with
    states of its own, for the sake of time."""

    def edges(rng: np.random.Generator, shape: Shape) -> HostArray:
        inner = np.sort(rng.integers(0, d + 1, bands + 1))
        inner[0], inner[-1] = (0, d) if bands else (0, 0)
        if wrong:
            inner[1], inner[-1] = d, d + 1
        return inner.astype(np.uint32)

    def z(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.standard_normal(shape)

    fill: dict[str, Fill] = {"edges": edges, "z": z} if once else {"edges": edges}
    return Case({"z": (m, d), "edges": (bands + 1,)}, {"bands": bands}, fill)


KERNEL = Kernel(
    summary="band energies, norms and entropy of states: (energies, [L2, L1, max, entropy])",
    inputs=(Operand("z", shape=("m", "d")), Operand("edges", "u32", ("ends",))),
    outputs=(Operand("energies", shape=("m", "bands")), Operand("features", shape=("m", 4))),
    scalars=(Scalar("bands", "u32", doc="bands: one less than edges"),),
    shaders={
        "main": shader(
            "kernel.comp",
            (
                Binding("z"),
                Binding("edges", "u32"),
                Binding("energies", access="write"),
                Binding("features", access="write"),
            ),
            (*PUSH, Scalar("width", "u32")),
        ),
        "entropy": shader("entropy.comp", (Binding("energies"), Binding("features", access="write")), PUSH),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1), case(0, 5, 2), case(2, 0, 1), case(3, 7, 0), case(1, 64, 4), case(2, 65, 3), case(3, 654, 16),
        case(2, 130, 70), case(1, 1025, 1), case(2, 4097, 3), case(1, 9000, 2), case(1, 70, 5, wrong=True),
        case(1, 70000, 2), case(1, 40, 1030, once=True),
    ),
    bench=(case(1, 654, 16), case(4096, 654, 16)),
    tunings=TUNINGS,
    prefer=prefer,
    stream=StreamDefaults(io_class="OBSERVER"),
)  # fmt: skip
