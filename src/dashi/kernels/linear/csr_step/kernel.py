"""csr_step: z' = psi(z A + b) for m states, A sparse and stored by columns (dashi.kernels.linear._csr says how)."""

from collections.abc import Mapping

from dashi.kernels import _lists as lists
from dashi.kernels._psi import FLOPS, SCALARS, SPEC, require_psi
from dashi.kernels.abi import Call, Kernel, Number, Operand, Plan
from dashi.kernels.linear import _csr as csr
from dashi.types import Cost, HostArray


def reference(
    z: HostArray, values: HostArray, sources: HostArray, offsets: HostArray, b: HostArray, **scalars: Number
) -> HostArray:
    require("csr_step", z.shape[1], offsets.size, scalars)
    columns = lists.lists_at(offsets, values.size, int(scalars["longest"]))
    return csr.advance(z, lists.LinearForm(values, sources, columns, z.shape[1]), b, 1, scalars)


def require(kernel: str, width: int, ends: int, scalars: Mapping[str, Number]) -> None:
    """What the shapes alone cannot say."""
    lists.require_lists(kernel, "offsets", width, ends, int(scalars["longest"]))
    require_psi(kernel, scalars)


def plan(call: Call) -> Plan:
    require("csr_step", call.dims["d"], call.dims["ends"], call.scalars)
    longest = (int(call.scalars["longest"]),)
    spec = {"PSI": int(call.scalars["psi"])}
    return lists.step_dispatches(call, call.size("z"), longest, csr.operands("offsets"), csr.numbers(call), spec)


def cost(call: Call) -> Cost:
    """The entries once for each state, states and bias once."""
    entries, states = call.dims["entries"], call.dims["m"]
    psi = 1 + FLOPS[call.dtype.name][int(call.scalars["psi"])]
    moved = states * entries * (call.dtype.size + 4) + 4 * call.dims["ends"] + call.bytes("z", "b", "result")
    return Cost(states * 2 * entries + psi * call.size("z"), moved, len(plan(call).dispatches))


KERNEL = Kernel(
    summary="psi(z A + b) for states z and a sparse A stored by columns",
    inputs=csr.inputs("offsets"),
    outputs=(Operand("result", shape=("m", "d")),),
    scalars=(csr.LONGEST, *SCALARS),
    shaders=lists.step_shaders(csr.bindings("offsets"), csr.PUSH, SPEC),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        csr.case(1, 1, 1, {"psi": 0}), csr.case(0, 5, 2, {"psi": 0}), csr.case(2, 0, 1, {"psi": 0}),
        csr.case(3, 130, 5, {"psi": 1, "alpha": 0.5}), csr.case(1, 130, 0, {"psi": 2}),
        csr.case(2, 65, 40, {"psi": 3, "low": -1.0, "high": 2.0}), csr.case(1, 70, 3, {"psi": 0}, reach=75),
        csr.case(1, 70, 6, {"psi": 0}, longest=9), csr.case(1, 20, 2, {"psi": 0}, hot=4200),
        csr.case(2, 654, 12, {"psi": 0}), csr.case(5, 40, 200, {"psi": 0}),
    ),
    bench=(csr.case(1, 1372, 500, {"psi": 0}), csr.case(256, 654, 30, {"psi": 0})),
    tunings=lists.STEP_TUNINGS,
    prefer=lists.prefer_step,
)  # fmt: skip
