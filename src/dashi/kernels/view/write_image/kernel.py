"""write_image: a field as a grey picture; lo is black, hi is white, NaN is magenta.

The level is (v - lo) 255 / (hi - lo) rounded to the nearest, halves up, limited to 0..255.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, StreamDefaults
from dashi.kernels.view._pixels import NAN_PIXEL, OPAQUE, RANGE, TUNINGS, level_push, levels, per_pixel, shaders
from dashi.types import Cost, HostArray


def reference(field: HostArray, lo: float, hi: float) -> HostArray:
    grey = levels("write_image", field, lo, hi) * np.uint32(0x010101) | np.uint32(OPAQUE)
    return np.where(np.isnan(field), np.uint32(NAN_PIXEL), grey)


def plan(call: Call) -> Plan:
    return per_pixel(call, ("field", "result"), level_push("write_image", call.dtype, call.scalars))


def cost(call: Call) -> Cost:
    n = call.size("field")
    return Cost(flops=3 * n, bytes=n * (call.dtype.size + 4), dispatches=int(n > 0))


def case(h: int, w: int, lo: float = -1.0, hi: float = 1.0) -> Case:
    return Case({"field": (h, w)}, {"lo": lo, "hi": hi})


KERNEL = Kernel(
    summary="a field as a grey RGBA8 image: lo black, hi white, NaN magenta",
    inputs=(Operand("field", shape=("h", "w")),),
    outputs=(Operand("result", "u32", ("h", "w")),),
    shaders=shaders(
        (Binding("field"),), (Binding("field", "V"),), (Scalar("lo"), Scalar("scale")), "portable.glsl", "levels.glsl"
    ),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1), case(1, 4), case(3, 7), case(16, 64, 0.0, 255.0), case(63, 65, -3.0, 5.0), case(64, 65, -8.0, -7.0),
        case(1, 4100, -2.0**60, 2.0**60), case(33, 31, 0.0, 1e-30), case(0, 3), case(255, 257), case(256, 320),
    ),
    bench=(case(4096, 4096),),
    scalars=RANGE,
    tunings=TUNINGS,
    stream=StreamDefaults(io_class="OBSERVER"),
)  # fmt: skip
