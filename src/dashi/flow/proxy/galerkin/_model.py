"""The Galerkin models: bare truncation, and the default, with a learned spectral eddy viscosity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy._eddy import eddy_viscosity, shells_of, subgrid
from dashi.flow.proxy._frame_recording import record_frames
from dashi.flow.proxy._judge import Judge
from dashi.flow.proxy._options import Number, Option, Word, require_options
from dashi.flow.proxy.galerkin._backscatter import (
    BACKSCATTER,
    Backscatter,
    as_readonly,
    backscatter_named,
    bounded,
    hill_climb,
    limited_viscosity,
)
from dashi.flow.proxy.galerkin._host import FastGalerkin
from dashi.flow.proxy.galerkin._operator import Form, Galerkin, form_named, modes_of
from dashi.flow.proxy.galerkin._strategies import ASKED, choose
from dashi.flow.proxy.model import TRANSFORMS, Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import no_progress, require_start, steps_of, with_updated_scalars
from dashi.flow.windows import Windows
from dashi.kernels.portable import canon
from dashi.runtime.device import Device
from dashi.types import HostArray

WATCHED: Final = 8
"""Training windows from which energy is watched where there are none for validation."""


@dataclass(frozen=True, eq=False)
class GalerkinModel(Model):
    """dw_k/dt = N_k(w) - ((nu + c nu_e(k)) k^2 + mu) w_k + f_k over the held modes: the exact quadratic truncation, the
    flow's own viscosity, drag and force, and what the modes beyond drain on average (`dashi.flow.proxy._eddy`). The
    factor c is the one whose rollouts stay close to validation windows for longest."""

    name: ClassVar[str] = "galerkin"
    takes: ClassVar[Mapping[str, Option]] = {
        "factor": Number(0.0), "strategy": Word(ASKED), "backscatter": Word(("auto", *BACKSCATTER)),
    }  # fmt: skip
    renamed: ClassVar[Mapping[str, str]] = {"way": "strategy"}

    schema: Schema
    flow: Flow
    interval: float
    eddy: Floats
    """c nu_e of every held mode."""
    factor: float = 1.0
    strategy: str = "auto"
    """grid, triads, numpy, or auto: the fastest by what was measured."""
    chosen_on: int = 0
    """Validation windows that the factor was chosen on."""
    backscatter: Backscatter = "scaled"
    """What became of negative nu_e (`dashi.flow.proxy.galerkin._backscatter`)."""

    @property
    def steps(self) -> int:
        """Steps of dt between frames."""
        return round(self.interval / self.flow.dt)

    @classmethod
    def check(
        cls, schema: Schema, flow: Flow, frames: int, options: Mapping[str, Any], *, device: Device
    ) -> None:  # fmt: skip
        super().check(schema, flow, frames, options, device=device)
        options = cls.with_current_names(options)
        choose(str(options.get("strategy", "auto")), device, len(schema.modes), 1)

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> GalerkinModel:  # fmt: skip
        """nu_e of the training windows; its factor from the validation windows, 1 without any, or as given by the
        option `factor`. Without the option `backscatter`, a flow that no force feeds takes the bounded form, and others
        the scaled one, unless its energy leaves the truth's in long rollouts. The option `strategy` is kept for
        rollouts."""
        interval = cls.begin(schema, train, validation, options, device=device)
        report_progress = progress or no_progress
        learned = eddy_viscosity(schema, subgrid(schema, train, device=device))
        report_progress(1)
        judge = None if validation is None else Judge(schema, validation, device)
        asked_factor, strategy = options.get("factor"), str(options.get("strategy", "auto"))

        def model_of(factor: float, form: Backscatter, chosen_on: int = 0) -> GalerkinModel:
            eddy = limited_viscosity(learned, factor, form, train.flow)
            return cls(schema, train.flow, interval, eddy, factor, strategy, chosen_on, form)

        def chosen(form: Backscatter) -> GalerkinModel:
            if asked_factor is not None or judge is None:
                return model_of(1.0 if asked_factor is None else float(asked_factor), form)
            score = judge.score

            def tried(factor: float) -> float:
                report_progress(1)
                return score(model_of(factor, form))

            return model_of(hill_climb(tried), form, judge.windows)

        asked = options.get("backscatter", "auto")
        if asked != "auto":
            return chosen(asked)
        if train.flow.forcing is None:
            return chosen("bounded")
        scaled = chosen("scaled")
        watched = judge or Judge(schema, train.take(slice(WATCHED)), device)
        return chosen("bounded") if watched.gains(scaled) else scaled

    def operator(self, form: Form) -> Galerkin:
        """The model's step as an operator of CORE, for rollouts with hashes and certificates."""
        return Galerkin(self.flow, self.schema, self.eddy, form)

    def explain(self, device: Device, states: int) -> tuple[str, str]:
        """The strategy of a rollout of so many states on a device, and why it was chosen."""
        return choose(self.strategy, device, len(self.schema.modes), states)

    def pinned(self, device: Device, states: int) -> GalerkinModel:
        strategy, _ = self.explain(device, states)
        return self if strategy == self.strategy else replace(self, strategy=strategy).with_training(self.training)

    def where(self, device: Device, states: int) -> str:
        strategy, _ = self.explain(device, states)
        return TRANSFORMS if strategy == "numpy" else f"{device.info.name}, strategy {strategy}"

    def advance(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        start = require_start(self.schema, z0, self.flow.numpy_dtype)
        modes = canon(modes_of(self.schema, start))
        strategy, _ = self.explain(device, len(start))
        if strategy == "numpy":
            return with_updated_scalars(
                self.schema, start, FastGalerkin(self.operator("grid")).roll(modes, frames, self.steps)
            )
        looks = record_frames(self.operator(form_named(strategy)), modes, frames, self.steps, device=device)
        advanced = np.concatenate([modes[:, None], np.moveaxis(looks, 0, 1)], axis=1)
        return with_updated_scalars(self.schema, start, advanced)

    def of_flow(self, flow: Flow) -> GalerkinModel:
        """The model's closure with another viscosity, drag, force or time step."""
        self.schema.require_flow(flow)
        steps_of(self.interval, flow)
        eddy = bounded(self.eddy, flow) if self.backscatter == "bounded" else as_readonly(self.eddy, flow)
        return replace(self, flow=flow, eddy=eddy).with_training(self.training)

    @property
    def state_size(self) -> int:
        return 2 * len(self.schema.modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"eddy": self.eddy}

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        flow = {f"flow_{name}": value for name, value in self.flow.parameters.items()}
        more: dict[str, int | float | str] = {"factor": float(self.factor), "way": self.strategy}
        return {**flow, **more, "chosen_on": self.chosen_on, "backscatter": self.backscatter}

    @classmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray],
        parameters: Mapping[str, int | float | str],
    ) -> GalerkinModel:  # fmt: skip
        values = dict(parameters)
        flow = Flow.restore({k.removeprefix("flow_"): values.pop(k) for k in [*values] if k.startswith("flow_")})
        # Made once to be checked: its arrays must fit the schema.
        operator = Galerkin(flow, schema, arrays["eddy"])
        steps_of(interval, flow)
        # Files from before there were two forms are of the first; files call the strategy `way`.
        values.setdefault("backscatter", "scaled")
        values["strategy"] = values.pop("way")
        require_options(cls.name, {name: values[name] for name in GalerkinModel.takes}, GalerkinModel.takes)
        factor, strategy, chosen_on = float(values["factor"]), str(values["strategy"]), int(values["chosen_on"])
        form = backscatter_named(str(values["backscatter"]))
        return cls(schema, flow, interval, operator.eddy, factor, strategy, chosen_on, form)

    @property
    def description(self) -> str:
        on = f"on {self.chosen_on} validation windows" if self.chosen_on else "without validation"
        shells = shells_of(self.schema)
        last = float(self.eddy[shells == shells.max()].mean()) / self.flow.nu if self.flow.nu else float("nan")
        where = " where it drains" if self.backscatter == "bounded" else ""
        return (
            f"galerkin with an eddy viscosity fitted to training data, times {self.factor:g}{where} (chosen {on}); at "
            f"k_cut it is {last:.2g} times the flow's own"
        )


class Truncation(GalerkinModel):
    """The bare truncation: nothing stands for the modes beyond."""

    name: ClassVar[str] = "truncation"
    takes: ClassVar[Mapping[str, Option]] = {"strategy": Word(ASKED)}

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> GalerkinModel:  # fmt: skip
        interval = cls.begin(schema, train, validation, options, device=device)
        none, strategy = as_readonly(np.zeros(len(schema.modes)), train.flow), str(options.get("strategy", "auto"))
        return cls(schema, train.flow, interval, none, 0.0, strategy)

    @property
    def description(self) -> str:
        return "the exact truncation, without a closure"
