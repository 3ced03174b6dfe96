"""What `dashi flow evaluate --out` leaves: scores as they are finished, and the record of how they came about."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from dashi.cli.flow_evaluate import EvaluateRequest
from dashi.cli.flow_evaluate_plan import Chosen
from dashi.cli.flow_scores import named
from dashi.core.metrics.placement import Placement
from dashi.errors import FileError
from dashi.flow.evaluation import Evaluation
from dashi.flow.evaluation.fits import Fit
from dashi.flow.evaluation.kept import as_text, document, pack
from dashi.flow.evaluation.record import Place, Record, versions_here
from dashi.flow.evaluation.training import Training
from dashi.io import run_folder
from dashi.io.arrays import file_digest, write_arrays
from dashi.io.files import write_text
from dashi.types import Array

COMMAND: Final = "flow evaluate"
FILES: Final = (run_folder.SCORES, run_folder.SCORED, run_folder.CONTINUATION)


class Keeper:
    """Writes what is done so far. What cannot be written is tried again the next time, and told at the end: it does not
    end the evaluation."""

    def __init__(self, out: Path | None, folder: Path | None) -> None:
        self.out, self.folder = out, folder
        self.failure: FileError | None = None
        self._written: list[str] = []
        self._waiting: dict[str, Callable[[Path], None]] = {}

    def add(self, evaluation: Evaluation, continuation: Mapping[str, Array] | None = None) -> None:
        """Takes scores to be written."""
        name = file_name(evaluation)
        self._waiting[f"{name}.npz"] = lambda file: write_arrays(file, pack(evaluation))
        self._waiting[f"{name}.json"] = lambda file: write_text(file, as_text(evaluation))
        if continuation is not None:
            self._waiting[run_folder.CONTINUATION] = lambda file: write_arrays(file, continuation)

    def write(self, summary: Mapping[str, Any]) -> None:
        """Writes all that waits, and `evaluation.json`."""
        if self.folder is None:
            return
        text = json.dumps(summary, indent=1, allow_nan=False) + "\n"
        self._waiting[run_folder.SCORES] = lambda file: write_text(file, text)
        self.failure = None
        for name, action in list(self._waiting.items()):
            try:
                action(self.folder / name)
            except FileError as error:
                self.failure = self.failure or error
            else:
                del self._waiting[name]
                self._written = [*(one for one in self._written if one != name), name]

    def close(self, *, finished: bool) -> None:
        """At the end of a whole evaluation, it takes the place of the one that was there before."""
        if self.folder is None or self.failure is not None:
            return
        try:
            self.folder = run_folder.close_run(self.folder, (), finished=finished)
        except FileError as error:
            self.failure = error

    @property
    def told(self) -> FileError | None:
        """What was written and what was not, where something failed."""
        if self.failure is None:
            return None
        written = ", ".join(name for name in self._written if name not in self._waiting) or "nothing"
        missing = ", ".join(self._waiting) or "nothing else"
        return FileError(
            f"{self.failure.what} Of the scores, which are printed all the same, {written} was written to "
            f"{self.folder}; not written is {missing}.",
            f"{self.failure.fix.rstrip('.')}; then run the same command again: it does all of it anew.",
        )


def file_name(evaluation: Evaluation) -> str:
    """Of its scores, without a suffix."""
    return f"evaluation-{named(evaluation).replace(' ', '-')}"


def summary_of(
    request: EvaluateRequest, record: Record, done: list[Evaluation], *, stopped: bool, along: bool
) -> dict[str, Any]:  # fmt: skip
    """The document of all scores: what --json prints, and `evaluation.json`."""
    told = record.model_copy(
        update={"stopped": stopped, "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    )
    return {
        "schema_version": 1,
        "model": str(request.model),
        **told.model_dump(mode="json"),
        "evaluations": [document(one, along=along) for one in done],
    }


def record_of(request: EvaluateRequest, what: Chosen, fit: Fit, training: Training, placed: Placement) -> Record:
    """How the evaluation came about; known before it begins."""
    info, flow, schema = placed.device.info, training.flow, fit.model.schema
    parameters = ", ".join(f"{name} {value}" for name, value in flow.parameters.items())
    return Record(
        command=command_of(request, what, info.spec),
        fit_finished=fit.finished,
        device=Place.of(info, placed.requested, "; ".join(flag.reason for flag in placed.flags)),
        versions=versions_here(info),
        settings={
            "model": f"{fit.model.name} of {request.model}, {fit.model.state_size} numbers, k_cut {schema.k_cut:g}",
            "model file": f"SHA-256 {file_digest(request.model)}",
            "trained on": f"{training.source}: {_seeds(training.seeds)}, chosen on {_seeds(training.validation_seeds)}",
            "trained flow": parameters,
            "scored on": str(request.source) if request.source else "simulation",
        },
    )


def settings_of(request: EvaluateRequest, what: Chosen) -> dict[str, object]:
    """All that decides the scores: where they are computed does not. A model counts by what is in its file."""
    flags = ("perturb", "perfect", "residual", "allow_overlap", "fast")
    return {
        "model": file_digest(request.model), "from": request.source or "simulation",
        **{name.replace("_", "-"): getattr(request, name) for name in flags}, **asdict(what),
    }  # fmt: skip


def command_of(request: EvaluateRequest, what: Chosen, device: str) -> str:
    """The command line that repeats it: nothing is left to a default that could change."""
    words = ["dashi", *COMMAND.split(), str(request.model)]
    numbers = {
        "--eval-steps": what.steps, "--eval-seed": what.first_seed, "--seeds": what.seeds, "--windows": what.windows,
        "--start": what.start,
    }  # fmt: skip
    for name, value in numbers.items():
        words += [] if value is None else [name, str(value)]
    words += ["--from", str(request.source)] if request.source is not None else []
    for change in request.perturb:
        words += ["--perturb", change]
    for flag in ("no_train", "perfect", "residual", "allow_overlap", "fast"):
        words += [f"--{flag.replace('_', '-')}"] if getattr(request, flag) else []
    words += ["--device", device]
    return shlex.join([*words, *(["--out", str(request.out)] if request.out is not None else [])])


def _seeds(seeds: tuple[int, ...]) -> str:
    known = [str(seed) for seed in seeds if seed >= 0]
    return f"seeds {', '.join(known)}" if known else "no seeds"
