"""fft: complex Fourier transforms along the middle axis of arrays (lines, n, columns) of pairs (re, im).

Forward: sum of x_m exp(-2 pi i m k / n); inverse: with the other sign; both times `scale`. n is 2^a 3^b 5^c 7^d, up to
4096; `twiddles` is `dashi.kernels.fft._roots.table(n, dtype, "lines")`.
"""

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft import _plans as fourier_plans
from dashi.kernels.fft._reference import transform
from dashi.kernels.fft._roots import require_length, table
from dashi.types import Cost, HostArray, Shape


def reference(x: HostArray, twiddles: HostArray, inverse: int, scale: float) -> HostArray:
    require_length(x.shape[1])
    return transform(x, twiddles, bool(inverse), scale, use="lines")


def plan(call: Call) -> Plan:
    lines, n, columns = (call.dims[name] for name in ("lines", "n", "columns"))
    require_length(n)
    if lines * columns == 0:
        return Plan(())
    inverse, scale = bool(call.scalars["inverse"]), call.scalars["scale"]
    one = fourier_plans.FftPass("main", ("x", "twiddles", "result"), lines, n, columns, inverse, scale, use="lines")
    return Plan((one.dispatch(call),))


def cost(call: Call) -> Cost:
    lines, n, columns = (call.dims[name] for name in ("lines", "n", "columns"))
    flops = lines * columns * fourier_plans.flops(n, "lines")
    return Cost(flops, call.bytes("x", "twiddles", "result"), int(lines * columns > 0))


def case(shape: Shape, inverse: int = 0, scale: float = 1.0) -> Case:
    n = shape[1]
    fill = {"twiddles": fourier_plans.filled(table, n, "lines")}
    return Case({"x": (*shape, 2), "twiddles": (n, 2)}, {"inverse": inverse, "scale": scale}, fill)


KERNEL = Kernel(
    summary="complex Fourier transforms along the middle axis",
    inputs=(Operand("x", shape=("lines", "n", "columns", 2)), Operand("twiddles", shape=("n", 2))),
    outputs=(Operand("result", shape=("lines", "n", "columns", 2)),),
    shaders=fourier_plans.COMPLEX,
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case((3, 1, 1), scale=0.5),
        case((5, 8, 1)),
        case((2, 64, 5), 1, 1 / 64),
        case((1, 30, 3)),
        case((3, 128, 1), 1),
        case((1, 1024, 2), 1),
        case((0, 4, 1)),
    ),
    bench=(case((1024, 1024, 1)), case((1, 1024, 1024)), case((4096, 4096, 1)), case((1, 4096, 4096))),
    scalars=fourier_plans.COMPLEX_SCALARS,
    tunings=fourier_layouts.TUNINGS,
    prefer=fourier_layouts.prefer,
)
