"""The scores of one model on one window, filled as its fields are decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.flow.evaluation.failures import DRIFTED, classify, worst
from dashi.flow.evaluation.result import Failure
from dashi.flow.evaluation.scores import Reference, correlation, relative_l2, spectrum_error
from dashi.flow.grid import Floats

SERIES: Final = ("correlation", "relative_l2", "energy", "enstrophy", "spectrum_error", "admissible")


@dataclass(frozen=True, eq=False)
class Scored:
    """A window's scores."""

    series: Mapping[str, Floats]
    """By the names of SERIES, (frames,)."""
    failure: Failure
    spectrum: Floats
    """Energy spectrum of the last frame."""
    continued: Floats
    """Energy of the frames after the reference's last."""


class WindowScores:
    """Scores of `many` frames against window w of a reference that may end before. A frame that is not finite has
    correlation 0, and everything else infinite."""

    def __init__(self, reference: Reference, w: int, many: int, carried: slice) -> None:
        self._fields = reference.fields[w]
        self._reference = [part[w] for part in reference.measured]
        self._spectra, self._carried = reference.spectra, carried
        self._frames = len(self._fields)
        shells = reference.spectra.count
        self._energy, self._enstrophy = (np.full((many, shells), np.inf) for _ in range(2))
        self._correlation = np.zeros(self._frames)
        self._l2, self._off = (np.full(self._frames, np.inf) for _ in range(2))

    def add(self, at: Floats, fields: Floats) -> None:
        """Fields (some, n, n) of the frames with the numbers `at`."""
        good = np.isfinite(fields).all(axis=(1, 2))
        at, fields = at[good], fields[good]
        if not len(at):
            return
        self._energy[at], self._enstrophy[at] = self._spectra.of(fields)
        inside = at < self._frames
        here, values = at[inside], fields[inside]
        self._correlation[here] = correlation(values, self._fields[here])
        self._l2[here] = relative_l2(values, self._fields[here])
        self._off[here] = spectrum_error(self._energy[here], self._reference[0][here], self._carried)

    def close(self, limit: float) -> Scored:
        """All scores of the window; energies of `limit` and above are not admissible."""
        frames = self._frames
        energy, enstrophy = self._energy.sum(-1), self._enstrophy.sum(-1)
        admissible = np.isfinite(energy) & (energy < limit)
        values = (self._correlation, self._l2, energy, enstrophy, self._off, admissible.astype(np.float64))
        return Scored(
            {name: series[:frames] for name, series in zip(SERIES, values, strict=True)},
            self._failure(admissible[:frames]),
            self._energy[frames - 1],
            energy[frames:],
        )

    def _failure(self, admissible: Floats) -> Failure:
        """The worst failure by energy and by enstrophy, each summed over the shells that the model carries."""
        failures: list[Failure] = []
        for ours, reference, most in (
            (self._energy, self._reference[0], DRIFTED),
            (self._enstrophy, self._reference[1], DRIFTED * DRIFTED),
        ):
            held, asked = (part[: self._frames, self._carried].sum(-1) for part in (ours, reference))
            failures.append(classify(held, asked, admissible, drifted=most))
        return worst(*failures)
