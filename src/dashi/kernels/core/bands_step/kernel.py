"""bands_step: one step of band energies on a graph, diffusion and cross-band coupling (dashi.kernels.core._bands)."""

from typing import Final

from dashi.kernels import _lists as lists
from dashi.kernels._psi import FLOPS, NUMBERS, SPEC
from dashi.kernels._work import ceil_div, split_work
from dashi.kernels.abi import Binding, Call, Dispatch, Kernel, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.core import _bands as bands
from dashi.types import Cost, HostArray

LOCAL: Final = 128
PLACE: Final = tuple(Scalar(name, "u32") for name in ("first_item", "items", "stride"))


def reference(
    *arrays: HostArray, strength: float, longest: int, psi: int, alpha: float, low: float, high: float
) -> HostArray:
    scalars = {"strength": strength, "longest": longest, "psi": psi, "alpha": alpha, "low": low, "high": high}
    bands.require_fit("bands_step", arrays[0].shape[1], arrays[3].size, scalars)
    return bands.advance(arrays, 1, scalars)


def plan(call: Call) -> Plan:
    bands.require("bands_step", call)
    items, count = call.size("energy"), call.dims["bands"]
    if items == 0:
        return Plan(())
    first = ("energy", "weights", "neighbours", "offsets", "kappa", "spread", "gain")
    spec = {"LOCAL": min(LOCAL, call.limits.invocations), "PSI": int(call.scalars["psi"])}
    diffuse = _dispatches(
        call, "main", first, 1 + lists.direct_trips(int(call.scalars["longest"])),
        {**bands.numbers(call), **bands.phi_numbers(call)}, spec,
    )  # fmt: skip
    numbers = {"bands": count, "strength": call.scalars["strength"]}
    second = ("spread", "gain", "coupling", "result")
    couple = _dispatches(call, "couple", second, 1 + lists.direct_trips(count), numbers, {"LOCAL": spec["LOCAL"]})
    return Plan((*diffuse, *couple), {"spread": ("T", items), "gain": ("T", items)})


def _dispatches(
    call: Call, shader: str, buffers: tuple[str, ...], trips: int, push: dict[str, float], spec: dict[str, int]
) -> list[Dispatch]:
    items, local = call.size("energy"), spec["LOCAL"]
    return [
        Dispatch(
            shader,
            buffers,
            {
                **push,
                "first_item": s.first * local,
                "items": min(items, s.beyond * local),
                "stride": s.groups * local,
            },
            (s.groups, 1, 1),
            s.trips,
            spec,
        )
        for s in split_work(ceil_div(items, local), trips, call.limits)
    ]


def cost(call: Call) -> Cost:
    """The graph once for each state; energies, what diffusion makes of them and gains written and read once."""
    items, count = call.size("energy"), call.dims["bands"]
    each = call.dims["m"] * call.dims["edges"]
    phi = FLOPS[call.dtype.name][int(call.scalars["psi"])]
    moved = each * (call.dtype.size + 4) + 4 * call.dims["ends"] + 6 * call.bytes("energy")
    flops = 3 * each * count + items * (4 + phi + 2 * count)
    return Cost(flops, moved + call.bytes("kappa", "coupling"), len(plan(call).dispatches))


KERNEL = Kernel(
    summary="one step of band energies on a graph: diffusion in each band, coupling across bands",
    inputs=bands.INPUTS,
    outputs=(Operand("result", shape=("m", "v", "bands")),),
    scalars=bands.SCALARS,
    shaders={
        "main": Shader(
            (*bands.GRAPH, Binding("spread", access="write"), Binding("gain", access="write")),
            (*PLACE, *bands.COUNTS, *NUMBERS),
            (Spec("LOCAL", LOCAL), SPEC),
            local=("LOCAL", 1, 1),
            includes=lists.INCLUDES,
        ),
        "couple": Shader(
            (Binding("spread"), Binding("gain"), Binding("coupling"), Binding("result", access="write")),
            (*PLACE, Scalar("bands", "u32"), Scalar("strength")),
            (Spec("LOCAL", LOCAL),),
            local=("LOCAL", 1, 1),
            file="couple.comp",
            includes=lists.INCLUDES,
        ),
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        bands.case(1, 1, 1, 0, {}), bands.case(0, 3, 2, 1, {}), bands.case(2, 0, 3, 1, {}), bands.case(1, 4, 0, 1, {}),
        bands.case(2, 31, 8, 2, {"psi": 1}), bands.case(1, 1, 70, 0, {"psi": 2}),
        bands.case(3, 13, 5, 3, {"psi": 3, "low": 0.0, "high": 1.5}), bands.case(1, 20, 3, 2, {}, reach=22),
        bands.case(1, 20, 3, 3, {}, longest=4), bands.case(1, 90, 66, 40, {"strength": -0.5}),
    ),
    bench=(bands.case(1, 1 << 16, 16, 3, {"psi": 1}),),
)  # fmt: skip
