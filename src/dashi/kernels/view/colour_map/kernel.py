"""colour_map: a field through a table of 256 colours; lo has the first, hi the last, NaN is magenta.

`dashi.kernels.view.images` makes tables. The level is (v - lo) 255 / (hi - lo) rounded to the nearest, halves up,
limited to 0..255.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, StreamDefaults
from dashi.kernels.view._pixels import LEVELS, NAN_PIXEL, RANGE, TUNINGS, level_push, levels, per_pixel, shaders
from dashi.types import Cost, HostArray, Shape


def reference(field: HostArray, table: HostArray, lo: float, hi: float) -> HostArray:
    return np.where(np.isnan(field), np.uint32(NAN_PIXEL), table[levels("colour_map", field, lo, hi)])


def plan(call: Call) -> Plan:
    return per_pixel(call, ("field", "table", "result"), level_push("colour_map", call.dtype, call.scalars))


def cost(call: Call) -> Cost:
    n = call.size("field")
    return Cost(flops=3 * n, bytes=n * (call.dtype.size + 4) + 4 * LEVELS * (n > 0), dispatches=int(n > 0))


def any_colours(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(0, 1 << 32, shape, dtype=np.uint32)


def case(h: int, w: int, lo: float = -1.0, hi: float = 1.0) -> Case:
    return Case({"field": (h, w), "table": (LEVELS,)}, {"lo": lo, "hi": hi}, {"table": any_colours})


KERNEL = Kernel(
    summary="a field as an RGBA8 image through a table of 256 colours, NaN magenta",
    inputs=(Operand("field", shape=("h", "w")), Operand("table", "u32", (LEVELS,))),
    outputs=(Operand("result", "u32", ("h", "w")),),
    shaders=shaders(
        (Binding("field"), Binding("table", "u32")),
        (Binding("field", "V"), Binding("table", "u32")),
        (Scalar("lo"), Scalar("scale")),
        "portable.glsl",
        "levels.glsl",
    ),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1), case(1, 4), case(3, 7), case(16, 64, 0.0, 255.0), case(63, 65, -3.0, 5.0), case(64, 65, -8.0, -7.0),
        case(0, 3), case(255, 257), case(256, 320),
    ),
    bench=(case(4096, 4096),),
    scalars=RANGE,
    tunings=TUNINGS,
    stream=StreamDefaults(io_class="OBSERVER"),
)  # fmt: skip
