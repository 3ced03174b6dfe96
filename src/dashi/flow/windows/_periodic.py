"""Whether a record is of a periodic box: the last point along a side must be followed by the first as smoothly as any
point is by its neighbour. A part that was cut out of a larger box is not."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.flow.grid import Floats

MOST: Final = 4.0
"""Fourth differences across the edge, over the largest inside, from which a record is refused. Flows in periodic boxes
have up to 1.7, wherever the box begins; a lone vortex of 1.5 points right on the edge has 3.6. Parts of turbulent flows
have 2 (32 points) to 13 (128 points)."""
DOUBTFUL: Final = 2.0
_FRAMES: Final = 64
"""Frames that are looked at, spread over the record."""
_POINTS: Final = 8
"""Along a side, below which there is no inside to compare with."""


def edge_ratio(values: Floats) -> float:
    """The root mean square of fourth differences across the edge over the largest inside, of fields (..., n, n): the
    larger of both sides of the box."""
    fields = np.asarray(values, np.float64).reshape(-1, *values.shape[-2:])
    some = np.unique(np.linspace(0, len(fields) - 1, min(_FRAMES, len(fields))).astype(np.int64))
    return max(_side_ratio(np.moveaxis(fields[some], axis, -1)) for axis in (-1, -2))


def _side_ratio(fields: Floats) -> float:
    if fields.shape[-1] < _POINTS:
        return 0.0
    # Two points of the other end on either side: the first and the last two differences are those across the edge.
    around: Any = np.concatenate([fields[..., -2:], fields, fields[..., :2]], axis=-1)
    differences = np.diff(around, 4, axis=-1)
    sizes = np.sqrt((differences * differences).reshape(-1, fields.shape[-1]).mean(axis=0))
    across, inside = max(sizes[:2].max(), sizes[-2:].max()), sizes[2:-2].max()
    # A field that is the same everywhere along this side has rounding alone.
    floor = 1e-6 * float(np.abs(fields).max(initial=0.0))
    return float(across / max(inside, floor)) if across > floor else 0.0


def require_periodic(name: str, values: Floats) -> None:
    """Refuses a record that does not close across the edges of its box, and warns of one that may not."""
    ratio = edge_ratio(values)
    doubt = (
        f"{name!r} does not go on smoothly across the edges of the box: it jumps {ratio:.1f} times as much as inside"
    )
    if ratio > MOST:
        raise InputError(
            f"{doubt}, so the box is not periodic.",
            "pass the whole of a periodic box: a part of one is none, and taking its mean off does not make it one. Of "
            "a box that is periodic for certain, say periodic=True.",
        )
    if ratio > DOUBTFUL:
        warnings.warn(f"{doubt}; in a periodic box that is rare. Is it a part of one?", stacklevel=4)
