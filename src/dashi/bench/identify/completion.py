"""Completion: what was seen at some sites, and a learned rule, give the sites that were not watched.

The start is sought from which the rule gives what was seen, by Gauss and Newton with a small penalty; derivatives of
the rule are differences. (4D-Var of a local rule: F.-X. Le Dimet and O. Talagrand, Tellus A 38, 1986, doi
10.3402/tellusa.v38i2.11706.)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dashi.bench.identify.learners import Rule
from dashi.bench.identify.systems import System, Values

COMPLETED: Final = ("waves",)
"""Systems whose fields are completed: smooth in time, so that what is seen holds what is not."""
STEPS: Final = 24
ROUNDS: Final = 4
PENALTY: Final = 1e-4
LOST: Final = 10.0
"""Larger errors count as 1: the rule ran away."""
STRIDE: Final = 1e-5


def completion(system: System, rule: Rule, setting: Any, rng: np.random.Generator) -> float:
    """The relative error of the sites that were not seen, over all steps; `setting` has `observed` and `noise`."""
    truth = system.trajectory(system.start(rng), STEPS)
    watched = rng.permutation(system.sites) < round(setting.observed * system.sites)
    if watched.all() or not watched.any():
        return float("nan")
    data = (truth + setting.noise * truth.std(axis=(0, 1)) * rng.standard_normal(truth.shape))[:, watched]
    field = complete(system, rule, data, watched)
    with np.errstate(all="ignore"):
        error = float(np.linalg.norm((field - truth)[:, ~watched]) / np.linalg.norm(truth[:, ~watched]))
    return error if error <= LOST else 1.0


def complete(system: System, rule: Rule, data: Values, watched: Any) -> Values:
    """All states (steps + 1, sites, channels) from those at the sites that were seen, (steps + 1, seen, channels)."""
    start = np.zeros((system.sites, system.channels))
    start[watched] = data[0]
    with np.errstate(all="ignore"):
        for _ in range(ROUNDS):
            # All starts at once: the present one, and it with each number a little larger.
            many = np.concatenate([start[None], start + STRIDE * np.eye(start.size).reshape(-1, *start.shape)])
            paths = rolled(system, rule, many, len(data) - 1)[:, :, watched]
            base = paths[:, 0].ravel()
            slope = (np.moveaxis(paths[:, 1:], 1, -1).reshape(len(base), -1) - base[:, None]) / STRIDE
            if not np.isfinite(slope).all():
                break
            normal = slope.T @ slope + PENALTY * np.eye(start.size)
            change = np.linalg.solve(normal, slope.T @ (data.ravel() - base) - PENALTY * start.ravel())
            start = start + change.reshape(start.shape)
        return rolled(system, rule, start[None], len(data) - 1)[:, 0]


def rolled(system: System, rule: Rule, starts: Values, steps: int) -> Values:
    """States (steps + 1, starts, sites, channels) of the learned rule."""
    states = [starts]
    for _ in range(steps):
        states.append(states[-1] + rule.increment(system, states[-1]))
    return np.stack(states)
