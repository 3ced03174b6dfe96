"""Can the operator be found again from what was seen of it? A benchmark with known answers.

Trajectories of a known operator are observed at some sites only (each trajectory at its own, drawn anew) and with
noise. A site's step is of use where the site was seen before and after it, and all its neighbours before it. From
these rows every learner makes a rule, and each rule is compared with the truth on starts that no learner saw:

- `operator`: the error of the increment on states drawn at random, far from any trajectory, beside the true increment;
- `one_step`: the same along unseen trajectories; 1 is as bad as persistence;
- `rollout`: the error of the state after rolling out the rule alone from unseen starts, beside the true state. A
  rollout that leaves ten times the range of the truth is counted in `diverged`, and enters with an error of 1;
- `coefficients`: for the dictionary, the error of its coefficients beside the true ones;
- `completion`: the error of the sites that were never seen, filled in: the start is sought from which the learned rule
  gives what was seen at the other sites, and the whole field after it is compared with the truth. Beside it, 1 is as
  bad as zeros.

`rows` says how many rows learners get: the onset is the least of them from which the operator is found to a tenth.

All errors are relative, in the L2 norm. A seed draws the starts, sites, noise and centres anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from dashi.bench.identify.completion import COMPLETED, completion
from dashi.bench.identify.learners import LEARNERS, Rows, Rule, joined, learn
from dashi.bench.identify.systems import SYSTEMS, System, Values
from dashi.errors import InputError
from dashi.runtime.device import Device

TRAJECTORIES: Final = 12
STEPS: Final = 40
LEAST: Final = 200
ROWS: Final = 1500
"""Rows that learners get at least and at most, drawn from those of use."""
UNSEEN: Final = 8
ROLLOUT: Final = 100
MEASURES: Final = ("operator", "one_step", "rollout", "diverged", "coefficients", "completion")
ONSET: Final = 0.1
"""The error of the operator at which it counts as recovered."""
FEWEST: Final = 20
"""Rows that a learner needs at least."""


@dataclass(frozen=True)
class StudySetting:
    """One question: which system, which fraction of its sites is seen, with how much noise (standard deviation beside
    that of the data)."""

    system: str
    observed: float
    noise: float
    rows: int = ROWS
    """Rows that learners get at most."""


@dataclass(frozen=True)
class Outcome:
    """How one learner fared for one seed; measures by name, NaN where one does not apply."""

    setting: StudySetting
    learner: str
    seed: int
    rows: int
    chosen: str
    measures: dict[str, float]


@dataclass(frozen=True)
class SeedSpread:
    """A measure over seeds."""

    mean: float
    deviation: float
    least: float
    most: float


def settings(
    systems: Sequence[str], observed: Sequence[float], noise: Sequence[float], rows: Sequence[int] = (ROWS,)
) -> tuple[StudySetting, ...]:
    """Every combination, checked."""
    for count in rows:
        if not FEWEST <= count <= ROWS:
            raise InputError(f"{count} rows were asked for.", f"use {FEWEST} to {ROWS}.")
    for name in systems:
        if name not in SYSTEMS:
            raise InputError(f"there is no system {name!r}.", f"use one of {', '.join(SYSTEMS)}.")
    for fraction in observed:
        if not 0 < fraction <= 1:
            raise InputError(f"a fraction of {fraction} of the sites cannot be observed.", "pass above 0, up to 1.")
    for amount in noise:
        if not 0 <= amount < 1:
            raise InputError(f"noise is {amount}.", "pass a part of the data's deviation: 0 up to, but without, 1.")
    return tuple(StudySetting(s, f, n, r) for s in systems for f in observed for n in noise for r in rows)


def identify(
    asked: Sequence[StudySetting], seeds: Sequence[int], *, device: Device, learners: Sequence[str] = LEARNERS
) -> Iterator[Outcome]:
    """Outcomes one after the other: settings, then seeds, then learners. The fits run on the device."""
    for setting in asked:
        system = SYSTEMS[setting.system]()
        for seed in seeds:
            rows = observe(system, setting, np.random.default_rng([seed, 1]))
            judge = _judge(system, np.random.default_rng([seed, 2]))
            for name in learners:
                rule = learn(name, system, rows, np.random.default_rng([seed, 3]), device)
                measures = judge(rule)
                if setting.system in COMPLETED:
                    measures["completion"] = completion(system, rule, setting, np.random.default_rng([seed, 4]))
                if name == "dictionary":
                    measures["coefficients"] = _relative(rule.coefficients - system.truth, system.truth)
                yield Outcome(setting, name, seed, len(rows), rule.settings, measures)


def observe(system: System, setting: StudySetting, rng: np.random.Generator) -> Rows:
    """The rows that are of use."""
    neighbours = system.laplacian != 0
    parts: list[Rows] = []
    for number in range(TRAJECTORIES):
        path = system.trajectory(system.start(rng), STEPS)
        noisy: Values = path + setting.noise * path.std(axis=(0, 1)) * rng.standard_normal(path.shape)
        seen = rng.permutation(system.sites) < round(setting.observed * system.sites)
        known = np.flatnonzero((seen | ~neighbours).all(axis=1))
        own, diffused = system.surroundings(noisy[:-1])
        values: Values = np.stack([own, diffused, noisy[1:] - noisy[:-1]])[:, :, known]
        values = values.reshape(3, -1, system.channels)
        source = np.full(values.shape[1], number, np.int64)
        parts.append(Rows(values[0], values[1], values[2], source))
    rows = joined(parts)
    if len(rows) < LEAST or len(np.unique(rows.source)) < 2:
        raise InputError(
            f"with {setting.observed:g} of the sites observed only {len(rows)} steps have all neighbours seen.",
            "observe a larger fraction.",
        )
    return rows.part(rng.permutation(len(rows))[: setting.rows])


def _judge(system: System, rng: np.random.Generator) -> Callable[[Rule], dict[str, float]]:
    """Compares rules with the truth, always on the same unseen states."""
    starts = np.stack([system.start(rng) for _ in range(UNSEEN)])
    truth = system.trajectory(starts, ROLLOUT)
    anywhere = system.states(rng, UNSEEN)

    def error(rule: Rule, x: Values) -> float:
        right = system.increment(x)
        return _relative(rule.increment(system, x) - right, right)

    def measures(rule: Rule) -> dict[str, float]:
        errors, diverged = _rollout(system, rule, starts, truth)
        return {
            "operator": error(rule, anywhere),
            "one_step": error(rule, truth[:-1]),
            "rollout": errors,
            "diverged": diverged,
            "coefficients": float("nan"),
            "completion": float("nan"),
        }

    return measures


def _rollout(system: System, rule: Rule, starts: Values, truth: Values) -> tuple[float, float]:
    """The mean error at the end over starts, and the fraction that diverged."""
    x, limit = starts, 10 * np.abs(truth).max()
    gone = np.zeros(len(starts), bool)
    for _ in range(len(truth) - 1):
        moved = x + rule.increment(system, x)
        gone |= ~(np.abs(moved).max(axis=(1, 2)) < limit)
        x = np.where(gone[:, None, None], 0.0, moved)
    size = np.linalg.norm(truth[-1], axis=(1, 2))
    errors = np.where(gone, 1.0, np.linalg.norm(x - truth[-1], axis=(1, 2)) / size)
    return float(errors.mean()), float(gone.mean())


def _relative(missed: Values, right: Values) -> float:
    return float(np.linalg.norm(missed) / np.linalg.norm(right))


def spread(values: Sequence[float]) -> SeedSpread | None:
    """Mean, deviation and range of a measure; none where it does not apply."""
    if not values or not np.isfinite(values).all():
        return None
    return SeedSpread(float(np.mean(values)), float(np.std(values)), min(values), max(values))


def result_rows(
    asked: Sequence[StudySetting], outcomes: Sequence[Outcome], learners: Sequence[str] = LEARNERS
) -> list[dict[str, Any]]:
    """A row of plain data for each setting and learner: every measure over the seeds that were finished."""
    rows: list[dict[str, Any]] = []
    for setting in asked:
        for learner in learners:
            finished = [o for o in outcomes if o.setting == setting and o.learner == learner]
            if not finished:
                continue
            row: dict[str, Any] = {**asdict(setting), "learner": learner, "seeds": [o.seed for o in finished]}
            row["training_rows"] = [o.rows for o in finished]
            row["chosen"] = [o.chosen for o in finished]
            for name in MEASURES:
                over = spread([o.measures[name] for o in finished])
                row[name] = None if over is None else asdict(over)
            rows.append(row)
    return rows


def onset(asked: Sequence[StudySetting], outcomes: Sequence[Outcome], learner: str) -> int | None:
    """The least number of rows from which on, with every larger one that was asked for, the mean error of the operator
    is at most ONSET; None where it is not even with the most."""
    least: int | None = None
    for setting in sorted(asked, key=lambda one: -one.rows):
        errors = [o.measures["operator"] for o in outcomes if o.setting == setting and o.learner == learner]
        if not errors or not float(np.mean(errors)) <= ONSET:
            break
        least = setting.rows
    return least
