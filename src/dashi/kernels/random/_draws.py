"""Random numbers by name, in fp32: Philox for the key (seed), and the counter (index / 4, position, request, stream).

The control words of a row are (seed low, seed high, request, position); the index counts in the row. So a number
depends neither on other rows, nor on how many are drawn, nor on the device. Of the four words of a counter, number i
takes word i % 4; Gaussian numbers come in pairs, from two words each (G. Box and M. Muller, doi
10.1214/aoms/1177706645). The twin is _include/draws.glsl.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.kernels._philox import philox, unit
from dashi.kernels.abi import Scalar
from dashi.kernels.portable import canon, cos, log, mul, sin, sqrt
from dashi.types import HostArray, Shape

KINDS: Final = ("uniform", "normal", "gumbel")
"""Kinds of numbers by their place: from 0 up to, but without, 1; Gaussian; Gumbel's, -log(-log(u))."""
STREAM: Final = Scalar("stream", "u32", 0, "numbers of other streams are others")
TRIPS: Final = 10
"""Loop iterations of a draw."""
_STEP: Final = np.float32(2.0**-23)


def draws(keys: HostArray, count: int, stream: int, kind: str) -> npt.NDArray[Any]:
    """Numbers (rows, count) for control words (rows, 4)."""
    index = np.arange(count, dtype=np.int64)
    low, high, request, position = (keys[:, k : k + 1].astype(np.int64) for k in range(4))
    four = np.stack(philox((index // 4, position, request, stream), (low, high)), axis=-1)
    if kind == "normal":
        pair = index % 4 // 2 * 2
        size = sqrt(canon(mul(np.float32(-2), log(_inside(_word(four, pair))))))
        angle = mul(np.float32(2 * np.pi), unit(_word(four, pair + 1), np.float32))
        return canon(mul(size, np.where(index % 2 == 0, cos(angle), sin(angle))))
    words = _word(four, index % 4)
    return unit(words, np.float32) if kind == "uniform" else canon(-log(canon(-log(_inside(words)))))


def _word(four: npt.NDArray[Any], place: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.take_along_axis(four, np.broadcast_to(place[None, :, None], (*four.shape[:2], 1)), axis=2)[..., 0]


def _inside(words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers between 0 and 1 without either: the middles of 2^23 equal parts."""
    return ((words >> np.uint32(9)).astype(np.float32) + np.float32(0.5)) * _STEP


def control_words(rng: np.random.Generator, shape: Shape) -> HostArray:
    """Any control words, for cases."""
    return rng.integers(0, 1 << 32, shape, dtype=np.uint32)
