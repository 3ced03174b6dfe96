"""Products x W^T with packed weights: the kernel of a format, and its dispatches of `_include/packed_rows.glsl`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.kernels._float16 import narrow_bf16
from dashi.kernels._work import RUN, ceil_div, next_power_of_two, split_work
from dashi.kernels.abi import (
    Binding,
    Call,
    Case,
    Dispatch,
    Fill,
    Kernel,
    Limits,
    Number,
    Operand,
    Plan,
    Scalar,
    Shader,
    Spec,
)
from dashi.kernels.linear import _tiles as levels
from dashi.kernels.packed._block_format import BlockFormat
from dashi.kernels.packed._formats import block_format, dequantize
from dashi.kernels.packed._tiles import head_place, repack, tile_length, tile_shape, tile_words, unpack
from dashi.kernels.portable import canon, contract
from dashi.types import Cost, HostArray, Shape

Words16 = npt.NDArray[np.uint16]

NUMBERS: Final = ("m", "n", "k", "first_head", "first_run", "runs", "down", "first_tile", "tiles", "stride")
FITTED: Final = {"columns": 16, "teams": 32, "many_columns": 32, "many_teams": 8, "least_rows": 4, "most_rows": 16}
_SHAPES: Final = (((16, 32), (32, 8)), ((8, 32), (16, 16)))
TUNINGS: Final[dict[str, dict[str, int]]] = {
    **{f"{a}x{b}_{c}x{d}": {**FITTED, "columns": a, "teams": b, "many_columns": c, "many_teams": d}
       for (a, b), (c, d) in _SHAPES},
    "software": {"columns": 64, "teams": 1, "many_columns": 64, "many_teams": 1, "least_rows": 8, "most_rows": 8},
}  # fmt: skip
"""For one row of x, and for several: how many rows of W a workgroup has, and how many runs of 64 are under way; and
between how many rows of x a workgroup has, where there are several."""
SOFTWARE: Final = "software"
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
        return levels.in_levels(call, partial(multiply, form))

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
        shaders={**_shaders(form), "fold": levels.FOLD},
        plan=plan,
        reference=reference,
        cost=cost,
        cases=_cases(form),
        bench=(product_case(form, (1, 4096, 4096)),),
        dtypes=("f32",),
        tunings=TUNINGS if form.length > 1 else {name: TUNINGS[name] for name in (next(iter(TUNINGS)), SOFTWARE)},
        prefer=prefer,
    )


def prefer(limits: Limits, variant: str) -> str:
    """The tuning for a device, as far as it was tried."""
    return SOFTWARE if limits.software else next(iter(TUNINGS))


def _shaders(form: BlockFormat) -> dict[str, Shader]:
    """For one row of x and for several; rows of any length have a shader where the format allows them."""
    listed = {"row": row_shader(form, 1, 4), "rows": row_shader(form, 2, 4)}
    if form.length == 1:
        listed |= {"row_any": row_shader(form, 1, 1), "rows_any": row_shader(form, 2, 1)}
    return listed


def row_shader(form: BlockFormat, rows: int, lanes: int) -> Shader:
    """The shader for one row of x in a workgroup, or for several; for rows of whole vectors of 16 bytes (`lanes` 4), or
    for any."""
    heads = (Binding("heads", "u32"),) if tile_words(form) % 4 else ()
    constants = {"X_LANES": str(lanes), "QUADS": "16u" if rows == 1 else "8u"} | ({"ROWS": "1u"} if rows == 1 else {})
    return Shader(
        (
            Binding("x", "V" if lanes > 1 else "T"),
            Binding("weights", "u32x4"),
            *heads,
            Binding("result", access="readwrite"),
        ),
        tuple(Scalar(number, "u32") for number in NUMBERS) + levels.FLAGS,
        (Spec("LANES", 64), Spec("COLUMNS", 8), *(() if rows == 1 else (Spec("ROWS", 4),))),
        local=("LANES", 1, 1),
        includes=("portable.glsl", "halves.glsl"),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude="".join(f"#define {name} {value}\n" for name, value in constants.items()),
    )


@dataclass(frozen=True)
class PackedGroup:
    """A workgroup: its rows of x and of W, and the runs of 64 that are under way at a time."""

    rows: int
    columns: int
    teams: int

    @property
    def lanes(self) -> int:
        return self.columns * self.teams

    @property
    def shared_bytes(self) -> int:
        """Staged parts of x, sums of runs, and flags."""
        quads = 16 if self.rows == 1 else 8
        return self.rows * self.teams * ((quads + 1) * 16 + self.columns * 4) + 8


def shape_for(call: Call, m: int, runs: int) -> PackedGroup:
    """The workgroup for m rows of x and so many runs, as large as the device allows."""
    numbers = {**FITTED, **call.tuning}
    rows = min(max(next_power_of_two(m), numbers["least_rows"]), numbers["most_rows"]) if m > 1 else 1
    prefix = "" if rows == 1 else "many_"
    # A processor gains nothing by fewer teams, and has to compile the shader for each number of them.
    teams = (
        numbers[f"{prefix}teams"] if call.limits.software else min(numbers[f"{prefix}teams"], next_power_of_two(runs))
    )
    shape = PackedGroup(rows, numbers[f"{prefix}columns"], teams)
    while shape.teams > 1 and (shape.lanes > call.limits.invocations or shape.shared_bytes > call.limits.shared_bytes):
        shape = replace(shape, teams=shape.teams // 2)
    return shape


def multiply(
    form: BlockFormat, call: Call, reach: tuple[int, int], target: str, flags: Mapping[str, Number]
) -> Iterator[Dispatch]:
    """Dispatches that add the products over k from reach[0] to reach[1] to `target`, in the order tree64."""
    m, n, k = (call.dims[name] for name in ("m", "n", "k"))
    runs = (reach[0] // RUN, ceil_div(reach[1], RUN))
    shape = shape_for(call, m, runs[1] - runs[0])
    numbers: dict[str, Number] = {"m": m, "n": n, "k": k, "first_head": head_place(form, k, n), **flags}
    heads = ("weights",) if tile_words(form) % 4 else ()
    yield from dispatches(call, shape, runs, numbers, ("x", "weights", *heads, target))


def dispatches(
    call: Call, shape: PackedGroup, runs: tuple[int, int], numbers: Mapping[str, Number], buffers: tuple[str, ...]
) -> Iterator[Dispatch]:
    """The dispatches of one shape of workgroup over some runs of k; `numbers` has the sizes m, n and k."""
    m, n, k = (int(numbers[name]) for name in ("m", "n", "k"))
    down = ceil_div(m, shape.rows)
    results = ceil_div(shape.rows * shape.columns, shape.lanes)
    # A run, its stages, its eights of weights where products are flushed, and sums of runs, stored and added by eights.
    each = 1 + (1 if shape.rows == 1 else 2) + RUN // 8 + shape.rows + results * ceil_div(shape.teams, 8)
    trips = 1 + ceil_div(runs[1] - runs[0], shape.teams) * each
    numbers = {**numbers, "down": down, "first_run": runs[0], "runs": runs[1]}
    spec = {"LANES": shape.lanes, "COLUMNS": shape.columns} | ({} if shape.rows == 1 else {"ROWS": shape.rows})
    shader = ("row" if shape.rows == 1 else "rows") + ("" if k % 4 == 0 else "_any")
    for share in split_work(down * ceil_div(n, shape.columns), trips, call.limits):
        place = {"first_tile": share.first, "tiles": share.beyond, "stride": share.groups}
        yield Dispatch(shader, buffers, {**numbers, **place}, (share.groups, 1, 1), share.trips, spec)


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
    return Case({"x": (m, k), "weights": tile_shape(form, k, n)}, fill={"weights": _fill(form, k)})


def _fill(form: BlockFormat, k: int) -> Fill:
    def fill(rng: np.random.Generator, shape: Shape) -> HostArray:
        # Benchmarks make cases smaller where a device is slow.
        length = min(k, shape[0] * tile_length(form))
        return repack(form.name, random_blocks(form, rng, shape[2], length))

    return fill
