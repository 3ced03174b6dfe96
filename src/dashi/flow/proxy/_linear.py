"""Linear maps of the held modes, fitted on the device: ridge, z' = z A, and delays, z' from the last few z.

A map that is linear in z cannot generalise to flows that look the same everywhere: over such an ensemble modes of
different wave numbers are uncorrelated, so the best one is damped persistence. They are here to show it.

Ridge: A. Hoerl and R. Kennard, Technometrics 12, 1970, doi 10.1080/00401706.1970.10488634. The map of least squares
over snapshots is dynamic mode decomposition (P. Schmid, J. Fluid Mech. 656, 2010, doi 10.1017/S0022112010001217); with
delays, its Hankel form (H. Arbabi and I. Mezic, SIAM J. Appl. Dyn. Syst. 16, 2017, doi 10.1137/17M1125236).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from dashi.core.learning.ridge import LARGEST, ridge
from dashi.core.operators.affine import Linear
from dashi.core.operators.operator import require_finite
from dashi.errors import InputError, ShapeError
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy._frame_recording import record_frames
from dashi.flow.proxy._judge import Judge
from dashi.flow.proxy._options import Number, Option, require_options
from dashi.flow.proxy.model import Model, counts
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import encoded, no_progress, require_start, with_updated_scalars
from dashi.flow.windows import Windows
from dashi.kernels.portable import canon
from dashi.runtime.device import Device
from dashi.types import HostArray

PENALTIES: Final = (1e-3, 1e-2, 1e-1, 1.0)
"""Tried on validation windows, in units of the mean of the diagonal of Z^T Z."""
USUAL: Final = 1e-2
"""Without validation windows."""
MOST_PAIRS: Final = 8192
"""Pairs of frames that are fitted, spread evenly over all."""
DELAYS: Final = 2


@dataclass(frozen=True, eq=False)
class Delay(Model):
    """w(t + 1) = sum of w(t - i) A_i over the last `delays` frames.

    A rollout starts from one frame: its first steps are made by the maps of as many frames as there are by then. All
    of them are fitted, `maps[j]` from j + 1 frames, (j + 1, 2 K, 2 K).
    """

    name: ClassVar[str] = "delay"
    takes: ClassVar[Mapping[str, Option]] = {"delays": Number(1, whole=True), "penalty": Number(0.0)}
    usual_delays: ClassVar[int] = DELAYS

    schema: Schema
    interval: float
    maps: tuple[Floats, ...]
    penalty: float

    @classmethod
    def check(
        cls, schema: Schema, flow: Flow, frames: int, options: Mapping[str, Any], *, device: Device
    ) -> None:  # fmt: skip
        super().check(schema, flow, frames, options, device=device)
        _require_delays(int(options.get("delays", cls.usual_delays)), frames, 2 * len(schema.modes))

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> Delay:  # fmt: skip
        """Options: `delays`, and `penalty` (else chosen on validation windows; 1e-2 without any)."""
        interval = cls.begin(schema, train, validation, options, device=device)
        delays = int(options.get("delays", cls.usual_delays))
        modes = encoded(schema, train, device=device)[..., schema.parts["modes"]]
        report_progress = progress or no_progress
        asked_penalty = options.get("penalty")

        def fitted_with(penalty: float) -> Delay:
            maps = tuple(_fitted(modes, j + 1, penalty, device) for j in range(delays))
            report_progress(1)
            return cls(schema, interval, tuple(m.astype(modes.dtype) for m in maps), penalty)

        if asked_penalty is not None or validation is None:
            return fitted_with(USUAL if asked_penalty is None else float(asked_penalty))
        return max((fitted_with(penalty) for penalty in PENALTIES), key=Judge(schema, validation, device).score)

    @property
    def delays(self) -> int:
        """Frames that a step is made of."""
        return len(self.maps)

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        kind = self.maps[0].dtype
        start = require_start(self.schema, z0, kind)
        parts = [*self.advance_by_pieces(z0, frames, device=device, most=max(1, frames))]
        return np.concatenate([start[:, None], *parts], axis=1)

    def advance_by_pieces(self, z0: Floats, frames: int, *, device: Device, most: int) -> Iterator[Floats]:
        start = require_start(self.schema, z0, self.maps[0].dtype)
        modes = canon(np.ascontiguousarray(start[:, self.schema.parts["modes"]]))
        width = modes.shape[1]
        history = np.zeros((len(modes), self.delays * width), modes.dtype)
        history[:, :width] = modes
        done = 0
        for count in counts(frames, most):
            looks = self._advanced(history, done, count, device)
            history, done = looks[-1], done + count
            made = np.concatenate([modes[None], looks[:, :, :width]])
            yield with_updated_scalars(self.schema, start, np.ascontiguousarray(np.moveaxis(made, 0, 1)))[:, 1:]

    @property
    def has_hidden_state(self) -> bool:
        return self.delays > 1

    def _advanced(self, history: Floats, done: int, frames: int, device: Device) -> Floats:
        """The last frames of each of so many more, newest first: (frames, m, delays 2 K)."""
        looks: list[Floats] = []
        last, left = history, frames
        for number in range(min(done, self.delays - 1), self.delays):
            count = min(1, left) if number + 1 < self.delays else left
            if count > 0:
                looks.append(record_frames(Linear(self._companion(number)), last, count, 1, device=device))
                last, left = looks[-1][-1], left - count
        return np.concatenate(looks)

    def _companion(self, number: int) -> Floats:
        """The map of the last frames, newest first, to those a frame later: by `maps[number]`."""
        maps, width, delays = self.maps[number], self.maps[0].shape[1], self.delays
        companion = np.zeros((delays * width, delays * width), maps.dtype)
        companion[: (number + 1) * width, :width] = maps.reshape(-1, width)
        # Every frame but the oldest moves on by one.
        companion[: (delays - 1) * width, width:] = np.eye((delays - 1) * width, dtype=maps.dtype)
        return companion

    @property
    def state_size(self) -> int:
        return self.delays * 2 * len(self.schema.modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {f"map_{j}": maps for j, maps in enumerate(self.maps)}

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        return {"penalty": float(self.penalty), "delays": self.delays}

    @classmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray],
        parameters: Mapping[str, int | float | str],
    ) -> Delay:  # fmt: skip
        delays, width = int(parameters["delays"]), 2 * len(schema.modes)
        if not 1 <= delays <= len(arrays):
            raise InputError(f"there are {delays} delays and {len(arrays)} maps.", "fit the model again.")
        maps = tuple(arrays[f"map_{j}"] for j in range(delays))
        for j, map_ in enumerate(maps):
            if map_.shape != (j + 1, width, width) or map_.dtype != maps[0].dtype or map_.dtype.kind != "f":
                raise ShapeError(f"map {j} has shape {map_.shape}, not ({j + 1}, {width}, {width}).", "fit it again.")
            require_finite(f"map {j}", map_)
        require_options(cls.name, {"penalty": parameters["penalty"]}, cls.takes)
        return cls(schema, interval, maps, float(parameters["penalty"]))

    @property
    def description(self) -> str:
        return f"linear in the last {self.delays} frames, penalty {self.penalty:g}"


class Ridge(Delay):
    """w(t + 1) = w(t) A."""

    name: ClassVar[str] = "ridge"
    takes: ClassVar[Mapping[str, Option]] = {"penalty": Number(0.0)}
    usual_delays: ClassVar[int] = 1

    @property
    def description(self) -> str:
        return f"z A by ridge, penalty {self.penalty:g}"


def _require_delays(delays: int, frames: int, width: int) -> None:
    if delays < 1 or delays >= frames or delays * width > LARGEST:
        most = min(frames - 1, LARGEST // width)
        raise InputError(
            f"{delays} delays of {width} numbers do not fit windows of {frames} frames and {LARGEST} features.",
            f"use 1 to {most} delays." if most else f"use a smaller k_cut: at most {LARGEST} numbers are fitted.",
        )


def _fitted(modes: Floats, delays: int, penalty: float, device: Device) -> Floats:
    """The map from `delays` frames, newest first, (delays, 2 K, 2 K)."""
    width, last = modes.shape[-1], modes.shape[1] - 1
    parts = [modes[:, delays - 1 - i : last - i].reshape(-1, width) for i in range(delays)]
    features, targets = np.concatenate(parts, axis=1), modes[:, delays:].reshape(-1, width)
    some = np.unique(np.linspace(0, len(features) - 1, min(MOST_PAIRS, len(features))).astype(np.int64))
    z = features[some].astype(np.float64)
    scale = float((z * z).sum()) / z.shape[1]
    made = _solved(z, targets[some].astype(np.float64), max(penalty * scale, 1e-300), device)
    return made.reshape(delays, width, width)


def _solved(z: Floats, y: Floats, lam: float, device: Device) -> Any:
    """The ridge fit by kernels; on the NumPy device by its own solver, since the references would take minutes."""
    if device.info.type != "reference":
        return ridge(z, y, lam, device=device)
    return np.linalg.solve(z.T @ z + lam * np.eye(z.shape[1]), z.T @ y)
