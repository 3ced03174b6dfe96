"""fused: the template of fused kernels, compiled with bodies that copy its first inputs.

It is no kernel of the catalogue: `dashi.kernels.fuse` fills its functions `bring`, `apply` and `tail`.
"""

from dashi.kernels import _fused_abi as fused
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray

INPUTS = tuple(f"in{k}" for k in range(fused.INPUTS))
DTYPES = (*fused.FLOATS, *fused.INTEGERS, *fused.LONGS)
OUTPUTS = tuple(f"out{k}" for k in range(fused.OUTPUTS))


def reference(*inputs: HostArray) -> tuple[HostArray, ...]:
    copied = inputs[: fused.OUTPUTS]
    return tuple(canon(values) if values.dtype.kind == "f" else values.copy() for values in copied)


def plan(call: Call) -> Plan:
    views = [fused.dense(call.shapes[name]) for name in INPUTS]
    return fused.plan(call, views, OUTPUTS, INPUTS, ())


def cost(call: Call) -> Cost:
    return Cost(bytes=call.bytes(*INPUTS, *OUTPUTS), dispatches=1)


KERNEL = Kernel(
    summary="the first eight of sixteen arrays, canonical",
    inputs=tuple(Operand(name) for name in INPUTS),
    outputs=tuple(Operand(name) for name in OUTPUTS),
    shaders={**fused.shaders(fused.INPUTS, fused.OUTPUTS, DTYPES), **fused.mixed_template()},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(Case(dict.fromkeys(INPUTS, shape)) for shape in ((1,), (65,), (5, 7), (1000,), (1 << 12,))),
    dtypes=DTYPES,
    tunings=fused.TUNINGS,
)
