"""What became of a rollout, in one word, from its energy and the reference's. docs/evaluation.md defines each.

That a rollout no longer follows the reference is not a failure: the flow is chaotic, and the horizons tell when. A
failure is a state that the flow itself would not be in.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dashi.flow.evaluation.result import Failure
from dashi.flow.grid import Floats

COLLAPSED: Final = 0.1
"""Share of the reference's energy below which a state has collapsed."""
DRIFTED: Final = 1.25
"""The ratio to the reference, against that of the first frame, that is drift (of enstrophy: its square)."""
SWING: Final = 0.1
"""The standard deviation of log energy about its trend that is an oscillation."""
TIMES: Final = 3.0
"""Changes of the reference itself: what stays below so many times its standard deviation is natural."""
TURNS: Final = 4
"""Changes of side: two whole swings."""
_WORST: Final[tuple[Failure, ...]] = ("blow-up", "collapse", "oscillation", "drift", "none")


def classify(energy: Floats, reference: Floats, admissible: Floats, *, drifted: float = DRIFTED) -> Failure:
    """What became of one window, from series (frames,); whichever comes first.

    blow-up: a frame is not admissible, or not finite;
    collapse: below a tenth of the reference in all of the last quarter of the frames;
    oscillation: log energy swings about its linear trend, by a standard deviation above 0.1 and above three times the
        reference's, and goes from one side to the other four times or more;
    drift: the mean ratio to the reference in the last quarter is more than 1.25 times off that of the first frame,
        and more than three standard deviations of the reference about its own trend.
    """
    if not np.all(admissible) or not np.isfinite(energy).all():
        return "blow-up"
    last = slice(len(energy) - max(1, len(energy) // 4), None)
    if np.all(energy[last] <= COLLAPSED * reference[last]) and energy[0] > COLLAPSED * reference[0]:
        return "collapse"
    if not np.all(energy > 0) or not np.all(reference > 0):
        return "none"
    natural = float(_about_trend(np.log(reference)).std())
    swings = _about_trend(np.log(energy))
    size = float(swings.std())
    if size > max(SWING, TIMES * natural) and _turns(swings, 0.5 * size) >= TURNS:
        return "oscillation"
    ratio = np.log(energy / reference)
    off = abs(float(ratio[last].mean() - ratio[0]))
    return "drift" if off > max(math.log(drifted), TIMES * natural) else "none"


def worst(*found: Failure) -> Failure:
    """The gravest of several."""
    return min(found, key=_WORST.index)


def _about_trend(series: Floats) -> Floats:
    """A series without its straight line of least squares."""
    time = np.arange(len(series)) - 0.5 * (len(series) - 1)
    slope = float((time * series).sum() / max(float((time * time).sum()), 1.0))
    return series - series.mean() - slope * time


def _turns(series: Floats, least: float) -> int:
    """How often it goes from above `least` to below minus that, or back."""
    sides = np.sign(series[np.abs(series) > least])
    return int(np.count_nonzero(np.diff(sides)))
