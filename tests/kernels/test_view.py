"""What the viewing kernels promise beyond agreeing with their references."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dashi import kernels
from dashi.errors import InputError, ShapeError
from dashi.kernels.view.images import fade, heat, pack, unpack, words
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

GREYS = pack(np.stack([*[np.arange(256)] * 3, np.full(256, 255)], axis=-1).astype(np.uint8))
MAGENTA = [255, 0, 255, 255]
FLOATS = pytest.mark.parametrize("kind", [np.float32, np.float64])


@FLOATS
def test_values_become_the_nearest_grey_and_nan_a_colour(device: Device, kind: type) -> None:
    values = [-math.inf, -1, 0, 0.25, 0.5, 1.49, 1.5, 254.49, 254.5, 255, 256, 3e38, math.inf, math.nan]
    greys = [0, 0, 0, 0, 1, 1, 2, 254, 255, 255, 255, 255, 255]
    image = unpack(device.run("write_image", np.array([values], kind), lo=0, hi=255).numpy())[0]
    assert image[:-1].tolist() == [[g, g, g, 255] for g in greys]
    assert image[-1].tolist() == MAGENTA


def test_lo_is_black_and_hi_is_white_for_any_range(device: Device) -> None:
    for lo, hi in ((0.1, 0.7), (-3e10, 1e5), (1e-30, 3e-30), (1.0, 1.0000001)):
        image = unpack(device.run("write_image", np.array([[lo, hi]], np.float32), lo=lo, hi=hi).numpy())
        assert image[0, :, 0].tolist() == [0, 255]


def test_a_constant_field_has_one_colour(device: Device) -> None:
    image = device.run("colour_map", np.full((33, 17), 0.3, np.float32), heat(), lo=0, hi=1).numpy()
    assert np.unique(image).tolist() == [heat()[77]]  # 0.3 * 255 = 76.5


def test_a_table_of_greys_gives_the_grey_image(device: Device) -> None:
    x = np.random.default_rng(0).standard_normal((20, 31)).astype(np.float32)
    x[3, 4] = math.nan
    grey, mapped = device.run("write_image", x, lo=-2, hi=2), device.run("colour_map", x, GREYS, lo=-2, hi=2)
    assert grey.numpy().tobytes() == mapped.numpy().tobytes()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_images_of_any_shape_and_bits_agree(
    vulkan: VulkanDevice, h: int, w: int, seed: int, lo: float, span: float
) -> None:
    bits = np.random.default_rng(seed).integers(0, 1 << 32, (h, w), dtype=np.uint32)
    limits: dict[str, Any] = {"lo": float(np.float32(lo)), "hi": float(np.float32(lo + span))}
    expected = np.asarray(kernels.get("colour_map").reference(bits.view(np.float32), heat(), **limits))
    assert vulkan.run("colour_map", bits.view(np.float32), heat(), **limits).numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["write_image", "colour_map"])
def test_a_range_without_levels_is_refused(device: Device, name: str) -> None:
    arrays = [np.zeros((2, 2), np.float32), GREYS][: 1 + (name == "colour_map")]
    for lo, hi in ((1, 1), (2, 1), (0, math.inf), (math.nan, 1), (0, 2.0**101), (0, 2.0**-101)):
        with pytest.raises(InputError, match=r"Fix: pass finite numbers, lo below hi, 2\^-100 to 2\^100 apart\."):
            device.run(name, *arrays, lo=lo, hi=hi)


def test_the_difference_of_images_is_taken_by_channel_and_opaque(device: Device) -> None:
    a, b = (np.random.default_rng(s).integers(0, 256, (7, 9, 4), dtype=np.uint8) for s in (1, 2))
    got = unpack(device.run("image_diff", pack(a), pack(b)).numpy())
    assert (got[..., :3] == np.abs(a.astype(int) - b)[..., :3]).all()
    assert (got[..., 3] == 255).all()
    assert np.unique(device.run("image_diff", pack(a), pack(a)).numpy()).tolist() == [0xFF000000]


def shown(device: Device, sheet: HostArray, weights: HostArray, **numbers: Any) -> NDArray[np.uint8]:
    return unpack(device.run("sheet_expand_fade", sheet, GREYS, weights, **{"lo": 0, "hi": 1, **numbers}).numpy())


def test_steps_and_bands_expand_newest_on_top(device: Device) -> None:
    sheet = np.arange(6, dtype=np.float32).reshape(3, 2)
    image = shown(device, sheet, fade(1.0, 9), h=8, w=6, t=1, rows=3, hi=255)
    assert image[..., 0].tolist() == [[2] * 3 + [3] * 3] * 3 + [[0] * 3 + [1] * 3] * 3 + [[0] * 6] * 2
    assert (image[..., 3] == 255).all()


def test_more_bands_than_columns_are_thinned(device: Device) -> None:
    sheet = np.arange(10, dtype=np.float32)[None]
    image = shown(device, sheet, fade(1.0, 1), h=1, w=4, t=0, rows=1, hi=255)
    assert image[0, :, 0].tolist() == [0, 2, 5, 7]


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.9, 0.999999, 1.0])
def test_older_steps_are_never_brighter(device: Device, factor: float) -> None:
    image = shown(device, np.ones((50, 1), np.float32), fade(factor, 50), h=100, w=3, t=49, rows=2)
    levels = image[:, 0, 0].astype(int)
    assert levels[0] == levels[1] == 255
    assert (np.diff(levels) <= 0).all()
    assert abs(levels[20] - 255 * factor**10) <= 1  # half a unit of 256, and half a level


def test_the_fade_takes_off_a_constant_factor_per_step() -> None:
    assert fade(0.5, 11).tolist() == [256, 128, 64, 32, 16, 8, 4, 2, 1, 1, 0]
    assert fade(1.0, 3).tolist() == [256] * 3
    assert fade(0.3, 0).size == 0
    for factor in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError) as caught:
            fade(factor, 3)
        assert str(caught.value) == f"a fade by the factor {factor} would not fade. Fix: pass a factor from 0 to 1."


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.tuples(st.integers(0, 9), st.integers(0, 9)), st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.integers(0, 12), st.integers(0, 12), st.integers(1, 50),
)  # fmt: skip
def test_sheets_of_any_shape_agree(
    vulkan: VulkanDevice, shape: tuple[int, int], size: tuple[int, int], ages: int, t: int, rows: int
) -> None:
    sheet = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    numbers = {"h": size[0], "w": size[1], "t": t, "rows": rows, "lo": -1.0, "hi": 1.0}
    expected = np.asarray(kernels.get("sheet_expand_fade").reference(sheet, heat(), fade(0.8, ages), **numbers))
    got = vulkan.run("sheet_expand_fade", sheet, heat(), fade(0.8, ages), **numbers).numpy()
    assert got.tobytes() == expected.tobytes()


def test_a_step_of_no_rows_is_refused(device: Device) -> None:
    with pytest.raises(InputError) as caught:
        shown(device, np.zeros((1, 1), np.float32), fade(1, 1), h=1, w=1, t=0, rows=0)
    assert str(caught.value) == (
        "kernel 'sheet_expand_fade': a step of 0 rows of pixels cannot be seen. Fix: pass rows >= 1."
    )


LUMA = {601: (0.299, 0.114), 709: (0.2126, 0.0722)}
PRIMARIES = [
    (255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (0, 255, 255), (255, 0, 255),
    (128, 128, 128),
]  # fmt: skip


def to_yuv(rgb: tuple[int, ...], standard: int) -> tuple[int, int, int]:
    """ITU-R BT.601 and BT.709: the bytes that a colour is coded as."""
    kr, kb = LUMA[standard]
    r, g, b = (c / 255 for c in rgb)
    y = kr * r + (1 - kr - kb) * g + kb * b
    return round(16 + 219 * y), round(128 + 112 * (b - y) / (1 - kb)), round(128 + 112 * (r - y) / (1 - kr))


def from_yuv(y: HostArray, u: HostArray, v: HostArray, standard: int) -> NDArray[np.float64]:
    """The exact inverse, in fp64, not rounded."""
    kr, kb = LUMA[standard]
    light = (y.astype(float) - 16) / 219
    red = light + (1 - kr) * (v.astype(float) - 128) / 112
    blue = light + (1 - kb) * (u.astype(float) - 128) / 112
    green = (light - kr * red - kb * blue) / (1 - kr - kb)
    return np.clip(255 * np.stack([red, green, blue], axis=-1), 0, 255)


def frame(device: Device, y: HostArray, uv: HostArray, standard: int) -> NDArray[np.uint8]:
    h, w = y.shape
    return unpack(device.run("nv12_to_rgba", words(y), words(uv), h=h, w=w, standard=standard).numpy())


@pytest.mark.parametrize("standard", [601, 709])
def test_known_colours_come_back_within_the_rounding_of_the_code(device: Device, standard: int) -> None:
    for rgb in PRIMARIES:
        y, u, v = to_yuv(rgb, standard)
        image = frame(device, np.full((2, 2), y, np.uint8), np.array([[[u, v]]], np.uint8), standard)
        # A code is off by half a unit in Y and in U or V: 255/224 (1/2 + 2 (1 - kb) / 2) is below 2.
        assert np.abs(image[..., :3].astype(int) - rgb).max() <= 2
        assert (image[..., 3] == 255).all()
    assert frame(device, np.full((2, 2), 235, np.uint8), np.full((1, 1, 2), 128, np.uint8), standard).min() == 255
    black = frame(device, np.full((2, 2), 16, np.uint8), np.full((1, 1, 2), 128, np.uint8), standard)
    assert black[0, 0].tolist() == [0, 0, 0, 255]


@pytest.mark.parametrize("standard", [601, 709])
def test_every_code_is_decoded_to_the_nearest_level_but_for_the_factors_rounding(standard: int) -> None:
    y, u, v = np.meshgrid(np.arange(0, 256, 3), np.arange(0, 256, 5), np.arange(256), indexing="ij")
    luma = np.repeat(y.reshape(-1), 4).astype(np.uint8).reshape(-1, 2, 2).transpose(1, 0, 2).reshape(2, -1)
    chroma = np.stack([u.reshape(-1), v.reshape(-1)], axis=-1).astype(np.uint8)[None]
    reference = kernels.get("nv12_to_rgba").reference
    image = unpack(np.asarray(reference(words(luma), words(chroma), h=2, w=luma.shape[1], standard=standard)))
    exact = from_yuv(y, u, v, standard).reshape(-1, 3)
    # Three factors, each half a unit of 2^-16 off, times at most 239, 128 and 128.
    assert np.abs(image[0, ::2, :3] - exact).max() <= 0.5 + (239 + 128 + 128) / 2 / 65536


@pytest.mark.parametrize("w", [6, 8])
def test_four_pixels_share_a_colour(device: Device, w: int) -> None:
    rng = np.random.default_rng(3)
    y, uv = rng.integers(0, 256, (4, w), dtype=np.uint8), rng.integers(0, 256, (2, w // 2, 2), dtype=np.uint8)
    image = frame(device, y, uv, 601)
    u, v = (uv[..., k].repeat(2, axis=0).repeat(2, axis=1) for k in (0, 1))
    assert np.abs(image[..., :3] - from_yuv(y, u, v, 601)).max() <= 0.51


def test_nv12_says_what_does_not_fit(device: Device) -> None:
    y, uv = np.zeros(4, np.uint32), np.zeros(2, np.uint32)
    with pytest.raises(ShapeError) as odd:
        device.run("nv12_to_rgba", y, uv, h=3, w=4)
    assert str(odd.value) == "kernel 'nv12_to_rgba': 3 x 4 pixels cannot share colours by fours. Fix: make both even."
    with pytest.raises(ShapeError) as short:
        device.run("nv12_to_rgba", y, uv, h=4, w=8)
    assert str(short.value) == (
        "kernel 'nv12_to_rgba': luma of 4 x 8 pixels is 32 bytes, 4 words given. "
        "Fix: pass 8 words; dashi.kernels.view.images.words makes them from bytes."
    )
    with pytest.raises(InputError) as unknown:
        device.run("nv12_to_rgba", y, uv, h=4, w=4, standard=2020)
    assert str(unknown.value) == "kernel 'nv12_to_rgba' knows no standard 2020. Fix: pass standard=601 or 709."


def test_pixels_are_channels_from_the_lowest_byte_up() -> None:
    assert hex(int(pack(np.array([0x11, 0x22, 0x33, 0x44], np.uint8)))) == "0x44332211"
    channels = np.random.default_rng(4).integers(0, 256, (3, 5, 4), dtype=np.uint8)
    assert unpack(pack(channels)).tobytes() == channels.tobytes()
    assert unpack(pack(channels[:, ::2])).tobytes() == channels[:, ::2].tobytes()
    assert words(np.arange(5, dtype=np.uint8)).tolist() == [0x03020100, 4]


def test_images_say_what_they_cannot_be_made_of() -> None:
    with pytest.raises(InputError) as channels:
        pack(np.zeros((2, 3), np.uint8))
    assert str(channels.value) == (
        "pixels are made of uint8 channels of shape (..., 4), not uint8 of shape (2, 3). "
        "Fix: pass R, G, B and A as bytes."
    )
    with pytest.raises(InputError) as pixels:
        unpack(np.zeros(3, np.int64))
    assert str(pixels.value) == "pixels are uint32 words, not int64. Fix: pass the image as a kernel made it."
    with pytest.raises(InputError) as data:
        words(np.zeros(3))
    assert str(data.value) == "bytes are uint8, not float64. Fix: convert with .astype(np.uint8)."


def test_the_built_in_table_rises_in_brightness() -> None:
    rgb = unpack(heat())[:, :3].astype(int)
    assert rgb[0].tolist() == [0, 0, 0]
    assert rgb[255].tolist() == [255, 255, 255]
    assert (np.diff(rgb @ [299, 587, 114]) > 0).all()
