"""Learners of a local rule from rows (own values, their Laplacian, increment): all by the ridge solver of the device.

| learner | what it knows beforehand | features |
|---|---|---|
| dictionary | the candidate terms, not which of them occur nor how much | the terms |
| rbf | that the rule is local and smooth | those of linear, and Gaussians around rows drawn from the data |
| linear | that the rule is local and linear | 1, own values, their Laplacian |
| persistence | nothing | none: the increment is 0 |

Ridge and width are chosen on a fifth of the trajectories, which are held out, for each learner from a short list; then
the rule is fitted to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.bench.identify.systems import System, Values
from dashi.core.learning.ridge import ridge
from dashi.errors import InputError
from dashi.runtime.device import Device

LEARNERS: Final = ("dictionary", "rbf", "linear", "persistence")
HOLD: Final = 5
"""Every fifth trajectory is held out."""
CENTRES: Final = 128
WIDTHS: Final = (1.0, 2.0, 4.0)
"""Widths of the Gaussians, in units of the median distance of two centres."""
RIDGES: Final = (1e-12, 1e-8, 1e-4)
"""Beside features that are scaled to a mean square of 1, per row."""

Features = Callable[[Values, Values], Values]


@dataclass(frozen=True)
class Rows:
    """What was observed: own values, their Laplacian, and the increment, a row for each site and step; and which
    trajectory it is from."""

    own: Values
    diffused: Values
    increment: Values
    source: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.own)

    def part(self, chosen: Any) -> Rows:
        """The rows that a mask or a list of numbers chooses."""
        return Rows(self.own[chosen], self.diffused[chosen], self.increment[chosen], self.source[chosen])


def joined(parts: Sequence[Rows]) -> Rows:
    """All rows, one after the other."""
    return Rows(
        np.concatenate([p.own for p in parts]),
        np.concatenate([p.diffused for p in parts]),
        np.concatenate([p.increment for p in parts]),
        np.concatenate([p.source for p in parts]),
    )


@dataclass(frozen=True)
class Rule:
    """A learned increment: features times coefficients."""

    features: Features
    coefficients: Values
    settings: str

    def increment(self, system: System, x: Values) -> Values:
        return self.features(*system.surroundings(x)) @ self.coefficients


def learn(name: str, system: System, rows: Rows, rng: np.random.Generator, device: Device) -> Rule:
    """The rule that a learner makes of the rows."""
    if name == "persistence":
        return Rule(_nothing, np.zeros((1, system.channels)), "")
    if name not in LEARNERS:
        raise InputError(f"there is no learner {name!r}.", f"use one of {', '.join(LEARNERS)}.")
    held = np.isin(rows.source, np.unique(rows.source)[::HOLD])
    fitted_rows, rest = rows.part(~held), rows.part(held)
    best: tuple[float, Features, float, str] | None = None
    for features, label in _choices(name, system, fitted_rows, rng):
        for lam in RIDGES:
            try:
                coefficients = fit(features, fitted_rows, lam, device)
            except InputError:
                # Too small a ridge for these features: the next is larger.
                continue
            missed = float(np.mean((features(rest.own, rest.diffused) @ coefficients - rest.increment) ** 2))
            if best is None or missed < best[0]:
                best = missed, features, lam, label
    if best is None:
        raise InputError(f"{len(rows)} rows do not determine the learner {name!r}.", "observe more sites or steps.")
    _, features, lam, label = best
    return Rule(features, fit(features, rows, lam, device), f"{label}ridge {lam:g}")


def fit(features: Features, rows: Rows, lam: float, device: Device) -> Values:
    """Coefficients of the features, which are scaled for the fit so that the ridge weighs on all alike."""
    values = features(rows.own, rows.diffused)
    scale = np.sqrt(np.mean(values**2, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    coefficients: Any = ridge(values / scale, rows.increment, lam * len(rows), device=device)
    return coefficients / scale[:, None]


def _choices(name: str, system: System, rows: Rows, rng: np.random.Generator) -> Iterator[tuple[Features, str]]:
    if name == "dictionary":
        yield system.terms, ""
    elif name == "linear":
        yield _affine, ""
    else:
        inputs = np.concatenate([rows.own, rows.diffused], axis=-1)
        scale = inputs.std(axis=0) + 1e-12
        chosen = rng.choice(len(inputs), min(CENTRES, len(inputs) // 2), replace=False)
        centres = inputs[chosen] / scale
        apart: Any = np.linalg.norm(centres[:, None] - centres[None], axis=-1)
        usual = float(np.median(apart))
        for width in WIDTHS:
            yield gaussians(centres, scale, width * usual), f"width {width:g}, "


def gaussians(centres: Values, scale: Values, width: float) -> Features:
    """1, the inputs, and e^(-|x - c|^2 / (2 width^2)) for every centre c, of inputs divided by `scale`."""

    def features(own: Values, diffused: Values) -> Values:
        x = np.concatenate([own, diffused], axis=-1) / scale
        squares = np.sum(x**2, axis=-1)[..., None] + np.sum(centres**2, axis=-1) - 2 * (x @ centres.T)
        made = np.exp(np.maximum(squares, 0) / (-2 * width**2))
        return np.concatenate([_affine(own, diffused), made], axis=-1)

    return features


def _affine(own: Values, diffused: Values) -> Values:
    return np.concatenate([np.ones_like(own[..., :1]), own, diffused], axis=-1)


def _nothing(own: Values, diffused: Values) -> Values:
    return np.zeros_like(own[..., :1])
