"""An eddy viscosity trained through rollouts: the baseline that tells what training gives apart from what a closure is.

`galerkin` takes nu_e from the mean drain of every shell, and one factor from validation windows. Here every number of
nu_e is trained from there on as the tables of the slaved closure are, with the same loss, schedule and choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy._eddy import eddy_viscosity, subgrid
from dashi.flow.proxy._judge import Judge
from dashi.flow.proxy._options import Number, Option, Word
from dashi.flow.proxy.closure._plan import FASTEST, PLAN, TrainingSchedule, schedule_of
from dashi.flow.proxy.closure._tables import Band, Closure, clock, fitting
from dashi.flow.proxy.closure._training import ClosureLoss, TrainingSetup, descend
from dashi.flow.proxy.galerkin._backscatter import Backscatter, as_readonly, bounded
from dashi.flow.proxy.galerkin._model import GalerkinModel
from dashi.flow.proxy.galerkin._strategies import ASKED
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import encoded, mean_scalar, no_progress, squares
from dashi.flow.windows import Windows
from dashi.runtime.device import Device


class DrainParameters:
    """The drain of a closure without lifts as one vector of numbers near 1, for a search; as in `Parameters`, modes
    that differ in the signs of kx or ky share theirs."""

    def __init__(self, band: Band, time: float, drain: Floats) -> None:
        self.band, self.depth = band, 0
        held = np.abs(band.schema.modes)
        self._held = np.unique(held, axis=0, return_inverse=True)[1].reshape(-1)
        self._scale = 0.25 / time
        self.size = int(self._held.max()) + 1
        counts = np.bincount(self._held)
        self._first = np.bincount(self._held, np.asarray(drain, np.float64)) / (counts * self._scale)

    def start(self, _: float) -> Floats:
        """The drain that was given."""
        return self._first

    def unpack(self, numbers: Floats, kind: Any = np.float32) -> Closure:
        """The closure of such a vector."""
        few, many = len(self._held), len(self.band.modes)
        drain = (numbers * self._scale)[self._held].astype(kind)
        return Closure(np.zeros((0, few), kind), np.zeros((0, 0, many), kind), np.ones((1, few), kind), drain)

    def gradient(self, table_gradients: Closure) -> Floats:
        """Gradient in the vector, from the gradients in every table."""
        return np.bincount(self._held, np.asarray(table_gradients.drain, np.float64), self.size) * self._scale


@dataclass(frozen=True, eq=False)
class TrainedEddy(GalerkinModel):
    """Galerkin with an eddy viscosity trained through rollouts, in the form that `galerkin` gives it."""

    name: ClassVar[str] = "trained-eddy"
    takes: ClassVar[Mapping[str, Option]] = {"strategy": Word(ASKED), **{name: Number() for name in PLAN}}

    @classmethod
    def check(
        cls, schema: Schema, flow: Flow, frames: int, options: Mapping[str, Any], *, device: Device
    ) -> None:  # fmt: skip
        super().check(schema, flow, frames, options, device=device)
        fitting(flow, schema)
        schedule_of(options)

    @classmethod
    def learn(
        cls, schema: Schema, train: Windows, validation: Windows | None, *, device: Device,
        progress: Callable[[int], None] | None = None, **options: Any,
    ) -> TrainedEddy:  # fmt: skip
        """Trained on the training windows; of the viscosities that were tried on the way, the one that does best on the
        validation windows. Options: strategy, and those of `TrainingSchedule`."""
        interval = cls.begin(schema, train, validation, options, device=device)
        plan: TrainingSchedule = schedule_of(options)
        judge = None if validation is None else Judge(schema, validation, device)
        strategy = str(options.get("strategy", "auto"))

        def model_of(closure: Closure, form: Backscatter) -> TrainedEddy:
            eddy = closure.eddy(schema)
            eddy = bounded(eddy, train.flow) if form == "bounded" else as_readonly(eddy, train.flow)
            return cls(schema, train.flow, interval, eddy, 1.0, strategy, 0 if judge is None else judge.windows, form)

        form: Backscatter = "bounded" if train.flow.forcing is None else "scaled"

        def check(closure: Closure) -> float:
            return 0.0 if judge is None else judge.score(model_of(closure, form))

        z = encoded(schema, train, device=device)
        band = Band.of(schema, schema.k_cut)
        fastest = FASTEST * np.sqrt(2 * mean_scalar(schema, z, "energy"))
        setup = TrainingSetup.of(train.flow, band, interval, fastest, None)
        learned = eddy_viscosity(schema, subgrid(schema, train, device=device)) * squares(schema)
        parameters = DrainParameters(band, clock(mean_scalar(schema, z, "enstrophy")), learned)
        modes = np.ascontiguousarray(z[..., schema.parts["modes"]])
        closure, _ = descend(lambda _: ClosureLoss(setup), parameters, plan, modes, check, progress or no_progress)
        model = model_of(closure, form)
        watched = judge or Judge(schema, train.take(slice(8)), device)
        return model_of(closure, "bounded") if form == "scaled" and watched.gains(model) else model

    @property
    def description(self) -> str:
        on = f"on {self.chosen_on} validation windows" if self.chosen_on else "without validation"
        return f"galerkin with an eddy viscosity trained through rollouts, chosen {on}, {self.backscatter}"
