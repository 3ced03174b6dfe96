"""The models that know no dynamics, which every other must beat: nothing changes, and everything fades."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dashi.core.operators.operator import require_finite
from dashi.errors import ShapeError
from dashi.flow.grid import Floats
from dashi.flow.proxy.model import ON_HOST, Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import encoded, require_start, with_updated_scalars
from dashi.flow.windows import Windows
from dashi.runtime.device import Device
from dashi.types import HostArray


@dataclass(frozen=True, eq=False)
class Persistence(Model):
    """z(t) = z(0)."""

    name: ClassVar[str] = "persistence"

    schema: Schema
    interval: float

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> Persistence:  # fmt: skip
        return cls(schema, cls.begin(schema, train, validation, options, device=device))

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        start = require_start(self.schema, z0, np.asarray(z0).dtype)
        return np.repeat(start[:, None], frames + 1, axis=1)

    def where(self, device: Device, states: int) -> str:
        return ON_HOST

    @property
    def state_size(self) -> int:
        return 2 * len(self.schema.modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {}

    @classmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray],
        parameters: Mapping[str, int | float | str],
    ) -> Persistence:  # fmt: skip
        return cls(schema, interval)

    @property
    def description(self) -> str:
        return "nothing changes"


@dataclass(frozen=True, eq=False)
class Damped(Model):
    """w_k(t) = m_k + a_k^t (w_k(0) - m_k), t in frames: each mode fades towards its mean by a factor of its own.

    a_k = sum Re(w'_k conj(w_k)) / sum |w_k|^2 over consecutive frames of the training windows, less the mean, from 0
    to 1. Over an ensemble that looks the same everywhere this is the best linear map (and m = 0): modes of different k
    are uncorrelated there. m is that of the training windows where the flow is forced, else 0.
    """

    name: ClassVar[str] = "damped"

    schema: Schema
    interval: float
    damping: Floats
    """a_k, (K,)"""
    mean: Floats
    """m_k as pairs, (2 K,)"""

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> Damped:  # fmt: skip
        interval = cls.begin(schema, train, validation, options, device=device)
        if train.frames < 2:
            raise ShapeError("a window of one frame says nothing of how modes fade.", "give windows of two or more.")
        modes = encoded(schema, train, device=device)[..., schema.parts["modes"]].astype(np.float64)
        mean = modes.mean(axis=(0, 1)) if train.flow.forcing is not None else np.zeros(modes.shape[-1])
        before, after = modes[:, :-1] - mean, modes[:, 1:] - mean
        both = (before * after).sum(axis=(0, 1)).reshape(-1, 2).sum(axis=1)
        one = (before * before).sum(axis=(0, 1)).reshape(-1, 2).sum(axis=1)
        damping = np.clip(both / np.where(one > 0, one, 1.0), 0.0, 1.0)
        return cls(schema, interval, damping, mean)

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        start = require_start(self.schema, z0, np.asarray(z0).dtype)
        modes = start[:, self.schema.parts["modes"]].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is told by `rollout`
            factors = np.repeat(self.damping, 2)[None, :] ** np.arange(frames + 1)[:, None]
            made = (self.mean + factors * (modes - self.mean)[:, None]).astype(start.dtype)
        return with_updated_scalars(self.schema, start, made)

    def where(self, device: Device, states: int) -> str:
        return ON_HOST

    @property
    def state_size(self) -> int:
        return 2 * len(self.schema.modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"damping": self.damping, "mean": self.mean}

    @classmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray],
        parameters: Mapping[str, int | float | str],
    ) -> Damped:  # fmt: skip
        count = len(schema.modes)
        damping, mean = arrays["damping"], arrays["mean"]
        if damping.shape != (count,) or mean.shape != (2 * count,):
            raise ShapeError(f"the arrays of a damped model do not fit {count} modes.", "fit it again.")
        require_finite("damping", damping)
        require_finite("mean", mean)
        return cls(schema, interval, damping, mean)

    @property
    def description(self) -> str:
        return f"each mode fades by its own factor, {self.damping.min():.2f} to {self.damping.max():.2f} a frame"
