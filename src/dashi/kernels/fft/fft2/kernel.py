"""fft2: complex Fourier transforms along both axes of arrays (batch, h, w) of pairs (re, im): rows, then columns.

As `fft` along the last axis and then along the one before it, but values are not flushed between the two. `turns` and
`turns_h` are the tables of w and h.
"""

from dashi.kernels import fourier_layouts, fourier_plans
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.fourier import require_length, table
from dashi.kernels.fourier_plans import Pass
from dashi.kernels.fourier_reference import transform
from dashi.types import Array, Cost, Shape


def reference(x: Array, turns: Array, turns_h: Array, inverse: int, scale: float) -> Array:
    batch, h, w, _ = x.shape
    require_length(w)
    require_length(h)
    rows = transform(x.reshape(batch * h, w, 1, 2), turns, bool(inverse), 1.0, raw=2)
    return transform(rows.reshape(x.shape), turns_h, bool(inverse), scale, raw=1)


def plan(call: Call) -> Plan:
    batch, h, w = (call.dims[name] for name in ("batch", "h", "w"))
    require_length(w)
    require_length(h)
    if batch == 0:
        return Plan(())
    inverse, scale = bool(call.scalars["inverse"]), call.scalars["scale"]
    tiles = fourier_plans.tiles(call, batch, h, w)
    rows = Pass("main", ("x", "turns", "between"), batch * h, w, inverse=inverse, raw=2, tiles=tiles)
    columns = Pass("main", ("between", "turns_h", "result"), batch, h, w, inverse, scale, raw=1, tiles=tiles)
    return Plan((rows.dispatch(call), columns.dispatch(call)), {"between": ("T", tiles.size(batch * h, w))})


def cost(call: Call) -> Cost:
    batch, h, w = (call.dims[name] for name in ("batch", "h", "w"))
    flops = batch * (h * fourier_plans.flops(w) + w * fourier_plans.flops(h))
    return Cost(flops, 2 * call.bytes("x", "result") + call.bytes("turns", "turns_h"), 2 * int(batch > 0))


def case(shape: Shape, inverse: int = 0, scale: float = 1.0) -> Case:
    _, h, w = shape
    fill = {"turns": fourier_plans.filled(table, w), "turns_h": fourier_plans.filled(table, h)}
    shapes = {"x": (*shape, 2), "turns": (w, 2), "turns_h": (h, 2)}
    return Case(shapes, {"inverse": inverse, "scale": scale}, fill)


KERNEL = Kernel(
    summary="complex Fourier transforms along both axes",
    inputs=(
        Operand("x", shape=("batch", "h", "w", 2)),
        Operand("turns", shape=("w", 2)),
        Operand("turns_h", shape=("h", 2)),
    ),
    outputs=(Operand("result", shape=("batch", "h", "w", 2)),),
    shaders=fourier_plans.COMPLEX,
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case((2, 8, 8)), case((1, 12, 64), 1, 1 / 768), case((1, 1, 5)), case((0, 4, 4))),
    bench=tuple(case((1, n, n)) for n in (1024, 2048, 4096)),
    scalars=fourier_plans.COMPLEX_SCALARS,
    tunings=fourier_layouts.TUNINGS,
    prefer=fourier_layouts.prefer,
)
