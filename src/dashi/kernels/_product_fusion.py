"""Products with tails: what becomes of every element of a product costs no dispatch of its own.

The template `_templates/linear/product` has a function `finish`; a formula of `dashi.kernels.expressions` takes its
place, as in `_fusion`. The NumPy twin is the product's, then the formula's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from dashi.errors import InputError, LimitError, ShapeError
from dashi.kernels import _build as build
from dashi.kernels._formulas import Formula, emit, formula
from dashi.kernels._fused_abi import dense, indices, stretched
from dashi.kernels._ops import OPS
from dashi.kernels._registry import templates
from dashi.kernels._validate import validate
from dashi.kernels.abi import Call, Case, Kernel, Number, Operand, Plan, Scalar, Shader, View
from dashi.kernels.expressions import Expression, arguments
from dashi.kernels.linear import _product_forms as forms
from dashi.kernels.linear import _products as products
from dashi.kernels.portable import canon
from dashi.kernels.spirv._emit import Emission, Template
from dashi.kernels.spirv._module import parse
from dashi.types import Cost, HostArray, Shape

FAMILY: Final = "fused"
TEMPLATE: Final = "product"
FAST_TEMPLATE: Final = "product_fast"
"""The template whose sums are in any order."""
_CASES: Final = ((1, 1, 1), (2, 70, 9), (33, 64, 20), (70, 36, 68))
_NUMBERS: Final = (1.5, -0.3)


@dataclass(frozen=True)
class ProductBinaries:
    """The binaries of a product with a tail, made when they are asked for."""

    tail: Formula
    value: str
    key: str
    template: str = TEMPLATE

    def words(self, shader: str, variant: str) -> bytes:
        """The template with the formula in it."""
        emission = Emission(_template(self.template, shader, variant))
        body = emission.body("finish")
        value = body.call("flushed", body.load(body.parameters[0]))
        others = others_of(self.tail, self.value)
        loaded = {name: body.call(f"load{j}", body.parameters[1]) for j, name in enumerate(others)}
        given = [loaded.get(name, value) for name in self.tail.inputs]
        (result,) = emit(body, self.tail, variant, body.result_type, given)
        body.finish(result)
        first = 1 if shader == "strided_fold" else 2
        kept = {j: j for j in range(first + len(others))}
        return emission.module(kept | {first + products.OPERANDS: first + len(others)}).to_bytes()


@cache
def _template(name: str, shader: str, variant: str) -> Template:
    return Template(parse(build.Loader().load(templates().get(name), shader, variant).words))


def others_of(tail: Formula, value: str) -> tuple[str, ...]:
    """The arguments of a tail that are arrays: all but the product."""
    return tuple(name for name in tail.inputs if name != value)


def fuse_product(
    tail: Expression | None = None,
    value: str = "value",
    views: Mapping[str, View] | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: str = "",
    inputs: str = "",
    portable: bool = True,
) -> Kernel:
    """The kernel of a product with a tail: see `dashi.kernels.fuse_product`."""
    order = (value, *inputs.split()) if inputs else None
    computed = formula([arguments(value)[0] if tail is None else tail], order)
    require_tail(computed, value)
    others = others_of(computed, value)
    through = dict(views or {})
    operands = tuple(Operand(one, view=through.get(one)) for one in ("a", "b", *others))
    if unknown := sorted(set(through) - {o.name for o in operands}):
        raise InputError(
            f"`views` names {unknown[0]!r}, which is no operand of the product.", "use a, b and the tail's arguments."
        )
    kind, form = (TEMPLATE, FusedProduct) if portable else (FAST_TEMPLATE, FastProduct)
    digest = hashlib.sha256(f"{computed.text}\n{kind} {value}".encode()).hexdigest()
    fused = form(computed, value, operands, (transpose_a, transpose_b), name or f"{kind}_{digest[:12]}")
    kernel = fused.kernel(digest)
    validate(kernel)
    return kernel


def require_tail(computed: Formula, value: str) -> None:
    """An error for a tail that a product cannot have."""
    if value not in computed.inputs:
        raise InputError(
            f"the tail of a product has no argument {value!r}, which the product would be.",
            "name the product among its arguments, or say with value=... which it is.",
        )
    for what, names, most in (
        ("operands", others_of(computed, value), products.OPERANDS),
        ("scalars", computed.scalars, products.SCALARS),
    ):
        if len(names) > most:
            raise LimitError(f"the tail of a product has {len(names)} {what}; it has at most {most}.", "split it.")
    if taken := {"a", "b", "result"} & ({*computed.inputs, *computed.scalars} - {value}):
        raise InputError(f"an argument of the tail is called {min(taken)!r}, like one of the product.", "rename it.")


@dataclass(frozen=True)
class FusedProduct:
    """A product with a tail, before it is a kernel."""

    tail: Formula
    value: str
    operands: tuple[Operand, ...]
    turned: tuple[bool, bool]
    name: str

    @property
    def bound(self) -> float | None:
        """The largest relative error of products that are not portable."""
        return None

    @property
    def others(self) -> tuple[str, ...]:
        return others_of(self.tail, self.value)

    def views(self, shapes: Mapping[str, Shape]) -> dict[str, View]:
        """How every operand is read, a and b turned where they are to be."""
        listed = {o.name: o.view or dense(shapes[o.name]) for o in self.operands}
        for operand, turn in zip("ab", self.turned, strict=True):
            if turn and len(listed[operand].shape) > 1:
                listed[operand] = forms.transposed(listed[operand])
        return listed

    def matrices(self, views: Mapping[str, View]) -> tuple[View, View]:
        """The matrices that are multiplied, as the plan takes them."""
        return views["a"], views["b"]

    def windows(self, views: Mapping[str, View]) -> Mapping[str, int] | None:
        """How b is walked through, where it is windows."""
        return None

    def matrix_values(self, views: Mapping[str, View], named: Mapping[str, HostArray]) -> tuple[HostArray, HostArray]:
        """The elements of the matrices, from lists of those of a and b."""
        a, b = (named[operand][indices(views[operand])] for operand in "ab")
        return a, b

    def shaders(self) -> dict[str, Shader]:
        """What computes it."""
        return products.shaders(len(self.others), products.SCALARS)

    def tunings(self) -> Mapping[str, Mapping[str, int]]:
        """Ways to launch it."""
        return products.TUNINGS

    def binaries(self, digest: str) -> ProductBinaries:
        """The template with the tail in it."""
        return ProductBinaries(self.tail, self.value, digest)

    def shape_rule(self, shapes: Mapping[str, Shape], _: Mapping[str, Number]) -> Sequence[Shape]:
        views = self.views(shapes)
        a, b = self.matrices(views)
        shape = forms.result_shape(self.name, a.shape, b.shape)
        for other in self.others:
            own = views[other].shape
            if len(own) > len(shape) or any(n not in (1, w) for n, w in zip(own[::-1], shape[::-1], strict=False)):
                raise ShapeError(
                    f"kernel {self.name!r}: {other} has shape {own}, which does not stretch to the product's {shape}.",
                    "pass lengths that agree with the product's, or are 1, axis by axis from the last.",
                )
        return (shape,)

    def plan(self, call: Call) -> Plan:
        views = self.views(call.shapes)
        others = [views[other] for other in self.others]
        formed = forms.product(*self.matrices(views), others, call.shapes["result"])
        passed = [call.scalars[s] for s in self.tail.scalars]
        scalars = (*passed, *(0 for _ in range(products.SCALARS - len(passed))))
        nbytes = (call.bytes("a"), call.bytes("b"))
        return products.plan(
            call, formed, products.Operands("a", "b", self.others, scalars, nbytes, self.windows(views))
        )

    def reference(self, *arrays: HostArray, **numbers: Number) -> HostArray:
        views = self.views({o.name: values.shape for o, values in zip(self.operands, arrays, strict=True)})
        named = {o.name: values.reshape(-1) for o, values in zip(self.operands, arrays, strict=True)}
        with np.errstate(all="ignore"):
            product = canon(forms.contract_batches(*self.matrix_values(views, named)))
            read = {x: named[x][indices(stretched(views[x], product.shape))] for x in self.others}
            (result,) = self.tail.evaluate({self.value: product, **read}, numbers)
        return canon(np.broadcast_to(result, product.shape).reshape(product.shape))

    def cost(self, call: Call) -> Cost:
        size = call.size("result")
        k = self.matrices(self.views(call.shapes))[0].shape[-1]
        after = sum(OPS[node.kind].flops(call.dtype.name) for node in self.tail.nodes if node.kind in OPS)
        moved = call.bytes(*(o.name for o in self.operands), "result")
        return Cost(size * (2 * k + after), moved, len(self.plan(call).dispatches)) if size else Cost()

    def cases(self) -> tuple[Case, ...]:
        """Small products that fit the views, where there are some."""
        views = {o.name: o.view for o in self.operands if o.view}
        return tuple(
            self._case(number, m, k, n, views) for number, (m, k, n) in enumerate(_CASES[: 1 if views else None])
        )

    def _case(self, number: int, m: int, k: int, n: int, views: Mapping[str, View]) -> Case:
        if "a" in views:
            m, k = views["a"].shape[-2:][:: -1 if self.turned[0] else 1]
        if "b" in views:
            k, n = views["b"].shape[-2:][:: -1 if self.turned[1] else 1]
        a, b = ((k, m) if self.turned[0] else (m, k)), ((n, k) if self.turned[1] else (k, n))
        batch = () if views else (2,)
        shapes = {"a": (*batch, *a), "b": b} | {x: ((n,), (m, n))[j % 2] for j, x in enumerate(self.others)}
        shapes |= {name: (max(1, view.bounds()[1] + 1),) for name, view in views.items()}
        return Case(shapes, dict.fromkeys(self.tail.scalars, _NUMBERS[number % 2]))

    def kernel(self, digest: str) -> Kernel:
        return Kernel(
            summary="matrix products a b with a tail",
            inputs=self.operands,
            outputs=(Operand("result"),),
            scalars=tuple(Scalar(scalar) for scalar in self.tail.scalars),
            shape_rule=self.shape_rule,
            shaders=self.shaders(),
            plan=self.plan,
            reference=self.reference,
            cost=self.cost,
            cases=self.cases(),
            tunings=self.tunings(),
            name=self.name,
            family=FAMILY,
            portable=self.bound is None,
            bound=self.bound,
            binaries=self.binaries(digest),
        )


class FastProduct(FusedProduct):
    """A product with a tail whose sums are in any order, with fused multiply-adds."""

    @property
    def bound(self) -> float | None:
        return products.FAST_BOUND

    def shaders(self) -> dict[str, Shader]:
        return products.shaders(len(self.others), products.SCALARS, contracted=False)

    def binaries(self, digest: str) -> ProductBinaries:
        return ProductBinaries(self.tail, self.value, digest, FAST_TEMPLATE)
