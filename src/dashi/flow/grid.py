"""Wave numbers of the half spectrum, and the tables of one grid. All in float64, by operations that round alike on
every machine; they are rounded once to the element type of a run."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.fft.plans import plan
from dashi.flow.equations import Flow
from dashi.kernels.fft._reference import forward_real, inverse_real, transform
from dashi.kernels.fft._roots import real_table, table
from dashi.kernels.portable import canon
from dashi.runtime.device import Device

Floats = npt.NDArray[Any]
_LARGE: Final = 512
"""Points along a side from which a device transforms sooner than the host does."""


def rows(n: int) -> npt.NDArray[np.int64]:
    """Wave numbers along y, in the order of the FFT: 0, 1, ..., n/2, -(n/2 - 1), ..., -1."""
    index = np.arange(n)
    return np.where(index <= n // 2, index, index - n)


def columns(n: int) -> npt.NDArray[np.int64]:
    """Wave numbers along x: 0, 1, ..., n/2."""
    return np.arange(n // 2 + 1)


def squares(n: int) -> npt.NDArray[np.int64]:
    """k_x^2 + k_y^2 of every mode, in units of (2 pi / L)^2."""
    return rows(n)[:, None] ** 2 + columns(n)[None, :] ** 2


def distinct(square: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The different values of whole numbers from 0 on, rising, and the place of each number among them: far fewer than
    there are modes, and found without sorting."""
    present = np.zeros(int(square.max(initial=0)) + 1, np.bool_)
    present[square] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[square]


def shell_numbers(square: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The shell of modes with these k_x^2 + k_y^2: s holds s - 1/2 <= |k| < s + 1/2, in units of 2 pi / L. No |k| lies
    on a border, since 4 k^2 is no odd square, so that rounding decides nothing."""
    return (np.floor(np.sqrt(4.0 * np.asarray(square))).astype(np.int64) + 1) // 2


def dealiased(n: int) -> npt.NDArray[np.bool_]:
    """The modes that stay: 3 |k| < n along both axes."""
    return (3 * np.abs(rows(n))[:, None] < n) & (3 * columns(n)[None, :] < n)


def kept_modes(n: int) -> tuple[npt.NDArray[np.intp], ...]:
    """Where the modes that stay lie: rows and columns, for indexing."""
    return np.ix_(np.flatnonzero(3 * np.abs(rows(n)) < n), np.flatnonzero(3 * columns(n) < n))


def unit(flow: Flow) -> float:
    """The smallest wave number of the box, 2 pi / L."""
    return 2 * math.pi / flow.length


def waves(flow: Flow) -> tuple[Floats, Floats, Floats]:
    """Wave numbers along x and along y, and 1 / k^2 (0 for the mean)."""
    scale = unit(flow)
    return columns(flow.n) * scale, rows(flow.n) * scale, inverse_squares(flow, squares(flow.n))


def inverse_squares(flow: Flow, square: npt.NDArray[np.int64]) -> Floats:
    """1 / k^2 of modes with these k_x^2 + k_y^2 in units of (2 pi / L)^2, and 0 for the mean."""
    scale = unit(flow)
    scaled = square * (scale * scale)
    return np.where(scaled > 0, 1.0 / np.where(scaled > 0, scaled, 1.0), 0.0)


def counted(n: int) -> Floats:
    """How many modes of the whole spectrum a mode of the half stands for: itself, and its conjugate."""
    weight = np.full((n, n // 2 + 1), 2.0)
    weight[:, 0] = weight[:, n // 2] = 1.0
    return weight


def clear_aliased(modes: Floats) -> None:
    """Sets the modes (n, n/2 + 1, ...) that do not stay to 0."""
    n = len(modes)
    cut = (n - 1) // 3
    modes[cut + 1 : n - cut] = 0
    modes[:, cut + 1 :] = 0


def truncated(modes: Floats, n: int) -> Floats:
    """Modes that are not kept, and the mean, set to 0."""
    keep = dealiased(n)
    keep[0, 0] = False
    return np.where(keep[..., None], modes, 0.0)


def to_modes(field: npt.ArrayLike, device: Device | None = None) -> Floats:
    """The kept modes of real fields (..., n, n), in float64, divided by n^2: what the solver calls its state. By the
    portable transform, on a `device` where it is large and the device has float64, so that every machine starts from
    the same bits."""
    values = np.asarray(field, np.float64)
    n = values.shape[-1] if values.ndim >= 2 else 0
    if values.ndim < 2 or values.shape[-2] != n:
        raise InputError(f"a field has shape {values.shape}.", "pass square fields, (n, n) or (members, n, n).")
    fields = np.ascontiguousarray(canon(values)).reshape(-1, n, n)
    if device is not None and n >= _LARGE and "float64" in device.limits.features:
        planned = plan(device, fields.shape, "rfft2", dtype=np.float64, norm="forward")
        full = planned.run(device.array(fields)).numpy()
    else:
        lines = forward_real(fields.reshape(-1, n), real_table(n, np.float64), 1.0, raw=2)
        full = transform(lines.reshape(-1, n, n // 2 + 1, 2), table(n, np.float64), False, 1.0 / (n * n), raw=1)
    return truncated(full, n).reshape(*values.shape[:-2], n, n // 2 + 1, 2)


def to_field(modes: npt.ArrayLike) -> Floats:
    """Real fields (..., n, n) from states, in the type of the state: the inverse of `to_modes` on kept modes."""
    values = np.ascontiguousarray(modes)
    n = values.shape[-3]
    columns_done = transform(values.reshape(-1, n, n // 2 + 1, 2), table(n, values.dtype), True, 1.0)
    lines = inverse_real(columns_done.reshape(-1, n // 2 + 1, 2), real_table(n, values.dtype), n, 1.0)
    return lines.reshape(*values.shape[:-3], n, n)
