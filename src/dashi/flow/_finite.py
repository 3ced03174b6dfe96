"""Frames that came back from a rollout: all of them finite, or an error that says which is the first that is not."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashi.errors import NonFiniteError
from dashi.flow.grid import Floats


def finite_frames(frames: Floats) -> int:
    """Frames (m, frames, ...) before the first that holds a value that is not finite."""
    finite: Any = np.isfinite(frames)
    if finite.all():
        return int(frames.shape[1])
    return int(np.argmin(finite.reshape(*frames.shape[:2], -1).all(axis=(0, 2))))


def require_finite_frames(frames: Floats, what: str, *, fix: str = "") -> Floats:
    """The frames (m, frames, ...), which start with the given one. The `rollout` of a NonFiniteError is what came
    before the first that is not finite."""
    good = finite_frames(frames)
    if good < frames.shape[1]:
        odd = int((~np.isfinite(frames[:, good])).sum())
        error = NonFiniteError(
            f"{odd} values of {what} are not finite after frame {good} of {frames.shape[1] - 1}.",
            fix or "fit it again, with more data, or let it go on: stop_on_nonfinite=False.",
        )
        error.rollout = frames[:, :good]
        raise error
    return frames
