"""Statistics of rollouts far beyond their horizon, where correlation means nothing: does a model stay on the climate of
the flow?

All are of the modes that z holds whole, so a model and its reference are compared at equal resolution: mean energy and
enstrophy, the energy spectrum, and the distribution of vorticity at a point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.flow._host_fft import Transforms
from dashi.flow.grid import Floats
from dashi.flow.proxy._eddy import shells_of
from dashi.flow.proxy._judge import held_energy
from dashi.flow.proxy.galerkin._terms import smallest_grid
from dashi.flow.proxy.schema import Schema, places_of
from dashi.flow.proxy.states import power, squares

QUANTILES: Final = 199
"""Levels, evenly spaced, at which distributions are compared."""
MOST_FIELDS: Final = 512
"""Fields that distributions are taken of, spread evenly over all frames."""


@dataclass(frozen=True, eq=False)
class Climate:
    """Means over frames of one trajectory or several."""

    energy: float
    enstrophy: float
    spectrum: Floats
    """Energy of the shells that z holds whole, from 1 on."""
    kurtosis: float
    """Kurtosis of vorticity at a point; 3 for a Gaussian."""
    quantiles: Floats
    """Quantiles of vorticity at a point, at QUANTILES levels."""


@dataclass(frozen=True)
class ClimateError:
    """A model's climate beside that of the flow."""

    energy: float
    """Model over flow, as is `enstrophy`."""
    enstrophy: float
    spectrum: float
    """Root mean square over shells of log10 of the ratio of spectra."""
    last_shell: float
    """Energy of the last whole shell, model over flow."""
    kurtosis: float
    """Model minus flow."""
    distribution: float
    """Mean distance between quantiles of vorticity, in units of the flow's rms: Wasserstein's distance of order 1."""


def climate(schema: Schema, z: Any) -> Climate:
    """The climate of frames of z, (..., D). Raises InputError where one is not finite."""
    frames = np.asarray(z, np.float64).reshape(-1, schema.size)
    if not len(frames) or not np.isfinite(frames).all():
        raise InputError("there are no frames, or some are not finite.", "pass frames of a rollout that did not fail.")
    sizes = power(schema, frames)
    shells = shells_of(schema)
    whole = max(1, int(schema.k_cut - 0.5))
    by_shell = np.bincount(shells, (sizes / squares(schema)).mean(0), int(shells.max()) + 1)
    some = frames[np.unique(np.linspace(0, len(frames) - 1, min(MOST_FIELDS, len(frames))).astype(int))]
    values = low_fields(schema, some)
    second = float((values**2).mean())
    kurtosis = float((values**4).mean()) / second**2 if second else float("nan")
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return Climate(
        float(held_energy(schema, frames).mean()), float(sizes.sum(-1).mean()), by_shell[1 : whole + 1],
        kurtosis, np.quantile(values, levels),
    )  # fmt: skip


def climate_error(model: Climate, flow: Climate) -> ClimateError:
    """How far a model's climate is off the flow's."""
    ratio = np.log10(model.spectrum / flow.spectrum)
    rms = float(np.sqrt(np.mean(flow.quantiles**2)))
    return ClimateError(
        model.energy / flow.energy,
        model.enstrophy / flow.enstrophy,
        float(np.sqrt(np.mean(ratio * ratio))),
        float(model.spectrum[-1] / flow.spectrum[-1]),
        model.kurtosis - flow.kurtosis,
        float(np.mean(np.abs(model.quantiles - flow.quantiles))) / rms,
    )


def low_fields(schema: Schema, frames: Floats) -> Floats:
    """Vorticity of the modes that z holds, (frames, m, m), on the smallest grid that products of them need."""
    n = smallest_grid(schema.modes)
    rows, columns = np.divmod(places_of(n, schema.modes), n // 2 + 1)
    pairs = np.asarray(frames, np.float64)[:, schema.parts["modes"]]
    values = (pairs[:, 0::2] + 1j * pairs[:, 1::2]) * float(n * n)
    spectra = np.zeros((len(frames), n, n // 2 + 1), np.complex128)
    spectra[:, rows, columns] = values
    mirrored = schema.modes[:, 1] == 0
    spectra[:, -schema.modes[mirrored, 0] % n, 0] = np.conj(values[:, mirrored])
    return np.asarray(Transforms(n).back(spectra), np.float64)
