"""A model of proxies as an operator of the host, so that `rollout` advances it like any other: with observers, Ctrl-C
and a `Run` at the end. The model has a rollout of its own, which may use kernels, and brings its z to the host.

    operator = ModelOperator(model, frames=1000, device=device)
    run = operator.rollout(z0, observers=[Decodes(decoder, 10)])
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dashi.core.metrics._dispatch_count import counted
from dashi.core.operators.operator import HostOperator, Operator, OperatorFacts, Parameter
from dashi.core.rollouts._guard import FiniteCheck, RangeCheck
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import FeatureError, Interrupted, NonFiniteError
from dashi.flow._finite import finite_frames
from dashi.flow.proxy.model import Model
from dashi.runtime._cpu_device import cpu_info
from dashi.runtime.device import Device
from dashi.types import HostArray, Shape

HOST_REASON: Final = "the model's own rollout, by NumPy on the host: it has no kernels"
PIECE: Final = 64
"""Frames of a model between two chances to stop: few enough for seconds, enough to hide what each piece records anew.
The same whatever is asked for, so that a rollout that goes on from a z has the same pieces."""


class ModelOperator(HostOperator):
    """Frames of a model on a device, at most `frames` of them; z of the element type `dtype`. Its dispatches are the
    model's own, those of observers left out: none are those of a model that runs on the host."""

    kind = "model"
    strategy = "stepwise"
    piece = PIECE

    def __init__(self, model: Model, frames: int, device: Device, dtype: Any = np.float32) -> None:
        self.model, self.frames, self.device = model, frames, device
        self._dtype = np.dtype(dtype)
        self.seconds = 0.0
        """Seconds that the model took so far, those of observers left out."""

    @property
    def shape(self) -> Shape:
        return (self.model.schema.size,)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {}

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def facts(self) -> OperatorFacts:
        return OperatorFacts(self.model.name, self.shape, self.dtype, portable=False)

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        raise FeatureError("a model is no operator of a file.", "load it with dashi.flow.proxy.load_model.")

    @property
    def host_reason(self) -> str:
        return "the model's own rollout"

    def runs_beside(self, device: Device) -> bool:
        return device is self.device and device.info.type != "null"

    def stepper(self, states: HostArray) -> ModelStepper:
        return ModelStepper(self, states)

    def rollout(self, z0: HostArray, **options: Any) -> Run:
        """All frames from z0 (m, D); `options` are those of `core.rollout`. A value that is not finite raises
        NonFiniteError, whose `rollout` is the Run until then. Ctrl-C ends it after the piece that is under way, a
        second one at once: Interrupted, whose `partial` is the Run so far."""
        try:
            guard = _NotFinite(self.model)
            run = rollout(self, z0.astype(self.dtype), self.frames, device=self.device, guard=guard, **options)
        except Interrupted as stop:
            raise Interrupted(self._as_it_ran(stop.partial)) from stop
        except NonFiniteError as error:
            error.rollout = self._as_it_ran(error.rollout)
            raise
        return self._as_it_ran(run)

    def _as_it_ran(self, run: Run) -> Run:
        """The run, with where and how the model ran, and its seconds alone."""
        on_host = not run.dispatches and self.device.info.type != "reference"
        device = cpu_info() if on_host else self.device.info
        return replace(run, device=device, reason=self._reason(len(run.state), on_host=on_host), seconds=self.seconds)

    def _reason(self, states: int, *, on_host: bool) -> str:
        """How the model ran, in its own words where it has some."""
        if on_host:
            return HOST_REASON
        words = self.model.explain(self.device, states)
        return f"the model's own rollout, {words[1]}" if words else "the model's own rollout"


class ModelStepper:
    """A model under way. It computes `PIECE` frames at a time, and stops before the first that is not finite."""

    def __init__(self, operator: ModelOperator, states: HostArray) -> None:
        self._operator = operator
        model, device = operator.model, operator.device
        self._pieces = model.advance_by_pieces(states, operator.frames, device=device, most=PIECE)
        self._last = states
        self._frames: HostArray = states[:, None]
        """The piece that it is in, (m, frames, D)."""
        self._next = self._finite = 1
        """The number of the next frame of the piece, and how many of them are finite."""
        self.dispatches = 0

    def advance(self, steps: int) -> int:
        done = 0
        while done < steps:
            if self._next == self._frames.shape[1]:
                self._compute()
            count = min(steps - done, self._finite - self._next)
            if count == 0:
                break
            self._next += count
            done += count
            self._last = self._frames[:, self._next - 1]
        return done

    def _compute(self) -> None:
        began = time.perf_counter()
        with counted(self._operator.device) as count:
            frames = next(self._pieces)
        with np.errstate(over="ignore"):  # what float32 cannot hold is told as not finite
            self._frames = np.ascontiguousarray(frames.astype(self._operator.dtype))
        self._next, self._finite = 0, finite_frames(self._frames)
        self.dispatches += count.dispatches
        self._operator.seconds += time.perf_counter() - began

    def states(self) -> HostArray:
        return np.ascontiguousarray(self._last)

    def finite(self) -> bool:
        return True


class _NotFinite:
    """Says of which model the z is not finite, and after which frame."""

    check: FiniteCheck = RangeCheck()

    def __init__(self, model: Model) -> None:
        self._model = model

    def checks(self, *, last: bool, seen: Collection[str]) -> bool:
        """Nowhere: the model stops by itself."""
        return False

    def error(self, what: str, run: Run) -> NonFiniteError:
        return NonFiniteError(
            f"the z of the model {self._model.name} is not finite after frame {run.steps + 1}.",
            "fit it again, with more data; what came before is kept.",
        )
