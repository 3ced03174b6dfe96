"""How much energy a closure may feed: of its tendency T as much is taken as keeps it within bounds.

With psi = w / k^2, energy E = <psi, w> / 2 and enstrophy Z = <w, w> / 2, means over the box:

    T' = T - lambda w,   lambda = max(0, <psi, T> - theta 2 nu Z) / (2 E)

so <psi, T'> is at most theta 2 nu Z, and dE/dt <= <f, u> - 2 mu E - (1 - theta) 2 nu Z whatever the tables are: the
advection of the held modes by themselves feeds nothing. No flow without a force gains energy while theta <= 1, and with
a force and drag sqrt(2 E) stays below the larger of its start and f_rms / mu.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats

Complex = Any
THETA: Final = 0.0
"""The closure as a whole feeds nothing, unless something else is asked for or chosen."""
THETAS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Candidates on validation windows."""


def require_theta(theta: Any) -> float:
    """A share of the viscous dissipation that a closure may feed back, from 0 to 1."""
    value = float(theta)
    if not 0 <= value <= 1:
        raise InputError(f"theta is {value!r}.", "use a number from 0 to 1: above, energy has no bound.")
    return value


def counted_modes(n: int) -> Floats:
    """How many modes each one of a half spectrum stands for in energies; 0 for the mean, which has none."""
    count = grid.counted(n)
    count[0, 0] = 0.0
    return count


class EnergyLimit:
    """The limit on half spectra (m, n, columns) and its adjoint, by NumPy. `allowance` is theta nu."""

    def __init__(self, flow: Flow, columns: int, allowance: float) -> None:
        kind = flow.numpy_dtype
        self._inverse = grid.waves(flow)[2][:, :columns].astype(kind)
        self._count = counted_modes(flow.n)[:, :columns].astype(kind)
        self._both = self._inverse * self._count
        self._allowance = allowance

    def apply(self, state: Complex, tendency: Complex) -> Complex:
        """T' of a state and T."""
        rate, _ = self._rate(state, tendency)
        return tendency - rate[:, None, None] * state if rate.any() else tendency

    def pull(self, state: Complex, tendency: Complex, gradient: Complex) -> tuple[Complex, Complex]:
        """Gradients in T and in the state, of one in T'."""
        rate, energy = self._rate(state, tendency)
        if not rate.any():
            return gradient, 0.0
        aligned = _sums(self._count, gradient, state)
        share: Any = np.where(rate > 0, aligned / np.where(energy > 0, energy, 1.0), 0.0).astype(rate.dtype)
        share, rate = share[:, None, None], rate[:, None, None]
        psi = self._inverse * state
        own = self._inverse * tendency - 2 * self._allowance * state - 2 * rate * psi
        return gradient - share * psi, -(rate * gradient + share * own)

    def _rate(self, state: Complex, tendency: Complex) -> tuple[Floats, Floats]:
        energy = _sums(self._both, state, state)
        excess = _sums(self._both, state, tendency)
        if self._allowance:
            excess = excess - self._allowance * _sums(self._count, state, state)
        feeds = (excess > 0) & (energy > 0)
        return np.where(feeds, excess / np.where(feeds, energy, 1), 0).astype(self._both.dtype), energy


class NoLimit:
    """What stands in its place where nothing is limited."""

    def apply(self, state: Complex, tendency: Complex) -> Complex:
        """T as it is."""
        return tendency

    def pull(self, state: Complex, tendency: Complex, gradient: Complex) -> tuple[Complex, Complex]:
        """The gradient as it is, and none in the state."""
        return gradient, 0.0


def best_theta(scores: Sequence[tuple[float, float, float]]) -> float:
    """The theta of tried ones (theta, score, error of energy): of those that follow within a hundredth of the longest,
    the one whose energy is closest to the truth's."""
    longest = max(score for _, score, _ in scores)
    close = [(error, theta) for theta, score, error in scores if score >= 0.99 * longest]
    return min(close)[1]


def _sums(weights: Floats, a: Complex, b: Complex) -> Floats:
    """Sums over the modes of weights Re(conj(a) b), for each state."""
    products = np.einsum("mij,mij,ij->m", a.real, b.real, weights, optimize=True)
    return products + np.einsum("mij,mij,ij->m", a.imag, b.imag, weights, optimize=True)
