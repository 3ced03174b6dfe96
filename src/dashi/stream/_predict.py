"""What a chain takes: the period between items, the latency of one, and the windows that links need.

    P(W) = max(max t_i, max x_j, max_j (t_j + x_j + t_j+1) / W_j, CPU work / cores)

A slot of link j is in use from when stage j begins to fill it until stage j + 1 is done with it, t_j + x_j + t_j+1, and
there are W_j of them. Where W_j is not given it is the least that does not rule: ceil((t_j + x_j + t_j+1) / P), with
the P that the other terms make.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from dashi.stream._plan import Prediction

_ROUNDING = 1e-9


def predict(
    stages: Sequence[float],
    links: Sequence[float],
    windows: Sequence[int | None],
    *,
    core_seconds: float = 0.0,
    cores: int = 1,
    names: Sequence[str] = (),
) -> tuple[Prediction, tuple[int, ...]]:
    """The prediction for stages of these seconds, links between them, and windows (None: as many as it takes); and the
    windows. `core_seconds` is what cores of the host are busy for one item; `names` are those of the stages."""
    ids = list(names) or [str(i) for i in range(len(stages))]
    held = [t + x + after for t, x, after in zip(stages, links, stages[1:], strict=False)]
    terms = {f"stage {name}": t for name, t in zip(ids, stages, strict=True)}
    ways = [f"{a}->{b}" for a, b in pairwise(ids)]
    terms |= {f"link {name}": x for name, x in zip(ways, links, strict=True)}
    for name, total, window in zip(ways, held, windows, strict=True):
        if window is not None:
            terms[f"window {window} of {name}"] = total / window
    terms["cores of the host"] = core_seconds / cores
    bound_by = max(terms, key=lambda name: terms[name])
    period = terms[bound_by]
    chosen = tuple(
        window if window is not None else _needed(total, period) for total, window in zip(held, windows, strict=True)
    )
    return Prediction(period, sum(stages) + sum(links), bound_by, terms), chosen


def _needed(held: float, period: float) -> int:
    return max(1, math.ceil(held / period - _ROUNDING)) if period > 0 else 1
