"""The model with the slaved closure: Galerkin, and the band just beyond z made from z in every stage.

The modes between k_cut and `reach` are what the held ones feel of the rest: with them alone the missing tendency is
known to 99 % (docs/closures.md). Here they follow from z at once, by the advection itself and learned tables, in the
way of nonlinear Galerkin methods (M. Marion and R. Temam, SIAM J. Numer. Anal. 26, 1989, doi 10.1137/0726063): what is
carried from step to step is z, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from dashi.core.rollouts.observer import Context
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy._frame_recording import record_frames
from dashi.flow.proxy._judge import Judge
from dashi.flow.proxy._options import Number, Option
from dashi.flow.proxy.closure._device_loss import DeviceLoss, fits, rollout_batch
from dashi.flow.proxy.closure._energy import THETA, THETAS, best_theta, require_theta
from dashi.flow.proxy.closure._host import FastSlaved
from dashi.flow.proxy.closure._operator import OnWideGrid, SlavedGalerkin
from dashi.flow.proxy.closure._plan import FASTEST, PLAN, schedule_of
from dashi.flow.proxy.closure._tables import DEEPEST, Band, Closure, Parameters, clock, fitting
from dashi.flow.proxy.closure._training import AnyLoss, ClosureLoss, TrainingSetup, descend
from dashi.flow.proxy.galerkin._operator import modes_of
from dashi.flow.proxy.model import TRANSFORMS, Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import encoded, mean_scalar, no_progress, require_start, steps_of, with_updated_scalars
from dashi.flow.windows import Windows
from dashi.kernels.portable import canon
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray

REACH: Final = 1.5
"""The band ends at so many times k_cut."""
DEPTH: Final = 2
HOST: Final = "NumPy or SciPy on the host"


@dataclass(frozen=True, eq=False)
class Slaved(Model):
    """Galerkin with the band beyond z slaved to it, trained through rollouts."""

    name: ClassVar[str] = "slaved"
    version: ClassVar[int] = 2  # 1: no limit to the energy that it feeds
    takes: ClassVar[Mapping[str, Option]] = {
        "depth": Number(1, DEEPEST, whole=True), "reach": Number(), "theta": Number(0.0, 1.0),
        **{name: Number() for name in PLAN},
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {
        "then": "long_iterations", "then_frames": "long_frames", "memory": "lift_time",
    }  # fmt: skip

    schema: Schema
    flow: Flow
    interval: float
    closure: Closure
    reach: float
    theta: float = THETA
    """The share of the viscous dissipation that the closure may feed back (`dashi.flow.proxy.closure._energy`)."""
    loss: float = float("nan")
    """1 - correlation of the rollouts that it was trained on."""
    chosen_on: int = 0
    """Validation windows that it was chosen on."""
    trained_by: str = ""
    """Kernels on a device, or a library on the host; both where only short rollouts fit on the device."""

    @property
    def steps(self) -> int:
        """Steps of dt between frames."""
        return round(self.interval / self.flow.dt)

    @classmethod
    def check(
        cls, schema: Schema, flow: Flow, frames: int, options: Mapping[str, Any], *, device: Device
    ) -> None:  # fmt: skip
        super().check(schema, flow, frames, options, device=device)
        fitting(flow, schema)
        options = cls.with_current_names(options)
        schedule_of(options)
        Band.of(schema, float(options.get("reach", REACH)) * schema.k_cut)

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> Slaved:  # fmt: skip
        """Trained on the training windows; of the closures that were tried on the way, the one that does best on the
        validation windows, and then its theta. Options: depth, reach (in units of k_cut), theta (trained with, and not
        chosen), and those of `TrainingSchedule`."""
        interval = cls.begin(schema, train, validation, options, device=device)
        plan = schedule_of(options)
        band = Band.of(schema, float(options.get("reach", REACH)) * schema.k_cut)
        z = encoded(schema, train, device=device)
        judge = None if validation is None else Judge(schema, validation, device)

        theta = float(options.get("theta", THETA))

        def model_of(closure: Closure, loss: float = float("nan")) -> Slaved:
            chosen_on = 0 if judge is None else judge.windows
            return cls(schema, train.flow, interval, closure, band.reach, theta, loss, chosen_on)

        def check(closure: Closure) -> float:
            return 0.0 if judge is None else judge.score(model_of(closure))

        parameters = Parameters(band, options.get("depth", DEPTH), clock(mean_scalar(schema, z, "enstrophy")))
        fastest = FASTEST * np.sqrt(2 * mean_scalar(schema, z, "energy"))
        setup = TrainingSetup.of(train.flow, band, interval, fastest, theta)

        places: list[str] = []

        def losses(frames: int) -> AnyLoss:
            batch = rollout_batch(setup, parameters.depth, frames, plan.batch)
            there = fits(device, setup, batch)
            places.append(f"kernels on {device.info.name}" if there else HOST)
            return DeviceLoss(device, setup, batch) if there else ClosureLoss(setup)

        modes = np.ascontiguousarray(z[..., schema.parts["modes"]])
        model = model_of(*descend(losses, parameters, plan, modes, check, progress or no_progress))
        model = replace(model, trained_by=", then by ".join(dict.fromkeys(places)))
        return model if judge is None or "theta" in options else model.with_best_theta(judge)

    def with_best_theta(self, judge: Judge) -> Slaved:
        """The model with that theta which `best_theta` takes on validation windows."""
        tried = [replace(self, theta=theta) for theta in THETAS]
        theta = best_theta([(model.theta, judge.score(model), judge.energy_error(model)) for model in tried])
        return replace(self, theta=theta).with_training(self.training)

    def operator(self) -> SlavedGalerkin:
        """The model's step as an operator of CORE, for rollouts with hashes and certificates."""
        return SlavedGalerkin(self.flow, self.schema, self.closure, self.reach, self.theta)

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        start = require_start(self.schema, z0, self.flow.numpy_dtype)
        modes, operator = canon(modes_of(self.schema, start)), self.operator()
        if device.info.type == "reference":
            fast = FastSlaved(operator, operator.band, operator.closure, operator.theta)
            return with_updated_scalars(self.schema, start, fast.roll(modes, frames, self.steps))
        stepper = OnWideGrid(operator)
        start_on_grid = device.empty((len(modes), *stepper.shape), self.flow.numpy_dtype)
        entering = stepper.enter(device, stepper.load(device), device.array(modes), start_on_grid)
        with device.program(entering, label="enter") as program:
            program.run()

        def leave(context: Context, states: Array, out: Array) -> Sequence[Step]:
            return stepper.leave(context.device, context.constants, states, out)

        looks = record_frames(
            stepper, start_on_grid.numpy(), frames, self.steps, device=device, shape=modes.shape, look=leave
        )
        advanced = np.concatenate([modes[:, None], np.moveaxis(looks, 0, 1)], axis=1)
        return with_updated_scalars(self.schema, start, advanced)

    def where(self, device: Device, states: int) -> str:
        return TRANSFORMS if device.info.type == "reference" else device.info.name

    def of_flow(self, flow: Flow) -> Slaved:
        """The model's closure with another viscosity, drag, force or time step."""
        fitting(flow, self.schema)
        steps_of(self.interval, flow)
        return replace(self, flow=flow, closure=self.closure.of_type(flow.numpy_dtype)).with_training(self.training)

    @property
    def state_size(self) -> int:
        return 2 * len(self.schema.modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return self.closure.arrays

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        flow = {f"flow_{name}": value for name, value in self.flow.parameters.items()}
        told: dict[str, int | float | str] = {"trained_by": self.trained_by} if self.trained_by else {}
        numbers = {"reach": self.reach, "theta": self.theta, "loss": self.loss, "chosen_on": self.chosen_on}
        return {**flow, **numbers, **told}

    @classmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray],
        parameters: Mapping[str, int | float | str],
    ) -> Slaved:  # fmt: skip
        values = dict(parameters)
        flow = Flow.restore({k.removeprefix("flow_"): values.pop(k) for k in [*values] if k.startswith("flow_")})
        reach, loss, chosen_on = float(values["reach"]), float(values["loss"]), int(values["chosen_on"])
        steps_of(interval, flow)
        closure = Closure.restore(Band.of(schema, reach), arrays, flow.numpy_dtype)
        theta = require_theta(values["theta"])
        return cls(schema, flow, interval, closure, reach, theta, loss, chosen_on, str(values.get("trained_by", "")))

    @property
    def description(self) -> str:
        on = f"on {self.chosen_on} validation windows" if self.chosen_on else "without validation"
        by = f"by {self.trained_by} " if self.trained_by else ""
        return (
            f"galerkin with modes up to {self.reach:g} slaved, depth {self.closure.depth}, trained {by}to 1 - "
            f"correlation {self.loss:.2g}, feeds back at most {self.theta:g} of what viscosity takes, chosen {on}"
        )
