"""What a run that wrote no story tells of itself, from its scores, its record or its metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, cast

from dashi.errors import FileError
from dashi.flow.equations import Flow
from dashi.flow.evaluation._record import EvaluationRecord
from dashi.flow.evaluation.result import THRESHOLDS, Evaluation
from dashi.io._files import read_plain
from dashi.io._run_folder import SUMMARY
from dashi.io._run_reading import is_unfinished, run_file
from dashi.io.metrics import Metrics
from dashi.report._flow_card import kind
from dashi.report._html import took
from dashi.report._story import Story, in_turnovers, lasts
from dashi.report.page import DeviceUse

_TRUNCATED = "…"
_LONGEST = 3900
_LARGEST: Final = 1 << 28
"""Most bytes of a summary, which holds every hash of a run."""


def story_of(
    metrics: Metrics | None, evaluation: Evaluation | None, record: EvaluationRecord | None, folder: Path,
    unfinished: str = "", flow: Flow | None = None,
) -> Story:  # fmt: skip
    """The story of a run that has none; `unfinished` is `unfinished_text` of it, `flow` what its fields are of."""
    if evaluation is not None and evaluation.lines:
        return _of_scores(evaluation, record or EvaluationRecord(), folder)
    if metrics is None:
        warnings = _warnings(None, record) if record else []
        return Story(title=f"The run {folder.name}", warnings=warnings or ([unfinished] if unfinished else []))
    verdict = metrics.verdict.sentence if metrics.verdict else ""
    tiles = [
        (f"{metrics.steps:,}", f"steps in {metrics.dtype}"),
        (took(metrics.ns_per_step * 1e-9), "a step"),
        (metrics.op_backend_used, metrics.op_device),
    ]
    versions = {"dashi": metrics.dashi_version, "driver": f"{metrics.driver_name} {metrics.driver_version}".strip()}
    return Story(
        title=f"{_what_ran(metrics, flow)}: {folder.name}",
        summary=verdict,
        tiles=tiles,
        versions=versions,
        warnings=[unfinished] if unfinished else [],
    )


def _what_ran(metrics: Metrics, flow: Flow | None) -> str:
    """The kind of a run, for its title."""
    if metrics.command == "flow simulate" and flow is not None:
        return f"Simulation of a {kind(flow)}, {flow.n} × {flow.n} points"
    if metrics.command == "flow rollout":
        return (
            f"A model of a flow left alone ({metrics.operator})" if metrics.operator else "A model of a flow left alone"
        )
    return f"dashi {metrics.command}"


def unfinished_text(folder: Path, metrics: Metrics | None) -> str:
    """A sentence that a run is not finished, by its metrics, summary, mark or checkpoint; empty if it is."""
    if metrics is not None and metrics.stopped:
        return f"This run is not finished: it ended after {metrics.steps:,} steps."
    stopped = is_unfinished(folder) or _stopped(folder)
    return "This run is not finished: it was stopped, or is still at work." if stopped else ""


def _stopped(folder: Path) -> bool:
    """What the summary of a run says, where it has one that can be read."""
    try:
        summary = json.loads(read_plain(run_file(folder, SUMMARY), _LARGEST))
    except (FileError, ValueError, RecursionError, MemoryError):
        return False
    return isinstance(summary, dict) and cast("dict[str, object]", summary).get("stopped") is True


def _of_scores(evaluation: Evaluation, record: EvaluationRecord, folder: Path) -> Story:
    ours, level = evaluation.lines[0], THRESHOLDS[-1]
    others = [f"{line.model} for {lasts(evaluation, line.model)}" for line in evaluation.lines[1:]]
    beside = f" Beside it: {', '.join(others)}." if others else ""
    summary = (
        f"On {evaluation.data_kind}, {ours.model} follows the flow for {lasts(evaluation, ours.model)} units of flow "
        f"time{in_turnovers(evaluation, ours.model)}, until its correlation with the full field is below "
        f"{level:g}.{beside}"
    )
    more = in_turnovers(evaluation, ours.model)
    tiles = [(lasts(evaluation, ours.model), f"flow time{more} to correlation < {level:g} on {evaluation.data_kind}")]
    if any(line.model == "persistence" for line in evaluation.lines[1:]):
        tiles.append((lasts(evaluation, "persistence"), "the same for persistence: nothing changes"))
    if ours.numbers:
        tiles.append((f"{ours.numbers:,}", f"numbers in a state of {ours.model}"))
    return Story(
        title=f"How far models of a flow see: {folder.name}",
        summary=summary if len(summary) < _LONGEST else summary[:_LONGEST] + _TRUNCATED,
        ours=ours.model,
        command=record.command,
        settings=record.settings,
        versions=record.versions,
        tiles=tiles,
        warnings=_warnings(evaluation, record),
    )


def _warnings(evaluation: Evaluation | None, record: EvaluationRecord) -> list[str]:
    warnings = list[str]()
    if not record.fit_finished:
        warnings.append("The model is of a fit that was stopped: baselines, or scores on its own data, may be missing.")
    if record.stopped:
        warnings.append("This evaluation is not finished: models, windows or changed flows may be missing.")
    if evaluation is not None and evaluation.settings.get("overlap") == "yes":
        warnings.append("These data overlap those that the model was fitted to: this page says nothing of unseen data.")
    return warnings


def places_of(evaluation: Evaluation | None, record: EvaluationRecord | None) -> tuple[DeviceUse, ...]:
    """Where the parts of an evaluation ran: the windows and fields, and the rollout of each model."""
    places = list[DeviceUse]()
    if record is not None and record.device is not None:
        device = record.device
        name = f"{device.name} ({', '.join(word for word in (device.type, device.driver) if word)})"
        places.append(DeviceUse("windows and fields", name, device.requested, device.spec, why=device.fallback))
    for line in evaluation.lines if evaluation is not None else ():
        if line.device:
            places.append(DeviceUse(f"rollout of {line.model}", line.device, seconds=line.seconds))
    return tuple(places)
