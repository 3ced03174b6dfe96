"""Fields from z of v4: the low-pass field, and the residual of random phases that v4 adds to it."""

from __future__ import annotations

from typing import Final

import numpy as np

from dashi.flow.grid import Floats
from dashi.flow.v4.encode import Encoder, Layout, Places, mask
from dashi.flow.v4.solver import real

SEED: Final = 12345
STRIDE: Final = 1_000_003


def lowpass(layout: Layout, z: Floats) -> Floats:
    """The field of the low modes alone."""
    return _field(layout, _low(layout, z))


def decode_anchors(encoder: Encoder, z: Floats) -> Floats:
    """The field of low modes and anchors, both in the spectrum before it is transformed; v4 never did this."""
    layout = encoder.layout
    hat = _low(layout, z)
    hat[encoder.anchors] = _modes(z[layout.anchors]) * layout.n**2
    return _field(layout, hat)


def decode(encoder: Encoder, z: Floats, t: int) -> Floats:
    """The field that v4 gives at step t: low modes, and in each of the two bands a residual.

    A residual has constant magnitude sqrt(E) n^2 and phases drawn for every mode of the grid, mid band first, which
    are not those of a real field: the real part is taken, times the support of the mask, and scaled to a mean square
    of E times the modes of the band. Anchors are left out of the mid band, and not put back.
    """
    layout = encoder.layout
    field = lowpass(layout, z)
    support = mask(field) != 0
    draws = np.random.default_rng(SEED + STRIDE * t)
    _, mid, high, _ = z[layout.header]
    for places, energy in ((rest(encoder), max(float(mid), 0.0)), (layout.high, max(float(high), 0.0))):
        phases = draws.uniform(0.0, 2 * np.pi, (layout.n, layout.n)).ravel()[places]
        hat = np.zeros(layout.n**2, np.complex128)
        hat[places] = np.sqrt(energy) * layout.n**2 * np.exp(1j * phases)
        noise: Floats = _field(layout, hat) * support
        field = field + noise * np.sqrt(places.size * energy / (np.mean(noise * noise) + 1e-30))
    return field


def rest(encoder: Encoder) -> Places:
    """The modes of the mid band that are not anchors."""
    return np.setdiff1d(encoder.layout.mid, encoder.anchors)


def _low(layout: Layout, z: Floats) -> Floats:
    hat = np.zeros(layout.n**2, np.complex128)
    hat[layout.low] = _modes(z[layout.modes]) * layout.n**2
    return hat


def _modes(parts: Floats) -> Floats:
    half = parts.size // 2
    return parts[:half] + 1j * parts[half:]


def _field(layout: Layout, hat: Floats) -> Floats:
    return real(hat.reshape(layout.n, layout.n))
