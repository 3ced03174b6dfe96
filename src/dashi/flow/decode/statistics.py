"""What is learned of the scales that z does not hold: their spectrum, their anisotropy, their correlation length.

Of shell s of wave numbers, s - 1/2 <= |k| < s + 1/2 in units of 2 pi / L, `spectrum` is the mean of |w_k|^2, and
`anisotropy` twice the means of cos 2 phi and sin 2 phi weighted by |w_k|^2, phi the angle of k: a first number above 0
says that fields vary more along x. Of all |w_k|^2 with these means the least committed one is drawn from, spectrum
exp(c cos(2 phi - t)) over its own mean in the shell (the von Mises law; N. Fisher, Statistical Analysis of Circular
Data, 1993, section 4.5.5, doi 10.1017/CBO9780511564345).
`lengths` are correlation lengths along x and y, from the curvature of the autocorrelation at 0: l_x^2 = sum |w|^2 /
sum k_x^2 |w|^2. Shells finer than the data had go on as exp(-l (k - k_last)), l their geometric mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import require_finite
from dashi.errors import FileError, InputError, ShapeError
from dashi.flow import grid
from dashi.flow.grid import Floats
from dashi.flow.proxy.files import read_kept
from dashi.flow.proxy.schema import Schema
from dashi.io.arrays import write_arrays

VERSION: Final = 1
_ARRAYS: Final = ("spectrum", "anisotropy", "lengths", "length", "k_cut", "version")
_KIND: Final = "a file of save_statistics"


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of the scales beyond `k_cut` in a box of side `length`; shells from 0 on, 0 where nothing was seen."""

    spectrum: Floats
    """(shells,)"""
    anisotropy: Floats
    """(shells, 2)"""
    lengths: tuple[float, float]
    """Along x and along y."""
    k_cut: float
    length: float

    def __post_init__(self) -> None:
        shells = np.shape(self.spectrum)
        if len(shells) != 1 or np.shape(self.anisotropy) != (*shells, 2):
            raise ShapeError(
                f"a spectrum of shape {shells} does not go with an anisotropy of shape {np.shape(self.anisotropy)}.",
                "pass (shells,) and (shells, 2).",
            )
        require_finite("the spectrum", self.spectrum)
        require_finite("the anisotropy", self.anisotropy)
        sensible = (self.spectrum >= 0).all() and (self.spectrum > 0).any()
        if not sensible or not all(math.isfinite(v) and v > 0 for v in (*self.lengths, self.length, self.k_cut)):
            raise InputError("these statistics are of no field.", "fit them again: fit_statistics(schema, fields).")

    def amplitude(self, schema: Schema) -> Floats:
        """sqrt of the mean |w_k|^2 of every mode of the schema's half spectrum."""
        if not math.isclose(schema.length, self.length):
            raise InputError(
                f"the statistics are of a box of {self.length:g}, the schema has {schema.length:g}.",
                "fit them to fields of the same box.",
            )
        n = schema.n
        last = int(np.flatnonzero(self.spectrum)[-1])
        shell = shells(n)
        held = np.minimum(shell, last)
        lean = np.exp(_concentration(self.anisotropy)[held] * np.cos(_twice(n) - _direction(self.anisotropy)[held]))
        count = int(shell.max()) + 1
        modes, sums = (_by_shell(shell, grid.counted(n) * values, count) for values in (np.ones_like(lean), lean))
        mean = math.sqrt(self.lengths[0] * self.lengths[1]) * 2 * math.pi / self.length
        fading = np.exp(-mean * np.maximum(np.sqrt(grid.squares(n)) - last, 0.0))
        power = self.spectrum[held] * lean * (modes / sums)[shell]
        return np.sqrt(power * np.where(shell > last, fading, 1.0))


def _twice(n: int) -> Floats:
    """Twice the angle of every wave number."""
    return 2 * np.arctan2(grid.rows(n)[:, None], grid.columns(n)[None, :])


def _direction(pairs: Floats) -> Floats:
    return np.arctan2(pairs[:, 1], pairs[:, 0])


