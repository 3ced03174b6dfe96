"""Complex Fourier transforms of fields: `fft2`, and `fft2_fast` of the device class."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.fft import _layouts as fourier_layouts
from dashi.kernels.fft import _plans as fourier_plans
from dashi.kernels.fft._plans import FftPass
from dashi.kernels.fft._reference import transform
from dashi.kernels.fft._roots import radices, require_length, table
from dashi.types import Cost, HostArray, Shape


def _reference(x: HostArray, twiddles: HostArray, twiddles_columns: HostArray, inverse: int, scale: float) -> HostArray:
    batch, h, w, _ = x.shape
    require_length(w)
    require_length(h)
    rows = transform(x.reshape(batch * h, w, 1, 2), twiddles, bool(inverse), 1.0, raw=2, use="rows")
    return transform(rows.reshape(x.shape), twiddles_columns, bool(inverse), scale, raw=1, use="columns")


def _plan(call: Call) -> Plan:
    batch, h, w = (call.dims[name] for name in ("batch", "h", "w"))
    require_length(w)
    require_length(h)
    if batch == 0:
        return Plan(())
    call = fourier_plans.sized(call, h, w)
    inverse, scale = bool(call.scalars["inverse"]), call.scalars["scale"]
    rows = FftPass("main", ("x", "twiddles", "between"), batch * h, w, inverse=inverse, raw=2, use="rows", height=h)
    over = ("between", "twiddles_columns", "result")
    columns = FftPass("main", over, batch, h, w, inverse, scale, raw=1, use="columns")
    radix = radices(h, "columns")[0] if h > 1 else 1
    if rows.can_fuse(radix, call):
        column_pass = replace(columns, n=h // radix, columns=radix * w, resumed_radix=radix)
        if w % column_pass.layout(call).inner == 0:  # a workgroup has one lane of the radix
            rows, columns = replace(rows, fused_radix=radix), column_pass
    columns = columns.tiled(call)
    rows = replace(rows, tiles=columns.tiles)
    return Plan((rows.dispatch(call), columns.dispatch(call)), columns.between())


def _cost(call: Call) -> Cost:
    batch, h, w = (call.dims[name] for name in ("batch", "h", "w"))
    flops = batch * (h * fourier_plans.flops(w, "rows") + w * fourier_plans.flops(h, "columns"))
    return Cost(flops, 2 * call.bytes("x", "result") + call.bytes("twiddles", "twiddles_columns"), 2 * int(batch > 0))


def _case(shape: Shape, inverse: int = 0, scale: float = 1.0) -> Case:
    _, h, w = shape
    fill = {
        "twiddles": fourier_plans.filled(table, w, "rows"),
        "twiddles_columns": fourier_plans.filled(table, h, "columns"),
    }
    shapes = {"x": (*shape, 2), "twiddles": (w, 2), "twiddles_columns": (h, 2)}
    return Case(shapes, {"inverse": inverse, "scale": scale}, fill)


PORTABLE: Final = Kernel(
    summary="complex Fourier transforms along both axes",
    inputs=(
        Operand("x", shape=("batch", "h", "w", 2)),
        Operand("twiddles", shape=("w", 2)),
        Operand("twiddles_columns", shape=("h", 2)),
    ),
    outputs=(Operand("result", shape=("batch", "h", "w", 2)),),
    shaders=fourier_plans.FIELDS,
    plan=_plan,
    reference=_reference,
    cost=_cost,
    cases=(
        _case((2, 8, 8)),
        _case((1, 12, 64), 1, 1 / 768),
        _case((1, 32, 1024), 1, 1 / 32768),
        _case((1, 1, 5)),
        _case((0, 4, 4)),
    ),
    bench=tuple(_case((1, n, n)) for n in (1024, 2048, 4096)),
    scalars=fourier_plans.COMPLEX_SCALARS,
    tunings=fourier_layouts.FIELDS,
    prefer=fourier_layouts.prefer,
)
FAST: Final = replace(
    PORTABLE,
    summary="complex Fourier transforms along both axes, nothing flushed (the bits are the device's)",
    shaders={name: fourier_plans.fast(shader) for name, shader in PORTABLE.shaders.items()},
    portable=False,
    bound=2e-6,
    dtypes=("f32",),
)
