"""csr_rollout: `steps` times z' = psi(z A + b) with the bits of csr_step, each state in one workgroup, on chip.

The columns of A lie side by side (dashi.kernels._interleaved_lists), each with at most 4096 entries. What does not
fit into shared memory is refused.
"""

from collections.abc import Mapping

from dashi.kernels import _interleaved_lists as interleaved_lists
from dashi.kernels import _lists as lists
from dashi.kernels._psi import FLOPS, SCALARS, SPEC, require_psi
from dashi.kernels.abi import Call, Case, Kernel, Number, Operand, Plan, Scalar
from dashi.kernels.linear import _csr as csr
from dashi.types import Cost, HostArray


def reference(
    z: HostArray, values: HostArray, sources: HostArray, heads: HostArray, b: HostArray, **scalars: Number
) -> HostArray:
    require("csr_rollout", z.shape[1], heads.size, scalars)
    columns = interleaved_lists.lists_in_slabs(heads, z.shape[1], values.size, int(scalars["longest"]))
    return csr.advance(z, lists.LinearForm(values, sources, columns, z.shape[1]), b, int(scalars["steps"]), scalars)


def require(kernel: str, width: int, heads: int, scalars: Mapping[str, Number]) -> None:
    """What the shapes alone cannot say."""
    interleaved_lists.require_heads(kernel, width, heads)
    require_psi(kernel, scalars)


def plan(call: Call) -> Plan:
    require("csr_rollout", call.dims["d"], call.dims["ends"], call.scalars)
    numbers = call.tuning or lists.ROLLOUT_TUNINGS[lists.prefer_rollout(call.limits, call.dtype.name)]
    entries = (int(call.scalars["longest"]),)
    chip = lists.on_chip(call.dims["d"], entries, numbers["lanes"], call.limits)
    spec = {"PSI": int(call.scalars["psi"])}
    return lists.rollout_dispatches(call, "csr_rollout", chip, csr.operands("heads"), csr.numbers(call), spec)


def cost(call: Call) -> Cost:
    """The entries once for each state and step; states once."""
    entries, states, steps = call.dims["entries"], call.dims["m"], int(call.scalars["steps"])
    psi = 1 + FLOPS[call.dtype.name][int(call.scalars["psi"])]
    moved = steps * states * (entries * (call.dtype.size + 4) + 4 * call.dims["ends"] + call.bytes("b"))
    flops = steps * (states * 2 * entries + psi * call.size("z"))
    return Cost(flops, moved + call.bytes("z", "result"), len(plan(call).dispatches))


def case(m: int, d: int, each: int, scalars: Mapping[str, Number], **more: int) -> Case:
    return csr.case(m, d, each, scalars, **more, slabs=True)


KERNEL = Kernel(
    summary="many steps psi(z A + b) with a sparse A stored by columns, each state in one workgroup",
    inputs=csr.inputs("heads"),
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=(Scalar("steps", "u32", doc="steps to take"), csr.LONGEST, *SCALARS),
    shaders=lists.rollout_shaders(csr.bindings("heads"), csr.PUSH, SPEC),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1, {"psi": 0, "steps": 3}), case(0, 5, 2, {"psi": 0, "steps": 2}),
        case(2, 33, 2, {"psi": 0, "steps": 0}), case(3, 130, 5, {"psi": 1, "alpha": 0.5, "steps": 4}),
        case(2, 65, 40, {"psi": 3, "low": -1.0, "high": 2.0, "steps": 3}),
        case(1, 70, 3, {"psi": 2, "steps": 2}), case(1, 70, 3, {"psi": 0, "steps": 2}, reach=75),
        case(1, 70, 6, {"psi": 0, "steps": 2}, longest=9),
        case(1, 20, 2, {"psi": 0, "steps": 2}, hot=900), case(1, 654, 12, {"psi": 0, "steps": 3}),
        case(1, 20, 1, {"psi": 1, "steps": 100}, longest=4096),
    ),
    bench=(case(1, 654, 30, {"psi": 0, "steps": 1000}),),
    tunings=lists.ROLLOUT_TUNINGS,
    prefer=lists.prefer_rollout,
)  # fmt: skip
