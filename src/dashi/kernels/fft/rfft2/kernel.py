"""rfft2: the modes of real fields (batch, h, w), as pairs (batch, h, w/2 + 1, 2), times `scale`: rows, then columns.

As `rfft` along the last axis and then `fft` along the one before it. `twiddles` is `roots.real_table(w, dtype)`,
`twiddles_columns` `roots.table(h, dtype)`.
"""

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft import _plans as fourier_plans
from dashi.kernels.fft._plans import FftPass
from dashi.kernels.fft._reference import forward_real, transform
from dashi.kernels.fft._roots import real_table, require_length, require_modes, table
from dashi.types import Cost, HostArray, Shape


def reference(x: HostArray, twiddles: HostArray, twiddles_columns: HostArray, modes: int, scale: float) -> HostArray:
    batch, h, w = x.shape
    require_modes("rfft2", w, modes)
    require_length(h)
    rows = forward_real(x.reshape(batch * h, w), twiddles, 1.0, raw=2)
    return transform(rows.reshape(batch, h, modes, 2), twiddles_columns, False, scale, raw=1)


def plan(call: Call) -> Plan:
    batch, h, w, modes = (call.dims[name] for name in ("batch", "h", "w", "modes"))
    require_modes("rfft2", w, modes)
    require_length(h)
    if batch == 0:
        return Plan(())
    call = fourier_plans.sized(call, h, w)
    ends = ("between", "twiddles_columns", "result")
    columns = FftPass("columns", ends, batch, h, modes, scale=call.scalars["scale"], raw=1).tiled(call)
    rows = fourier_plans.rows_forward("x", "between", batch * h, w, 1.0, raw=2, tiles=columns.tiles)
    return Plan((rows.dispatch(call), columns.dispatch(call)), columns.between())


def cost(call: Call) -> Cost:
    batch, h, w, modes = (call.dims[name] for name in ("batch", "h", "w", "modes"))
    flops = batch * (h * fourier_plans.real_flops(w) + modes * fourier_plans.flops(h))
    return Cost(
        flops, call.bytes("x", "result", "result", "result", "twiddles", "twiddles_columns"), 2 * int(batch > 0)
    )


def case(shape: Shape, scale: float = 1.0) -> Case:
    _, h, w = shape
    fill = {"twiddles": fourier_plans.filled(real_table, w), "twiddles_columns": fourier_plans.filled(table, h)}
    shapes = {"x": shape, "twiddles": (w, 2), "twiddles_columns": (h, 2)}
    return Case(shapes, {"modes": w // 2 + 1, "scale": scale}, fill)


KERNEL = Kernel(
    summary="modes of real fields",
    inputs=(
        Operand("x", shape=("batch", "h", "w")),
        Operand("twiddles", shape=("w", 2)),
        Operand("twiddles_columns", shape=("h", 2)),
    ),
    outputs=(Operand("result", shape=("batch", "h", "modes", 2)),),
    shaders={**fourier_plans.FORWARD, **fourier_plans.COLUMNS},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case((2, 8, 16)), case((1, 6, 5), 0.1), case((1, 1, 2)), case((0, 4, 4))),
    bench=tuple(case((1, n, n)) for n in (1024, 2048, 4096)),
    scalars=(Scalar("modes", "u32", doc="w/2 + 1"), fourier_plans.SCALE),
    tunings=fourier_layouts.REAL_FIELDS,
    prefer=fourier_layouts.prefer,
)
