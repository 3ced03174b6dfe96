"""matmul: result[..., m, n] = a[..., m, k] b[..., k, n], for any number of batch axes, stretched by NumPy's rules.

Every element is summed over k in the order tree64, so it has the bits of gemm_tiled and gemv, whatever the batch.
With `transpose_a`, the last two axes of a are (k, m); with `transpose_b`, those of b are (n, k). Plain matrices in C
order take the plans of gemm_tiled, one row among them that of gemv.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from dashi.kernels._fused_abi import dense
from dashi.kernels.abi import Call, Case, Kernel, Number, Operand, Plan, Scalar, View
from dashi.kernels.linear import _columns as columns
from dashi.kernels.linear import _product_forms as forms
from dashi.kernels.linear import _products as products
from dashi.kernels.linear import _tiles as tiles
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray, Shape

NAME: Final = "matmul"


def shape_rule(shapes: Mapping[str, Shape], scalars: Mapping[str, Number]) -> Sequence[Shape]:
    a, b = _views(shapes, scalars)
    return (forms.result_shape(NAME, a.shape, b.shape),)


def _views(shapes: Mapping[str, Shape], scalars: Mapping[str, Number]) -> list[View]:
    views = [dense(shapes["a"]), dense(shapes["b"])]
    turned = (scalars["transpose_a"], scalars["transpose_b"])
    return [forms.transposed(v) if t and len(v.shape) > 1 else v for v, t in zip(views, turned, strict=True)]


def plan(call: Call) -> Plan:
    a, b = _views(call.shapes, call.scalars)
    formed = forms.product(a, b, (), call.shapes["result"])
    if forms.is_plain(formed):
        shapes = {"a": (formed.m, formed.k), "b": (formed.k, formed.n), "result": (formed.m, formed.n)}
        plain = replace(call, shapes=shapes, dims={"m": formed.m, "n": formed.n, "k": formed.k})
        return columns.row_plan(plain) if tiles.is_row(plain) else tiles.in_levels(plain, tiles.multiply)
    return products.plan(call, formed, products.Operands("a", "b", (), (), (call.bytes("a"), call.bytes("b"))))


def reference(a: HostArray, b: HostArray, transpose_a: int, transpose_b: int) -> HostArray:
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    return canon(forms.contract_batches(left, right))


def cost(call: Call) -> Cost:
    size = call.size("result")
    a, _ = _views(call.shapes, call.scalars)
    moved = call.bytes("a", "b", "result")
    return Cost(2 * size * a.shape[-1], moved, len(plan(call).dispatches)) if size else Cost()


SHAPES: Final[tuple[tuple[Shape, Shape], ...]] = (
    ((1, 1), (1, 1)),
    ((2, 0), (0, 3)),
    ((1, 300), (300, 70)),
    ((65, 63), (63, 66)),
    ((3, 40, 33), (33, 20)),
    ((3, 40, 36), (3, 36, 20)),
    ((2, 1, 5, 64), (3, 64, 8)),
    ((2, 3, 17, 130), (2, 1, 130, 12)),
    ((2, 3, 4097), (2, 4097, 5)),
)


def _turned(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


def _case(a: Shape, b: Shape, turns: int) -> Case:
    turn_a, turn_b = turns & 1, turns >> 1
    shapes = {"a": _turned(a) if turn_a else a, "b": _turned(b) if turn_b else b}
    return Case(shapes, {"transpose_a": turn_a, "transpose_b": turn_b})


LARGE: Final[Shape] = (4096, 4096)

KERNEL = Kernel(
    summary="matrix products a b, batched and stretched, of matrices as they are or transposed",
    inputs=(Operand("a"), Operand("b")),
    outputs=(Operand("result"),),
    scalars=(
        Scalar("transpose_a", "u32", 0, "1: the last two axes of a are exchanged"),
        Scalar("transpose_b", "u32", 0, "1: the last two axes of b are exchanged"),
    ),
    shape_rule=shape_rule,
    shaders={**tiles.shaders(), "fold": tiles.FOLD, **products.shaders(0, 0)},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=tuple(_case(a, b, turns) for number, (a, b) in enumerate(SHAPES) for turns in (0, number % 3 + 1)),
    bench=(
        _case(LARGE, LARGE, 0),
        _case(LARGE, LARGE, 2),
        _case((1, 12, 128, 32), (1, 12, 32, 128), 0),
        _case((64, 512, 64), (64, 64, 512), 2),
    ),
    tunings={name: {"side": 16, **tiles.TUNINGS[name]} for name in ("fitted", "blocks_8x8", "small_few", "few_rows")}
    | {"strided_small": products.SMALL},
)
