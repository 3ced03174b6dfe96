"""Errors modulo the symmetries of a flow: two fields that a symmetry carries into each other are one point of the
quotient, and the error between them is that of the best symmetry.

The equation without a force is unchanged by all translations, by quarter turns of a square box, and by mirroring with
the sign of vorticity changed. The force sin(k y) leaves of these the translations along x, those along y by a whole
wave, the half turn, and mirroring along x together with half a wave along y and the other sign (G. Chandler and R.
Kerswell, J. Fluid Mech. 722, 2013, doi 10.1017/jfm.2013.122, section 2). A random force leaves them in the mean alone;
its symmetries are those without a force.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.errors import ShapeError
from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.grid import Floats


@dataclass(frozen=True)
class SymmetricForm:
    """A symmetry but for the translations: quarter turns, then a mirror along x, a sign, and part of a wave along y."""

    turns: int = 0
    mirrored: bool = False
    half_wave: bool = False

    @property
    def sign(self) -> int:
        """Vorticity changes its sign in a mirror."""
        return -1 if self.mirrored else 1

    def of(self, fields: Floats) -> Floats:
        """Fields (..., n, n) after it, without the part of a wave; the origin stays where it is."""
        turned = fields
        for _ in range(self.turns):
            # (x, y) -> (-y, x) on the points of a periodic box.
            turned = _reversed(np.swapaxes(turned, -1, -2), -1)
        return -_reversed(turned, -1) if self.mirrored else turned


@dataclass(frozen=True)
class Symmetries:
    """The symmetries of a flow: forms, each with all translations along x, and along y all (`waves` 0) or those by
    whole parts of the box (`waves` of them)."""

    forms: tuple[SymmetricForm, ...]
    waves: int


def symmetries_of(flow: Flow) -> Symmetries:
    """Every symmetry of the equation of a flow."""
    if isinstance(flow.forcing, Kolmogorov):
        forms = tuple(SymmetricForm(turns, mirrored, mirrored) for mirrored in (False, True) for turns in (0, 2))
        return Symmetries(forms, flow.forcing.wavenumber)
    return Symmetries(tuple(SymmetricForm(t, m) for m in (False, True) for t in range(4)), 0)


@dataclass(frozen=True, eq=False)
class QuotientError:
    """Errors of fields (...) beside a reference."""

    plain: Floats
    """Relative L2 error as they are."""
    quotient: Floats
    """The smallest over all symmetries: never more than the plain one, but for rounding."""
    correlation: Floats
    """The largest correlation over all symmetries."""


def quotient_error(flow: Flow, fields: Any, reference: Any) -> QuotientError:
    """Errors of fields (..., n, n) beside a reference, as they are and modulo the symmetries of the flow. Translations
    along x, and free ones along y, are those by whole points. Raises ShapeError."""
    ours, theirs = (np.asarray(values, np.float64) for values in (fields, reference))
    if ours.shape != theirs.shape or ours.ndim < 2 or ours.shape[-2:] != (flow.n, flow.n):
        raise ShapeError(
            f"fields {ours.shape} and reference {theirs.shape} are not both of {flow.n} x {flow.n} points.",
            "pass fields of the flow, as many of both.",
        )
    size, other = (np.sum(values**2, axis=(-2, -1)) for values in (ours, theirs))
    product = np.sum(ours * theirs, axis=(-2, -1))
    found = symmetries_of(flow)
    best = np.max([_largest_product(ours, form.of(theirs), form, found.waves) for form in found.forms], axis=0)
    best = np.maximum(best, product)
    whole = np.where(other > 0, other, 1.0)
    plain, quotient = (
        np.sqrt(np.maximum(size + other - 2 * values, 0.0) / whole) for values in (product, best)
    )  # fmt: skip
    correlation = best / np.where(size * other > 0, np.sqrt(size * other), 1.0)
    return QuotientError(plain, quotient, correlation)


def _largest_product(ours: Floats, theirs: Floats, form: SymmetricForm, waves: int) -> Floats:
    """The largest sum of products over the translations of `theirs`."""
    n = ours.shape[-1]
    cross = np.fft.fft2(ours) * np.conj(np.fft.fft2(theirs))
    if not waves:
        return np.fft.ifft2(cross).real.max(axis=(-2, -1))
    ky = np.fft.fftfreq(n, 1 / n)
    best = np.full(ours.shape[:-2], -np.inf)
    for wave in range(waves):
        shift = 2 * math.pi * (wave + 0.5 * form.half_wave) / waves
        # The mode n / 2 stands for two of opposite wave numbers.
        turned = cross * np.where(np.abs(ky) < n / 2, np.exp(1j * ky * shift), np.cos(ky * shift))[:, None]
        best = np.maximum(best, np.fft.ifft(turned.sum(axis=-2), axis=-1).real.max(axis=-1) / n)
    return best


def _reversed(fields: Floats, axis: int) -> Floats:
    """Fields at the opposite coordinate: the point 0 stays."""
    return np.roll(np.flip(fields, axis), 1, axis)
