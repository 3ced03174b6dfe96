"""sheet_expand_fade: a record of band energies over time as an image: the newest row on top, older rows fading.

Time step t fills the top `rows` rows of pixels, step t - 1 the next, and so on; band j of the sheet's bands fills the
columns x with x bands // w = j. A step of age k has its colours (as `colour_map` gives them) times weights[k] / 256,
rounded; steps that the sheet or the weights do not have are black. `dashi.kernels.view.images.fade` makes the weights.
"""

from dataclasses import replace

import numpy as np

from dashi.errors import InputError, LimitError
from dashi.kernels._raster import LOCAL, PUSH, SPEC, TUNINGS, blocks
from dashi.kernels.abi import Binding, Call, Case, Kernel, Number, Operand, Plan, Scalar, Shader, StreamDefaults
from dashi.kernels.view._pixels import LEVELS, NAN_PIXEL, OPAQUE, RANGE, level_push, levels
from dashi.kernels.view.images import fade
from dashi.types import Cost, HostArray, Shape

NAME = "sheet_expand_fade"
QUAD = 4
"""Columns at once, where they come in fours."""


def reference(
    sheet: HostArray, table: HostArray, weights: HostArray, h: int, w: int, t: int, rows: int, lo: float, hi: float
) -> HostArray:
    steps, bands = sheet.shape
    pixels = np.full((h, w), OPAQUE, np.uint32)
    age = np.arange(h, dtype=np.int64) // max(rows, 1)
    shown = (age < weights.size) & (age <= t) & (t - age < steps)
    if bands == 0 or not shown.any():
        return pixels
    colours = np.where(np.isnan(sheet), np.uint32(NAN_PIXEL), table[levels(NAME, sheet, lo, hi)])
    spread = colours[:, np.arange(w, dtype=np.int64) * bands // w][t - age[shown]]
    factor = np.minimum(weights[age[shown]], 256)[:, None]
    for shift in (np.uint32(0), np.uint32(8), np.uint32(16)):
        pixels[shown] |= ((spread >> shift & np.uint32(255)) * factor + np.uint32(128) >> np.uint32(8)) << shift
    return pixels


def plan(call: Call) -> Plan:
    h, w, bands = call.dims["h"], call.dims["w"], call.dims["bands"]
    if call.scalars["rows"] < 1:
        raise InputError(f"kernel {NAME!r}: a step of 0 rows of pixels cannot be seen.", "pass rows >= 1.")
    if w * bands >= 1 << 32:
        raise LimitError(f"kernel {NAME!r}: {bands} bands on {w} columns are too many.", "pass fewer of either.")
    numbers: dict[str, Number] = level_push(NAME, call.dtype, call.scalars)
    if h * w == 0:
        return Plan(())
    numbers |= {"t": call.scalars["t"], "rows": call.scalars["rows"], "ages": call.dims["ages"], "bands": bands}
    numbers["steps"] = call.dims["steps"] if bands else 0
    wide = QUAD if w % QUAD == 0 else 1
    numbers |= {"dx": bands // w, "rest": bands % w}
    shared = blocks(call, h, w // wide)
    made = shared.dispatch(("sheet", "table", "weights", "result"), numbers)
    # The bands of a quad are one more loop, of three.
    return Plan((replace(made, shader="quads" if wide == QUAD else "main", trips=2 * made.trips),))


def drawing(wide: int, element: str) -> Shader:
    """The shader for so many columns at once."""
    own = ("t", "rows", "ages", "steps", "bands", "dx", "rest")
    return Shader(
        (Binding("sheet"), Binding("table", "u32"), Binding("weights", "u32"), Binding("result", element, "write")),
        (Scalar("lo"), Scalar("scale"), *PUSH, *(Scalar(name, "u32") for name in own)),
        (SPEC,),
        local=LOCAL,
        includes=("portable.glsl", "levels.glsl"),
        extensions=("GL_EXT_control_flow_attributes",),
        prelude=f"#define WIDE {wide}\n",
    )


def cost(call: Call) -> Cost:
    """Reads the rows of the sheet that show, the table and as many weights; writes the image."""
    h, w, t = call.dims["h"], call.dims["w"], int(call.scalars["t"])
    if h * w == 0:
        return Cost()
    ages = min(-(-h // int(call.scalars["rows"])), call.dims["ages"], t + 1)
    visible = max(0, ages - max(0, t + 1 - call.dims["steps"]))
    used = min(call.dims["bands"], w)
    read = visible * used * call.dtype.size + 4 * visible + 4 * LEVELS * (visible > 0)
    return Cost(flops=3 * visible * used, bytes=read + 4 * h * w, dispatches=1)


def any_colours(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(0, 1 << 32, shape, dtype=np.uint32)


def any_weights(rng: np.random.Generator, shape: Shape) -> HostArray:
    return rng.integers(0, 300, shape, dtype=np.uint32)


def case(
    steps: int, bands: int, ages: int, h: int, w: int, t: int, rows: int, lo: float = -1.0, hi: float = 1.0
) -> Case:
    shapes = {"sheet": (steps, bands), "table": (LEVELS,), "weights": (ages,)}
    numbers = {"h": h, "w": w, "t": t, "rows": rows, "lo": lo, "hi": hi}
    return Case(shapes, numbers, {"table": any_colours, "weights": any_weights})


def bench_case(side: int) -> Case:
    made = case(side // 4, 64, side // 4, side, side, side // 4 - 1, 4)
    return Case(made.shapes, made.scalars, {"table": any_colours, "weights": lambda _, s: fade(0.995, s[0])})


KERNEL = Kernel(
    summary="a sheet of band energies over time as an RGBA8 image, newest row on top, older rows fading",
    inputs=(
        Operand("sheet", shape=("steps", "bands")),
        Operand("table", "u32", (LEVELS,)),
        Operand("weights", "u32", ("ages",)),
    ),
    outputs=(Operand("result", "u32", ("h", "w")),),
    shaders={"main": drawing(1, "u32"), "quads": drawing(QUAD, "u32x4")},
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(1, 1, 1, 1, 1, 0, 1), case(20, 8, 20, 64, 32, 19, 4), case(20, 8, 9, 65, 33, 7, 3),
        case(5, 40, 100, 63, 31, 9, 7, 0.0, 4.0), case(3, 100, 8, 9, 65, 2, 1), case(7, 3, 0, 8, 8, 6, 2),
        case(0, 3, 4, 8, 8, 0, 2), case(4, 0, 4, 8, 8, 3, 2), case(4, 3, 4, 0, 8, 3, 2), case(4, 3, 4, 7, 5, 900, 2),
        case(70, 16, 70, 257, 255, 69, 5, -3.0, 3.0), case(9, 100, 9, 70, 36, 8, 5), case(9, 7, 9, 70, 132, 8, 3),
    ),
    bench=(bench_case(4096),),
    scalars=(
        Scalar("h", "u32", doc="rows of the image"),
        Scalar("w", "u32", doc="columns of the image"),
        Scalar("t", "u32", doc="the step on top"),
        Scalar("rows", "u32", 1, "rows of pixels per step"),
        *RANGE,
    ),
    tunings=TUNINGS,
    stream=StreamDefaults(io_class="OBSERVER"),
)  # fmt: skip
