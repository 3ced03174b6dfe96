"""The solver of v4: pseudo-spectral, Heun's scheme, Smagorinsky's viscosity, nothing dealiased.

    omega_t = -(u omega_x + v omega_y) + nu lap(omega)
    nu      = nu0 + (Cs dx)^2 sqrt(2 (u_x^2 + v_y^2 + 2 S_xy^2) + 1e-30)

in a box of 2 pi, with u = psi_y, v = -psi_x, psi_hat = omega_hat / k^2 (mean 0) and S_xy = (u_y + v_x) / 2. nu stands
outside of the Laplacian and is frozen over a step. Axis 0 is y, axis 1 is x.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from dashi.errors import InputError, NonFiniteError
from dashi.flow.grid import Floats

NU0: Final = 1e-4
CS: Final = 0.17
DT: Final = 0.01
SMOOTH: Final = 11
SMALLEST: Final = 32
LARGEST: Final = 1024


@dataclass(frozen=True)
class Solver:
    """The old flow on n x n points."""

    n: int

    def __post_init__(self) -> None:
        n: Any = self.n
        if type(n) is not int or n % 2 or not SMALLEST <= n <= LARGEST:
            raise InputError(f"v4 has no grid of n = {n}.", f"use an even n from {SMALLEST} to {LARGEST}.")

    @cached_property
    def waves(self) -> tuple[Floats, Floats, Floats, Floats]:
        """k_x, k_y, k^2 and 1 / k^2 (0 for the mean) of the whole spectrum."""
        line = np.fft.fftfreq(self.n, 1 / self.n)
        ky, kx = np.meshgrid(line, line, indexing="ij")
        square = kx * kx + ky * ky
        inverse = np.zeros_like(square)
        np.divide(1.0, square, out=inverse, where=square > 0)
        return kx, ky, square, inverse

    def start(self, seed: int) -> Floats:
        """Normal numbers of the legacy generator, smoothed by a box, minus their mean, over their deviation."""
        if type(seed) is not int or not 0 <= seed < 1 << 32:
            raise InputError(f"a seed is {seed}.", "use a whole number from 0 to 2^32 - 1.")
        # What np.random.seed and np.random.randn give, without touching the generator that is shared by all.
        noise = np.random.RandomState(seed).standard_normal((self.n, self.n))
        smooth = box(noise)
        smooth = smooth - smooth.mean()
        return smooth / (smooth.std() + 1e-12)

    def velocity(self, omega: Floats) -> tuple[Floats, Floats]:
        """u and v on the points."""
        kx, ky, _, inverse = self.waves
        psi = np.fft.fft2(omega) * inverse
        return real(1j * ky * psi), real(-1j * kx * psi)

    def viscosity(self, omega: Floats) -> Floats:
        """nu on the points. Velocities go to the points and back before they are differentiated again: at the wave
        number n / 2 that drops what differentiating twice in the spectrum would keep."""
        kx, ky, _, _ = self.waves
        u_hat, v_hat = (np.fft.fft2(part) for part in self.velocity(omega))
        u_x, v_y = real(1j * kx * u_hat), real(1j * ky * v_hat)
        shear = 0.5 * (real(1j * ky * u_hat) + real(1j * kx * v_hat))
        strain = np.sqrt(2 * (u_x**2 + v_y**2 + 2 * shear**2) + 1e-30)
        return NU0 + (CS * 2 * math.pi / self.n) ** 2 * strain

    def tendency(self, omega: Floats, nu: Floats) -> Floats:
        """omega_t."""
        kx, ky, square, _ = self.waves
        hat = np.fft.fft2(omega)
        u, v = self.velocity(omega)
        return -(u * real(1j * kx * hat) + v * real(1j * ky * hat)) + nu * real(-square * hat)

    def step(self, omega: Floats) -> Floats:
        """One step of Heun's scheme."""
        nu = self.viscosity(omega)
        first = self.tendency(omega, nu)
        second = self.tendency(omega + DT * first, nu)
        return omega + 0.5 * DT * (first + second)

    def frames(self, seed: int, steps: int) -> Iterator[Floats]:
        """The field at t = 0, 1, ..., steps, one by one: a run of a fine grid need not be kept whole."""
        omega = self.start(seed)
        yield omega
        for number in range(1, steps + 1):
            omega = self.step(omega)
            if not np.isfinite(omega).all():
                raise NonFiniteError(
                    f"the field is not finite after step {number}.", f"use fewer steps: dt = {DT:g} is fixed in v4."
                )
            yield omega

    def energy(self, omega: Floats) -> float:
        """The mean of (u^2 + v^2) / 2."""
        u, v = self.velocity(omega)
        return float(0.5 * np.mean(u * u + v * v))


def enstrophy(omega: Floats) -> float:
    """The mean of omega^2 / 2."""
    return float(0.5 * np.mean(omega * omega))


def real(hat: Floats) -> Floats:
    """The real part of the inverse transform."""
    return np.real(np.fft.ifft2(hat))


def box(field: Floats, width: int = SMOOTH) -> Floats:
    """The mean over a box of that width, one axis after the other; zeros lie outside, so it is not periodic."""
    smoothed, half = field, width // 2
    for axis in (0, 1):
        around = [(half, half) if a == axis else (0, 0) for a in (0, 1)]
        padded = np.pad(smoothed, around)
        slices = np.lib.stride_tricks.sliding_window_view(padded, width, axis=axis)
        smoothed = slices.sum(axis=-1) / width
    return smoothed
