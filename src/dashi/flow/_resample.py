"""Fields on other grids, and vorticity of velocities: by Fourier modes, exact for what both grids resolve."""

from __future__ import annotations

import math

import numpy as np

from dashi.flow.grid import Floats, columns, rows


def resample(fields: Floats, n: int) -> Floats:
    """Periodic fields (..., m, m) on n x n points: modes that both grids resolve stay, others are 0."""
    m = fields.shape[-1]
    if m == n:
        return fields
    modes = np.fft.rfft2(fields.astype(np.float64))
    resampled = np.zeros((*fields.shape[:-2], n, n // 2 + 1), complex)
    # The mode n/2 of an even grid stands for two, which another grid tells apart.
    k = (min(m, n) - 1) // 2
    resampled[..., : k + 1, : k + 1] = modes[..., : k + 1, : k + 1]
    resampled[..., -k:, : k + 1] = modes[..., -k:, : k + 1]
    return np.fft.irfft2(resampled, s=(n, n)).astype(fields.dtype) * fields.dtype.type((n / m) ** 2)


def curl_and_divergence(u: Floats, v: Floats, length: float) -> tuple[Floats, Floats]:
    """v_x - u_y and u_x + v_y of periodic velocities (..., n, n) along x and y, in float64."""
    n = u.shape[-1]
    unit = 2 * math.pi / length
    # The derivative of the mode n/2 is not a real field on this grid.
    along_x = 1j * unit * np.where(columns(n) < n / 2, columns(n), 0)[None, :]
    along_y = 1j * unit * np.where(np.abs(rows(n)) < n / 2, rows(n), 0)[:, None]
    u_modes, v_modes = (np.fft.rfft2(np.asarray(one, np.float64)) for one in (u, v))
    both = np.stack([along_x * v_modes - along_y * u_modes, along_x * u_modes + along_y * v_modes])
    curl, divergence = np.fft.irfft2(both, s=(n, n))
    return curl, divergence
