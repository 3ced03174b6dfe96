"""image_diff: the difference of two RGBA8 images, channel by channel |a - b|; alpha is 255."""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, StreamDefaults
from dashi.kernels.view._pixels import OPAQUE, TUNINGS, per_pixel, shaders
from dashi.types import Cost, HostArray


def reference(a: HostArray, b: HostArray) -> HostArray:
    difference = np.full(a.shape, OPAQUE, np.uint32)
    for shift in (0, 8, 16):
        p, q = ((difference.astype(np.int64) >> shift) & 255 for difference in (a, b))
        difference |= (np.abs(p - q) << shift).astype(np.uint32)
    return difference


def plan(call: Call) -> Plan:
    return per_pixel(call, ("a", "b", "result"))


def cost(call: Call) -> Cost:
    n = call.size("result")
    return Cost(bytes=12 * n, dispatches=int(n > 0))


def case(h: int, w: int) -> Case:
    return Case({"a": (h, w), "b": (h, w)})


KERNEL = Kernel(
    summary="|a - b| of two RGBA8 images, channel by channel; alpha 255",
    inputs=(Operand("a", shape=("h", "w")), Operand("b", shape=("h", "w"))),
    outputs=(Operand("result", shape=("h", "w")),),
    shaders=shaders((Binding("a"), Binding("b")), (Binding("a", "V"), Binding("b", "V")), ()),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case(1, 1), case(1, 4), case(3, 7), case(16, 64), case(63, 65), case(64, 65), case(0, 3), case(255, 257)),
    bench=(case(4096, 4096),),
    dtypes=("u32",),
    in_place=True,
    tunings=TUNINGS,
    stream=StreamDefaults(io_class="OBSERVER"),
)
