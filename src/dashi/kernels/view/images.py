"""Images on the host: pixels to and from channels, colour tables, the weights of a fade, bytes as words."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels.portable._bits import mul

Words = npt.NDArray[np.uint32]
_STOPS: Final = ((0, 0, 0), (176, 0, 32), (255, 160, 0), (255, 255, 255))


def pack(channels: npt.ArrayLike) -> Words:
    """Bytes (..., 4) in the order R, G, B, A as pixels (...). matplotlib's maps give such bytes:
    `pack(matplotlib.colormaps["viridis"](range(256), bytes=True))` is a table for `colour_map`."""
    array = np.asarray(channels)
    if array.dtype != np.uint8 or array.ndim < 1 or array.shape[-1] != 4:
        raise InputError(
            f"pixels are made of uint8 channels of shape (..., 4), not {array.dtype} of shape {array.shape}.",
            "pass R, G, B and A as bytes.",
        )
    return np.ascontiguousarray(array).view("<u4")[..., 0].astype(np.uint32)


def unpack(pixels: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Pixels (...) as bytes (..., 4) in the order R, G, B, A."""
    words = np.asarray(pixels)
    if words.dtype != np.uint32:
        raise InputError(f"pixels are uint32 words, not {words.dtype}.", "pass the image as a kernel made it.")
    return np.ascontiguousarray(words[..., None].astype("<u4")).view(np.uint8)


def heat() -> Words:
    """A table of 256 colours that rises in brightness: black, red, orange, white."""
    level = np.arange(256)
    part, within = level // 85, level % 85
    stops = np.array((*_STOPS, _STOPS[-1]))
    rgb = ((85 - within)[:, None] * stops[part] + within[:, None] * stops[part + 1] + 42) // 85
    return pack(np.concatenate([rgb, np.full((256, 1), 255)], axis=1).astype(np.uint8))


def fade(factor: float, ages: int) -> Words:
    """Weights for `sheet_expand_fade`: 256 factor^age, rounded, for ages 0, 1, ...; the powers by repeated fp32
    multiplication, each product rounded, so that they never rise and are the same on every machine."""
    if not 0 <= factor <= 1:
        raise InputError(f"a fade by the factor {factor} would not fade.", "pass a factor from 0 to 1.")
    step: Any = np.float32(factor)
    power: Any = np.float32(1)
    weights = np.zeros(ages, np.uint32)
    for age in range(ages):
        weights[age] = int(power * np.float32(256) + np.float32(0.5))
        power = mul(power, step)
    return weights


def words(data: npt.ArrayLike) -> Words:
    """Bytes of any shape, in order, four to a word, the first lowest; zeros fill the last. NV12 planes go in so."""
    array = np.asarray(data)
    if array.dtype != np.uint8:
        raise InputError(f"bytes are uint8, not {array.dtype}.", "convert with .astype(np.uint8).")
    flat = array.reshape(-1)
    return np.concatenate([flat, np.zeros(-flat.size % 4, np.uint8)]).view("<u4").astype(np.uint32)
