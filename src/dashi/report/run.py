"""A report from what a run left in its folder: whatever is there is shown, whatever is damaged is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from dashi.core.certificates._certificate import document_digest, read_certificate
from dashi.core.observations.sheet import load_sheet
from dashi.core.traces.file import read_trace
from dashi.errors import FileError
from dashi.flow._fields import read_attributes, read_frame, read_line
from dashi.flow.evaluation._record import read_record
from dashi.flow.evaluation.files import LARGEST, load_evaluation
from dashi.io._memory import require_room
from dashi.io._run_folder import (
    CERTIFICATE,
    CONTINUATION,
    INPUTS,
    METRICS,
    SCORES,
    SHEET,
    STATE,
    STATES,
    SUMMARY,
)
from dashi.io._run_names import EVALUATION, FIELDS, MODEL, STORY, STREAM, TRACE, TRAINING, Z
from dashi.io._run_reading import is_marked, names_like, run_file, typed_for
from dashi.io.arrays import read_arrays
from dashi.io.metrics import read_metrics
from dashi.report._derived_story import places_of, story_of, unfinished_text
from dashi.report._flow_facts import facts_of_fields, facts_of_scores, member_seeds
from dashi.report._story import Story, read_story
from dashi.report.figures import Continuation
from dashi.report.films import Fields
from dashi.report.measures import Measures, flow_of, measures
from dashi.report.page import BandEnergies, Proof, Report

PROXY: Final = "vorticity_proxy"
"""The field of fields.zarr that was decoded."""
_AGAIN: Final = "run the command again."
_FRAMES: Final = 240
"""Frames that are read: more than a film shows are passed over."""
_LONGEST_UNIT: Final = 40
_ANYBODYS: Final = frozenset({MODEL, Z, STATE, STATES, INPUTS})
"""Names that others give to their files too, and of which alone no page comes."""
_LAST: Final = "the z of the model after its last step: dashi.flow.proxy.load_z reads it"
"""What z.npz is in a run of `flow rollout`."""
_DECODED: Final = "flow rollout"
"""The command whose fields are decoded from states of a model."""
_MEANINGS: Final = {
    METRICS: "where it ran, how long, what was hashed (docs/metrics.md)",
    CERTIFICATE: "what dashi verify repeats",
    INPUTS: "what the certificate names",
    FIELDS: "fields over time: xarray.open_zarr opens it",
    EVALUATION: "every score of every model, window and frame; the .json beside has the table",
    TRAINING: "the same on the training windows",
    SCORES: "how the evaluation was called, where it ran, and its tables",
    CONTINUATION: "energies of reference, proxy and the proxy alone",
    MODEL: "the fitted model and its baselines: dashi flow evaluate scores it on other seeds",
    Z: "the states of the model left alone: dashi.flow.proxy.load_z reads them",
    SHEET: "band energies over time: dashi sheet view draws it",
    STATE: "the last state",
    STATES: "states on the way, from which dashi verify repeats segments apart",
    TRACE: "every span of stages and device queues: open it in ui.perfetto.dev",
    STREAM: "of a chain of stages: hashes of all items, what each stage did, what happened",
    STORY: "the sentences of this page",
    SUMMARY: "what the command printed",
}


def read_run(folder: Path, shown_as: Path | None = None) -> Report:
    """The report of a run folder; `shown_as` is where it will be when it is read."""
    named = shown_as or folder
    files = {name: file for name in _MEANINGS if (file := run_file(folder, name)).exists()}
    if not files.keys() - _ANYBODYS and not is_marked(folder):
        raise FileError(f"{folder} is not the folder of a run.", "name one, for instance runs/demo.")
    metrics = read_metrics(files[METRICS]) if METRICS in files else None
    evaluation = load_evaluation(files[EVALUATION]) if EVALUATION in files else None
    record = read_record(folder)
    decoded = metrics is not None and metrics.command == _DECODED
    shown = _fields(files[FIELDS]) if FIELDS in files else None
    measured = _measures(files[FIELDS], shown) if shown is not None and evaluation is None else None
    story = read_story(folder)
    seeds = story.settings.get("seeds", "") if story else ""
    flow = facts_of_scores(evaluation, seeds) if evaluation is not None else None
    if flow is None and shown is not None:
        flow = facts_of_fields(files[FIELDS], shown, measured, decoded=decoded)
    if story is None:
        unfinished = unfinished_text(folder, metrics)
        story = story_of(metrics, evaluation, record, named, unfinished, flow.flow if flow else None)
    return Report(
        title=story.title,
        summary=story.summary,
        finished=metrics.finished if metrics else record.finished if record else "",
        command=story.command or "\n".join(typed_for(folder)),
        tiles=tuple(story.tiles),
        ours=story.ours,
        flow=flow,
        fields=shown,
        measures=measured,
        fields_of=story.fields_of or ("the model's states, decoded" if decoded else ""),
        decoded=decoded,
        evaluation=evaluation,
        training=load_evaluation(files[TRAINING]) if TRAINING in files else None,
        continuation=_continuation(files[CONTINUATION], story.ours) if CONTINUATION in files else None,
        sheet=_sheet(files[SHEET], story) if SHEET in files else None,
        spans=read_trace(files[TRACE]) if TRACE in files else (),
        metrics=metrics,
        proof=_proof(files[CERTIFICATE], named / CERTIFICATE, story) if CERTIFICATE in files else None,
        settings=story.settings,
        versions=story.versions,
        files={name: _LAST if decoded and name == Z else _MEANINGS[name] for name in files} | _changed(folder),
        notes=tuple(story.notes),
        warnings=tuple(story.warnings),
        places=places_of(evaluation, record) if metrics is None else (),
    )


def _changed(folder: Path) -> dict[str, str]:
    """Scores on changed flows, which `dashi flow evaluate --perturb` leaves."""
    names = names_like(folder, "evaluation-test-*.npz")
    return {name: f"the same where {Path(name).stem.removeprefix('evaluation-test-')}" for name in names}


def _fields(path: Path) -> Fields | None:
    """Vorticity over time, of the first member, beside what was decoded if there is some."""
    if not all((path / name).is_dir() for name in ("vorticity", "time")):  # killed within its first frame
        return None
    times = read_line(path, "time")
    chosen = np.unique(np.linspace(0, len(times) - 1, min(len(times), _FRAMES)).round().astype(int))
    if not len(times):
        return None
    if not (np.abs(times) < LARGEST).all():
        raise FileError(f"{path} has times that are not finite.", _AGAIN)

    def read(name: str) -> np.ndarray:
        first = read_frame(path, name, int(chosen[0]))
        require_room(len(chosen) * first.nbytes, f"{name} of {path}")
        frames = [read_frame(path, name, int(index)) for index in chosen]
        fields = np.stack([frame if frame.ndim == 2 else frame[0] for frame in frames])
        if fields.ndim != 3 or not fields.size:
            raise FileError(f"{path}: {name} has frames of shape {first.shape}.", _AGAIN)
        return fields

    proxy, reference = read(PROXY) if (path / PROXY).is_dir() else None, read("vorticity")
    if proxy is not None and proxy.shape != reference.shape:
        raise FileError(f"{path}: {PROXY} and vorticity have frames of other shapes.", _AGAIN)
    unit = read_attributes(path / "vorticity").get("units")
    return Fields(
        times[chosen], reference, proxy, numbers=tuple(int(index) for index in chosen),
        unit=unit if isinstance(unit, str) and len(unit) <= _LONGEST_UNIT else "", member=_member(path),
    )  # fmt: skip


def _member(path: Path) -> str:
    """Which member of a store of several is shown: the first."""
    shape = read_frame(path, "vorticity", 0).shape
    if len(shape) == 2 or shape[0] == 1:
        return ""
    seeds = member_seeds(path)
    return f"member 0 of {shape[0]}" + (f" (seed {seeds[0]})" if seeds else "")


def _measures(path: Path, fields: Fields) -> Measures | None:
    flow = flow_of(path)
    return None if flow is None or flow.n != fields.reference.shape[-1] else measures(fields, flow)


def _continuation(path: Path, model: str) -> Continuation:
    arrays = read_arrays(path)
    names = ("times", "reference", "proxy", "alone")
    if any(name not in arrays or arrays[name].ndim != 1 or len(arrays[name]) != len(arrays["times"]) for name in names):
        raise FileError(f"{path} does not hold {', '.join(names)} of one length.", _AGAIN)
    times = arrays["times"]
    if any(arrays[name].dtype.kind != "f" or (np.abs(arrays[name]) >= LARGEST).any() for name in names):
        raise FileError(f"{path} holds what are no energies.", _AGAIN)
    if len(times) < 2 or not (np.diff(times) > 0).all() or times[-1] < 0:
        raise FileError(f"{path} holds times that do not rise, or end before the model is left alone.", _AGAIN)
    return Continuation(*(arrays[name] for name in names), model=model)


def _sheet(path: Path, story: Story) -> BandEnergies | None:
    energies = load_sheet(path)
    if not energies.size:
        return None
    return BandEnergies(energies, story.sheet_end, story.sheet_band, story.sheet_first, story.sheet_of or "the run")


def _proof(path: Path, named: Path, story: Story) -> Proof:
    certificate = read_certificate(path)
    device = certificate.device
    return Proof(
        file=named.as_posix(),
        digest=document_digest(certificate.model_dump(mode="json")),
        operator=certificate.operator.kind,
        steps=certificate.steps,
        hashes=len(certificate.hashes),
        last=certificate.hashes[-1].hash,
        portable=certificate.portable,
        device=f"{device.name} ({device.driver} {device.driver_version})",
        checked=story.checked,
    )
