"""nv12_to_rgba: NV12 video frames (BT.601 or BT.709, limited range) as RGBA8 images, in integers.

`luma` holds h w bytes and `chroma` h w / 2, both packed four to a word without gaps between rows (a little-endian view
of the bytes); chroma is U, V for every 2 x 2 pixels. With Y from 16 to 235 and U, V from 16 to 240 about 128 (ITU-R
BT.601-7 and BT.709-6), factors are rounded to 16 fraction bits and channels to the nearest, halves up:

    R = (y_all (Y - 16)                     + v_red (V - 128)   + 2^15) >> 16, limited to 0..255
    G = (y_all (Y - 16) - u_green (U - 128) - v_green (V - 128) + 2^15) >> 16
    B = (y_all (Y - 16) + u_blue (U - 128)                      + 2^15) >> 16
"""

from fractions import Fraction

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Binding, Call, Case, Kernel, Number, Operand, Plan, Scalar, StreamDefaults
from dashi.kernels.view._pixels import OPAQUE, per_pixel, shaders
from dashi.types import Cost, HostArray

FACTORS = ("y_all", "v_red", "u_green", "v_green", "u_blue")
WEIGHTS = {601: (Fraction("0.299"), Fraction("0.114")), 709: (Fraction("0.2126"), Fraction("0.0722"))}
"""The weights of red and blue in the luma."""


def factors(standard: Number) -> dict[str, int]:
    """The factors of `FACTORS` for a standard, with 16 fraction bits."""
    if standard not in WEIGHTS:
        known = " or ".join(map(str, WEIGHTS))
        raise InputError(f"kernel 'nv12_to_rgba' knows no standard {standard}.", f"pass standard={known}.")
    red, blue = WEIGHTS[int(standard)]
    green = 1 - red - blue
    chroma = Fraction(255, 224) * 65536
    exact = (
        Fraction(255, 219) * 65536, 2 * (1 - red) * chroma, 2 * (1 - blue) * blue / green * chroma,
        2 * (1 - red) * red / green * chroma, 2 * (1 - blue) * chroma,
    )  # fmt: skip
    return {name: round(value) for name, value in zip(FACTORS, exact, strict=True)}


def reference(luma: HostArray, chroma: HostArray, h: int, w: int, standard: int = 709) -> HostArray:
    k = factors(standard)
    y = k["y_all"] * (luma.astype("<u4").view(np.uint8)[: h * w].reshape(h, w).astype(np.int32) - 16)
    pairs = chroma.astype("<u4").view(np.uint8)[: h * w // 2].reshape(h // 2, w // 2, 2).astype(np.int32) - 128
    u, v = np.moveaxis(pairs.repeat(2, axis=0).repeat(2, axis=1), 2, 0)
    sums = y + k["v_red"] * v, y - k["u_green"] * u - k["v_green"] * v, y + k["u_blue"] * u
    red, green, blue = (np.clip((s + 32768) >> 16, 0, 255).astype(np.uint32) for s in sums)
    return np.uint32(OPAQUE) | blue << np.uint32(16) | green << np.uint32(8) | red


def plan(call: Call) -> Plan:
    h, w = call.dims["h"], call.dims["w"]
    if h % 2 or w % 2:
        raise ShapeError(f"kernel 'nv12_to_rgba': {h} x {w} pixels cannot share colours by fours.", "make both even.")
    for name, need in (("luma", h * w), ("chroma", h * w // 2)):
        if call.size(name) != ceil_div(need, 4):
            raise ShapeError(
                f"kernel 'nv12_to_rgba': {name} of {h} x {w} pixels is {need} bytes, {call.size(name)} words given.",
                f"pass {ceil_div(need, 4)} words; dashi.kernels.view.images.words makes them from bytes.",
            )
    numbers: dict[str, Number] = {"w": w, **factors(call.scalars["standard"])}
    return per_pixel(call, ("luma", "chroma", "result"), numbers, quads=w % 4 == 0)


def cost(call: Call) -> Cost:
    n = call.size("result")
    return Cost(bytes=n + n // 2 + 4 * n, dispatches=int(n > 0))


def case(h: int, w: int, standard: int) -> Case:
    return Case({"luma": (h * w // 4,), "chroma": (ceil_div(h * w, 8),)}, {"h": h, "w": w, "standard": standard})


KERNEL = Kernel(
    summary="NV12 frames (BT.601 or BT.709, limited range) as RGBA8 images",
    inputs=(Operand("luma", shape=("luma_words",)), Operand("chroma", shape=("chroma_words",))),
    outputs=(Operand("result", shape=("h", "w")),),
    shaders=shaders(
        (Binding("luma"), Binding("chroma")),
        (Binding("luma"), Binding("chroma")),
        (Scalar("w", "u32"), *(Scalar(name, "i32") for name in FACTORS)),
    ),
    plan=plan,
    reference=reference,
    cost=cost,
    cases=(
        case(2, 2, 601), case(2, 4, 709), case(6, 10, 601), case(16, 64, 709), case(66, 62, 709), case(64, 68, 601),
        case(0, 4, 709), case(4, 0, 601), case(256, 320, 601), case(254, 258, 709),
    ),
    bench=(case(4096, 4096, 709),),
    scalars=(
        Scalar("h", "u32", doc="rows of the image, an even number"),
        Scalar("w", "u32", doc="columns of the image, an even number"),
        Scalar("standard", "u32", 709, "601 or 709: the ITU-R recommendation that made the colours"),
    ),
    dtypes=("u32",),
    tunings={"batch4": {"batch": 4}},
    stream=StreamDefaults(io_class="OBSERVER"),
)  # fmt: skip
