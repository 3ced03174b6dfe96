"""The verdict names what a run did: systems with known fates get the right name, on every stride."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dashi.core.observations._verdict_levels import distances, groups, levels, swings
from dashi.core.observations.observation import Observation
from dashi.core.observations.verdict import Verdict, verdict
from dashi.errors import InputError

State = NDArray[np.float64]
Map = Callable[[State], State]


def run(step: Map, start: Any, steps: int, stride: int = 1, bands: int = 2) -> tuple[list[Observation], State, State]:
    """What the observers of a rollout would see: observations and the sheet on a stride; and the last state."""
    z = np.asarray(start, np.float64)
    observations: list[Observation] = []
    sheet: list[list[float]] = []
    for t in range(1, steps + 1):
        with np.errstate(all="ignore"):
            after = step(z)
        if t % stride == 0:
            with np.errstate(all="ignore"):
                before_norm, norm = (float(np.sqrt(np.sum(x * x))) for x in (z, after))
                wrong = np.flatnonzero(~np.isfinite(after))
                ratio = norm / before_norm if before_norm else (math.inf if norm else 0.0)
                defect = float(np.abs(after - z).max())
            first = int(wrong[0]) if wrong.size else None
            observations.append(Observation(t, before_norm, norm, ratio, defect, int(wrong.size), first))
            sheet.append([float(np.sum(part * part)) for part in np.array_split(after.reshape(-1), bands)])
        z = after
        if not np.all(np.isfinite(z)):
            break
    return observations, np.array(sheet), z


def judged(step: Map, start: Any, steps: int, stride: int = 1) -> Verdict:
    observations, sheet, _ = run(step, start, steps, stride)
    found = verdict(observations, sheet)
    json.dumps(found.as_json(), allow_nan=False)
    return found


def linear(matrix: Any) -> Map:
    return lambda z: z @ np.asarray(matrix, np.float64)


def turn(angle: float) -> State:
    return np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])


def logistic(r: float) -> Map:
    return lambda x: r * x * (1 - x)


START = np.array([0.6, -0.8])
STRIDES = pytest.mark.parametrize("stride", [1, 2, 3, 10])


@STRIDES
@pytest.mark.parametrize("rate", [0.9, 0.99, 0.995, -0.97])
def test_decay_collapses(rate: float, stride: int) -> None:
    found = judged(linear(rate * np.eye(2)), START, 600, stride)
    assert found.name == "collapsed"
    assert found.sentence.startswith("Collapsed: the norm fell from ")


def test_decay_to_exactly_nothing_and_a_start_from_nothing_collapse() -> None:
    assert judged(lambda z: 0 * z, START, 20).evidence["rule"] == "nothing left"
    assert judged(lambda z: z, np.zeros(3), 20).name == "collapsed"


@STRIDES
@pytest.mark.parametrize("rate", [1.005, 1.01, 1.2, -1.05])
def test_growth_blows_up(rate: float, stride: int) -> None:
    found = judged(linear(rate * np.eye(2)), START, 500, stride)
    assert found.name == "blown up"
    assert "no limit is in sight" in found.sentence


def test_linear_growth_blows_up() -> None:
    assert judged(lambda z: z + 0.01, START, 3000).name == "blown up"


def test_values_that_are_not_finite_blow_up_with_step_and_index() -> None:
    outcome = judged(lambda z: np.where(np.abs(z) > 1000, np.inf, z * np.array([1.0, 2.0])), START, 50)
    assert outcome.name == "blown up"
    assert outcome.sentence == "Blown up: at step 12 one value is not finite, the first at index 1."
    assert outcome.evidence == {"rule": "not finite", "step": 12, "nonfinite": 1, "first_nonfinite": 1}


def test_a_norm_that_overflows_blows_up() -> None:
    o = Observation(7, 1e19, math.inf, math.inf, 1e20, 0, None)
    assert verdict([o]).sentence == "Blown up: at step 7 the norm is too large for its type."


@STRIDES
@pytest.mark.parametrize("angle", [0.05, 0.3, 1.0, math.pi / 2, math.pi])
def test_rotation_oscillates(angle: float, stride: int) -> None:
    found = judged(linear(turn(angle)), START, 800, stride)
    assert found.name == "oscillating", found
    assert found.evidence["last_ratio"] == pytest.approx(1)


def test_a_wave_whose_norm_and_bands_are_constant_oscillates_because_it_keeps_moving() -> None:
    observations, _, _ = run(linear(turn(0.2)), START, 400)
    outcome = verdict(observations, np.ones((400, 1)))
    assert outcome.name == "oscillating"
    assert outcome.evidence["swings"] == 0
    assert outcome.evidence["path_in_diameters"] > 10


@STRIDES
def test_rotation_that_dies_out_is_stable_or_collapsed_and_never_oscillating(stride: int) -> None:
    offset = np.array([3.0, 0.0])
    spiral = 0.98 * turn(0.5)
    assert judged(lambda z: offset + (z - offset) @ spiral, START, 600, stride).name == "stable"
    assert judged(linear(spiral), START, 600, stride).name == "collapsed"


@STRIDES
def test_a_linear_map_with_one_mode_that_stays_is_stable(stride: int) -> None:
    found = judged(linear(np.diag([1.0, 0.9])), START, 400, stride)
    assert found.name == "stable"
    assert found.sentence == "Stable: the norm holds 0.6."


@STRIDES
def test_approach_to_a_fixed_point_is_stable_and_its_limit_is_foretold(stride: int) -> None:
    found = judged(lambda z: 0.99 * z + 0.01, [10.0], 200, stride)
    assert found.name == "stable"
    assert found.evidence["heading_for"] == pytest.approx(1, abs=0.1)
    rising = judged(lambda z: 0.99 * z + 0.05, [0.1], 200, stride)
    assert rising.name == "stable"
    assert rising.evidence["heading_for"] == pytest.approx(5, rel=0.1)


@STRIDES
@pytest.mark.parametrize("start", [0.001, 0.5, 5.0])
def test_a_map_that_saturates_is_stable(start: float, stride: int) -> None:
    assert judged(lambda z: np.tanh(1.5 * z), [start, -start], 300, stride).name == "stable"


@STRIDES
@pytest.mark.parametrize(("r", "count"), [(3.2, 2), (3.5, 4), (3.83, 3)])
def test_period_doubling_bifurcates_and_shows_its_levels(r: float, count: int, stride: int) -> None:
    observations, sheet, _ = run(logistic(r), [0.3], 800, stride)
    outcome = verdict(observations, sheet)
    assert outcome.name == "bifurcating", outcome
    assert outcome.evidence["rule"] == "levels"
    assert outcome.evidence["signal"] == "norm"
    # Observers see the state before and after a step: two neighbours of the orbit even where the stride hides others.
    visible = sorted({round(x, 6) for o in observations[-count:] for x in (o.norm_before, o.norm)})
    assert len(visible) == (2 if stride % count == 0 and count < 4 else count)
    assert outcome.evidence["levels"] == pytest.approx(visible, rel=1e-3)


@STRIDES
def test_before_the_doubling_it_is_stable_and_in_chaos_it_oscillates(stride: int) -> None:
    assert judged(logistic(2.8), [0.3], 800, stride).name == "stable"
    assert judged(logistic(4.0), [0.3], 801, stride).name == "oscillating"
    assert judged(logistic(3.9), [0.3], 801, stride).name == "oscillating"
    assert judged(logistic(0.9), [0.3], 800, stride).name == "collapsed"


def test_levels_seen_in_a_band_alone_are_found() -> None:
    def step(z: State) -> State:
        x, other = z[0], z[1]
        made = 3.2 * x * (1 - x)
        # The other component keeps the norm constant, so that the bands alone show the levels.
        return np.array([made, math.sqrt(max(0.0, x * x + other * other - made * made))])

    found = judged(step, [0.3, 2.0], 400)
    assert (found.name, found.evidence["signal"]) == ("bifurcating", "band 0")


def test_a_level_that_is_left_for_another_bifurcates() -> None:
    def step(z: State) -> State:
        return z + 0.05 * z * (1 - z * z / 4) * (z * z - 1)  # 1 repels, 2 attracts

    outcome = judged(step, [1 + 1e-9], 600)
    assert outcome.name == "bifurcating"
    assert outcome.evidence["rule"] == "another level"
    assert outcome.evidence["levels"] == pytest.approx([1, 2], rel=1e-3)


def test_members_that_began_together_and_part_bifurcate() -> None:
    def step(z: State) -> State:
        return np.tanh(1.5 * z)

    start = 1e-3 * np.array([[1.0], [-1.0], [0.9], [0.5], [-0.7]])
    observations, sheet, last = run(step, start, 200)
    assert verdict(observations, sheet).name == "stable"
    outcome = verdict(observations, sheet, members=(start, last))
    assert outcome.name == "bifurcating"
    assert outcome.evidence["groups"] == [3, 2]
    assert outcome.evidence["gap"] == pytest.approx(2 * 0.8586, rel=1e-3)
    assert "5 states that began within 0.002 ended in 2 groups" in outcome.sentence


def test_members_that_were_apart_from_the_start_do_not_bifurcate() -> None:
    start = np.array([[1.0], [-1.0], [0.9]])
    observations, sheet, last = run(lambda z: np.tanh(1.5 * z), start, 200)
    assert verdict(observations, sheet, members=(start, last)).name == "stable"
    near = np.array([[1.0], [1.001], [0.9]])
    observations, sheet, last = run(lambda z: np.tanh(1.5 * z), near, 200)
    assert verdict(observations, sheet, members=(near, last)).name == "stable"
    spread = np.random.default_rng(0).standard_normal((40, 2))
    observations, sheet, last = run(linear(turn(0.3)), spread, 300)
    assert verdict(observations, sheet, members=(spread, last)).name == "oscillating"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_observations_give_an_answer_that_says_so(count: int) -> None:
    found = judged(linear(0.5 * np.eye(2)), START, count)
    assert found.sentence.endswith(f"(From {count} observations only.)")
    assert found.evidence["observations"] == count


def test_no_observations_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        verdict([])
    assert str(caught.value) == (
        "a run without observations has no verdict. Fix: observe it on a stride that is at most the number of steps."
    )


def test_the_order_of_observations_and_a_useless_sheet_do_not_matter() -> None:
    observations, _, _ = run(logistic(3.2), [0.3], 400)
    sheets: Iterable[Any] = (None, np.zeros((0, 4)), np.full((400, 2), np.nan), np.ones(5))
    assert {verdict(observations[::-1], sheet).name for sheet in sheets} == {"bifurcating"}


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1), st.floats(0.5, 0.97), st.floats(1e-6, 1e6), st.integers(2, 12), st.sampled_from([1, 5])
)
def test_contractions_of_any_size_and_scale_collapse_and_their_inverses_blow_up(
    seed: int, radius: float, scale: float, size: int, stride: int
) -> None:
    rng = np.random.default_rng(seed)
    orthogonal = np.linalg.qr(rng.standard_normal((size, size)))[0]
    start = scale * rng.standard_normal(size)
    assert judged(linear(radius * orthogonal), start, 400, stride).name == "collapsed"
    assert judged(linear(orthogonal / radius), start, 400, stride).name == "blown up"


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6), st.integers(2, 12), st.sampled_from([1, 7]))
def test_rotations_of_any_size_and_scale_oscillate(seed: int, scale: float, size: int, stride: int) -> None:
    rng = np.random.default_rng(seed)
    # Angles that no small power undoes, in any basis: the exponential of a skew matrix with those eigenvalues.
    basis = np.linalg.qr(rng.standard_normal((2 * size, 2 * size)))[0]
    blocks = np.zeros((2 * size, 2 * size))
    for i in range(size):
        blocks[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = turn(float(rng.uniform(0.2, 2.9)))
    matrix = basis.T @ blocks @ basis
    found = judged(linear(matrix), scale * rng.standard_normal(2 * size), 1000, stride)
    assert found.name == "oscillating", found


def test_swings_count_turns_and_not_noise() -> None:
    t = np.arange(1000) / 100
    assert swings(np.sin(2 * np.pi * t)) == 20
    assert swings(t) == swings(-t) == swings(np.ones(50)) == 0
    assert swings(np.abs(t - 5)) == 1
    assert swings(1 + 1e-4 * np.sin(2 * np.pi * t)) == 0
    assert swings(np.tile([0.0, 1.0], 50000)) > 4 or swings(np.tile([0.0, 1.0, 0.0], 33333)) > 4


def test_levels_want_sharp_groups_that_the_signal_came_to() -> None:
    there = np.tile([1.0, 2.0], 20)
    assert levels(np.concatenate([[1.5, 1.4], there])) == [1.0, 2.0]
    assert levels(there) == []  # it was on them from the start
    assert levels(np.linspace(0, 1, 40)) == []
    assert levels(np.ones(40)) == []
    assert levels(np.concatenate([[9.0], np.tile(np.arange(9.0), 9)])) == []  # nine are too many
    assert levels(np.array([5.0, 1, 2, 1, 2])) == []  # too short to tell


def test_groups_are_as_few_as_are_sharp() -> None:
    points = np.array([[0.0], [0.1], [0.2], [10.0], [10.1], [30.0]])
    found, gap = groups(distances(points))
    assert sorted(sorted(g) for g in found) == [[0, 1, 2], [3, 4], [5]]
    assert gap == pytest.approx(9.8)
    assert groups(distances(np.array([[0.0], [1.0], [2.0], [3.0]])))[1] == 0  # none is near another
    assert groups(distances(np.array([[0.0], [5.0]])))[1] == 0
    assert groups(distances(np.ones((4, 2)))) == ([[0, 1, 2, 3]], 0.0)
