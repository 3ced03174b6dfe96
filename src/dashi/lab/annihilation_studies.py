"""`study_annihilation`: a whole study of where coherent signs end, cell by cell in a folder, and the verdict over it.

A cell is one file, written when it is finished: a study that was stopped goes on where it was. `study.json` has the
plan and the digest of the verdict's rules, `power.json` what each estimator finds of planted structure, `results.json`
and `results.md` the tables and the verdict.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from dashi.errors import DashiError, FileError, InputError
from dashi.flow.annihilation.measurement import DepthMeter
from dashi.flow.annihilation.study import FlowRun, StudyCell, StudyPlan, depths_of, measure_power
from dashi.flow.annihilation.verdict import (
    RULES_DIGEST,
    CellDepth,
    Judgement,
    Slope,
    judge,
    slopes,
    voters,
)
from dashi.flow.grid import to_field
from dashi.flow.initial import ensemble
from dashi.flow.simulation import simulate
from dashi.io._files import open_plain, write_text
from dashi.io._paths import path_of
from dashi.lab._arguments import require_request
from dashi.lab._job import Job, Request
from dashi.lab.events import SILENT, Events
from dashi.runtime.device import Device
from dashi.stream._yaml import read_yaml
from dashi.types import HostArray

_LARGEST: Final = 1 << 26
"""Bytes of a file of a study."""


@dataclass(frozen=True, kw_only=True)
class AnnihilationStudyRequest(Request):
    """A STUDY.yaml, or its plan, and the folder of the study."""

    out: Path
    study: Path | None = None
    plan: StudyPlan | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", path_of("out", self.out))
        if self.study is not None:
            object.__setattr__(self, "study", path_of("study", self.study))
        super().__post_init__()
        if (self.study is None) == (self.plan is None):
            raise InputError("a study has one plan.", "pass `study=`, a file, or `plan=`.")


@dataclass(frozen=True, eq=False)
class AnnihilationStudy:
    """What a study found."""

    folder: Path
    power: dict[str, float]
    depths: tuple[CellDepth, ...]
    slopes: tuple[Slope, ...]
    verdict: tuple[Judgement, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "rules": RULES_DIGEST,
            "power": self.power,
            "votes": list(voters(self.power)),
            "cells": [{k: v for k, v in asdict(d).items() if k != "resampled"} for d in self.depths],
            "slopes": [asdict(s) for s in self.slopes],
            "verdict": [asdict(j) for j in self.verdict],
        }

    def __repr__(self) -> str:
        return f"<AnnihilationStudy {self.folder}: {', '.join(f'{j.claim} {j.status}' for j in self.verdict)}>"


def read_plan(path: Path) -> StudyPlan:
    """The plan in a YAML file. Raises a FileError or an InputError that names what does not fit."""
    try:
        values = read_yaml(path).values
    except FileError:
        raise
    except DashiError as error:
        raise InputError(f"{path} is no YAML: {error.what}", "correct the file.") from error
    try:
        return StudyPlan.model_validate(values or {})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the study"
        raise InputError(f"{path}: {place}: {first['msg']}.", "see docs/annihilation.md for the keys.") from error


def study_annihilation(
    request: AnnihilationStudyRequest, *, device: str | Device = "auto", events: Events = SILENT
) -> AnnihilationStudy:
    """Measures every cell of a study that is not finished yet, and judges."""
    require_request(request, AnnihilationStudyRequest)
    plan = request.plan if request.plan is not None else read_plan(request.study or Path())
    _begin(request, plan)
    runs = list(plan.runs())
    with Job(command="flow annihilate", request=request, device=device, events=events).place() as placed:
        if placed.device.info.type == "null":
            raise InputError("the null device measures nothing.", "use cpu, or a Vulkan device.")
        with events.progress("study", len(runs) + 1, "flows") as advance:
            power = _power(request.out, placed.device, plan)
            advance(1)
            for run in runs:
                _measure_run(request.out, placed.device, plan, run)
                advance(1)
    depths = tuple(d for cell in plan.cells() for d in depths_of(_read(_cell_file(request.out, cell))))
    result = AnnihilationStudy(request.out, power, depths, tuple(slopes(depths)), tuple(judge(depths, power)))
    _write(request.out / "results.json", result.as_json())
    write_text(request.out / "results.md", results_text(result))
    return result


def _begin(request: AnnihilationStudyRequest, plan: StudyPlan) -> None:
    """Starts a folder, or sees that the one there is of the same study."""
    document = {"plan": plan.model_dump(mode="json"), "rules": RULES_DIGEST}
    file = request.out / "study.json"
    if file.exists():
        if _read(file) != document:
            raise InputError(f"{request.out} holds another study.", "choose another `out=`.")
        if not request.resume:
            raise InputError(f"{request.out} holds this study already.", "pass `resume=True` to go on with it.")
        return
    if request.out.exists() and any(request.out.iterdir()):
        raise InputError(f"{request.out} holds other files.", "choose an empty `out=`.")
    _write(file, document)


def _power(folder: Path, device: Device, plan: StudyPlan) -> dict[str, float]:
    file = folder / "power.json"
    if not file.exists():
        _write(file, measure_power(device, plan))
    return {str(name): float(part) for name, part in _read(file).items()}


def _measure_run(folder: Path, device: Device, plan: StudyPlan, run: FlowRun) -> None:
    """The cells of one simulation that are not there yet."""
    missing = [c for c in plan.cells() if c.run == run and not _cell_file(folder, c).exists()]
    if not missing:
        return
    fields = simulated_fields(device, plan, run, sorted({cell.time for cell in missing}))
    for settings in dict.fromkeys(cell.settings(plan) for cell in missing):
        with DepthMeter(device, run.n, settings) as meter:
            for cell in missing:
                if cell.settings(plan) == settings:
                    _write(_cell_file(folder, cell), cell.document(meter.measure(fields[cell.time])))


def simulated_fields(device: Device, plan: StudyPlan, run: FlowRun, times: Sequence[float]) -> dict[float, HostArray]:
    """Vorticity (seeds, n, n) at these times. Seeds differ in the initial condition, and the first one's forcing counts
    up."""
    flow = run.description(plan, plan.seeds[0])
    states = ensemble(flow, "random", plan.seeds)
    wanted = {max(0, round(time / flow.dt)): time for time in times}
    found: dict[float, HostArray] = {wanted[0]: np.asarray(to_field(states))} if 0 in wanted else {}
    last = max(wanted)
    if last == 0:
        return found
    every = math.gcd(*(step for step in wanted if step))

    def take(step: int, seen: Mapping[str, HostArray]) -> None:
        if step in wanted:
            found[wanted[step]] = np.array(seen["vorticity"])

    # NumPy's own transform is there for quick looks; the portable solver has the same bits everywhere.
    place: Device | str = "cpu" if plan.host_fft else device
    simulate(flow, states, last, device=place, host_fft=plan.host_fft, frame_every=every, frame=take)
    return found


def _cell_file(folder: Path, cell: StudyCell) -> Path:
    return folder / "cells" / f"{cell.name}.json"


def _write(path: Path, document: Any) -> None:
    write_text(path, json.dumps(document, indent=1) + "\n")


def _read(path: Path) -> Any:
    with open_plain(path, _LARGEST) as (file, _):
        data = file.read()
    try:
        return json.loads(data)
    except ValueError as error:
        raise FileError(f"{path} is no JSON.", "delete the file, and go on with `resume=True`.") from error


def results_text(study: AnnihilationStudy) -> str:
    """The tables and the verdict of a study, in Markdown."""
    lines = [
        "# Annihilation: results",
        "",
        f"Rules {RULES_DIGEST[:16]}.",
        "",
        "| claim | status | by |",
        "|---|---|---|",
    ]
    lines += [f"| {j.claim} | {j.status} | {j.evidence} |" for j in study.verdict]
    lines += ["", "| estimator | planted depth recovered | votes |", "|---|---|---|"]
    voting = voters(study.power)
    lines += [f"| {name} | {part:.0%} | {'yes' if name in voting else 'no'} |" for name, part in study.power.items()]
    lines += ["", "| flow | t | n | nu | null | gauge | estimator | K | low | high |", "|" + "---|" * 10]
    lines += [
        f"| {d.flow} | {d.time:g} | {d.n} | {d.nu:g} | {d.null} | {d.gauge} | {d.estimator} | "
        f"{'>= ' if d.censored else ''}{d.octaves:.2f} | {d.low:.2f} | {d.high:.2f} |"
        for d in study.depths
    ]
    lines += ["", "| flow | t | estimator | against | slope of K | low | high |", "|" + "---|" * 7]
    lines += [
        f"| {s.flow} | {s.time:g} | {s.estimator} | {s.against} | {s.slope:.2f} | {s.low:.2f} | {s.high:.2f} |"
        for s in study.slopes
    ]
    return "\n".join(lines) + "\n"
