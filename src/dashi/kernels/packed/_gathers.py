"""Rows of packed weights by their numbers, widened: the kernel of a format, and its dispatches."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._work import LOCAL, ceil_div, loop_plan
from dashi.kernels.abi import Binding, Call, Case, Kernel, Operand, Plan, Scalar, Shader
from dashi.kernels.packed._block_format import BlockFormat
from dashi.kernels.packed._formats import block_format, dequantize
from dashi.kernels.packed._products import product_case
from dashi.kernels.packed._tiles import head_place, tile_length, tile_words, unpack
from dashi.kernels.portable import canon
from dashi.types import Cost, HostArray, Shape

_HALF = 32
_SIZES = ((1, 1, 1), (5, 3, 7), (9, 9, 2), (0, 2, 3), (4, 0, 3), (3, 2, 0))
"""(rows of weights, blocks of 32 or K blocks of each, rows that are read)"""


def packed_gather(name: str) -> Kernel:
    """The kernel that widens rows of weights in a format."""
    form = block_format(name)
    heads = (Binding("heads", "u32"),) if tile_words(form) % 4 else ()
    length = tile_length(form)

    def reference(weights: HostArray, index: Any, *, k: int) -> HostArray:
        numbers = canon(dequantize(name, unpack(name, weights, k)))
        result = np.zeros((len(index), k), np.float32)
        inside = index < len(numbers)
        result[inside] = numbers[index[inside].astype(np.int64)]
        return result

    def plan(call: Call) -> Plan:
        k, n, count = (call.dims[dimension] for dimension in ("k", "n", "count"))
        form.row_bytes(k)
        if n == 0 and count * k:
            raise ShapeError(f"no rows of {name} weights can be gathered.", "pass weights of at least one row.")
        numbers = {"n": n, "k": k, "first_head": head_place(form, k, n)}
        buffers = ("weights", *("weights" for _ in heads), "index", "result")
        return loop_plan(call, count * ceil_div(k, _HALF), buffers, numbers)

    def cost(call: Call) -> Cost:
        size = call.size("result")
        moved = size * 4 + size // form.length * form.size + 4 * call.dims["count"]
        return Cost(2 * size, moved, len(plan(call).dispatches)) if size else Cost()

    return Kernel(
        summary=f"rows of weights stored in {name} by their numbers, widened; zeros past the end",
        inputs=(
            Operand("weights", "u32", (f"k/{length}", tile_words(form), "n")),
            Operand("index", "u32", ("count",)),
        ),
        outputs=(Operand("result", shape=("count", "k")),),
        scalars=(Scalar("k", "u32"),),
        shaders={
            "main": Shader(
                (
                    Binding("weights", "u32x4"),
                    *heads,
                    Binding("index", "u32"),
                    Binding("result", access="write"),
                ),
                tuple(Scalar(number, "u32") for number in ("items", "stride", "n", "k", "first_head")),
                local=(LOCAL, 1, 1),
                includes=("portable.glsl", "halves.glsl"),
                extensions=("GL_EXT_control_flow_attributes",),
            )
        },
        plan=plan,
        reference=reference,
        cost=cost,
        cases=tuple(_case(form, size) for size in _SIZES if size[0]),
        dtypes=("f32",),
    )


def _case(form: BlockFormat, size: tuple[int, int, int]) -> Case:
    n, blocks, count = size
    k = blocks * max(_HALF, form.length) + (3 if form.length == 1 else 0)
    weights = product_case(form, (1, k, n))

    def index(rng: np.random.Generator, shape: Shape) -> HostArray:
        chosen = rng.integers(0, n, shape, dtype=np.uint64).astype(np.uint32)
        chosen[1:3] = [n, 0xFFFFFFFF][: len(chosen[1:3])]
        return chosen

    shapes = {"weights": weights.shapes["weights"], "index": (count,)}
    return Case(shapes, {"k": k}, {"weights": weights.fill["weights"], "index": index})
