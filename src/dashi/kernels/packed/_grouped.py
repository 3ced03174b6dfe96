"""Rows of x times the packed matrices of their groups (their experts): the kernel of a format. Each row has the bits of
its product with the one matrix; the matrices lie one after another in one array of tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from dashi.errors import ShapeError
from dashi.kernels._work import RUN, ceil_div
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Kernel, Number, Operand, Plan, Scalar, Shader
from dashi.kernels.linear import _tiles as levels
from dashi.kernels.packed import _products as products
from dashi.kernels.packed._block_format import BlockFormat
from dashi.kernels.packed._formats import block_format, dequantize
from dashi.kernels.packed._tiles import head_place, tile_length, tile_words, unpack
from dashi.kernels.portable import canon, contract
from dashi.types import Cost, HostArray, Shape

_SIZES: Final = ((1, 1, 1, 1), (5, 3, 2, 7), (7, 2, 5, 65), (4, 5, 3, 16), (0, 2, 1, 4), (3, 2, 0, 2))
"""(rows of x, groups, blocks of 32 or K blocks, rows of each matrix)"""


def grouped_packed_product(name: str) -> Kernel:
    """The kernel that multiplies each row of fp32 with the matrix of its group, in a format; a row of a group that
    there is not has zeros for a result."""
    form = block_format(name)

    def reference(x: HostArray, weights: HostArray, group: HostArray, *, n: int) -> HostArray:
        groups = _groups(weights.shape[2], n, len(x))
        numbers = canon(dequantize(name, unpack(name, weights, x.shape[1]))).reshape(groups, n, x.shape[1])
        result: HostArray = np.zeros((len(x), n), np.float32)
        for row, which in enumerate(group.tolist()):
            if which < groups:
                result[row] = canon(contract(x[row], numbers[which].T))
        return result

    def plan(call: Call) -> Plan:
        form.row_bytes(call.dims["k"])
        _groups(call.dims["rows"], call.dims["n"], call.dims["m"])
        return levels.in_levels(call, partial(_multiply, form))

    def cost(call: Call) -> Cost:
        m, n, k = (call.dims[dimension] for dimension in ("m", "n", "k"))
        size = call.bytes("x", "weights", "group", "result")
        return Cost(2 * m * n * k, size, len(plan(call).dispatches)) if m * n else Cost()

    return Kernel(
        summary=f"row vectors times the transposed matrices of their groups, stored in {name}",
        inputs=(
            Operand("x", shape=("m", "k")),
            Operand("weights", "u32", (f"k/{tile_length(form)}", tile_words(form), "rows")),
            Operand("group", "u32", ("m",)),
        ),
        outputs=(Operand("result", shape=("m", "n")),),
        scalars=(Scalar("n", "u32"),),
        shaders={**_shaders(form), "fold": levels.FOLD},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=_cases(form),
        bench=(_case(form, (8, 8, 4096, 2048)),),
        dtypes=("f32",),
        tunings=products.TUNINGS,
        prefer=products.prefer,
    )


def _groups(rows: int, n: int, vectors: int) -> int:
    """How many matrices of n rows there are."""
    if rows % n if n else rows:
        raise ShapeError(f"{rows} packed rows are no matrices of {n}.", "pass whole matrices, one after another.")
    if vectors and n and not rows:
        raise ShapeError(f"{vectors} rows of x, and no matrix.", "pass at least one matrix.")
    return rows // n if n else 0


def _shaders(form: BlockFormat) -> dict[str, Shader]:
    lanes = {"row": 4} | ({"row_any": 1} if form.length == 1 else {})
    return {name: _grouped(products.row_shader(form, 1, count)) for name, count in lanes.items()}


def _grouped(shader: Shader) -> Shader:
    """A shader of one row of x that looks its matrix up."""
    buffers = (*shader.buffers[:-1], Binding("group", "u32"), shader.buffers[-1])
    return replace(shader, buffers=buffers, push=(*shader.push, Scalar("groups", "u32")))


def _multiply(
    form: BlockFormat, call: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number]
) -> Iterator[Dispatch]:
    """Dispatches that add the products over k from reach[0] to reach[1] to `target`: a workgroup has one row of x."""
    m, n, k, rows = (call.dims[name] for name in ("m", "n", "k", "rows"))
    runs = (reach[0] // RUN, ceil_div(reach[1], RUN))
    numbers: dict[str, Number] = {"m": m, "n": n, "k": k, "first_head": head_place(form, k, rows), **flags}
    numbers["groups"] = _groups(rows, n, m)
    heads = ("weights",) if tile_words(form) % 4 else ()
    shape = products.shape_for(call, 1, runs[1] - runs[0])
    yield from products.dispatches(call, shape, runs, numbers, ("x", "weights", *heads, "group", target))


def _cases(form: BlockFormat) -> tuple[Case, ...]:
    unit = max(32, form.length)
    sizes = [(m, groups, blocks * unit, n) for m, groups, blocks, n in _SIZES]
    sizes += [(2, 3, 4096 + unit, 3)] + ([(3, 2, 67, 5)] if form.length == 1 else [])
    return tuple(_case(form, size) for size in sizes)


def _case(form: BlockFormat, size: tuple[int, int, int, int]) -> Case:
    """x (m, k) and the groups of its rows, some of which there are not; `size` is (m, groups, k, n)."""
    m, groups, k, n = size
    weights = products.product_case(form, (m, k, groups * n))

    def group(rng: np.random.Generator, shape: Shape) -> HostArray:
        chosen = rng.integers(0, groups, shape, dtype=np.uint64).astype(np.uint32)
        chosen[1::3] = (groups, 0xFFFFFFFF)[groups % 2]
        return chosen

    return Case({**weights.shapes, "group": (m,)}, {"n": n}, {**weights.fill, "group": group})
