"""irfft2: real fields (batch, h, w) from their modes (batch, h, w/2 + 1, 2), times `scale`: columns, then rows.

As the inverse `fft` along the columns and then `irfft` along the rows: what that does not look at are the imaginary
parts of the first column (and of the last, for even w) after the inverse transform of the columns. `twiddles` is
`roots.real_table(w, dtype)`, which tells w; `twiddles_columns` is `roots.table(h, dtype)`.
"""

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft import _plans as fourier_plans
from dashi.kernels.fft._plans import FftPass
from dashi.kernels.fft._reference import inverse_real, transform
from dashi.kernels.fft._roots import real_table, require_length, require_modes, table
from dashi.types import Cost, HostArray, Shape


def reference(x: HostArray, twiddles: HostArray, twiddles_columns: HostArray, scale: float) -> HostArray:
    batch, h, modes, _ = x.shape
    w = len(twiddles)
    require_modes("irfft2", w, modes)
    require_length(h)
    columns = transform(x, twiddles_columns, True, 1.0, raw=2)
    return inverse_real(columns.reshape(batch * h, modes, 2), twiddles, w, scale, raw=1).reshape(batch, h, w)


def plan(call: Call) -> Plan:
    batch, h, w, modes = (call.dims[name] for name in ("batch", "h", "w", "modes"))
    require_modes("irfft2", w, modes)
    require_length(h)
    if batch == 0:
        return Plan(())
    call = fourier_plans.sized(call, h, w)
    columns = FftPass("columns", ("x", "twiddles_columns", "between"), batch, h, modes, inverse=True, raw=2)
    rows = fourier_plans.rows_inverse("between", "result", batch * h, w, call.scalars["scale"], raw=1)
    return Plan((columns.dispatch(call), rows.dispatch(call)), {"between": ("T", call.size("x"))})


def cost(call: Call) -> Cost:
    batch, h, w, modes = (call.dims[name] for name in ("batch", "h", "w", "modes"))
    flops = batch * (h * fourier_plans.real_flops(w) + modes * fourier_plans.flops(h))
    return Cost(flops, call.bytes("x", "x", "x", "result", "twiddles", "twiddles_columns"), 2 * int(batch > 0))


def case(shape: Shape, scale: float = 1.0) -> Case:
    batch, h, w = shape
    fill = {"twiddles": fourier_plans.filled(real_table, w), "twiddles_columns": fourier_plans.filled(table, h)}
    shapes = {"x": (batch, h, w // 2 + 1, 2), "twiddles": (w, 2), "twiddles_columns": (h, 2)}
    return Case(shapes, {"scale": scale}, fill)


KERNEL = Kernel(
    summary="real fields from their modes",
    inputs=(
        Operand("x", shape=("batch", "h", "modes", 2)),
        Operand("twiddles", shape=("w", 2)),
        Operand("twiddles_columns", shape=("h", 2)),
    ),
    outputs=(Operand("result", shape=("batch", "h", "w")),),
    shaders={**fourier_plans.INVERSE, **fourier_plans.COLUMNS},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case((2, 8, 16)), case((1, 6, 5), 0.1), case((1, 1, 2)), case((0, 4, 4))),
    bench=tuple(case((1, n, n)) for n in (1024, 2048, 4096)),
    scalars=(fourier_plans.SCALE,),
    tunings=fourier_layouts.REAL_FIELDS,
    prefer=fourier_layouts.prefer,
)
