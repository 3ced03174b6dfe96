"""What `dashi demo` leaves: the run folder with its report, and what is printed."""

from __future__ import annotations

import json
import webbrowser
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from dashi.cli.demo_story import print_summary, story_of, summary_of
from dashi.cli.output import remark
from dashi.core.account import account
from dashi.core.certificate import Execution, certify, write_certificate
from dashi.core.fingerprint import fingerprints
from dashi.core.inputs import save_inputs
from dashi.core.placement import Placement
from dashi.core.sheet import save_sheet
from dashi.core.trace import write_trace
from dashi.flow.evaluation import Evaluation, save_evaluation
from dashi.flow.fields import FieldStore, Variable, series_variable
from dashi.flow.grid import Floats
from dashi.flow.proxy.carried import power, squares
from dashi.flow.proxy.catalogue import save_model
from dashi.flow.proxy.schema import Schema
from dashi.flow.trajectory import FIELDS
from dashi.io import run_folder
from dashi.io.arrays import write_arrays
from dashi.io.metrics import Metrics, PerfFlag, Scores, write_metrics

if TYPE_CHECKING:
    from dashi.cli.demo_job import Job


def leave(job: Job, placed: Placement) -> None:
    """Writes the folder as a whole, prints the summary, and opens the report if asked to."""
    from dashi.report.page import write_report
    from dashi.report.run import EVALUATION, MODEL, REPORT, TRACE, TRAINING, read_run
    from dashi.report.story import write_story

    r = job.results
    with run_folder.whole_folder(job.out) as folder:
        digest = _certificate(job, placed, folder)
        _fields(job, folder)
        _energies(job, folder)
        if r.test is not None:
            save_evaluation(folder / EVALUATION, r.test)
        if r.train is not None:
            save_evaluation(folder / TRAINING, r.train)
        if job.setting.ours in r.models:
            save_model(folder / MODEL, r.models[job.setting.ours])
        write_trace(folder / TRACE, job.trace.spans)
        metrics = _metrics(job, placed, digest)
        if metrics is not None:
            write_metrics(folder / run_folder.METRICS, metrics)
        write_story(folder, story_of(job, placed))
        drawn = _can_draw(job.out)
        names = [*(path.name for path in folder.iterdir()), run_folder.SUMMARY, *([REPORT] if drawn else [])]
        summary = {**summary_of(job, placed, metrics), "files": sorted(names)}
        (folder / run_folder.SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        if drawn:
            write_report(folder / REPORT, read_run(folder, shown_as=job.out))
    told = {"folder": str(job.out), "report": str(job.out / REPORT) if drawn else None, "total_seconds": job.seconds}
    print_summary({**summary, **told}, job.json)
    if job.open_report and drawn:
        webbrowser.open((job.out / REPORT).absolute().as_uri())
    if r.differs is not None:
        raise typer.Exit(1)


def _can_draw(out: Path) -> bool:
    """Whether there will be a page; without matplotlib everything else is there all the same."""
    try:
        import_module("matplotlib.figure")
    except ImportError:
        remark(f"no report: matplotlib is not installed. Fix: pip install 'dashi[plot]', then dashi report {out}")
        return False
    remark("drawing the report")
    return True


def _certificate(job: Job, placed: Placement, folder: Path) -> str | None:
    r = job.results
    if r.run is None or r.operator is None or r.z0 is None or not r.run.hashes:
        return None
    sources = save_inputs(folder / run_folder.INPUTS, r.operator, r.z0)
    every = r.run.hashes[0].step
    done = Execution(placed.device.info, fingerprints(r.run.used), r.run.way, r.run.steps, every, r.run.hashes)
    file = folder / run_folder.CERTIFICATE
    return write_certificate(file, certify(file, r.operator, sources, done))


def _fields(job: Job, folder: Path) -> None:
    """The shown window: what happened, and what was decoded of the model's states."""
    from dashi.report.run import PROXY

    r, flow = job.results, job.setting.flow
    test, now = r.windows["test"], r.shown[1]
    frame = {"units": "1/T"}
    variables = {
        axis: Variable((axis,), "float64", (flow.n,), {"units": "L", "long_name": f"position along {axis}"})
        for axis in ("x", "y")
    }
    variables["time"] = series_variable("time", (), (), "float64", units="T", long_name="time since the window began")
    names = {"vorticity": ("vorticity", test.fields[now])}
    if r.fields is not None:
        names[PROXY] = ("vorticity decoded of the model left alone", r.fields[: test.frames])
    for name, (meaning, _) in names.items():
        shape = (flow.n, flow.n)
        variables[name] = Variable(("y", "x"), "float32", shape, {**frame, "long_name": meaning}, "time")
    attributes = {f"flow_{name}": value for name, value in flow.parameters.items()} | {"seed": test.seeds[now]}
    store = FieldStore(folder / FIELDS, variables, attributes)
    for axis in ("x", "y"):
        store.put(axis, np.arange(flow.n) * flow.dx)
    for name, (_, values) in names.items():
        for index, field in enumerate(values):
            store.frame(name, index, field)
    store.series("time", test.times)
    store.commit()


def _energies(job: Job, folder: Path) -> None:
    """The canonical figure's data, and the sheet of the model left alone."""
    from dashi.report.run import CONTINUATION

    r, test = job.results, job.results.windows["test"]
    if r.z is not None:
        save_sheet(folder / run_folder.SHEET, shell_energies(job.setting.schema, r.z)[:, 1:])
    if r.test is None or r.alone is None or r.proxy is None:
        return
    past, now = r.shown
    length, interval = test.frames, float(test.times[1])
    after = len(r.alone) - length
    empty = np.full(after, np.nan)
    arrays = {
        "times": interval * np.arange(-length, length + after),
        "reference": np.concatenate([r.test.energy[past], r.test.energy[now], empty]),
        "proxy": np.concatenate([r.proxy, empty]),
        "alone": np.concatenate([np.full(length, np.nan), r.alone]),
    }
    write_arrays(folder / CONTINUATION, arrays)


def shell_energies(schema: Schema, z: Floats) -> Floats:
    """Energy by shells of |k| of the modes that z (frames, D) holds, (frames, shells) from 0 on."""
    weights = power(schema, z) / squares(schema)
    number = np.rint(np.sqrt((schema.modes**2).sum(axis=1))).astype(np.int64)
    made = np.zeros((len(z), int(number.max()) + 1))
    for shell in range(made.shape[1]):
        made[:, shell] = weights[:, number == shell].sum(axis=1)
    return made


def _metrics(job: Job, placed: Placement, digest: str | None) -> Metrics | None:
    r = job.results
    if r.run is None or r.operator is None:
        return None
    info, flags = placed.device.info, list[PerfFlag]()
    if info.type == "reference":
        flags.append(
            PerfFlag(
                name="solver", requested="portable", used="NumPy's own transforms",
                reason="the portable kernels are slow on NumPy; the flow and all scores but the certified rollout hold "
                "on one machine alone",
            )
        )  # fmt: skip
    made = account("demo", r.operator, r.run, placed, job.stages, flags=flags, certificate=digest)
    there = {"backend_requested": placed.requested, "backend_used": info.spec, "device": info.name}
    update: dict[str, Any] = {f"{part}_{name}": value for part in ("fft", "decode") for name, value in there.items()}
    update |= r.decoder
    if r.test is not None:
        update["eval"] = _scores(r.test, job.setting.ours)
    if r.train is not None:
        update["train"] = _scores(r.train, job.setting.ours)
    return made.model_copy(update=update)


def _scores(found: Evaluation, model: str) -> Scores:
    """At the last frame, means over windows."""
    line = found.line(model)

    def off(values: Floats, reference: Floats) -> float | None:
        return _finite(float(np.mean(values[:, -1] / reference[:, -1] - 1)))

    error, still = float(line.relative_l2[:, -1].mean()), None
    if any(one.model == "persistence" for one in found.lines):
        still = error / float(found.line("persistence").relative_l2[:, -1].mean())
    return Scores(
        l2=_finite(error), corr=_finite(float(line.correlation[:, -1].mean())), quotient=_finite(still),
        energy=off(line.energy, found.energy), enstrophy=off(line.enstrophy, found.enstrophy),
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
