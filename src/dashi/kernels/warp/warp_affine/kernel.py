"""warp_affine: result[y, x] = the field's bilinear sample at column a x + b y + tx and row c x + d y + ty.

Pixel (x, y) has its centre at (x, y) exactly; `dashi.kernels.warp._bilinear` says how samples and borders are defined.
The coordinates are rounded after each product, after the sum of the products, and after the shift is added.
"""

import math

import numpy as np

from dashi.kernels._raster import LOCAL, PUSH, SPEC, TUNINGS, blocks, require_sides
from dashi.kernels.abi import Binding, Call, Case, Kernel, Number, Operand, Plan, Scalar, Shader, Spec
from dashi.kernels.portable import canon, mul
from dashi.kernels.warp._bilinear import CLAMP, WRAP, ZERO, bilinear, require_border
from dashi.types import Cost, HostArray

MATRIX = ("a", "b", "tx", "c", "d", "ty")


def reference(
    field: HostArray, a: float, b: float, tx: float, c: float, d: float, ty: float, border: int = CLAMP
) -> HostArray:
    if field.size == 0:
        return field.copy()
    y, x = (side.astype(field.dtype) for side in np.indices(field.shape, np.int64))
    m = canon(np.array([a, b, tx, c, d, ty], field.dtype))
    u = (mul(m[0], x) + mul(m[1], y)) + m[2]
    v = (mul(m[3], x) + mul(m[4], y)) + m[5]
    return bilinear(field, u, v, border)


def plan(call: Call) -> Plan:
    h, w = call.dims["h"], call.dims["w"]
    border = int(call.scalars["border"])
    require_border("warp_affine", border)
    require_sides("warp_affine", h, w)
    if h * w == 0:
        return Plan(())
    # Made canonical here, once, and not by every invocation.
    given = np.array([call.scalars[name] for name in MATRIX], call.dtype.numpy)
    numbers: dict[str, Number] = dict(zip(MATRIX, canon(given).tolist(), strict=True))
    return Plan((blocks(call, h, w).dispatch(("field", "result"), numbers, {"BORDER": border}),))


def cost(call: Call) -> Cost:
    n = call.size("field")
    # Two coordinates of four operations, a floor and a weight each; three mixes of three.
    return Cost(flops=21 * n, bytes=call.bytes("field", "result"), dispatches=int(n > 0))


def case(h: int, w: int, matrix: tuple[float, ...], border: int) -> Case:
    return Case({"field": (h, w)}, {**dict(zip(MATRIX, matrix, strict=True)), "border": border})


def turn(degrees: float, h: int, w: int, zoom: float = 1.0) -> tuple[float, ...]:
    """A turn about the middle of the plane."""
    cos, sin = zoom * math.cos(math.radians(degrees)), zoom * math.sin(math.radians(degrees))
    x, y = (w - 1) / 2, (h - 1) / 2
    return cos, -sin, x - cos * x + sin * y, sin, cos, y - sin * x - cos * y


IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)

KERNEL = Kernel(
    summary="2-D affine warp: bilinear samples at (a x + b y + tx, c x + d y + ty)",
    inputs=(Operand("field", shape=("h", "w")),),
    outputs=(Operand("result", shape=("h", "w")),),
    shaders={
        "main": Shader(
            (Binding("field"), Binding("result", access="write")),
            (*(Scalar(name) for name in MATRIX), *PUSH),
            (SPEC, Spec("BORDER", CLAMP)),
            local=LOCAL,
            includes=("portable.glsl", "raster.glsl"),
            extensions=("GL_EXT_control_flow_attributes",),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, IDENTITY, CLAMP), case(8, 32, IDENTITY, ZERO), case(9, 33, turn(30, 9, 33), WRAP),
        case(7, 31, (1, 0, -2.5, 0, 1, 1.25), ZERO), case(64, 65, turn(-77, 64, 65, 0.3), CLAMP),
        case(65, 63, turn(10, 65, 63, 7.0), WRAP), case(5, 300, (-1, 0, 299, 0, -1, 4), CLAMP),
        case(300, 5, (0.5, 1e-3, -1e-7, 1e-30, 0.25, 1e-30), ZERO), case(16, 16, (1e9, 0, -3, 0, 3e38, -3e38), WRAP),
        case(16, 16, (1e9, -1e8, -3, 0, 3e38, -3e38), ZERO), case(16, 16, (1e38, 3e38, -3, 0, -1e30, 0), CLAMP),
        case(3, 4, (math.nan, 0, 0, 0, 1, 0), CLAMP), case(3, 4, (1, 0, 0, 0, 1, math.inf), ZERO),
        case(0, 5, IDENTITY, CLAMP), case(5, 0, IDENTITY, WRAP), case(257, 255, turn(45, 257, 255), ZERO),
    ),
    bench=(case(4096, 4096, turn(10, 4096, 4096), CLAMP), case(4096, 4096, IDENTITY, CLAMP)),
    scalars=(
        *(Scalar(name, doc=f"{name} of the 2 x 3 matrix [a b tx; c d ty]") for name in MATRIX),
        Scalar("border", "u32", CLAMP, "outside the plane: 0 its nearest pixel, 1 zeros, 2 the plane again"),
    ),
    tunings=TUNINGS,
)  # fmt: skip
