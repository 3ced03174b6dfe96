"""Workers of a plan: stages on devices that may be lost, with States whose fields lie on the host in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dashi.errors import InputError
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program
from dashi.runtime.select import open_device
from dashi.stream._loss import NEIGHBOUR, LossPolicy
from dashi.stream._model import LOSSY_CODECS, PayloadSchema, State
from dashi.stream._plan import PlannedStage, StreamPlan
from dashi.stream._recordings import OpBinder
from dashi.stream._rules import check_depth
from dashi.stream._worker import Worker


def plan_workers(plan: StreamPlan, *, restarts: int = 1, elsewhere: str = "") -> list[Worker]:
    """The stages of a plan for a `Pipeline`: where a device is lost, its stage alone begins anew. Each stage opens its
    device, and gives States whose fields lie on the host: that is slower than `run`, which hands memory from device to
    device and begins all stages anew.

    A stage that fails opens its device anew, `restarts` times; after that its ops run on the device `elsewhere`
    ("cpu" is NumPy's), which the rules must allow for every op: an error says so before anything runs. Observers of the
    plan are not run; `dashi.stream.observe` looks at results."""
    for link in plan.links:
        if link.link.codec in LOSSY_CODECS:
            raise InputError(
                f"link {link.link.name} has the lossy codec {link.link.codec!r}, which workers of a plan do not apply.",
                "run the plan with `dashi.stream.run`, or take a lossless codec.",
            )
    if elsewhere == NEIGHBOUR:
        raise InputError(
            "workers of a plan do not know each other's devices.", "name a device for `elsewhere=`, such as cpu."
        )
    place = LossPolicy(restarts, elsewhere).require_possible(plan)
    return [_worker(planned, restarts, "" if place is None else place.spec) for planned in plan.stages]


def _worker(planned: PlannedStage, restarts: int, elsewhere: str) -> Worker:
    def on(device: str) -> Worker:
        stage = StageOnHost(planned, device)
        return Worker(planned.stage.id, compute=stage, open=stage.open, close=stage.close, device=device)

    first = on(planned.device.spec)
    spare = (lambda: on(elsewhere)) if elsewhere else None
    return replace(first, restarts=restarts, make=lambda: on(planned.device.spec), elsewhere=spare)


class StageOnHost:
    """A stage that writes a State's fields to its device, runs its ops there, and reads what leaves it."""

    def __init__(self, planned: PlannedStage, spec: str) -> None:
        self._planned, self._spec = planned, spec
        self._device: Device | None = None
        self._program: Program | None = None
        self._inputs: Mapping[str, Array] = {}
        self._results: Mapping[str, Array] = {}

    def open(self) -> None:
        """Opens the device and records the ops."""
        device = self._device = open_device(self._spec)
        self._inputs, self._results = _empty(device, self._planned.taken), _empty(device, self._planned.after)
        steps = OpBinder(device, self._planned.ops).bind(self._inputs, self._results).steps
        self._program = device.program(steps, label=self._planned.stage.id)

    def __call__(self, state: State) -> State:
        """The State behind the stage."""
        assert self._program is not None
        for name, array in self._inputs.items():
            array.write(np.asarray(state.payload[name]))
        self._program.run()
        payload = {name: array.numpy() for name, array in self._results.items()}
        planned = self._planned
        result = replace(state, payload=payload, semantic_depth=planned.depth_out, stage_id=planned.stage.id)
        check_depth(planned.stage, state, result)
        return result

    def close(self) -> None:
        """Closes the device, and frees all that it had."""
        if self._device is not None:
            self._device.close()


def _empty(device: Device, schema: PayloadSchema) -> dict[str, Array]:
    return {name: device.empty(field.shape, field.element) for name, field in schema.items()}
