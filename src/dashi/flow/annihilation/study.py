"""A study of annihilation: its plan, the cells that it consists of, and what is measured in each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dashi.flow.annihilation._gauge_signs import GAUGES
from dashi.flow.annihilation.estimators import ESTIMATORS
from dashi.flow.annihilation.measurement import Annihilation, DepthMeter
from dashi.flow.annihilation.nulls import NULLS
from dashi.flow.annihilation.planted import planted_field
from dashi.flow.annihilation.settings import AnnihilationSettings
from dashi.flow.annihilation.verdict import CellDepth
from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.runtime.device import Device

PLANTED_SCALES: Final = (2, 4)
PLANTED_SNR: Final = 3.0

FlowName = Literal["decaying", "kolmogorov", "stochastic"]


class StudyPlan(BaseModel):
    """What a STUDY.yaml says. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    flows: dict[FlowName, tuple[float, ...]] = Field(
        default={"decaying": (0.0, 1.0, 5.0, 20.0), "kolmogorov": (20.0,), "stochastic": (20.0,)}, min_length=1,
        description="Times at which each flow is measured; at time 0 fields are Gaussian.",
    )  # fmt: skip
    points: tuple[int, ...] = Field(default=(128, 256, 512, 1024), min_length=1, description="n, at the viscosity nu.")
    nu: float = Field(default=1e-3, gt=0, le=1)
    viscosities: tuple[float, ...] = Field(default=(), description="Further viscosities, at the largest n.")
    seeds: tuple[int, ...] = Field(default=tuple(range(1000, 1008)), min_length=1)
    nulls: tuple[str, ...] = Field(default=("phase",), min_length=1)
    gauges: tuple[str, ...] = Field(default=("vorticity",), min_length=1)
    surrogates: int = Field(default=199, ge=1, le=10_000)
    power_draws: int = Field(default=20, ge=1, le=1000)
    resamples: int = Field(default=200, ge=1, le=10_000)
    courant: float = Field(default=0.2, gt=0, le=1, description="dt in grid spacings, at a speed of 1.")
    host_fft: bool = Field(default=False, description="Solve on the host, fast, with this machine's bits.")

    @model_validator(mode="after")
    def _known(self) -> Self:
        for what, names, known in (("null", self.nulls, tuple(NULLS)), ("gauge", self.gauges, GAUGES)):
            for name in names:
                if name not in known:
                    raise ValueError(f"there is no {what} {name!r}: {', '.join(known)}")
        if any(not 0 <= t <= 1000 for times in self.flows.values() for t in times):
            raise ValueError("times lie between 0 and 1000")
        if any(not 0 <= seed < 1 << 32 for seed in self.seeds) or any(not 0 < nu <= 1 for nu in self.viscosities):
            raise ValueError("seeds have 32 bits, and viscosities lie between 0 and 1")
        for n in self.points:
            if not 32 <= n <= 4096:
                raise ValueError(f"n = {n} does not lie between 32 and 4096")
        return self

    def runs(self) -> Iterator[FlowRun]:
        """The simulations."""
        for name in self.flows:
            for n in self.points:
                yield FlowRun(name, n, self.nu)
            for nu in self.viscosities:
                if nu != self.nu:
                    yield FlowRun(name, max(self.points), nu)

    def cells(self) -> Iterator[StudyCell]:
        """Everything that is measured of flows."""
        for run in self.runs():
            for time in self.flows[run.flow]:
                for null in self.nulls:
                    for gauge in self.gauges:
                        yield StudyCell(run, time, null, gauge)


@dataclass(frozen=True)
class FlowRun:
    """One simulation of all seeds."""

    flow: FlowName
    n: int
    nu: float

    def description(self, plan: StudyPlan, seed: int) -> Flow:
        """The flow, with the step of the plan."""
        forcing = {
            "decaying": None, "kolmogorov": Kolmogorov(), "stochastic": Stochastic(seed=seed),
        }[self.flow]  # fmt: skip
        step = plan.courant * 2 * math.pi / self.n
        drag = 0.0 if self.flow == "decaying" else 0.1
        return Flow(self.n, nu=self.nu, dt=1.0 / math.ceil(1.0 / step), drag=drag, forcing=forcing)


@dataclass(frozen=True)
class StudyCell:
    """One measurement of the fields of all seeds."""

    run: FlowRun
    time: float
    null: str
    gauge: str

    @property
    def name(self) -> str:
        """A name for files."""
        r = self.run
        return f"{r.flow}-t{self.time:g}-n{r.n}-nu{r.nu:g}-{self.null}-{self.gauge}"

    def settings(self, plan: StudyPlan) -> AnnihilationSettings:
        return AnnihilationSettings(
            null=self.null, gauge=self.gauge, surrogates=plan.surrogates, resamples=plan.resamples
        )

    def document(self, found: Annihilation) -> dict[str, Any]:
        """What is stored of a measurement."""
        return {
            "cell": self.name, "flow": self.run.flow, "time": self.time, "n": self.run.n, "nu": self.run.nu,
            "null": self.null, "gauge": self.gauge, "resampled": {e: r.resampled for e, r in found.results.items()},
            **found.as_json(),
        }  # fmt: skip


def depths_of(document: Mapping[str, Any]) -> list[CellDepth]:
    """What the verdict needs of a stored cell, by every estimator."""
    found: list[CellDepth] = []
    for name, result in document["estimators"].items():
        k = result["K"]
        last = max(j for j, band in enumerate(result["bands"]) if band["p"] is not None)
        reach = math.log2(2.0 ** (last + 1) / k["integral_k"])
        tested = [b for b in result["bands"] if b["p"] is not None and b["null_sd"] > 0]
        scores = [(b["statistic"] - b["null_mean"]) / b["null_sd"] for b in tested]
        found.append(
            CellDepth(
                document["flow"], document["time"], document["n"], document["nu"], document["null"],
                document["gauge"], name, k["octaves"], k["low"], k["high"], k["censored"],
                bool(k["second_crossing"]), min(scores, default=0.0), tuple(document["resampled"][name]), reach,
            )
        )  # fmt: skip
    return found


def measure_power(device: Device, plan: StudyPlan) -> dict[str, float]:
    """The part of draws in which each estimator recovers the depth of planted vortices within half an octave: as many
    fields as there are seeds, on the smallest grid, against the null `phase`."""
    n = min(plan.points)
    first, end = PLANTED_SCALES
    hits = dict.fromkeys(ESTIMATORS, 0)
    settings = AnnihilationSettings(surrogates=plan.surrogates, resamples=1)
    with DepthMeter(device, n, settings) as meter:
        for draw in range(plan.power_draws):
            seeds = [1 + draw * len(plan.seeds) + number for number in range(len(plan.seeds))]
            fields = [planted_field(n, first, end, seed=seed, snr=PLANTED_SNR) for seed in seeds]
            found = meter.measure(np.stack(fields), seed=draw)
            for name, result in found.results.items():
                octaves = end - math.log2(result.depth.integral_k)
                hits[name] += abs(result.depth.octaves - octaves) <= 0.5
    return {name: count / plan.power_draws for name, count in hits.items()}
