"""A second decode, in float64 and with NumPy's own transforms, written straight from its definition.

It shares with the kernels the layout of z and the generator of random words; of sums, transforms, thresholds and
rounding it knows nothing of theirs. Parity is measured against it, so that two devices cannot agree on a mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.flow import grid
from dashi.flow.decode import _tables as tables
from dashi.flow.decode._pipeline import amplitudes
from dashi.flow.decode.settings import Settings
from dashi.flow.decode.statistics import Statistics
from dashi.flow.grid import Floats
from dashi.flow.proxy.lowpass import require_z
from dashi.flow.proxy.schema import Schema
from dashi.kernels._philox import philox, unit

Complexes = npt.NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Plain:
    """A decoded field, its mask, and the residual before the gate."""

    field: Floats
    mask: npt.NDArray[np.int8]
    residual: Floats
    low: Floats


def decode_plainly(
    schema: Schema, z: Any, settings: Settings, statistics: Statistics | None = None, frame: int = 0
) -> Plain:
    """The decode of one z, (D,)."""
    values = np.asarray(require_z(schema, z), np.float64).reshape(schema.size)
    held = spectrum(schema, values)
    low = to_field(held)
    mask = ternary_mask(low, settings)
    residual = np.zeros_like(low)
    if settings.draws:
        residual = to_field(synthesis(schema, values, held, settings, statistics, frame))
    gate: Any = {"open": np.ones_like(low), "support": np.abs(mask), "signed": mask}[settings.gate]
    return Plain(low + gate * residual, mask, residual, low)


def spectrum(schema: Schema, z: Floats) -> Complexes:
    """The half spectrum of the modes that z holds."""
    n = schema.n
    modes = np.zeros((n, n // 2 + 1), np.complex128)
    pairs = z[schema.parts["modes"]].reshape(-1, 2)
    for (ky, kx), (real, imaginary) in zip(schema.modes.tolist(), pairs.tolist(), strict=True):
        modes[ky % n, kx] = complex(real, imaginary)
        if kx == 0:
            modes[-ky % n, 0] = complex(real, -imaginary)
    return modes


def to_field(modes: Complexes) -> Floats:
    """The field of Fourier coefficients."""
    n = modes.shape[0]
    return np.fft.irfft2(modes, (n, n)) * (n * n)


def ternary_mask(low: Floats, settings: Settings) -> npt.NDArray[np.int8]:
    """The mask of a field."""
    detail = low - _box(_box(low, 0, settings.radius), 1, settings.radius)
    level = settings.tau * (np.abs(detail).max() + settings.eps)
    mask = np.where((np.abs(detail) >= level) & (detail != 0), np.where(detail < 0, -1, 1), 0)
    for _ in range(settings.rounds):
        sums = sum(np.roll(mask, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1))
        mask = np.where((mask != 0) & (np.abs(sums) >= settings.eta), np.sign(sums), 0)
    return mask.astype(np.int8)


def _box(field: Floats, axis: int, radius: int) -> Floats:
    total = sum((np.roll(field, shift, axis) for shift in range(-radius, radius + 1)), np.zeros_like(field))
    return total / (2 * radius + 1)


def synthesis(
    schema: Schema, z: Floats, held: Complexes, settings: Settings, statistics: Statistics | None, frame: int
) -> Complexes:
    """The modes of the residual, scaled to the energies that z tells beyond those of the anchors."""
    n = schema.n
    ky = np.broadcast_to(grid.rows(n)[:, None], held.shape)
    kx = np.broadcast_to(grid.columns(n)[None, :], held.shape)
    mirrored = (kx == 0) & (ky < 0)
    words = philox((kx, np.where(mirrored, -ky, ky), frame, 3), (settings.seed, 0))
    # The words have as many bits as the element type of the run takes of them.
    phases, sizes = (unit(word, settings.numpy_dtype).astype(np.float64) for word in words[:2])
    angle = 2 * np.pi * phases
    size: Any = 1.0
    if settings.residual == "statistics":
        size = np.sqrt(-np.log(sizes + (2.0**-24 if settings.numpy_dtype.itemsize == 4 else 2.0**-32)))
    drawn = amplitudes(schema, settings, statistics) * size * np.exp(1j * np.where(mirrored, -angle, angle))
    modes = np.zeros_like(drawn)
    targets = [z[schema.parts[name]][0] for name in ("mid_energy", "high_energy")]
    bands, weights = tables.bands(schema), tables.band_weights(schema)
    for band, (target, weight) in enumerate(zip(targets, weights, strict=True)):
        needed = target - (weight * np.abs(held) ** 2).sum()
        present = (weight * np.abs(drawn) ** 2).sum()
        if needed > 0 and present > 0:
            modes += np.where(bands == band + 1, drawn * np.sqrt(needed / present), 0.0)
    return modes
