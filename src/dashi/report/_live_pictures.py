"""Pictures for a look at a run that is under way: small, by NumPy alone, made for whoever asks for one."""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np

from dashi.core.observations.png import Pixels, write_png
from dashi.flow.decode._looks import diverging, nice_span
from dashi.kernels.view.images import heat, unpack
from dashi.types import HostArray

POINTS: Final = 256
"""Points of a field along a side that are shown, at most: of a finer one every second, third, ... is."""
DECADES: Final = 8
"""How far below the largest energy of a sheet its colours reach."""
_BROKEN: Final = (255, 0, 255)
_TALL: Final = 192


def field_pixels(field: HostArray, most: int = POINTS) -> tuple[Pixels, float, int]:
    """A field (n, n) of both signs in colours, the value of the last colour, and of how many points one is shown.
    Values that are not finite are magenta."""
    stride = -(-max(field.shape) // most)
    shown: Any = np.asarray(field[::stride, ::stride], np.float64)
    finite = np.isfinite(shown)
    held = shown[finite]
    span = nice_span(float(held.min(initial=0.0)), float(held.max(initial=0.0)))
    return _coloured(shown, finite, -span, span, unpack(diverging())), span, stride


def sheet_pixels(rows: HostArray) -> Pixels:
    """Energies (rows, bands) in colours, by their logarithms: time to the right, bands upwards."""
    energies: Any = np.asarray(rows, np.float64)
    finite = np.isfinite(energies)
    largest = float(np.abs(energies[finite]).max(initial=0.0)) or 1.0
    parts = np.maximum(np.where(finite, energies, 1.0) / largest, 10.0**-DECADES)
    picture = _coloured(np.log10(parts), finite, -DECADES, 0.0, unpack(heat()))
    tall = max(1, _TALL // picture.shape[1])
    return np.ascontiguousarray(np.repeat(picture.transpose(1, 0, 2)[::-1], tall, axis=0))


def png(picture: Pixels) -> bytes:
    """The picture as a file."""
    file = io.BytesIO()
    write_png(file, picture)
    return file.getvalue()


def _coloured(values: HostArray, finite: Any, low: float, high: float, table: Pixels) -> Pixels:
    places = np.clip((np.where(finite, values, low) - low) / (high - low) * 255, 0, 255).astype(np.int64)
    picture = table[places][..., :3]
    picture[~finite] = _BROKEN
    return np.ascontiguousarray(picture)
