"""irfft: real lines of n values from their modes 0 ... n/2, pairs (re, im), times `scale`.

The modes that are not given are the conjugates of those that are; the imaginary parts of mode 0, and of mode n/2 for
even n, are not looked at. `twiddles` is `dashi.kernels.fft._roots.real_table(n, dtype)`, which tells n.
"""

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft import _plans as fourier_plans
from dashi.kernels.fft._reference import inverse_real
from dashi.kernels.fft._roots import real_table, require_modes
from dashi.types import Cost, HostArray


def reference(x: HostArray, twiddles: HostArray, scale: float) -> HostArray:
    require_modes("irfft", len(twiddles), x.shape[1])
    return inverse_real(x, twiddles, len(twiddles), scale)


def plan(call: Call) -> Plan:
    lines, n = call.dims["lines"], call.dims["n"]
    require_modes("irfft", n, call.dims["modes"])
    if lines == 0:
        return Plan(())
    return Plan((fourier_plans.rows_inverse("x", "result", lines, n, call.scalars["scale"]).dispatch(call),))


def cost(call: Call) -> Cost:
    flops = call.dims["lines"] * fourier_plans.real_flops(call.dims["n"])
    return Cost(flops, call.bytes("x", "twiddles", "result"), int(call.dims["lines"] > 0))


def case(lines: int, n: int, scale: float = 1.0) -> Case:
    fill = {"twiddles": fourier_plans.filled(real_table, n)}
    return Case({"x": (lines, n // 2 + 1, 2), "twiddles": (n, 2)}, {"scale": scale}, fill)


KERNEL = Kernel(
    summary="real lines from their modes",
    inputs=(Operand("x", shape=("lines", "modes", 2)), Operand("twiddles", shape=("n", 2))),
    outputs=(Operand("result", shape=("lines", "n")),),
    shaders=fourier_plans.INVERSE,
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case(3, 1, 0.5), case(2, 2), case(5, 15), case(3, 128, 1 / 128), case(1, 36), case(0, 4)),
    bench=(case(1024, 1024), case(4096, 4096)),
    scalars=(fourier_plans.SCALE,),
    tunings=fourier_layouts.TUNINGS,
    prefer=fourier_layouts.prefer,
)
