"""An orthonormal basis of real Fourier modes of a periodic square, with the same bits everywhere (`dashi.fft`).

Coefficients are two halves, cosines and sines, each with rows by ky (from the most negative to the most positive) and
columns by kx from 0 on. Modes that a real field has twice stand there once; the other place is 0.
"""

from __future__ import annotations

import math

import numpy as np

import dashi.fft
from dashi.filament.threads.blobs import Floats


def to_modes(field: Floats) -> Floats:
    """Coefficients (2, n, n // 2 + 1) of a square field."""
    n = field.shape[0]
    modes = np.roll(dashi.fft.rfft2(field, device="cpu"), n // 2, axis=0)
    weights = _weights(n) / n
    return np.stack([modes.real * weights[0], modes.imag * weights[1]])


def from_modes(coefficients: Floats) -> Floats:
    """The square field of these coefficients."""
    n = coefficients.shape[1]
    weights = _weights(n)
    scale = np.where(weights > 0, n / np.where(weights > 0, weights, 1.0), 0.0)
    modes = coefficients[0] * scale[0] + 1j * (coefficients[1] * scale[1])
    modes = np.roll(modes, -(n // 2), axis=0)
    # The columns kx = 0 and, for even n, kx = n / 2 hold each pair of conjugates once: the other is put back.
    for column in (0, n // 2) if n % 2 == 0 else (0,):
        line = modes[:, column]
        mirrored = np.conj(line[(-np.arange(n)) % n])
        both = line + mirrored
        both[0] = line[0]
        if n % 2 == 0:
            both[n // 2] = line[n // 2]
        modes[:, column] = both
    return np.asarray(dashi.fft.irfft2(modes, s=(n, n), device="cpu"), np.float64)


def _weights(n: int) -> Floats:
    """What makes the basis orthonormal: root 2 where a mode stands for two, 1 where it is its own conjugate, 0 where
    another stands for it or there is none."""
    ky = np.arange(n) - n // 2
    weights = np.full((2, n, n // 2 + 1), math.sqrt(2.0))
    for column in (0, n // 2) if n % 2 == 0 else (0,):
        weights[:, ky < 0, column] = 0.0
        for row in np.flatnonzero((ky == 0) | (2 * ky == -n)):
            weights[0, row, column], weights[1, row, column] = 1.0, 0.0
    return weights
