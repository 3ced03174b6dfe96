"""What `dashi demo` tells: the sentences of its report, and what is printed."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.core.metrics.placement import Placement
from dashi.flow.evaluation.record import versions_here
from dashi.io.metrics import Metrics, to_json

if TYPE_CHECKING:
    from dashi.cli.demo_job import Job
    from dashi.report.story import Story


def command_of(job: Job, placed: Placement) -> str:
    """Repeats the run where it ran."""
    where = ["--device", placed.device.info.spec, "--out", str(job.out)]
    return shlex.join(["dashi", "demo", *job.setting.words, *where])


def story_of(job: Job, placed: Placement, seconds: float) -> Story:
    """What the report says in words; `seconds` are those of the run so far."""
    from dashi.report.story import Story

    s, r, info = job.setting, job.results, placed.device.info
    summary, tiles = _found(job, placed, seconds)
    return Story(
        title="A turbulent flow, and how far a proxy of it sees",
        summary=summary,
        command=command_of(job, placed),
        ours=s.ours,
        fields_of=f"seed {r.windows['test'].seeds[r.shown[1]]}, which nothing was fitted to",
        sheet_of=f"{s.ours} left alone",
        sheet_band="shell",
        sheet_first=1,
        sheet_end=None if r.z is None else float(r.windows["test"].times[1]) * (len(r.z) - 1),
        checked=r.checked,
        tiles=tiles,
        settings={
            "flow": ", ".join(f"{name} {value}" for name, value in s.flow.parameters.items()),
            "seeds": f"{_listed(s.train)} train, {_listed(s.validation)} choose, {_listed(s.test)} judge",
            "windows": f"{s.windows} of each seed, {s.window:g} long, after a spin-up of {s.spin_up:g}",
            "frames": f"every {s.interval * s.flow.dt:g}",
            "proxy": f"all modes up to |k| = {s.k_cut:g}: {s.schema.numbers} numbers",
        },
        versions=versions_here(info),
        warnings=warnings_of(job),
        notes=r.notes,
    )


def _found(job: Job, placed: Placement, seconds: float) -> tuple[str, list[tuple[str, str]]]:
    """What was found in a sentence, and in a few numbers; nothing before all that it compares was scored."""
    from dashi.report.story import in_turnovers, lasts

    s, found = job.setting, job.results.test
    if found is None or not {s.ours, "persistence", "perfect"} <= {line.model for line in found.lines}:
        return "", []
    ours, still, best = (lasts(found, name) for name in (s.ours, "persistence", "perfect"))
    numbers, points = found.line(s.ours).numbers, s.flow.n**2
    summary = (
        f"From starts that it has never seen, a model of {numbers:,} numbers follows a turbulent flow of "
        f"{points:,} points for {ours} units of flow time{in_turnovers(found, s.ours)}, until its correlation with the "
        "full field is below 0.5. "
        f"Persistence holds for {still}; the full solver, given the same {numbers:,} numbers, for {best}."
    )
    return summary, [
        (ours, f"flow time{in_turnovers(found, s.ours)} to correlation < 0.5 on unseen seeds"),
        (still, "the same for persistence: nothing changes"),
        (best, "the same for the full solver from the same start"),
        (f"{numbers:,}", f"numbers in a state, of {points:,} in the field"),
        (f"{seconds:.0f} s", f"on {placed.device.info.name}, from the seeds to the scores, without drawing this page"),
    ]


def warnings_of(job: Job) -> list[str]:
    """What a reader must know first."""
    told = list[str]()
    if job.missing:
        told.append(f"This run is not finished. What is missing: {', '.join(job.missing)}.")
    if job.results.differs is not None:
        told.append(f"The check {job.results.checked}.")
    return told


def _listed(seeds: tuple[int, ...]) -> str:
    return " and ".join(str(seed) for seed in seeds)


def summary_of(job: Job, placed: Placement, metrics: Metrics | None, seconds: float) -> dict[str, Any]:
    """What is kept as summary.json and printed; `seconds` are those of the run so far."""
    from dashi.report.story import bounded

    r, info = job.results, placed.device.info
    lines = () if r.test is None else r.test.lines
    return {
        "schema": 2,
        "stopped": bool(job.missing),
        "device": {"spec": info.spec, "name": info.name, "type": info.type, "driver": info.driver_info or info.driver},
        "seconds": seconds,
        "horizons": {line.model: round(float(line.horizons[0.5].mean()), 4) for line in lines},
        "at_least": [line.model for line in lines if r.test is not None and bounded(r.test, line.model)],
        "model": r.models[job.setting.ours].story if job.setting.ours in r.models else None,
        "hash": r.run.hashes[-1].digest if r.run and r.run.hashes else None,
        "verified": r.checked or "nothing: stopped before",
        "first_difference": r.differs,
        "certificate_digest": metrics.certificate_digest if metrics else None,
        "metrics": json.loads(to_json(metrics)) if metrics else None,
        "notes": [*warnings_of(job), *r.notes],
    }


def print_summary(summary: dict[str, Any], as_json: bool) -> None:
    """A table for people, or one document."""
    if as_json:
        print_json(summary)
        return
    device = summary["device"]
    table = new_table("", "")
    add_row(table, "device", f"{device['name']} ({device['spec']}, {device['type']})")
    if summary["model"]:
        add_row(table, "model", summary["model"])
    for name, value in summary["horizons"].items():
        bound = ">=" if name in summary["at_least"] else "  "
        add_row(table, "horizon" if name == next(iter(summary["horizons"])) else "", f"{bound} {value:.2f}  {name}")
    if summary["hash"]:
        add_row(table, "hash", summary["hash"])
    add_row(table, "verified", summary["verified"])
    whole, scored = f"{summary['total_seconds']:.0f} s", f"{summary['seconds']:.0f} s"
    drawn = f", {scored} from the seeds to the scores, the rest to draw the report" if summary["report"] else ""
    add_row(table, "time", whole + drawn)
    add_row(table, "folder", f"{summary['folder']} ({len(summary['files'])} files)")
    if summary["report"]:
        add_row(table, "report", summary["report"])
    print_table(table)
