"""Products x W^T with packed weights: the kernel of a format, and its dispatches of `_include/packed_rows.glsl`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.kernels._float16 import narrow_bf16
from dashi.kernels._work import RUN, ceil_div, split_work
from dashi.kernels.abi import Binding, Call, Case, Dispatch, Fill, Kernel, Number, Operand, Plan, Scalar, Shader
from dashi.kernels.linear import _tiles as levels
from dashi.kernels.packed._formats import BlockFormat, block_format, dequantize
from dashi.kernels.packed._tiles import repack, tile_length, tile_words, unpack
from dashi.kernels.portable import canon, contract
from dashi.types import Cost, HostArray, Shape

Words16 = npt.NDArray[np.uint16]

TEAMS: Final = {1: (16, 8), 8: (32, 4)}
"""By rows of x that a workgroup has: the rows of W, and the runs of 64 that are under way at a time."""
NUMBERS: Final = ("m", "n", "k", "first_run", "runs", "down", "first_tile", "tiles", "stride")
SCALES: Final = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
"""Where the 16-bit numbers of a block lie, if that is not its beginning alone."""
SPECIAL: Final = (
    0x0000,
    0x8000,
    0x0001,
    0x83FF,
    0x0400,
    0x0C80,
    0x8C7F,
    0x7BFF,
    0x7C00,
    0xFC00,
    0x7E00,
    0xFD01,
    0x7F80,
    0xFFC1,
)
"""Zeros, subnormals of fp16, bf16 on both sides of the canonical threshold, the largest fp16; then infinities and NaNs
of both."""
FINITE: Final = 7
SIZES: Final = ((1, 1, 1), (2, 3, 5), (3, 9, 33), (8, 17, 17), (17, 2, 31), (33, 8, 3), (0, 2, 4), (1, 0, 5))
"""(m, blocks of 32 or one K block each, n)"""


def packed_product(name: str) -> Kernel:
    """The kernel that multiplies rows of fp32 with rows of weights in a format."""
    form = block_format(name)

    def reference(x: HostArray, weights: HostArray) -> HostArray:
        rows = unpack(name, weights, x.shape[1])
        return canon(contract(x, canon(dequantize(name, rows)).T))

    def plan(call: Call) -> Plan:
        form.row_bytes(call.dims["k"])
        return levels.in_levels(call, multiply)

    def cost(call: Call) -> Cost:
        m, n, k = (call.dims[dimension] for dimension in ("m", "n", "k"))
        size = call.bytes("x", "weights", "result")
        return Cost(2 * m * n * k, size, len(plan(call).dispatches)) if m * n else Cost()

    length = tile_length(form)
    return Kernel(
        summary=f"x times the transpose of weights stored in {name}",
        inputs=(
            Operand("x", shape=("m", "k")),
            Operand("weights", "u32", (f"k/{length}", tile_words(form), "n")),
        ),
        outputs=(Operand("result", shape=("m", "n")),),
        shaders={**{f"rows_{rows}": _shader(rows) for rows in TEAMS}, "fold": levels.FOLD},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=_cases(form),
        bench=(product_case(form, (1, 4096, 4096)),),
        dtypes=("f32",),
    )


def _shader(rows: int) -> Shader:
    columns, teams = TEAMS[rows]
    constants = {"ROWS": rows, "COLUMNS": columns, "TEAMS": teams}
    return Shader(
        (Binding("x"), Binding("weights", "u32"), Binding("result", access="readwrite")),
        tuple(Scalar(number, "u32") for number in NUMBERS) + levels.FLAGS,
        local=(columns * teams, 1, 1),
        includes=("portable.glsl", "halves.glsl"),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude="".join(f"const uint {name} = {value}u;\n" for name, value in constants.items()),
    )


def multiply(call: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number]) -> Iterator[Dispatch]:
    """Dispatches that add the products over k from reach[0] to reach[1] to `target`, in the order tree64."""
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    rows = 1 if m == 1 else 8
    columns, teams = TEAMS[rows]
    down = ceil_div(m, rows)
    runs = (reach[0] // RUN, ceil_div(reach[1], RUN))
    held = ceil_div(rows * columns, columns * teams)
    trips = 1 + ceil_div(runs[1] - runs[0], teams) * (1 + RUN // 8 + held * teams)
    numbers = {"m": m, "n": n, "k": k, "first_run": runs[0], "runs": runs[1], "down": down, **flags}
    for share in split_work(down * ceil_div(n, columns), trips, call.limits):
        place = {"first_tile": share.first, "tiles": share.beyond, "stride": share.groups}
        buffers = ("x", "weights", target)
        yield Dispatch(f"rows_{rows}", buffers, {**numbers, **place}, (share.groups, 1, 1), share.trips)


def random_blocks(form: BlockFormat, rng: np.random.Generator, n: int, k: int) -> HostArray:
    """Bytes of n rows of k weights: any codes; 16-bit scales (or numbers) of ordinary size and, one in eight, special
    ones: finite ones in even rows, whose products then are numbers, any in odd rows."""
    size = form.row_bytes(k)
    blocks: npt.NDArray[np.uint8] = (
        np.frombuffer(rng.bytes(n * size), np.uint8).reshape(n, size // form.size, form.size).copy()
    )
    for place in SCALES.get(form.name, (0,)):
        ordinary: npt.NDArray[np.float32] = (rng.standard_normal(blocks.shape[:2]) * 0.05).astype(np.float32)
        words: Words16 = narrow_bf16(ordinary) if form.name == "BF16" else ordinary.astype(np.float16).view(np.uint16)
        special: Words16 = rng.choice(np.array(SPECIAL, np.uint16), words.shape)
        special[::2] = rng.choice(np.array(SPECIAL[:FINITE], np.uint16), special[::2].shape)
        chosen: Words16 = np.where(rng.random(words.shape) < 0.125, special, words).astype("<u2")
        blocks[:, :, place : place + 2] = chosen.view(np.uint8).reshape(*words.shape, 2)
    return blocks.reshape(n, size)


def _cases(form: BlockFormat) -> tuple[Case, ...]:
    unit = max(32, form.length)
    sizes = [(m, blocks * unit if unit == 32 else ceil_div(blocks, 4) * unit, n) for m, blocks, n in SIZES]
    sizes += [(2, 4096 + unit, 3), (1, 64 * 4096 + unit, 1)]
    if form.length == 1:
        sizes += [(1, 1, 3), (3, 67, 5), (2, 255, 2)]
    return tuple(product_case(form, size) for size in sizes)


def product_case(form: BlockFormat, size: tuple[int, int, int]) -> Case:
    """x (m, k) with n rows of random weights; `size` is (m, k, n)."""
    m, k, n = size
    shape = (ceil_div(k, tile_length(form)), tile_words(form), n)
    return Case({"x": (m, k), "weights": shape}, fill={"weights": _fill(form, k)})


def _fill(form: BlockFormat, k: int) -> Fill:
    def fill(rng: np.random.Generator, shape: Shape) -> HostArray:
        # Benchmarks make cases smaller where a device is slow.
        length = min(k, shape[0] * tile_length(form))
        return repack(form.name, random_blocks(form, rng, shape[2], length))

    return fill
