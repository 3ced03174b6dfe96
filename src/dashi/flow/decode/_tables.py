"""Which modes belong to which band, and what they weigh: tables of one schema, made once on the host in float64."""

from __future__ import annotations

import numpy as np

from dashi.flow import grid
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.schema import Schema, places_of

LOOKS = ("energy", "enstrophy", "low_energy", "mid_energy", "high_energy")
"""What is measured of a decoded field, in this order; the last three are of bands and add up to the first."""


def bands(schema: Schema) -> Floats:
    """The band of every mode of the half spectrum whose value is drawn: 1 mid, 2 high, and 0 for the mean, low modes,
    anchors, and what the solver does not keep."""
    n = schema.n
    square = grid.squares(n)
    band = np.where(square > schema.mid_cut**2, 2, np.where(square > schema.k_cut**2, 1, 0)).astype(np.uint32)
    band[~grid.dealiased(n)] = 0
    anchors = np.array(schema.anchors, np.int64).reshape(-1, 2)
    band.reshape(-1)[places_of(n, anchors)] = 0
    first = anchors[anchors[:, 1] == 0]
    band.reshape(-1)[places_of(n, -first)] = 0
    return band


def energy(schema: Schema) -> Floats:
    """What |w_k|^2 of every mode of the half spectrum adds to the energy, (u^2 + v^2) / 2 on average over the box."""
    return 0.5 * grid.counted(schema.n) * grid.waves(Flow(schema.n, length=schema.length))[2]


def band_weights(schema: Schema) -> Floats:
    """The weights of the two energies that z tells, mid and high, (2, n, n/2 + 1)."""
    square, keep = grid.squares(schema.n), grid.dealiased(schema.n)
    mid = keep & (square > schema.k_cut**2) & (square <= schema.mid_cut**2)
    high = keep & (square > schema.mid_cut**2)
    return np.stack([np.where(mid, energy(schema), 0.0), np.where(high, energy(schema), 0.0)])


def looks(schema: Schema) -> Floats:
    """The weights of what is measured of a decoded field, (5, n, n/2 + 1). A gate moves energy to modes that the
    solver does not keep: here they count, in the high band."""
    square, weight = grid.squares(schema.n), energy(schema)
    half = 0.5 * grid.counted(schema.n)
    half[0, 0] = 0.0
    low, mid = square <= schema.k_cut**2, (square > schema.k_cut**2) & (square <= schema.mid_cut**2)
    parts = [np.where(where, weight, 0.0) for where in (low, mid, square > schema.mid_cut**2)]
    return np.stack([weight, half, *parts])
