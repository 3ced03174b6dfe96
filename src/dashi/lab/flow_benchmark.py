"""`benchmark_flow`: how long models and coarse solvers follow a truth that others have published numbers for."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dashi.core.certificates._certify import certify_folder
from dashi.core.rollouts.run import Run
from dashi.errors import InputError
from dashi.flow._operator import Vorticity
from dashi.flow.benchmark._contestants import fitted, score_model, score_solver, training_data
from dashi.flow.benchmark.scoring import Score
from dashi.flow.benchmark.setting import PUBLISHED, THRESHOLDS, BenchmarkSetting, setting_named, starts
from dashi.flow.benchmark.truth import Truth, load_truth, make_truth, save_truth, truth_steps
from dashi.io._files import write_text
from dashi.io._run_names import BENCHMARK, BENCHMARK_TABLE, CERTIFICATE, INPUTS, REPORT, TRUTH
from dashi.io._whole_folder import Owner, require_replaceable, whole_folder
from dashi.lab._arguments import require_request
from dashi.lab._capacity import require_memory
from dashi.lab._job import AnyPath, Job, Request, as_path, require_results
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table
from dashi.runtime.device import Device

COMMAND: Final = "flow benchmark"
FILES: Final = frozenset({TRUTH, BENCHMARK, BENCHMARK_TABLE, CERTIFICATE, INPUTS, REPORT})
NAMES: Final = ("kochkov",)


@dataclass(frozen=True, kw_only=True)
class BenchmarkRequest(Request):
    """A benchmark, and at which size."""

    name: str = "kochkov"
    """Kochkov's Kolmogorov flow, the only one."""
    setting: str = "full"
    """`full`: the published size, for a GPU; `quick`: small, easy and few, to see that it runs."""
    truth: AnyPath | None = None
    """A file of the truth that an earlier run left, instead of making it again."""
    truth_only: bool = False
    """Make the truth and its certificate, and score nobody."""


