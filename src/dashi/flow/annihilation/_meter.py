"""What a device measures of fields, scale by scale: counts of states and three means, a few bytes of every field."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dashi import fft, kernels
from dashi.flow.annihilation._gauge_signs import GaugeSigns
from dashi.flow.annihilation.estimators import Measured
from dashi.flow.annihilation.scales import band_tables, mode_counts, scale_count
from dashi.flow.annihilation.settings import AnnihilationSettings
from dashi.kernels.expressions import absolute, arguments, scalars, sign, sqrt, square, where
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device
from dashi.types import HostArray

_BYTES: Final = 1 << 26
"""Memory of the bands of one batch, about."""


def batch_size(n: int, settings: AnnihilationSettings, surrogates: int) -> int:
    """Surrogates that are measured together."""
    arrays = 1 if settings.gauge == "vorticity" else 4
    nbytes = arrays * scale_count(n) * n * n * settings.numpy_dtype.itemsize
    return max(1, min(surrogates, 64, _BYTES // nbytes))


class ScaleMeter:
    """Measures the bands of fields whose modes (batch, n, n/2 + 1, 2) lie in an array; `tiles` squares apart."""

    def __init__(self, device: Device, modes: Array, settings: AnnihilationSettings, tiles: int = 1) -> None:
        batch, n, half, _ = modes.shape
        kind, scales = settings.numpy_dtype, scale_count(n)
        self.n, self.settings, self.tiles = n, settings, tiles
        side = math.isqrt(tiles)
        self.spectra = device.empty((batch, scales, n, half, 2), kind)
        self.bands = device.empty((batch, scales, n, n), kind)
        self._power = device.empty((batch, scales), kind)
        self._sums = [device.empty((batch, scales, side, side), kind) for _ in range(3)]
        self._counts = device.empty((batch, scales, tiles, 15), np.uint32)
        tables = device.array(band_tables(n, settings.bands).astype(kind)[None, ..., None])
        squares_, fourths, strong = self._sums
        x, weight, power = arguments("x weight power")
        (tau,) = scalars("tau")
        tiled = self.bands.reshape(batch, scales, side, n // side, side, n // side)
        level = self._power.reshape(batch, scales, 1, 1, 1, 1)
        bind, axes = device.bind, (3, 5)
        held = where(absolute(x) > tau * sqrt(power), square(x), 0.0)
        self.steps: list[AnyStep] = [
            bind(kernels.fuse(x * weight), modes.reshape(batch, 1, n, half, 2), tables, out=self.spectra),
            *fft.plan(device, self.bands.shape, "irfft2", dtype=kind).steps(self.spectra, self.bands),
            bind(kernels.reduce_rows("mean", square(x), axes=(2, 3)), self.bands, out=self._power),
            bind(kernels.reduce_rows("sum", square(x), axes=axes), tiled, out=squares_),
            bind(kernels.reduce_rows("sum", square(square(x)), axes=axes), tiled, out=fourths),
            bind(kernels.reduce_rows("sum", held, axes=axes), tiled, level, out=strong, tau=settings.tau),
            *self._gauge_steps(device, modes),
            bind("scale_counts", self.signed, self._power, out=self._counts, tau=settings.tau, tiles=tiles),
        ]
        self._states = device.empty((batch, scales, n, n), np.int8)
        level = self._power.reshape(batch, scales, 1, 1)
        found = where(absolute(x) > tau * sqrt(power), sign(x) * 2.0, sign(x))
        kernel = kernels.fuse(found, types={"result": "i8"})
        self.state_steps: list[AnyStep] = [bind(kernel, self.signed, level, out=self._states, tau=settings.tau)]

    def _gauge_steps(self, device: Device, modes: Array) -> list[AnyStep]:
        """Steps that make `signed`, whose size is that of the bands, and whose sign is the gauge's."""
        self.signed = self.bands
        if self.settings.gauge == "vorticity":
            return []
        s = self.settings
        gauged = GaugeSigns(device, modes, self.spectra, self.bands, s.gauge, s.angle)
        self.signed = gauged.signed
        return gauged.steps

    def read(self) -> Measured:
        """What the last run measured."""
        counts = self._counts.numpy().astype(np.int64)
        sums = (a.numpy().astype(np.float64).reshape(*a.shape[:2], self.tiles) for a in self._sums)
        squares, fourths, strong = sums
        return Measured(counts, squares, fourths, strong, mode_counts(self.n))

    def states(self) -> HostArray:
        """-2 to 2: the sign of every point at every scale, twice where it is active; (batch, scales, n, n)."""
        return self._states.numpy()
