"""What the templates of products are before a tail is put into them: a product of two matrices, and four operands that
are not used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dashi.kernels._fused_abi import dense
from dashi.kernels.abi import Call, Case, Kernel, Operand, Plan, Shader
from dashi.kernels.linear import _product_forms as forms
from dashi.kernels.linear import _products as products
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray

OTHERS: Final = tuple(f"x{j}" for j in range(products.OPERANDS))


def template(summary: str, shaders: Mapping[str, Shader], tunings: tuple[str, ...], windows: bool) -> Kernel:
    """The kernel of a template; with `windows` these are the columns of b."""

    def plan(call: Call) -> Plan:
        views = [dense(call.shapes[name]) for name in ("a", "b", *OTHERS)]
        formed = forms.product(views[0], views[1], views[2:], call.shapes["result"])
        columns = {"OUT3": call.dims["n"], "BY_CHANNEL": call.dims["n"]}
        walk = dict.fromkeys(products.WINDOW_NUMBERS, 1) | columns if windows else None
        nbytes = (call.bytes("a"), call.bytes("b"))
        scalars = (0,) * products.SCALARS
        return products.plan(call, formed, products.Operands("a", "b", OTHERS, scalars, nbytes, walk))

    return Kernel(
        summary=summary,
        inputs=(
            Operand("a", shape=("m", "k")),
            Operand("b", shape=("k", "n")),
            *(Operand(name, shape=("m", "n")) for name in OTHERS),
        ),
        outputs=(Operand("result", shape=("m", "n")),),
        shaders=shaders,
        plan=plan,
        reference=_reference,
        cost=_cost,
        cases=tuple(
            Case({"a": (m, k), "b": (k, n), **dict.fromkeys(OTHERS, (m, n))})
            for m, k, n in ((1, 1, 1), (5, 70, 9), (64, 64, 64), (70, 132, 68))
        ),
        tunings={name: products.TUNINGS[name] for name in tunings},
    )


def _reference(a: HostArray, b: HostArray, *_: HostArray) -> HostArray:
    return canon(forms.contract_batches(a, b))


def _cost(call: Call) -> Cost:
    return Cost(2 * call.size("result") * call.dims["k"], call.bytes("a", "b", "result"), 1)
