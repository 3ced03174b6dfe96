"""The perfect model: the full solver, started from what z holds, with zeros for the rest. For evaluation only.

It knows the dynamics exactly and nothing of the start beyond z. That is no bound to what a model of z can do: where the
flow has something at the start this has zeros, and a model with a good guess of it, or of what comes of it on average,
follows longer at times (docs/closures.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dashi.core.rollouts.run import Run
from dashi.flow._finite import require_finite_frames
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.lowpass import decode_states
from dashi.flow.proxy.model import TRANSFORMS, Model, counts
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import require_start, steps_of
from dashi.flow.simulation import simulate
from dashi.flow.windows import Windows
from dashi.kernels.portable import canon
from dashi.runtime.device import Device
from dashi.runtime.using import using_device
from dashi.types import HostArray


@dataclass(frozen=True, eq=False)
class Perfect(Model):
    """All modes of the solver, those that z does not hold from 0."""

    name: ClassVar[str] = "perfect"

    schema: Schema
    interval: float
    flow: Flow

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> Perfect:  # fmt: skip
        return cls(schema, cls.begin(schema, train, validation, options, device=device), train.flow)

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        start = require_start(self.schema, z0, self.flow.numpy_dtype)
        z = np.empty((len(start), frames + 1, self.schema.size), start.dtype)

        def take(frame: int, fields: Floats) -> None:
            z[:, frame] = self._encoded(fields, device)

        self._run(start, frames, device, take)
        z[:, 0] = start
        return z

    def advance_by_pieces(self, z0: Floats, frames: int, *, device: Device, most: int) -> Iterator[Floats]:
        start = require_start(self.schema, z0, self.flow.numpy_dtype)
        states = canon(decode_states(self.schema, start, device=device))
        run, done = None, 0
        for count in counts(frames, most):
            z = np.empty((len(start), count, self.schema.size), start.dtype)
            run = self._advanced(run, states, done, z, device)
            done += count
            yield z

    @property
    def has_hidden_state(self) -> bool:
        return True

    def _advanced(self, run: Run | None, states: Floats, done: int, z: Floats, device: Device) -> Run:
        """Fills `made` (m, frames, D) with the frames after the first `done`; nothing of them is read back but z."""
        steps = round(self.interval / self.flow.dt)

        def frame(step: int, fields: Mapping[str, Floats]) -> None:
            if step:  # the start is handed out too
                z[:, step // steps - done - 1] = self._encoded(fields["vorticity"], device)

        end = (done + z.shape[1]) * steps
        return simulate(
            self.flow, states, end, device=device, frame_every=steps, frame=frame,
            host_fft=device.info.type == "reference", stop_on_nonfinite=False, resume=run,
        )  # fmt: skip

    def _encoded(self, fields: Floats, device: Device) -> Any:
        """z of the fields; not a number where they are none."""
        return encode(self.schema, fields, device=device) if np.isfinite(fields).all() else math.nan

    def rollout_fields(
        self, z0: Floats, frames: int, *, device: Device | str, stop_on_nonfinite: bool = True
    ) -> Floats:
        """Vorticity (m, frames + 1, n, n): what this model itself decodes, with all that grew beyond z. A value that is
        not finite raises NonFiniteError, as in `rollout`."""
        start = require_start(self.schema, z0, self.flow.numpy_dtype)
        vorticity = np.empty((len(start), frames + 1, self.schema.n, self.schema.n), start.dtype)

        def take(frame: int, fields: Floats) -> None:
            vorticity[:, frame] = fields

        with using_device(device) as opened:
            self._run(start, frames, opened, take)
        return require_finite_frames(vorticity, "the perfect model") if stop_on_nonfinite else vorticity

    def _run(self, start: Floats, frames: int, device: Device, take: Callable[[int, Floats], None]) -> None:
        steps = round(self.interval / self.flow.dt)
        states = canon(decode_states(self.schema, start, device=device))

        def frame(step: int, fields: Mapping[str, Floats]) -> None:
            take(step // steps, fields["vorticity"])

        simulate(
            self.flow, states, frames * steps, device=device, frame_every=steps, frame=frame,
            host_fft=device.info.type == "reference", stop_on_nonfinite=False,
        )  # fmt: skip

    def where(self, device: Device, states: int) -> str:
        return TRANSFORMS if device.info.type == "reference" else device.info.name

    @property
    def state_size(self) -> int:
        return 2 * len(self.schema.modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {}

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        return {f"flow_{name}": value for name, value in self.flow.parameters.items()}

    @classmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray],
        parameters: Mapping[str, int | float | str],
    ) -> Perfect:  # fmt: skip
        flow = Flow.restore({name.removeprefix("flow_"): value for name, value in parameters.items()})
        schema.require_flow(flow)
        steps_of(interval, flow)
        return cls(schema, interval, flow)

    @property
    def description(self) -> str:
        return "the full solver from the lowpass start"
