"""advection_pull: products in physical space that pull a slope g back through the advection of vorticity.

From (u, v, w_x, w_y) and (g_x, g_y), two planes of all members each: u g_x + v g_y, and w_x g_y - w_y g_x. Of their
modes, first + second / k^2 is the transpose of the derivative of -(u w_x + v w_y) in w, applied to g.
"""

import numpy as np

from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, mul
from dashi.kernels.spectral._modes import shader, spread
from dashi.types import Cost, HostArray, Shape


def reference(values: HostArray, slopes: HostArray) -> HostArray:
    u, v, slope_x, slope_y = (canon(values[:, f]) for f in range(4))
    g_x, g_y = (canon(slopes[:, f]) for f in range(2))
    return np.stack([canon(mul(u, g_x) + mul(v, g_y)), canon(mul(slope_x, g_y) - mul(slope_y, g_x))])


def plan(call: Call) -> Plan:
    plane = call.dims["h"] * call.dims["w"]
    total = call.dims["members"] * plane
    return spread(call, ("values", "slopes", "result"), total, {"plane": plane})


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(3 * size, call.bytes("values", "slopes", "result"), int(size > 0))


def case(members: int, h: int, w: int) -> Case:
    shapes: dict[str, Shape] = {"values": (members, 4, h, w), "slopes": (members, 2, h, w)}
    return Case(shapes)


KERNEL = Kernel(
    summary="products that pull a slope back through the advection of vorticity",
    inputs=(Operand("values", shape=("members", 4, "h", "w")), Operand("slopes", shape=("members", 2, "h", "w"))),
    outputs=(Operand("result", shape=(2, "members", "h", "w")),),
    shaders={
        "main": shader(
            Binding("values"), Binding("slopes"), Binding("result", access="write"), push=(Scalar("plane", "u32"),)
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case(1, 1, 1), case(2, 7, 9), case(3, 16, 16), case(0, 4, 4)),
    bench=(case(1, 2048, 2048),),
)
