"""The documents of the main job: its metrics, the story of its report, and its summary."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dashi.core.metrics._document import build_metrics
from dashi.flow.evaluation import Evaluation, quotient_error
from dashi.flow.evaluation._record import versions_here
from dashi.flow.grid import Floats
from dashi.io.metrics import Metrics, PerfFlag, Scores, to_json
from dashi.lab.demos._folder import command_of
from dashi.lab.demos._work import Work
from dashi.report._story import Story, bounded, in_turnovers, lasts


def metrics_of(work: Work) -> Metrics | None:
    """The metrics of the certified rollout and of what lies around it; None while there is no rollout."""
    r = work.results
    if r.run is None or r.operator is None:
        return None
    info, flags = work.device.info, list[PerfFlag]()
    if info.type == "reference":
        flags.append(
            PerfFlag(
                name="solver", requested="portable", used="NumPy's own transforms",
                reason="the portable kernels are slow on NumPy; the flow and all scores but the certified rollout hold "
                "on one machine alone",
            )
        )  # fmt: skip
    metrics = build_metrics("demo", r.run, work.placed, work.clock, flags=flags, certificate=r.digest)
    where = {"backend_requested": work.placed.requested, "backend_used": info.spec, "device": info.name}
    update: dict[str, Any] = {f"{part}_{name}": value for part in ("fft", "decode") for name, value in where.items()}
    update |= r.decoder
    if r.test is not None:
        update["eval"] = _scores(r.test, work.setting.ours, _quotient(work))
    if r.train is not None:
        update["train"] = _scores(r.train, work.setting.ours)
    return metrics.model_copy(update=update)


def _quotient(work: Work) -> float | None:
    """The error of the shown window's last frame modulo symmetries; None while its fields are not decoded."""
    r = work.results
    if r.fields is None:
        return None
    test, shown = r.windows["test"], r.shown[1]
    last = min(len(r.fields), test.frames) - 1
    return float(quotient_error(test.flow, r.fields[last], test.fields[shown, last]).quotient)


def _scores(evaluation: Evaluation, model: str, quotient: float | None = None) -> Scores:
    """At the last frame, means over windows, but for the quotient."""
    line = evaluation.line(model)

    def off(values: Floats, reference: Floats) -> float | None:
        return _finite(float(np.mean(values[:, -1] / reference[:, -1] - 1)))

    error, still = float(line.relative_l2[:, -1].mean()), None
    if any(one.model == "persistence" for one in evaluation.lines):
        still = error / float(evaluation.line("persistence").relative_l2[:, -1].mean())
    return Scores(
        l2=_finite(error), corr=_finite(float(line.correlation[:, -1].mean())), quotient=_finite(quotient),
        over_persistence=_finite(still),
        energy=off(line.energy, evaluation.energy), enstrophy=off(line.enstrophy, evaluation.enstrophy),
    )  # fmt: skip


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def story_of(work: Work, seconds: float) -> Story:
    """What the report says in words; `seconds` are those of the run so far."""
    s, r, info = work.setting, work.results, work.device.info
    summary, tiles = _outcome(work, seconds)
    return Story(
        title="A turbulent flow, and how far a proxy of it sees",
        summary=summary,
        command=command_of(work.setting.words, info.spec, work.out),
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
        warnings=warnings_of(work),
        notes=r.notes,
    )


def _outcome(work: Work, seconds: float) -> tuple[str, list[tuple[str, str]]]:
    """What was found in a sentence, and in a few numbers; nothing before all that it compares was scored."""
    s, test = work.setting, work.results.test
    if test is None or not {s.ours, "persistence", "perfect"} <= {line.model for line in test.lines}:
        return "", []
    ours, still, best = (lasts(test, name) for name in (s.ours, "persistence", "perfect"))
    numbers, points = test.line(s.ours).numbers, s.flow.n**2
    summary = (
        f"From starts that it has never seen, a model of {numbers:,} numbers follows a turbulent flow of "
        f"{points:,} points for {ours} units of flow time{in_turnovers(test, s.ours)}, until its correlation with the "
        "full field is below 0.5. "
        f"Persistence holds for {still}; the full solver, given the same {numbers:,} numbers, for {best}."
    )
    return summary, [
        (ours, f"flow time{in_turnovers(test, s.ours)} to correlation < 0.5 on unseen seeds"),
        (still, "the same for persistence: nothing changes"),
        (best, "the same for the full solver from the same start"),
        (f"{numbers:,}", f"numbers in a state, of {points:,} in the field"),
        (f"{seconds:.0f} s", f"on {work.device.info.name}, from the seeds to the scores, without drawing this page"),
    ]


def warnings_of(work: Work) -> list[str]:
    """What a reader must know first."""
    warnings = list[str]()
    if work.missing:
        warnings.append(f"This run is not finished. What is missing: {', '.join(work.missing)}.")
    if work.results.differs is not None:
        warnings.append(f"The check {work.results.checked}.")
    return warnings


def _listed(seeds: tuple[int, ...]) -> str:
    return " and ".join(str(seed) for seed in seeds)


def summary_of(work: Work, metrics: Metrics | None, seconds: float) -> dict[str, Any]:
    """What is kept as summary.json and printed; `seconds` are those of the run so far."""
    r, info = work.results, work.device.info
    lines = () if r.test is None else r.test.lines
    return {
        "schema": 2,
        "stopped": bool(work.missing),
        "device": {"spec": info.spec, "name": info.name, "type": info.type, "driver": info.driver_info or info.driver},
        "seconds": seconds,
        "horizons": {line.model: round(float(line.horizons[0.5].mean()), 4) for line in lines},
        "at_least": [line.model for line in lines if r.test is not None and bounded(r.test, line.model)],
        "model": r.models[work.setting.ours].description if work.setting.ours in r.models else None,
        "hash": r.run.hashes[-1].digest if r.run and r.run.hashes else None,
        "verified": r.checked or "nothing: stopped before",
        "first_difference": r.differs,
        "certificate_digest": metrics.certificate_digest if metrics else None,
        "metrics": json.loads(to_json(metrics)) if metrics else None,
        "notes": [*warnings_of(work), *r.notes],
    }
