"""Fields with structure of known depth, to learn what a statistic can find: `planted_field`."""

from __future__ import annotations

import math
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from dashi import kernels
from dashi.errors import InputError
from dashi.flow.annihilation.scales import octave_numbers, require_side, scale_count
from dashi.flow.grid import columns, counted, rows, squares, to_field
from dashi.kernels._philox import philox, unit
from dashi.kernels.portable import cos, exp, log, sin, sqrt

Floats = npt.NDArray[Any]
STREAM: Final = 7


def planted_field(
    n: int,
    first: int,
    end: int,
    *,
    seed: int = 0,
    snr: float = 3.0,
    count: int = 8,
    shape: Literal["vortices", "sheets"] = "vortices",
    slope: float = 3.0,
) -> Floats:
    """Vorticity (n, n), float64, that is coherent on the scales from `first` up to, but without, `end`, and noise of
    the same spectrum beyond.

    `count` vortices (or sheets, eight times as long as wide) of either sign have Gaussian profiles of every radius from
    2^-first to 2^-(end - 1) round one place. Their modes on these scales, scaled to the same power everywhere, are
    added to Gaussian noise 1 / `snr` as strong; other modes are noise. Power per mode goes as k^-slope beyond 2^first
    and rises as k^4 before it, so that the integral scale is near 2^first.
    """
    require_side(n)
    if not 1 <= first < end <= scale_count(n):
        raise InputError(f"there are no scales {first} up to {end}.", f"use 1 <= first < end <= {scale_count(n)}.")
    if not snr > 0 or count < 1:
        raise InputError(f"a signal of {snr} times the noise in {count} places.", "use numbers above 0.")
    numbers = octave_numbers(n)
    signal = _whitened(_structures(n, first, end, seed, count, shape), n)
    noise = _whitened(_noise(n, seed), n)
    inside = ((numbers >= 0) & (numbers < end))[..., None]
    k = sqrt(np.maximum(squares(n), 1).astype(np.float64)) / 2.0**first
    rising = np.minimum(k, 1.0) ** 2
    falling = exp(-0.5 * slope * log(np.maximum(k, 1.0)))
    made = np.where(inside, signal + noise / snr, noise) * (rising * falling)[..., None]
    made[numbers < 0] = 0.0
    field = to_field(made)
    return field / np.abs(field).max()


def _structures(n: int, first: int, end: int, seed: int, count: int, shape: str) -> Floats:
    if shape not in ("vortices", "sheets"):
        raise InputError(f"there are no structures {shape!r}.", "use vortices or sheets.")
    words = philox((np.arange(count), 0, 0, STREAM), (seed, 0))
    places = [2.0 * math.pi * unit(part, np.float64) for part in words[:3]]
    kx, ky = columns(n)[None, :].astype(np.float64), rows(n)[:, None].astype(np.float64)
    modes = np.zeros((n, n // 2 + 1, 2))
    for x, y, angle, word in zip(*places, words[3], strict=True):
        along, across = kx * cos(angle) + ky * sin(angle), ky * cos(angle) - kx * sin(angle)
        stretch = 64.0 if shape == "sheets" else 1.0
        profile = np.zeros((n, n // 2 + 1))
        for scale in range(first, end):
            profile += 2.0**-scale * exp(-0.5 * 4.0**-scale * (stretch * along * along + across * across))
        phase = -(kx * x + ky * y)
        sign = 1.0 if word & 1 else -1.0
        modes += sign * profile[..., None] * np.stack([cos(phase), sin(phase)], axis=-1)
    return modes


def _noise(n: int, seed: int) -> Floats:
    """Independent Gaussian modes of a real field."""
    keys = np.array([seed, STREAM], np.uint32)
    ones = np.ones((n, n // 2 + 1))
    return np.asarray(kernels.get("residual_draw").reference(ones, keys, members=1, gaussian=1))[0]


def _whitened(modes: Floats, n: int) -> Floats:
    """Modes with the mean power 1 in every shell of wave numbers."""
    shells = np.rint(np.sqrt(squares(n).astype(np.float64))).astype(np.int64)
    weight = counted(n)
    power = np.bincount(shells.ravel(), ((modes**2).sum(axis=-1) * weight).ravel())
    size = np.bincount(shells.ravel(), weight.ravel())
    mean = np.where(power > 0, power / np.maximum(size, 1), 1.0)
    return modes / sqrt(mean)[shells][..., None]