def _concentration(pairs: Floats) -> Floats:
    """The c of the von Mises law whose mean resultant is half of each pair, within 0.5 %; at most some 10."""
    r = np.minimum(np.hypot(pairs[:, 0], pairs[:, 1]) / 2, 0.95)
    small = 2 * r + r**3 + 5 * r**5 / 6
    middle = -0.4 + 1.39 * r + 0.43 / (1 - r)
    large = 1 / np.maximum(r**3 - 4 * r**2 + 3 * r, 1e-3)
    return np.where(r < 0.53, small, np.where(r < 0.85, middle, large))


def shells(n: int) -> Any:
    """The shell of every mode of the half spectrum."""
    return grid.shell_numbers(grid.squares(n))


def fit_statistics(schema: Schema, fields: Any) -> Statistics:
    """The statistics of the scales beyond k_cut in training fields (..., n, n)."""
    n = schema.n
    values = np.asarray(fields, np.float64)
    if values.ndim < 2 or values.shape[-2:] != (n, n) or not values.size:
        raise ShapeError(
            f"the fields have shape {values.shape}, the schema is for {n} x {n} points.",
            f"pass vorticity of shape (..., {n}, {n}).",
        )
    require_finite("the fields", values)
    power = np.zeros((n, n // 2 + 1))
    flat = values.reshape(-1, n, n)
    for field in flat:
        power += np.abs(np.fft.rfft2(field) / (n * n)) ** 2
    return _of_power(schema, power / len(flat))


def _of_power(schema: Schema, power: Floats) -> Statistics:
    n = schema.n
    ky, kx = grid.rows(n)[:, None], grid.columns(n)[None, :]
    beyond = grid.dealiased(n) & (grid.squares(n) > schema.k_cut**2)
    weight = np.where(beyond, grid.counted(n), 0.0)
    shell, angle = shells(n), _twice(n)
    count = int(shell[beyond].max()) + 1
    sums = [_by_shell(shell, weight * w, count) for w in (np.ones_like(power), power)]
    turned = [_by_shell(shell, weight * power * f(angle), count) for f in (np.cos, np.sin)]
    spectrum = np.where(sums[0] > 0, sums[1] / np.maximum(sums[0], 1.0), 0.0)
    pair = np.stack([2 * t / np.where(sums[1] > 0, sums[1], 1.0) for t in turned], axis=1)
    unit = 2 * math.pi / schema.length
    total = float((weight * power).sum())
    if not total > 0:
        raise InputError(f"the fields have nothing beyond k_cut = {schema.k_cut:g}.", "pass fields that do.")
    lengths = [math.sqrt(total / max(float((weight * power * k * k).sum()), 1e-300)) / unit for k in (kx, ky)]
    return Statistics(spectrum, pair, (lengths[0], lengths[1]), schema.k_cut, schema.length)


def _by_shell(shell: Floats, values: Floats, count: int) -> Floats:
    return np.bincount(shell.reshape(-1), values.reshape(-1), minlength=count)[:count]


def save_statistics(path: Path, statistics: Statistics) -> None:
    """Keeps statistics as one small .npz file."""
    values = {"spectrum": statistics.spectrum, "anisotropy": statistics.anisotropy}
    numbers = {"lengths": statistics.lengths, "length": statistics.length, "k_cut": statistics.k_cut}
    made = {name: np.asarray(value, np.float64) for name, value in {**values, **numbers}.items()}
    write_arrays(path, {**made, "version": np.array(VERSION, np.int64)})


def load_statistics(path: Path) -> Statistics:
    """The statistics that a file holds."""
    arrays = read_kept(path, _KIND)
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise FileError(f"{path} holds no statistics of a flow: {missing[0]} is missing.", f"name {_KIND}.")
    version = arrays["version"]
    if version.shape or version.dtype.kind not in "iu" or int(version) != VERSION:
        raise FileError(f"{path} has statistics of version {version}.", f"fit them anew: this is {VERSION}.")
    try:
        lengths = arrays["lengths"].astype(np.float64).reshape(2).tolist()
        return Statistics(
            arrays["spectrum"].astype(np.float64),
            arrays["anisotropy"].astype(np.float64),
            (lengths[0], lengths[1]),
            float(arrays["k_cut"]),
            float(arrays["length"]),
        )
    except (InputError, ValueError, TypeError) as error:
        reason = error.what if isinstance(error, InputError) else str(error)
        raise FileError(f"{path} holds no statistics of a flow: {reason}", "fit and save them again.") from error