@dataclass(frozen=True, eq=False)
class BenchmarkScores:
    """The scores of all who took part."""

    request: BenchmarkRequest
    truth: Truth
    scores: tuple[Score, ...]
    folder: Path | None = None

    def rows(self) -> list[tuple[str, ...]]:
        """A line of text for each contestant: times when the mean correlation falls below each threshold, and the mean
        of times at 0.8."""
        return [_row(one) for one in self.scores]

    def table(self) -> str:
        """All scores in Markdown, with those that were published of another truth."""
        lines = [f"Setting {self.truth.setting.name}, truth {self.truth.hash}, by {self.truth.operator}.", ""]
        lines += ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in self.rows()]
        if self.truth.setting.name == "full":
            for one in PUBLISHED:
                times = [f"{one.times[t]:.2f}" if t in one.times else "" for t in THRESHOLDS]
                lines.append("| " + " | ".join([f"{one.name} (published)", str(one.numbers), *times, "", ""]) + " |")
        return "\n".join([*lines, ""])

    def document(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        truth = self.truth
        return {
            "benchmark": self.request.name, "setting": truth.setting.document, "seeds": list(truth.setting.seeds),
            "truth": {"hash": truth.hash, "operator": truth.operator, "device": truth.device},
            "times": truth.times.tolist(), "scores": [one.document() for one in self.scores],
            "published": [{"name": p.name, "numbers": p.numbers, "times": {f"{t:g}": v for t, v in p.times.items()}}
                          for p in PUBLISHED],
        }  # fmt: skip

    def __repr__(self) -> str:
        if not self.scores:
            return f"<BenchmarkScores: the truth alone, {self.truth.hash}>"
        best = max(self.scores, key=lambda one: one.of_mean[0.8])
        return f"<BenchmarkScores: {len(self.scores)} rows, longest above 0.8: {best.name}, {best.of_mean[0.8]:.2f}>"

    def _repr_html_(self) -> str:
        return html_table(HEADINGS, self.rows(), f"Benchmark {self.request.name}, {self.truth.setting.name}")


HEADINGS: Final = ("who", "numbers", *(f"mean below {t:g}" for t in THRESHOLDS), "mean of times to 0.8", "s")


def _row(scored: Score) -> tuple[str, ...]:
    times = [f"{'>= ' if t in scored.outlasts else ''}{scored.of_mean[t]:.2f}" for t in THRESHOLDS]
    spread = scored.mean_of_times[0.8]
    ends = "" if spread.low != spread.low else f" [{spread.low:.2f}, {spread.high:.2f}]"
    return (scored.name, str(scored.numbers), *times, f"{spread.mean:.2f}{ends}", f"{scored.seconds:.1f}")


def benchmark_flow(
    request: BenchmarkRequest, *, device: str | Device = "auto", out: AnyPath | None = None, overwrite: bool = False,
    events: Events = SILENT,
) -> BenchmarkScores:  # fmt: skip
    """Makes the truth (or reads it), fits models to other seeds, and scores all from the coarsened start of the truth.
    With `out` the truth, its certificate and the scores are left in a folder."""
    require_request(request, BenchmarkRequest)
    if request.name not in NAMES:
        raise InputError(f"there is no benchmark {request.name!r}.", f"use {', '.join(NAMES)}.")
    setting = setting_named(request.setting)
    if request.truth_only and request.truth is not None:
        raise InputError("`truth_only=True` makes the truth, and `truth=` names one.", "leave one of them away.")
    job = Job(command=COMMAND, request=request, device=device, out=as_path(out), overwrite=overwrite, events=events)
    owner = Owner(COMMAND, FILES, settings={"name": request.name, "setting": setting.document}, overwrite=overwrite)
    if job.out:
        require_replaceable(job.out, owner)
    known = None if request.truth is None else load_truth(Path(request.truth), setting)
    need = 4 * len(setting.seeds) * (2 * setting.n**2 + setting.frames * setting.coarse**2)
    require_memory(need, f"{len(setting.seeds)} trajectories of {setting.n} x {setting.n}", "use `setting='quick'`.")
    with job.place() as placed:
        require_results(placed)
        truth, run = (known, None) if known else _truth(job, setting, placed.device)
        scores = () if request.truth_only else _scores(job, setting, truth, placed.device)
        result = BenchmarkScores(request, truth, scores, job.out)
        if job.out:
            _leave(result, run, job.out, owner)
    return result


def _truth(job: Job, setting: BenchmarkSetting, device: Device) -> tuple[Truth, Run | None]:
    with job.timed("truth", f"truth, {setting.n} x {setting.n}", truth_steps(setting), "steps") as advance:
        truth, run = make_truth(setting, device=device, progress=advance)
    job.events.remark(f"the truth's last states have the hash {truth.hash}")
    if setting.truth_hash and truth.hash != setting.truth_hash:
        raise InputError(
            f"this truth has the hash {truth.hash}, and the setting {setting.name} is known by {setting.truth_hash}.",
            "check the device with `dashi kernels check`: a portable solver gives the same bits everywhere.",
        )
    return truth, run


def _scores(job: Job, setting: BenchmarkSetting, truth: Truth, device: Device) -> tuple[Score, ...]:
    scores: list[Score] = []
    with job.timed("solvers", "coarse solvers", len(setting.solvers), "runs") as advance:
        for n in setting.solvers:
            scores.append(score_solver(n, truth, device=device))
            advance(1)
    with job.timed("data", "training data", None, "") as _:
        data = training_data(setting, device=device)
    with job.timed("models", "models", len(setting.models), "models") as advance:
        for name in setting.models:
            scores.append(_model_score(name, lambda name: fitted(setting, name, data, device=device), truth, device))
            advance(1)
    return tuple(scores)


def _model_score(name: str, fit: Callable[[str], Any], truth: Truth, device: Device) -> Score:
    model = fit(name)
    return score_model(f"{name} {model.schema.k_cut:g}", model, truth, device=device)


def _leave(result: BenchmarkScores, run: Run | None, out: Path, owner: Owner) -> None:
    setting = result.truth.setting
    with whole_folder(out, owner) as folder:
        save_truth(folder / TRUTH, result.truth)
        if run is not None:
            certify_folder(run, folder, Vorticity(setting.flow(setting.n)), starts(setting))
        write_text(folder / BENCHMARK, json.dumps(result.document(), indent=1))
        write_text(folder / BENCHMARK_TABLE, result.table())
