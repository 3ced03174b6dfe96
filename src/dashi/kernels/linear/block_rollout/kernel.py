"""block_rollout: `steps` times z' = psi(z A + b) with the bits of block_step, each state in one workgroup, on chip.

A block column has at most 4096 rows of blocks in all. What does not fit into shared memory is refused.
"""

from dashi.kernels import _lists as lists
from dashi.kernels._psi import FLOPS, SCALARS
from dashi.kernels.abi import Call, Kernel, Number, Operand, Plan, Scalar
from dashi.kernels.linear import _blocks as blocks
from dashi.types import Cost, HostArray


def reference(
    z: HostArray, stored: HostArray, places: HostArray, offsets: HostArray, b: HostArray, **scalars: Number
) -> HostArray:
    blocks.require_fit("block_rollout", z.shape[1], offsets.size, stored.shape[1], scalars)
    return blocks.advance(z, stored, places, offsets, b, int(scalars["steps"]), scalars)


def plan(call: Call) -> Plan:
    blocks.require("block_rollout", call)
    numbers = call.tuning or lists.ROLLOUT_TUNINGS[lists.prefer_rollout(call.limits, call.dtype.name)]
    entries = (int(call.scalars["longest"]) * call.dims["side"],)
    chip = lists.on_chip(call.dims["d"], entries, numbers["lanes"], call.limits)
    return lists.rollout_dispatches(
        call, "block_rollout", chip, blocks.OPERANDS, blocks.numbers(call), blocks.constants(call)
    )


def cost(call: Call) -> Cost:
    """Blocks once for each state and step; states once."""
    states, count, side, steps = call.dims["m"], call.dims["count"], call.dims["side"], int(call.scalars["steps"])
    psi = 1 + FLOPS[call.dtype.name][int(call.scalars["psi"])]
    moved = steps * states * (call.bytes("blocks", "b") + 4 * (count + call.dims["ends"]))
    flops = steps * (states * 2 * count * side * side + psi * call.size("z"))
    return Cost(flops, moved + call.bytes("z", "result"), len(plan(call).dispatches))


KERNEL = Kernel(
    summary="many steps psi(z A + b) with an A of stored square blocks, each state in one workgroup",
    inputs=blocks.INPUTS,
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=(Scalar("steps", "u32", doc="steps to take"), blocks.LONGEST, *SCALARS),
    shaders=lists.rollout_shaders(blocks.BINDINGS, blocks.PUSH, *blocks.SPEC),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        blocks.case(1, 2, 1, 1, {"psi": 0, "steps": 3}), blocks.case(2, 1, 4, 2, {"psi": 0, "steps": 0}),
        blocks.case(1, 0, 4, 1, {"psi": 0, "steps": 2}), blocks.case(3, 5, 26, 3, {"psi": 1, "alpha": 0.5, "steps": 4}),
        blocks.case(2, 4, 33, 3, {"psi": 2, "steps": 3}), blocks.case(1, 3, 64, 2, {"psi": 0, "steps": 2}, longest=1),
        blocks.case(2, 3, 7, 20, {"psi": 3, "steps": 3}, wrong=2), blocks.case(1, 2, 16, 150, {"psi": 0, "steps": 2}),
    ),
    bench=(blocks.case(1, 20, 32, 5, {"psi": 0, "steps": 1000}),),
    tunings=lists.ROLLOUT_TUNINGS,
    prefer=lists.prefer_rollout,
)  # fmt: skip
