"""block_step: z' = psi(z A + b) for m states, A of stored square blocks (dashi.kernels.linear._blocks says how)."""

from typing import Final

from dashi.kernels import _lists as lists
from dashi.kernels._psi import FLOPS, SCALARS
from dashi.kernels._work import ceil_div, split_work
from dashi.kernels.abi import Call, Dispatch, Kernel, Limits, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.linear import _blocks as blocks
from dashi.types import Cost, HostArray


def reference(
    z: HostArray, stored: HostArray, places: HostArray, offsets: HostArray, b: HostArray, **scalars: Number
) -> HostArray:
    blocks.require_fit("block_step", z.shape[1], offsets.size, stored.shape[1], scalars)
    return blocks.advance(z, stored, places, offsets, b, 1, scalars)


TUNINGS: Final = {"lanes256": {"lanes": 256, "wide": 16}, "direct": {"lanes": 64, "wide": 64}}
"""Invocations of a workgroup, and the neighbouring outputs that it makes at a time; as many: each by itself."""


def prefer(limits: Limits, variant: str) -> str:
    """Processors wait at barriers for long, and small devices cannot hold large workgroups."""
    return "direct" if limits.software or limits.invocations < 256 else "lanes256"


def plan(call: Call) -> Plan:
    blocks.require("block_step", call)
    width, longest = call.dims["d"], int(call.scalars["longest"]) * call.dims["side"]
    if call.size("z") == 0:
        return Plan(())
    numbers = call.tuning or TUNINGS[prefer(call.limits, call.dtype.name)]
    if numbers["wide"] == numbers["lanes"]:
        return lists.direct_dispatches(
            call,
            call.size("z"),
            (longest,),
            numbers["lanes"],
            blocks.OPERANDS,
            blocks.numbers(call),
            blocks.constants(call),
        )
    held = max(1, min(lists.RUN, ceil_div(longest, lists.RUN)))
    each = numbers["lanes"] // numbers["wide"]
    across, tiles = ceil_div(width, numbers["wide"]), -(-longest // lists.RUN**2)
    trips = 2 + tiles * (2 + ceil_div(held, each) * (lists.RUN_TRIPS + 1) + held)
    spec = {"LOCAL": numbers["lanes"], "EACH": each, "HELD": held, **blocks.constants(call)}
    push = {**blocks.numbers(call), "across": across, "tiles": tiles}
    return Plan(
        tuple(
            Dispatch(
                "main",
                blocks.OPERANDS,
                {**push, "first_item": s.first, "items": s.beyond, "stride": s.groups},
                (s.groups, 1, 1),
                s.trips,
                spec,
            )
            for s in split_work(call.dims["m"] * across, trips, call.limits)
        )
    )


def cost(call: Call) -> Cost:
    """Blocks once for each state, states and bias once."""
    states, count, side = call.dims["m"], call.dims["count"], call.dims["side"]
    psi = 1 + FLOPS[call.dtype.name][int(call.scalars["psi"])]
    moved = states * (call.bytes("blocks") + 4 * count) + 4 * call.dims["ends"] + call.bytes("z", "b", "result")
    flops = states * 2 * count * side * side + psi * call.size("z")
    return Cost(flops, moved, len(plan(call).dispatches))


TILED: Final = ("across", "tiles", "first_item", "items", "stride")
KERNEL = Kernel(
    summary="psi(z A + b) for states z and an A of which some square blocks are stored",
    inputs=blocks.INPUTS,
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=(blocks.LONGEST, *SCALARS),
    shaders={
        "main": Shader(
            blocks.BINDINGS,
            (*(Scalar(name, "u32") for name in TILED), *blocks.PUSH),
            (Spec("LOCAL", 128), Spec("EACH", 8), Spec("HELD", 1), *blocks.SPEC),
            local=("LOCAL", 1, 1),
            includes=lists.INCLUDES,
        ),
        "direct": lists.step_shaders(blocks.BINDINGS, blocks.PUSH, *blocks.SPEC, file="direct.comp")["direct"],
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        blocks.case(1, 2, 1, 1, {"psi": 0}), blocks.case(2, 1, 4, 2, {"psi": 0}), blocks.case(1, 0, 4, 1, {"psi": 0}),
        blocks.case(0, 3, 4, 1, {"psi": 0}), blocks.case(3, 5, 26, 3, {"psi": 1, "alpha": 0.5}),
        blocks.case(2, 4, 33, 3, {"psi": 2}), blocks.case(1, 3, 64, 2, {"psi": 0}, longest=1),
        blocks.case(2, 3, 7, 20, {"psi": 3}, wrong=2), blocks.case(1, 2, 16, 270, {"psi": 0}),
        blocks.case(1, 2, 1, 5000, {"psi": 0}),
    ),
    bench=(blocks.case(1, 64, 32, 16, {"psi": 0}), blocks.case(256, 20, 32, 5, {"psi": 0})),
    tunings=TUNINGS,
    prefer=prefer,
)  # fmt: skip
