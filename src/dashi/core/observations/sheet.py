"""The sheet: band energies over time, a record `[T, B]` of one row for every observed step.

It is kept as `sheet_energy.npy` in the folder of a run, and looked at as a picture (time to the right, bands upwards)
or as a short film in which every step pushes the older ones down and lets them fade. Kernels colour the pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from dashi.core.observations.png import Pixels
from dashi.errors import DTypeError, InputError, ShapeError
from dashi.io.arrays import read_array, write_array
from dashi.kernels.portable import log
from dashi.kernels.view import images
from dashi.runtime.device import Device
from dashi.types import HostArray

Scale = Literal["log", "linear"]
Floats = npt.NDArray[np.float64]

KEY: Final = "sheet_energy"
"""The name of a sheet in an .npz file."""
DECADES: Final = 12
"""How far below the largest energy the logarithmic scale reaches."""
OLDEST: Final = 0.2
"""How bright the oldest row of a film is, beside the newest."""


@dataclass(frozen=True)
class SheetStyle:
    """How a sheet is drawn. Sizes are limits: every step and band gets a whole number of pixels, at least one; where
    there are more steps than pixels, neighbours are averaged."""

    scale: Scale = "log"
    width: int = 960
    height: int = 480
    frames: int = 120
    seconds: float = 6.0

    @property
    def milliseconds(self) -> int:
        """How long a frame is shown."""
        return max(1, round(1000 * self.seconds / self.frames))


def save_sheet(path: Path, energies: npt.ArrayLike) -> None:
    """Writes the record, all or nothing."""
    write_array(path, require_sheet(np.asarray(energies), "the record"))


def load_sheet(path: Path) -> HostArray:
    """Reads a record from an .npy file (or from an .npz file that has one under `sheet_energy`), trusting nothing."""
    return require_sheet(read_array(path, KEY), str(path))


def require_sheet(values: HostArray, where: str) -> HostArray:
    """The values, if they are a record of energies: an error that says why not otherwise."""
    if values.ndim != 2:
        raise ShapeError(
            f"{where} has {values.ndim} dimensions (shape {values.shape}); a sheet has two, steps and bands.",
            "pass an array [T, B]: one row of band energies for every observed step.",
        )
    if values.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"{where} holds {values.dtype}; a sheet holds float32 or float64.", "convert it.")
    return values


def example_sheet() -> HostArray:
    """A record made up to be looked at: sixteen bands that swing and die out, the higher ones faster."""
    t, band = np.arange(360.0)[:, None], np.arange(16.0)[None, :]
    swing = 1.1 + np.sin(2 * np.pi * t / (24 + 6 * band))
    return (swing * np.exp(-band / 3 - t * (1 + band) / 900)).astype(np.float32)


def draw(device: Device, sheet: HostArray, look: SheetStyle | None = None, *, nonfinite: bool = False) -> Pixels:
    """The picture of a sheet, (h, w, 3) bytes: time to the right, bands upwards. `nonfinite` allows values that are not
    finite and shows them in magenta."""
    chosen = look or SheetStyle()
    shown, (lo, hi) = _shown(sheet, chosen, (chosen.width, chosen.height), nonfinite)
    steps, bands = shown.shape
    wide, tall = max(1, chosen.width // steps), max(1, chosen.height // bands)
    field = np.repeat(np.repeat(shown.T[::-1], tall, axis=0), wide, axis=1)
    return _pixels(device.run("colour_map", np.ascontiguousarray(field), images.heat(), lo=lo, hi=hi))


def film(
    device: Device, sheet: HostArray, look: SheetStyle | None = None, *, nonfinite: bool = False
) -> Iterator[Pixels]:
    """The frames of a film, made one by one on the device: the newest step on top, older ones further down, fading."""
    chosen = look or SheetStyle()
    shown, (lo, hi) = _shown(sheet, chosen, (chosen.frames, chosen.width), nonfinite)
    steps, bands = shown.shape
    rows = max(1, chosen.height // steps)
    size: dict[str, Any] = {"h": rows * steps, "w": bands * max(1, chosen.width // bands), "rows": rows}
    values, table = device.array(shown), device.array(images.heat())
    weights = device.array(images.fade(OLDEST ** (1 / steps), steps))
    for t in range(steps):
        made = device.run("sheet_expand_fade", values, table, weights, **size, t=t, lo=lo, hi=hi)
        yield _pixels(made)


def film_length(sheet: HostArray, look: SheetStyle | None = None) -> int:
    """How many frames a film has: one for every step, unless there are more than the look allows."""
    return min(sheet.shape[0], (look or SheetStyle()).frames)


def _pixels(image: Any) -> Pixels:
    return np.ascontiguousarray(images.unpack(image.numpy())[..., :3])


def _shown(
    sheet: HostArray, look: SheetStyle, most: tuple[int, int], nonfinite: bool
) -> tuple[npt.NDArray[np.float32], tuple[float, float]]:
    """What is coloured, of at most so many steps and bands, and the values of the first and the last colour."""
    energies = np.asarray(require_sheet(sheet, "the record"), np.float64)
    if not energies.size:
        raise InputError(
            f"a sheet of shape {sheet.shape} has nothing to show.", "record at least one step and one band."
        )
    finite = np.isfinite(energies)
    if not nonfinite and not finite.all():
        step, band = (int(i) for i in np.argwhere(~finite)[0])
        raise InputError(
            f"the energy of band {band} in row {step} is {energies[step, band]}; "
            f"{int((~finite).sum())} of {finite.size} values are not finite.",
            "cut the sheet there, or allow such values (`nonfinite=True`): they are shown in magenta.",
        )
    largest = float(np.abs(energies[finite]).max(initial=0.0)) or 1.0
    # Of the largest energy, so that any magnitude can be drawn; what is not finite becomes NaN, which has a colour.
    parts = np.where(finite, energies, np.nan) / largest
    for axis in (0, 1):
        parts = _averaged(parts, axis, most[axis])
    if look.scale == "linear":
        return parts.astype(np.float32), (min(0.0, float(np.nanmin(parts, initial=0.0))), 1.0)
    floor = 10.0**-DECADES
    logs = log(np.where(np.isnan(parts), np.nan, np.maximum(parts, floor))) / np.log(10)
    low = min(float(np.nanmin(logs, initial=0.0)), -0.1)
    return logs.astype(np.float32), (low, 0.0)


def _averaged(values: Floats, axis: int, most: int) -> Floats:
    """At most so many rows (or columns), each the mean of neighbours."""
    count = values.shape[axis]
    if count <= most:
        return values
    starts = np.arange(most) * count // most
    sums = np.add.reduceat(values, starts, axis)
    lengths = np.diff(np.append(starts, count))
    return sums / (lengths[:, None] if axis == 0 else lengths[None, :])
