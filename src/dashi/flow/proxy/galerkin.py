"""The Galerkin models: bare truncation, and the default, with a learned spectral eddy viscosity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from dashi.core.ways import choose_way
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.carried import (
    encoded,
    followed,
    frame_time,
    quiet,
    require_options,
    require_same_flow,
    require_start,
    skill,
    steps_of,
)
from dashi.flow.proxy.eddy import eddy_viscosity, shells_of, subgrid
from dashi.flow.proxy.film import copied, film, pair
from dashi.flow.proxy.galerkin_fast import FastGalerkin
from dashi.flow.proxy.galerkin_operator import Form, Galerkin, form_named, modes_of
from dashi.flow.proxy.galerkin_ways import choose
from dashi.flow.proxy.model import TRANSFORMS, Model
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows import Windows
from dashi.kernels.portable import canon
from dashi.runtime.device import Device
from dashi.types import Array as HostArray

STRIDES: Final = (0.5, 0.25)
LARGEST: Final = 6.0
"""The factor of nu_e is looked for from 1 on in steps, then in finer ones, up to so much."""


@dataclass(frozen=True, eq=False)
class GalerkinModel(Model):
    """dw_k/dt = N_k(w) - ((nu + c nu_e(k)) k^2 + mu) w_k + f_k over the held modes: the exact quadratic truncation, the
    flow's own viscosity, drag and force, and what the modes beyond drain on average (`dashi.flow.proxy.eddy`). The
    factor c is the one whose rollouts stay close to validation windows for longest."""

    name: ClassVar[str] = "galerkin"

    schema: Schema
    flow: Flow
    interval: float
    eddy: Floats
    """c nu_e of every held mode."""
    factor: float = 1.0
    way: str = "auto"
    """grid, triads, numpy, or auto: the fastest by what was measured."""
    chosen_on: int = 0
    """Validation windows that the factor was chosen on."""

    @property
    def steps(self) -> int:
        """Of dt between frames."""
        return round(self.interval / self.flow.dt)

    @classmethod
    def fit(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> GalerkinModel:  # fmt: skip
        """nu_e of the training windows; its factor from the validation windows, 1 without any, or as given by the
        option `factor`. The option `way` is kept for rollouts."""
        require_options(cls.name, options, ("factor", "way"))
        require_same_flow(train, validation)
        factor, way = options.get("factor"), str(options.get("way", "auto"))
        told = progress or quiet
        viscosity = eddy_viscosity(schema, subgrid(schema, train, device=device))
        told(1)

        def made(c: float) -> GalerkinModel:
            return cls(schema, train.flow, frame_time(train), _kept(c * viscosity, train.flow), c, way)

        if factor is not None or validation is None:
            return made(1.0 if factor is None else float(factor))
        reference = encoded(schema, validation, device=device)
        scores: dict[float, float] = {}

        def tried(c: float) -> float:
            if c not in scores:
                z = made(c).rollout(reference[:, 0], validation.frames - 1, device=device)
                scores[c] = skill(schema, z, reference)
                told(1)
            return scores[c]

        return replace(made(_climbed(tried)), chosen_on=len(validation))

    def operator(self, form: Form) -> Galerkin:
        """Its step as an operator of CORE, for rollouts with hashes and certificates."""
        return Galerkin(self.flow, self.schema, self.eddy, form)

    def explain(self, device: Device, states: int) -> tuple[str, str]:
        """The way that a rollout of so many states takes on a device, and why."""
        return choose(self.way, device, len(self.schema.modes), states)

    def where(self, device: Device, states: int) -> str:
        way, _ = self.explain(device, states)
        return TRANSFORMS if way == "numpy" else f"{device.info.name}, way {way}"

    def rollout(self, z0: Floats, frames: int, *, device: Device) -> Floats:
        start = require_start(self.schema, z0, self.flow.kind)
        modes = canon(modes_of(self.schema, start))
        way, _ = self.explain(device, len(start))
        if way == "numpy":
            return followed(self.schema, start, FastGalerkin(self.operator("grid")).roll(modes, frames, self.steps))
        looks = _filmed(self.operator(form_named(way)), modes, frames, self.steps, device)
        made = np.concatenate([modes[:, None], np.moveaxis(looks, 0, 1)], axis=1)
        return followed(self.schema, start, made)

    def of_flow(self, flow: Flow) -> GalerkinModel:
        """The same closure with another viscosity, drag, force or time step."""
        self.schema.require_flow(flow)
        steps_of(self.interval, flow)
        return replace(self, flow=flow, eddy=_kept(self.eddy, flow))

    @property
    def numbers(self) -> int:
        return 2 * len(self.schema.modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"eddy": self.eddy}

    @property
    def parameters(self) -> Mapping[str, int | float | str]:
        flow = {f"flow_{name}": value for name, value in self.flow.parameters.items()}
        more: dict[str, int | float | str] = {"factor": float(self.factor), "way": self.way}
        return {**flow, **more, "chosen_on": self.chosen_on}

    @classmethod
    def restore(
        cls, schema: Schema, interval: float, arrays: Mapping[str, HostArray],
        parameters: Mapping[str, int | float | str],
    ) -> GalerkinModel:  # fmt: skip
        given = dict(parameters)
        flow = Flow.restore({k.removeprefix("flow_"): given.pop(k) for k in [*given] if k.startswith("flow_")})
        # Made once to be checked: its arrays must fit the schema.
        operator = Galerkin(flow, schema, arrays["eddy"])
        steps_of(interval, flow)
        factor, way, chosen_on = float(given["factor"]), str(given["way"]), int(given["chosen_on"])
        return cls(schema, flow, interval, operator.eddy, factor, way, chosen_on)

    @property
    def story(self) -> str:
        on = f"on {self.chosen_on} validation windows" if self.chosen_on else "without validation"
        shells = shells_of(self.schema)
        last = float(self.eddy[shells == shells.max()].mean()) / self.flow.nu if self.flow.nu else float("nan")
        return f"galerkin, nu_e times {self.factor:g} chosen {on}; at the cut {last:.2g} nu"


class Truncation(GalerkinModel):
    """The bare truncation: nothing stands for the modes beyond."""

    name: ClassVar[str] = "truncation"

    @classmethod
    def fit(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> GalerkinModel:  # fmt: skip
        require_options(cls.name, options, ("way",))
        require_same_flow(train, validation)
        schema.require_flow(train.flow)
        none, way = _kept(np.zeros(len(schema.modes)), train.flow), str(options.get("way", "auto"))
        return cls(schema, train.flow, frame_time(train), none, 0.0, way)

    @property
    def story(self) -> str:
        return "the exact truncation, without a closure"


def _filmed(operator: Galerkin, modes: Floats, frames: int, steps: int, device: Device) -> Floats:
    """Frames of states (frames, m, 2 K): every step a few dispatches, or, where that is faster, every frame one."""
    loaded, state = operator.load(device), pair(device, modes)
    way, _ = choose_way(operator, device, len(modes))
    if way == "stepwise":
        return film(
            device, state, lambda a, b: operator.step(device, loaded, a, b), copied(device), modes.shape, frames, steps
        )
    flag = device.empty(4, np.uint32)
    return film(
        device, state, lambda a, b: [operator.many(device, loaded, a, b, flag, steps, way)], copied(device),
        modes.shape, frames, 1,
    )  # fmt: skip


def _climbed(score: Callable[[float], float]) -> float:
    """The factor with the best score, uphill from 1."""
    best = 1.0
    for stride in STRIDES:
        while True:
            near = (best, max(0.0, best - stride), min(LARGEST, best + stride))
            better = max(near, key=score)
            if better == best:
                break
            best = better
    return best


def _kept(values: Floats, flow: Flow) -> Floats:
    made = np.ascontiguousarray(values, flow.kind)
    made.setflags(write=False)
    return made
