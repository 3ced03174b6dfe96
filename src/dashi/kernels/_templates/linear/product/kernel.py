"""product: the template of products with tails, compiled with a tail that does nothing.

It is no kernel of the catalogue: `dashi.kernels.fuse_product` fills its function `finish`.
"""

from typing import Final

from dashi.kernels._fused_abi import dense
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan
from dashi.kernels.linear import _products as products
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray

OTHERS: Final = tuple(f"x{j}" for j in range(products.OPERANDS))


def plan(call: Call) -> Plan:
    views = [dense(call.shapes[name]) for name in ("a", "b", *OTHERS)]
    formed = products.product(views[0], views[1], views[2:], call.shapes["result"])
    scalars = (0,) * products.SCALARS
    nbytes = (call.bytes("a"), call.bytes("b"))
    return products.plan(call, formed, products.Operands("a", "b", OTHERS, scalars, nbytes))


def reference(a: HostArray, b: HostArray, *_: HostArray) -> HostArray:
    return canon(products.contract_batches(a, b))


def cost(call: Call) -> Cost:
    return Cost(2 * call.size("result") * call.dims["k"], call.bytes("a", "b", "result"), 1)


KERNEL = Kernel(
    summary="matrix product a b, and four operands that are not used",
    inputs=(
        Operand("a", shape=("m", "k")),
        Operand("b", shape=("k", "n")),
        *(Operand(name, shape=("m", "n")) for name in OTHERS),
    ),
    outputs=(Operand("result", shape=("m", "n")),),
    shaders=products.shaders(products.OPERANDS, products.SCALARS),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(
        Case({"a": (m, k), "b": (k, n), **dict.fromkeys(OTHERS, (m, n))})
        for m, k, n in ((1, 1, 1), (5, 70, 9), (64, 64, 64), (70, 132, 68))
    ),
    tunings=products.TUNINGS,
)
