"""The full solver between frames, reduced to z at every one of them: nothing but z is carried from frame to frame.

A baseline: what the exact equations give a model that has no closure and no memory. It costs as much as the full
solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dashi.flow.grid import Floats
from dashi.flow.proxy._perfect import Perfect
from dashi.flow.proxy.model import Model
from dashi.flow.proxy.states import require_start
from dashi.runtime.device import Device


@dataclass(frozen=True, eq=False)
class Restarted(Perfect):
    """`Perfect`, started anew from the z of every frame."""

    name: ClassVar[str] = "restarted"
    rollout_fields = None  # pyright: ignore[reportAssignmentType]
    advance_by_pieces = Model.advance_by_pieces

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        start = require_start(self.schema, z0, self.flow.numpy_dtype)
        z = np.empty((len(start), frames + 1, self.schema.size), start.dtype)
        z[:, 0] = start
        for frame in range(frames):
            if not np.isfinite(z[:, frame]).all():
                z[:, frame + 1 :] = np.nan
                break
            z[:, frame + 1] = super().advance(z[:, frame], 1, device=device)[:, 1]
        return z

    @property
    def has_hidden_state(self) -> bool:
        return False

    @property
    def description(self) -> str:
        return "the full solver between frames, reduced to z at each"
