"""Filaments through the scales: labels, heirs, deaths, and the survival curve by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dashi.flow.annihilation.trace import (
    Filament,
    filament_table,
    label_filaments,
    survival_curve,
    trace_filaments,
)


def flooded(trits: np.ndarray) -> np.ndarray:
    """Labels by flooding, point by point."""
    labels, number = np.zeros(trits.shape, int), 0
    h, w = trits.shape
    for start in np.argwhere(trits != 0):
        if labels[tuple(start)]:
            continue
        number += 1
        stack = [tuple(start)]
        while stack:
            y, x = stack.pop()
            if labels[y, x]:
                continue
            labels[y, x] = number
            near = [((y + dy) % h, (x + dx) % w) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
            stack += [p for p in near if trits[p] == trits[y, x] and not labels[p]]
    return labels


@pytest.mark.parametrize(("shape", "part"), [((24, 20), 0.7), ((16, 16), 0.4), ((7, 5), 0.5), ((40, 40), 0.62)])
def test_labels_are_those_of_a_flood(shape: tuple[int, int], part: float) -> None:
    rng = np.random.default_rng(3)
    trits = np.where(rng.random(shape) < part, rng.choice([-1, 1], shape), 0)
    assert np.array_equal(label_filaments(trits), flooded(trits))


def test_no_points_have_no_filaments() -> None:
    assert not label_filaments(np.zeros((4, 4), int)).any()
    assert trace_filaments(np.zeros((3, 4, 4), int)) == []
    assert survival_curve([]) == []


def test_filaments_live_on_where_their_sign_does_and_end_where_it_does_not() -> None:
    states = np.zeros((3, 6, 8), int)
    states[0, 1:3, 1:4] = 2  # lives on to the end
    states[0, 1:3, 6] = -2  # meets the other sign, and dies
    states[1, 1, 1:3] = 2
    states[1, 1:3, 6] = 2  # born at scale 1, dies at scale 2
    states[2, 1, 1] = 2
    states[2, 5, 5] = 1  # a sign that is not active
    bands = np.full(states.shape, 0.5)
    found = sorted(trace_filaments(states, bands), key=lambda f: (f.birth, f.sign))
    assert found == [
        Filament(0, 1, False, -1, 2, 1.0), Filament(0, 3, True, 1, 6, 3.0), Filament(1, 2, False, 1, 2, 1.0),
    ]  # fmt: skip
    assert [f.age for f in found] == [1, 3, 1]
    assert filament_table(found)["area"].tolist() == [2, 6, 2]
    assert trace_filaments(states, first=2) == [Filament(2, 3, True, 1, 1, 0.0)]


def test_where_two_become_one_the_elder_lives_on() -> None:
    states = np.zeros((3, 5, 9), int)
    states[0, 2, 1] = 2
    states[1, 2, 1:3] = 2
    states[1, 2, 5:8] = 2
    states[2, 2, 1:8] = 2
    found = sorted(trace_filaments(states), key=lambda f: f.birth)
    assert found == [Filament(0, 3, True, 1, 1, 0.0), Filament(1, 2, False, 1, 3, 0.0)]


def test_the_survival_curve_is_that_of_kaplan_and_meier() -> None:
    # Ages 1, 1, 2+, 3, 3+: 5 at risk at 1, 3 at 2, 2 at 3.
    lives = [(1, False), (1, False), (2, True), (3, False), (3, True)]
    curve = survival_curve([Filament(0, age, censored, 1, 1, 0.0) for age, censored in lives])
    assert [(p.at_risk, p.deaths) for p in curve] == [(5, 2), (3, 0), (2, 1)]
    assert [p.survival for p in curve] == pytest.approx([0.6, 0.6, 0.3])
    # Greenwood: 2 / (5 * 3) = 0.1333; exp(1.96 sqrt(0.1333) / |log 0.6|) = exp(1.4010) = 4.059.
    assert curve[0].low == pytest.approx(0.6**4.059, rel=1e-3)
    assert curve[0].high == pytest.approx(0.6 ** (1 / 4.059), rel=1e-3)
    assert all(p.low <= p.survival <= p.high for p in curve)
