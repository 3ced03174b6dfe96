"""What an evaluation leaves in its folder: scores as they are finished, and the record of how they came about."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from dashi.core.metrics._placement import Placement
from dashi.errors import FileError
from dashi.flow.evaluation import Evaluation
from dashi.flow.evaluation._fits import Fit
from dashi.flow.evaluation._record import DevicePlace, EvaluationRecord, versions_here
from dashi.flow.evaluation._training import Training
from dashi.flow.evaluation.files import as_text, document, pack
from dashi.io import _run_folder as run_folder
from dashi.io._files import write_text
from dashi.io.arrays import file_digest, write_arrays
from dashi.lab._score_tables import windows_name
from dashi.lab.evaluation_plans import Chosen, EvaluateRequest
from dashi.types import HostArray

COMMAND: Final = "flow evaluate"
FILES: Final = (run_folder.SCORES, run_folder.SCORED, run_folder.CONTINUATION)


class ScoreFolder:
    """Writes what is done so far. What cannot be written is tried again the next time, and told at the end: it does not
    end the evaluation."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._failure: FileError | None = None
        self._written: list[str] = []
        self._waiting: dict[str, Callable[[Path], None]] = {}

    def add(self, evaluation: Evaluation, continuation: Mapping[str, HostArray] | None = None) -> None:
        """Takes scores to be written."""
        name = file_name(evaluation)
        self._waiting[f"{name}.npz"] = lambda file: write_arrays(file, pack(evaluation))
        self._waiting[f"{name}.json"] = lambda file: write_text(file, as_text(evaluation))
        if continuation is not None:
            self._waiting[run_folder.CONTINUATION] = lambda file: write_arrays(file, continuation)

    def add_file(self, name: str, write: Callable[[Path], None]) -> None:
        """Takes a file to be written."""
        self._waiting[name] = write

    def write(self, summary: Mapping[str, Any]) -> None:
        """Writes all that waits, and `evaluation.json`."""
        if self.folder is None:
            return
        text = json.dumps(summary, indent=1, allow_nan=False) + "\n"
        self._waiting[run_folder.SCORES] = lambda file: write_text(file, text)
        self._failure = None
        for name, action in list(self._waiting.items()):
            try:
                action(self.folder / name)
            except FileError as error:
                self._failure = self._failure or error
            else:
                del self._waiting[name]
                self._written = [*(other for other in self._written if other != name), name]

    def close(self, *, finished: bool) -> None:
        """At the end of a whole evaluation, it takes the place of the one that was there before."""
        if self.folder is None or self._failure is not None:
            return
        try:
            self.folder = run_folder.close_run(self.folder, (), finished=finished)
        except FileError as error:
            self._failure = error

    @property
    def failure(self) -> FileError | None:
        """What was written and what was not, where something failed."""
        if self._failure is None:
            return None
        written = ", ".join(name for name in self._written if name not in self._waiting) or "nothing"
        missing = ", ".join(self._waiting) or "nothing else"
        return FileError(
            f"{self._failure.what} Of the scores, which are there all the same, {written} was written to "
            f"{self.folder}; not written is {missing}.",
            f"{self._failure.fix.rstrip('.')}; then run the same again: it does all of it anew.",
        )


def file_name(evaluation: Evaluation) -> str:
    """The name of the files of scores, without a suffix."""
    return f"evaluation-{windows_name(evaluation).replace(' ', '-')}"


def summary_of(
    request: EvaluateRequest, record: EvaluationRecord, evaluations: Sequence[Evaluation], *, stopped: bool, along: bool
) -> dict[str, Any]:
    """The document of all scores, `evaluation.json`; with or without the scores along time."""
    finished = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    final_record = record.model_copy(update={"stopped": stopped, "finished": finished})
    return {
        "schema_version": 1,
        "model": str(request.model),
        **final_record.model_dump(mode="json"),
        "evaluations": [document(evaluation, along=along) for evaluation in evaluations],
    }


