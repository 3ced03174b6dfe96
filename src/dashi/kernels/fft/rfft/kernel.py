"""rfft: the modes 0 ... n/2 of real lines of n values, as pairs (re, im), times `scale`.

Sum of x_m exp(-2 pi i m k / n). n is 2^a 3^b 5^c 7^d, up to 4096; `modes` is n/2 + 1 (rounded down) and `twiddles`
`fft._roots.real_table(n, dtype)`. Every line is transformed by itself, whatever lies beside it: for even n
by a complex transform of n/2 values.
"""

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft import _plans as fourier_plans
from dashi.kernels.fft._reference import forward_real
from dashi.kernels.fft._roots import real_table, require_modes
from dashi.types import Cost, HostArray, Shape


def reference(x: HostArray, twiddles: HostArray, modes: int, scale: float) -> HostArray:
    require_modes("rfft", x.shape[1], modes)
    return forward_real(x, twiddles, scale)


def plan(call: Call) -> Plan:
    lines, n = call.dims["lines"], call.dims["n"]
    require_modes("rfft", n, call.dims["modes"])
    if lines == 0:
        return Plan(())
    return Plan((fourier_plans.rows_forward("x", "result", lines, n, call.scalars["scale"]).dispatch(call),))


def cost(call: Call) -> Cost:
    flops = call.dims["lines"] * fourier_plans.real_flops(call.dims["n"])
    return Cost(flops, call.bytes("x", "twiddles", "result"), int(call.dims["lines"] > 0))


def case(shape: Shape, scale: float = 1.0) -> Case:
    n = shape[1]
    fill = {"twiddles": fourier_plans.filled(real_table, n)}
    return Case({"x": shape, "twiddles": (n, 2)}, {"modes": n // 2 + 1, "scale": scale}, fill)


KERNEL = Kernel(
    summary="modes of real lines",
    inputs=(Operand("x", shape=("lines", "n")), Operand("twiddles", shape=("n", 2))),
    outputs=(Operand("result", shape=("lines", "modes", 2)),),
    shaders=fourier_plans.FORWARD,
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case((3, 1), 0.5), case((2, 2)), case((5, 15)), case((3, 128), 1 / 128), case((1, 36)), case((0, 4))),
    bench=(case((1024, 1024)), case((4096, 4096))),
    scalars=(Scalar("modes", "u32", doc="n/2 + 1"), fourier_plans.SCALE),
    tunings=fourier_layouts.TUNINGS,
    prefer=fourier_layouts.prefer,
)
