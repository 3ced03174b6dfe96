"""advection: -(u w_x + v w_y) of fields (u, v, w_x, w_y) in physical space, each product rounded.

With six fields, the last two the normal and shear strain, there are two more results: the eddy fluxes nu_t w_x and
nu_t w_y, where nu_t = `eddy` sqrt(normal^2 + shear^2) is Smagorinsky's viscosity.
"""

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar
from dashi.kernels.portable import canon, mul, sqrt
from dashi.kernels.spectral._modes import shader, spread
from dashi.types import Cost, HostArray, Shape


def require_fields(fields: int, products: int) -> None:
    if (fields, products) not in ((4, 1), (6, 3)):
        raise ShapeError(
            f"kernel 'advection': {fields} fields do not make {products} products.",
            "pass four fields and products=1, or six and products=3.",
        )


def reference(values: HostArray, products: int, eddy: float) -> HostArray:
    require_fields(values.shape[1], products)
    u, v, slope_x, slope_y, *strain = (canon(values[:, f]) for f in range(values.shape[1]))
    terms = [canon(-(mul(u, slope_x) + mul(v, slope_y)))]
    if strain:
        normal, shear = strain
        viscosity = mul(canon(np.asarray(eddy, values.dtype)), sqrt(mul(normal, normal) + mul(shear, shear)))
        terms += [canon(mul(viscosity, slope_x)), canon(mul(viscosity, slope_y))]
    return np.stack(terms, axis=1)


def plan(call: Call) -> Plan:
    fields, products = call.dims["fields"], int(call.scalars["products"])
    require_fields(fields, products)
    plane = call.dims["h"] * call.dims["w"]
    push = {"plane": plane, "fields": fields, "products": products, "eddy": call.scalars["eddy"]}
    return spread(call, ("values", "result"), call.dims["members"] * plane, push)


def cost(call: Call) -> Cost:
    size = call.size("result")
    return Cost(4 * size, call.bytes("values", "result"), int(size > 0))


def case(shape: Shape, eddy: float = 0.25) -> Case:
    return Case({"values": shape}, {"products": 1 if shape[1] == 4 else 3, "eddy": eddy})


KERNEL = Kernel(
    summary="-(u w_x + v w_y), and eddy fluxes, in physical space",
    inputs=(Operand("values", shape=("members", "fields", "h", "w")),),
    outputs=(Operand("result", shape=("members", "products", "h", "w")),),
    shaders={
        "main": shader(
            Binding("values"),
            Binding("result", access="write"),
            push=(Scalar("plane", "u32"), Scalar("fields", "u32"), Scalar("products", "u32"), Scalar("eddy")),
        )
    },
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(case((1, 4, 1, 1)), case((2, 4, 7, 9)), case((1, 6, 33, 31)), case((3, 6, 5, 5), 1e-20), case((0, 4, 2, 2))),
    bench=(case((1, 4, 2048, 2048)), case((1, 6, 2048, 2048))),
    scalars=(Scalar("products", "u32", 1, "1, or 3 with eddy fluxes"), Scalar("eddy", default=0.0, doc="(Cs dx)^2")),
)