def record_of(
    request: EvaluateRequest, what: Chosen, fit: Fit, training: Training, placed: Placement, out: Path | None
) -> EvaluationRecord:
    """How the evaluation came about; known before it begins."""
    info, flow, schema = placed.device.info, training.flow, fit.model.schema
    parameters = ", ".join(f"{name} {value}" for name, value in flow.parameters.items())
    return EvaluationRecord(
        command=command_of(request, what, info.spec, out),
        fit_finished=fit.finished,
        device=DevicePlace.of(info, placed.requested, "; ".join(flag.reason for flag in placed.flags)),
        versions=versions_here(info),
        settings={
            "model": f"{fit.model.name} of {request.model}, {fit.model.state_size} numbers, k_cut {schema.k_cut:g}",
            "model file": f"SHA-256 {file_digest(request.file)}",
            "trained on": f"{training.source}: {_seeds(training.seeds)}, chosen on {_seeds(training.validation_seeds)}",
            "trained flow": parameters,
            "scored on": str(request.source) if request.source else "simulation",
        },
    )


def settings_of(request: EvaluateRequest, what: Chosen) -> dict[str, object]:
    """All that decides the scores: where they are computed does not. A model counts by what is in its file."""
    numbers = {name: value for name, value in asdict(what).items() if name != "listed" or value}
    return {
        "model": file_digest(request.file), "from": request.source or "simulation", "perturb": _changes(request),
        "perfect": request.perfect, "residual": request.residual, "allow-overlap": request.allow_overlap,
        "fast": request.host_fft, **numbers,
    }  # fmt: skip


def _changes(request: EvaluateRequest) -> tuple[str, ...]:
    return tuple(f"{name}={value:.12g}" for name, value in request.perturb)


def command_of(request: EvaluateRequest, what: Chosen, device: str, out: Path | None) -> str:
    """What repeats the evaluation: a command line, or a line of Python where seeds do not follow each other. Nothing
    is left to a default that could change."""
    if what.listed:
        return _python_line(request, what, device, out)
    words = ["dashi", *COMMAND.split(), str(request.model)]
    numbers = {
        "--eval-steps": what.steps, "--eval-seed": what.first_seed, "--seeds": what.seeds, "--windows": what.windows,
        "--start": what.start,
    }  # fmt: skip
    for name, value in numbers.items():
        words += [] if value is None else [name, str(value)]
    words += ["--from", str(request.source)] if request.source is not None else []
    for name in request.variables:
        words += ["--variable", name]
    for axis, name in request.dims.items():
        words += ["--dims", f"{axis}={name}"]
    for change in _changes(request):
        words += ["--perturb", change]
    for flag in ("perfect", "residual", "allow_overlap"):
        words += [f"--{flag.replace('_', '-')}"] if getattr(request, flag) else []
    words += ["--host-fft"] if request.host_fft else []
    words += ["--shard", str(request.shard)] if request.shard is not None else []
    words += ["--device", device]
    return shlex.join([*words, *(["--out", str(out)] if out is not None else [])])


def _python_line(request: EvaluateRequest, what: Chosen, device: str, out: Path | None) -> str:
    named: dict[str, object] = {"seeds": list(what.listed), "steps": what.steps, "windows": what.windows}
    named |= {"start": what.start, "source": None if request.source is None else str(request.source)}
    named |= {"variables": list(request.variables), "dims": dict(request.dims), "perturb": list(request.perturb)}
    named |= {name: getattr(request, name) for name in ("perfect", "residual", "allow_overlap", "host_fft")}
    named |= {"device": device, "out": None if out is None else str(out)}
    arguments = ", ".join(f"{name}={value!r}" for name, value in named.items() if value)
    arguments += f", shard={request.shard!r}" if request.shard is not None else ""
    return f"dashi.flow.evaluate({str(request.model)!r}, {arguments})"


def _seeds(seeds: tuple[int, ...]) -> str:
    known = [str(seed) for seed in seeds if seed >= 0]
    return f"seeds {', '.join(known)}" if known else "no seeds"
