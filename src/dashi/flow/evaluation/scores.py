"""Scores of fields against a reference: correlation, relative L2, spectra, energy, enstrophy. In float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from dashi.flow._diagnostics import shells
from dashi.flow._host_fft import Transforms
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.windows import Windows

_FLOOR: Final = 1e-12
"""Energies of shells below so much of the reference's whole energy count as that much: a shell without energy is as
wrong as one with hardly any."""

_POINTS: Final = 1 << 22
"""Points that are transformed at a time."""


class Spectra:
    """Energy and enstrophy by shells of |k| (`dashi.flow._diagnostics`), of the modes that the solver keeps."""

    def __init__(self, flow: Flow) -> None:
        self._n, self._transforms = flow.n, Transforms(flow.n)
        self._shells = shells(replace(flow, dtype="float64"))
        self._starts = self._shells.offsets.astype(np.int64)

    @property
    def count(self) -> int:
        """Shells, from 0 on."""
        return self._shells.count

    def of(self, fields: Floats) -> tuple[Floats, Floats]:
        """Energy and enstrophy, (fields, shells) each, of fields (fields, n, n)."""
        most = max(1, _POINTS // self._n**2)
        parts = [self._some(fields[first : first + most]) for first in range(0, len(fields), most)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _some(self, fields: Floats) -> tuple[Floats, Floats]:
        modes = self._transforms.forward(np.asarray(fields, np.float64), self._n // 2 + 1) / self._n**2
        power = (modes.real**2 + modes.imag**2).reshape(len(fields), -1)[:, self._shells.places]
        return self._summed(power * self._shells.energy), self._summed(power * self._shells.enstrophy)

    def _summed(self, values: Floats) -> Floats:
        # reduceat gives an empty shell the value that follows it; the last shell is never empty.
        made = np.add.reduceat(values, np.minimum(self._starts[:-1], values.shape[-1] - 1), axis=-1)
        made[..., np.diff(self._starts) == 0] = 0.0
        return made


@dataclass(frozen=True, eq=False)
class Reference:
    """What is compared with: vorticity (windows, frames, n, n), measured once for all models."""

    flow: Flow
    fields: Floats

    @cached_property
    def spectra(self) -> Spectra:
        """Spectra on the grid of the reference."""
        return Spectra(self.flow)

    @cached_property
    def measured(self) -> tuple[Floats, Floats]:
        """Energy and enstrophy by shells, (windows, frames, shells) each."""
        parts = [self.spectra.of(window) for window in self.fields]
        return np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])

    @property
    def energy(self) -> Floats:
        """Energy of every window and frame, (windows, frames)."""
        return self.measured[0].sum(-1)

    @property
    def enstrophy(self) -> Floats:
        """Enstrophy of every window and frame, (windows, frames)."""
        return self.measured[1].sum(-1)


def largest_energy(*given: Windows | None) -> float:
    """The largest energy of any frame of windows: what is admissible is measured by it."""
    return max(one.remembered("largest_energy", _largest_energy) for one in given if one is not None)


def _largest_energy(windows: Windows) -> float:
    return float(Reference(windows.flow, windows.fields).energy.max())


def correlation(fields: Floats, reference: Floats) -> Floats:
    """Correlation of fields (frames, n, n) with a reference: (frames,), from -1 to 1; 0 where one of
    them is the same everywhere."""
    a, b = (_centred(one) for one in (fields, reference))
    sizes = np.sqrt(_dot(a, a) * _dot(b, b))
    return np.where(sizes > 0, _dot(a, b) / np.where(sizes > 0, sizes, 1.0), 0.0)


def relative_l2(fields: Floats, reference: Floats) -> Floats:
    """sqrt(mean((w - r)^2) / mean(r^2)) of fields (frames, n, n): (frames,)."""
    b = np.asarray(reference, np.float64)
    off = np.asarray(fields, np.float64) - b
    size = _dot(b, b)
    return np.sqrt(_dot(off, off) / np.where(size > 0, size, 1.0))


def spectrum_error(spectrum: Floats, reference: Floats, carried: slice) -> Floats:
    """Root mean square over the shells that are carried of log10 of the ratio of two energy spectra (..., shells)."""
    floor = _FLOOR * np.maximum(reference.sum(-1, keepdims=True), np.finfo(np.float64).tiny)
    ratio = np.log10(np.maximum(spectrum, floor)[..., carried] / np.maximum(reference, floor)[..., carried])
    return np.sqrt(np.mean(ratio * ratio, axis=-1))


def carried_shells(k_cut: float, count: int) -> slice:
    """The shells that a proxy with |k| <= k_cut holds whole: shell s goes from s - 1/2 to s + 1/2."""
    return slice(1, max(2, min(count, math.floor(k_cut - 0.5) + 1)))


def horizons(values: Floats, times: Floats, thresholds: Sequence[float]) -> dict[float, Floats]:
    """The time of the first frame with a correlation (windows, frames) below each threshold; the length of the window
    where it never falls."""
    times_below: dict[float, Floats] = {}
    for threshold in thresholds:
        below = ~(values >= threshold)
        times_below[threshold] = np.where(below.any(-1), times[below.argmax(-1)], times[-1])
    return times_below


def _centred(fields: Floats) -> Floats:
    values = np.asarray(fields, np.float64)
    return values - values.mean(axis=(-2, -1), keepdims=True)


def _dot(a: Floats, b: Floats) -> Floats:
    return np.einsum("...ij,...ij->...", a, b)
