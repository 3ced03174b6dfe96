"""A report from what a run left in its folder: whatever is there is shown, whatever is damaged is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from dashi.core.certificate import document_digest, read_certificate
from dashi.core.sheet import load_sheet
from dashi.core.trace_file import read_trace
from dashi.errors import FileError
from dashi.flow.evaluation.kept import load_evaluation
from dashi.flow.evaluation.result import Evaluation
from dashi.flow.fields import read_frame, read_line
from dashi.flow.trajectory import FIELDS
from dashi.io.arrays import read_arrays
from dashi.io.metrics import Metrics, read_metrics
from dashi.io.run_folder import CERTIFICATE, INPUTS, METRICS, SHEET, STATE, SUMMARY
from dashi.report.figures import Continuation
from dashi.report.films import Fields
from dashi.report.page import Proof, Report, Sheet
from dashi.report.story import STORY, Story, lasts, read_story

REPORT: Final = "report.html"
TRACE: Final = "trace.perfetto-trace"
EVALUATION: Final = "evaluation-test.npz"
TRAINING: Final = "evaluation-train.npz"
CONTINUATION: Final = "continuation.npz"
PROXY: Final = "vorticity_proxy"
"""The field of fields.zarr that was decoded."""
MODEL: Final = "model.npz"
_FRAMES: Final = 240
"""Frames that are read: more than a film shows are passed over."""
_MEANINGS: Final = {
    METRICS: "where it ran, how long, what was hashed (docs/metrics.md)",
    CERTIFICATE: "what dashi verify repeats",
    INPUTS: "what the certificate names",
    FIELDS: "fields over time: xarray.open_zarr opens it",
    EVALUATION: "every score of every model, window and frame on unseen seeds; the .json beside has the table",
    TRAINING: "the same on the training windows",
    CONTINUATION: "energies of reference, proxy and the proxy alone",
    MODEL: "the fitted model: dashi flow evaluate and rollout read it",
    SHEET: "band energies over time: dashi sheet view draws it",
    STATE: "the last state",
    TRACE: "every span of stages and device queues: open it in ui.perfetto.dev",
    STORY: "the sentences of this page",
    SUMMARY: "what the command printed",
}


def read_run(folder: Path, shown_as: Path | None = None) -> Report:
    """The report of a run folder; `shown_as` is where it will be when it is read."""
    named = shown_as or folder
    files = {name: folder / name for name in _MEANINGS if (folder / name).exists()}
    if not files:
        raise FileError(f"{folder} is not the folder of a run.", "name one, for instance runs/demo.")
    metrics = read_metrics(files[METRICS]) if METRICS in files else None
    evaluation = load_evaluation(files[EVALUATION]) if EVALUATION in files else None
    story = read_story(folder) or _told(metrics, evaluation, named)
    return Report(
        title=story.title,
        summary=story.summary,
        finished=metrics.finished if metrics else "",
        command=story.command,
        tiles=tuple(story.tiles),
        ours=story.ours,
        fields=_fields(files[FIELDS]) if FIELDS in files else None,
        fields_of=story.fields_of,
        evaluation=evaluation,
        training=load_evaluation(files[TRAINING]) if TRAINING in files else None,
        continuation=_continuation(files[CONTINUATION], story.ours) if CONTINUATION in files else None,
        sheet=_sheet(files[SHEET], story) if SHEET in files else None,
        spans=read_trace(files[TRACE]) if TRACE in files else (),
        metrics=metrics,
        proof=_proof(files[CERTIFICATE], named / CERTIFICATE, story) if CERTIFICATE in files else None,
        settings=story.settings,
        versions=story.versions,
        files={name: _MEANINGS[name] for name in files},
        notes=tuple(story.notes),
    )


def _told(metrics: Metrics | None, found: Evaluation | None, folder: Path) -> Story:
    """The story of a run that has none: what scores or metrics tell."""
    if found is not None and found.lines:
        parts = [f"{line.model} for {lasts(found, line.model)}" for line in found.lines]
        told = f"Until the correlation with the full field is below 0.5, on unseen data: {', '.join(parts)}."
        return Story(title=f"How far models of a flow see: {folder.name}", summary=told, ours=found.lines[0].model)
    if metrics is None:
        return Story(title=f"The run {folder.name}")
    verdict = metrics.verdict.sentence if metrics.verdict else ""
    tiles = [
        (f"{metrics.steps:,}", f"steps in {metrics.dtype}"),
        (f"{metrics.ns_per_step / 1e3:,.1f} us", "a step"),
        (metrics.op_backend_used, metrics.op_device),
    ]
    versions = {"dashi": metrics.dashi_version, "driver": f"{metrics.driver_name} {metrics.driver_version}".strip()}
    return Story(title=f"dashi {metrics.command}: {folder.name}", summary=verdict, tiles=tiles, versions=versions)


def _fields(path: Path) -> Fields | None:
    """Vorticity over time, of the first member, beside what was decoded if there is some."""
    if not (path / "vorticity").is_dir():
        return None
    times = read_line(path, "time")
    chosen = np.unique(np.linspace(0, len(times) - 1, min(len(times), _FRAMES)).round().astype(int))
    if not len(times):
        return None

    def read(name: str) -> np.ndarray:
        frames = [read_frame(path, name, int(index)) for index in chosen]
        return np.stack([frame if frame.ndim == 2 else frame[0] for frame in frames])

    proxy = read(PROXY) if (path / PROXY).is_dir() else None
    return Fields(times[chosen], read("vorticity"), proxy)


def _continuation(path: Path, model: str) -> Continuation:
    found = read_arrays(path)
    names = ("times", "reference", "proxy", "alone")
    if any(name not in found or found[name].ndim != 1 or len(found[name]) != len(found["times"]) for name in names):
        raise FileError(f"{path} does not hold {', '.join(names)} of one length.", "run the command again.")
    return Continuation(*(found[name] for name in names), model=model)


def _sheet(path: Path, story: Story) -> Sheet | None:
    energies = load_sheet(path)
    if not energies.size:
        return None
    return Sheet(energies, story.sheet_end, story.sheet_band, story.sheet_first, story.sheet_of or "the run")


def _proof(path: Path, named: Path, story: Story) -> Proof:
    made = read_certificate(path)
    device = made.device
    return Proof(
        file=named.as_posix(),
        digest=document_digest(made.model_dump(mode="json")),
        operator=made.operator.kind,
        steps=made.steps,
        hashes=len(made.hashes),
        last=made.hashes[-1].hash,
        portable=made.portable,
        device=f"{device.name} ({device.driver} {device.driver_version})",
        checked=story.checked,
    )
