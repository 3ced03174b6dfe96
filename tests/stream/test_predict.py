"""The predicted period is that of a chain whose stages wait for what they need and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dashi.stream import predict


def simulated(stages: Sequence[float], links: Sequence[float], windows: Sequence[int], items: int = 600) -> float:
    """Seconds an item in the steady state. A stage begins when it is free, its item is there, and the link behind it
    has a slot, which stays taken until the next stage is done with what lies in it."""
    count = len(stages)
    ends = np.zeros((count, items))
    sent = np.zeros((max(1, count - 1), items))
    for item in range(items):
        for stage in range(count):
            begin = ends[stage, item - 1] if item else 0.0
            if stage:
                begin = max(begin, sent[stage - 1, item])
            if stage < count - 1 and item >= windows[stage]:
                begin = max(begin, ends[stage + 1, item - windows[stage]])
            ends[stage, item] = begin + stages[stage]
            if stage < count - 1:
                before = sent[stage, item - 1] if item else 0.0
                sent[stage, item] = max(ends[stage, item], before) + links[stage]
    half = items // 2
    return float(ends[-1, -1] - ends[-1, half]) / (items - 1 - half)


def test_the_predicted_period_is_the_simulated_one() -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        count = int(rng.integers(1, 5))
        stages = rng.integers(1, 20, count).astype(float).tolist()
        links = rng.integers(0, 20, count - 1).astype(float).tolist()
        windows = rng.integers(1, 4, count - 1).tolist()
        prediction, _ = predict(stages, links, windows)
        # The steady state may repeat after a few items only: what is left of that in 300 items.
        assert simulated(stages, links, windows) == pytest.approx(prediction.period, rel=0.02)


def test_chosen_windows_are_wide_enough_and_one_less_is_not() -> None:
    rng = np.random.default_rng(8)
    for _ in range(30):
        stages, links = rng.uniform(1, 20, 3).tolist(), rng.uniform(0, 20, 2).tolist()
        prediction, windows = predict(stages, links, (None, None))
        assert simulated(stages, links, windows) == pytest.approx(prediction.period, rel=0.02)
        for link in (0, 1):
            if windows[link] > 1:
                narrower = [window - (i == link) for i, window in enumerate(windows)]
                assert predict(stages, links, narrower)[0].period > prediction.period * (1 + 1e-9)


def test_the_worked_example_with_its_simulated_times() -> None:
    # Each stage 1 ms, links a tenth of it, three slots: nothing waits.
    prediction, windows = predict([1e-3] * 4, [1e-4] * 3, [3] * 3)
    assert prediction.period == pytest.approx(1e-3)
    assert windows == (3, 3, 3)
    assert simulated([1e-3] * 4, [1e-4] * 3, windows) == pytest.approx(1e-3, rel=1e-6)
