"""Genealogies that are known are found again, with books that close; what cannot be tracked is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashi.errors import BooksError, BoundsError, InputError
from dashi.filament.threads import EdgeKind, Genealogy, MatchWeights, TrackSettings, keep_books, track
from dashi.filament.threads import _known as known
from dashi.filament.threads.assignment import Features, assign, distances
from dashi.filament.threads.blobs import find_blobs, quantum_of

SETTINGS = TrackSettings(threshold=known.THRESHOLD)


def tracked(truth: known.KnownGenealogy, n: int = 64) -> Genealogy:
    frames = np.stack([known.render(vortices, n) for vortices in truth.frames])
    return track(frames, known.LENGTH, settings=SETTINGS)


def rates(seeds: range, speed: float) -> tuple[float, float, Any]:
    """Precision and recall over all edges, and right edges, edges and true edges by kind."""
    sums = np.zeros((3, 3), np.int64)
    for seed in seeds:
        truth = known.make_genealogy(seed, speed=speed)
        sums += known.scores(truth, tracked(truth))
    right, edges, true_edges = sums.sum(axis=0)
    return right / edges, right / true_edges, sums


def test_known_genealogies_are_recovered_at_half_a_radius_a_frame() -> None:
    precision, recall, sums = rates(range(40), 0.5)
    assert min(precision, recall) >= 0.99
    assert sums[1, 2] > 10
    assert sums[2, 2] > 5


@pytest.mark.long
def test_two_thousand_known_genealogies_are_recovered() -> None:
    precision, recall, sums = rates(range(2000), 0.5)
    assert min(precision, recall) >= 0.99
    # Of splits and merges alone, which are few among the continuations.
    assert (sums[1:, 0] >= 0.93 * np.maximum(sums[1:, 1], sums[1:, 2])).all()


@pytest.mark.long
def test_tracking_gets_worse_with_the_distance_between_frames_and_not_suddenly() -> None:
    recalls = [rates(range(150), speed)[1] for speed in (0.5, 1.0, 1.5)]
    assert recalls[0] >= recalls[1] >= recalls[2] >= 0.95


def gaussians(places: list[tuple[float, float, float]], n: int = 64, width: float = 0.3) -> Any:
    vortices = [
        known.KnownVortex(i, x, y, abs(a), width, int(math.copysign(1, a)), 0.0) for i, (x, y, a) in enumerate(places)
    ]
    return known.render(vortices, n)


def test_two_vortices_that_merge_give_one_merge_of_two_threads() -> None:
    distances_apart = np.linspace(1.6, 0.0, 12)
    # Across the border of the box.
    frames = np.stack([gaussians([(-d / 2, 6.2, 1.0), (d / 2, 6.2, 1.1)]) for d in distances_apart])
    graph = track(frames, known.LENGTH, settings=SETTINGS)
    assert graph.counts == {
        "threads": 2, "first": 2, "births": 0, "splits": 0, "last": 1, "deaths": 0, "merges": 1,
    }  # fmt: skip
    (edge,) = graph.edges_of(EdgeKind.MERGE)
    larger = graph.vertices.thread[graph.child[edge]]
    # The larger circulation goes on.
    assert graph.vertices.gamma[graph.thread(int(larger))[0]] > graph.vertices.gamma[graph.parent[edge]]
    assert graph.ancestors(int(larger)) == [1 - int(larger)]
    assert graph.descendants(1 - int(larger)) == [int(larger)]


def test_backwards_in_time_a_merge_is_a_split() -> None:
    frames = np.stack([gaussians([(-d / 2, 1.0, 1.0), (d / 2, 1.0, 1.1)]) for d in np.linspace(0.0, 1.6, 12)])
    counts = track(frames, known.LENGTH, settings=SETTINGS).counts
    assert (counts["threads"], counts["splits"], counts["merges"], counts["births"]) == (2, 1, 0, 0)


def test_opposite_vortices_are_never_one() -> None:
    frames = np.stack([gaussians([(3 - d / 2, 1.0, 1.0), (3 + d / 2, 1.0, -1.0)]) for d in np.linspace(1.6, 0.6, 8)])
    counts = track(frames, known.LENGTH, settings=SETTINGS).counts
    assert (counts["threads"], counts["merges"], counts["deaths"]) == (2, 0, 0)


@pytest.mark.parametrize("seed", [3, 11])
def test_the_border_of_the_box_is_nowhere(seed: int) -> None:
    truth = known.make_genealogy(seed)
    frames = np.stack([known.render(vortices, 64) for vortices in truth.frames])
    plain = track(frames, known.LENGTH, settings=SETTINGS)
    moved = track(np.roll(frames, (17, 40), (1, 2)), known.LENGTH, settings=SETTINGS)
    assert plain.counts == moved.counts
    assert sorted(plain.vertices.gamma) == sorted(moved.vertices.gamma)
    way = np.mod(np.sort(moved.vertices.radius) - np.sort(plain.vertices.radius), known.LENGTH)
    assert np.abs(way).max() < 1e-9  # rounding of means of the same offsets


def test_the_same_frames_give_the_same_digest_and_other_scales_the_same_edges() -> None:
    truth = known.make_genealogy(5)
    frames = np.stack([known.render(vortices, 64) for vortices in truth.frames])
    first = track(frames, known.LENGTH, settings=SETTINGS)
    assert first.digest == track(frames.copy(), known.LENGTH, settings=SETTINGS).digest
    larger = track(frames * 8.0, known.LENGTH * 2, settings=replace(SETTINGS, threshold=8 * known.THRESHOLD))
    assert np.array_equal(first.parent, larger.parent)
    assert np.array_equal(first.kind, larger.kind)
    assert first.digest != larger.digest


@pytest.mark.parametrize("seed", range(6))
def test_books_close_exactly_and_a_leak_of_one_quantum_is_located(seed: int) -> None:
    graph = tracked(known.make_genealogy(seed))
    books = keep_books(graph)
    books.require_closed()
    totals = books.totals()
    for quantity in ("signed", "magnitude", "impulse_x", "impulse_y"):
        assert sum(account[quantity] for account in totals.values()) == 0
    # All circulation of a frame: that of blobs, and what is around them.
    by_step = np.bincount(graph.vertices.step, graph.vertices.gamma, len(graph.times)).astype(np.int64)
    frames = np.stack([known.render(vortices, 64) for vortices in known.make_genealogy(seed).frames])
    cell = (known.LENGTH / 64) ** 2 / graph.quantum
    assert np.array_equal(by_step + graph.around, np.rint(frames * cell).astype(np.int64).sum(axis=(1, 2)))
    edge = len(graph.parent) // 2
    leaking = books.with_leak(edge)
    defects = leaking.defects()
    assert [(d.vertex, d.quantity, d.missing) for d in defects] == [
        (int(graph.child[edge]), "signed", 1),
        (int(graph.parent[edge]), "signed", 1),
    ]
    with pytest.raises(BooksError, match=r"the books do not close in 2 places: step \d+, thread \d+: the inflow of"):
        leaking.require_closed()
    with pytest.raises(BoundsError):
        books.with_leak(len(graph.parent))


def test_beginnings_and_ends_are_as_many_as_threads() -> None:
    for seed in range(8):
        counts = tracked(known.make_genealogy(seed)).counts
        assert counts["first"] + counts["births"] + counts["splits"] == counts["threads"]
        assert counts["last"] + counts["deaths"] + counts["merges"] == counts["threads"]


def test_lifetimes_and_survival_agree_with_births_and_deaths() -> None:
    frames = [gaussians([(1, 1, 1.0)])]
    for steps in (2, 3):  # two eddies that live for two and three frames
        frames += [gaussians([(1, 1, 1.0), (4, 4, -1.0)])] * steps + [gaussians([(1, 1, 1.0)])]
    graph = track(np.stack(frames), known.LENGTH, np.arange(len(frames)) * 0.5, SETTINGS)
    assert [(life.beginning, life.ending, life.last - life.first) for life in graph.lifetimes] == [
        ("first", "last", 7), ("birth", "death", 1), ("birth", "death", 2),
    ]  # fmt: skip
    ages, share = graph.survival()
    assert ages.tolist() == [0.0, 0.5, 1.0]
    assert share.tolist() == [1.0, 0.5, 0.0]
    times, gamma = graph.circulation(1)
    assert times.tolist() == [0.5, 1.0]
    assert (gamma < 0).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
def test_the_assignment_is_the_best_of_all(seed: int, rows: int, columns: int) -> None:
    from itertools import permutations

    random = np.random.default_rng(seed)
    d = np.where(random.random((rows, columns)) < 0.7, np.round(random.random((rows, columns)) * 3, 1), np.inf)
    pairs = assign(d, 3.0)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    saved = np.where(np.isfinite(d), 3.0 - d, 0.0)
    saved = saved if rows <= columns else saved.T
    order = range(saved.shape[0])
    best = max(sum(saved[i, p[i]] for i in order) for p in permutations(range(saved.shape[1]), len(order)))
    assert sum(3.0 - d[i, j] for i, j in pairs) == pytest.approx(best, abs=1e-4)  # costs are rounded to 2^-20


def test_distances_go_the_shorter_way_round_and_end_at_the_gate() -> None:
    def at(x: float, gamma: int = 100, radius: float = 0.5) -> Features:
        return Features(np.array([x]), np.zeros(1), np.array([gamma]), np.array([radius]))

    weights = MatchWeights()
    assert distances(at(0.1), at(6.2), 2 * math.pi, weights)[0, 0] == pytest.approx((2 * math.pi - 6.1) / 0.5)
    assert distances(at(0.1), at(6.2), None, weights)[0, 0] == math.inf
    assert distances(at(0), at(1.3), None, weights)[0, 0] == math.inf
    assert distances(at(0), at(0, -100), None, weights)[0, 0] == math.inf
    assert distances(at(0), at(0, 50, 1.0), None, weights)[0, 0] == pytest.approx(0.5 + 0.25)


def test_a_lone_blob_is_measured_as_it_is() -> None:
    field, length = gaussians([(6.1, 0.2, 2.0)], 128), known.LENGTH
    blobs = find_blobs(field, length, quantum_of(2.0, 128, length), 1e-9)
    assert len(blobs) == 1
    assert (blobs.x[0], blobs.y[0]) == pytest.approx((6.1, 0.2), abs=1e-6)
    assert blobs.radius[0] == pytest.approx(math.sqrt(2) * 0.3, rel=1e-4)  # quanta of the tail
    quantum = quantum_of(2.0, 128, length)
    assert blobs.gamma[0] * quantum == pytest.approx(2 * math.pi * 2.0 * 0.3**2, rel=1e-5)


FRAMES = np.stack([gaussians([(3, 3, 1.0)])] * 3)


@pytest.mark.parametrize(
    ("frames", "options", "what"),
    [
        (FRAMES[0], {}, "the frames have the shape"),
        (FRAMES[:, :, :60], {}, "a field has the shape"),
        (np.where(FRAMES > 0.9, np.nan, FRAMES), {}, "values of the field are not finite"),
        (FRAMES.astype(complex), {}, "the field holds complex128"),
        (FRAMES, {"times": [0, 1, 1]}, "the times of the frames do not rise"),
        (FRAMES, {"times": [0, 1]}, "the times of the frames do not rise"),
        (FRAMES, {"length": 0.0}, "`length=` is 0.0"),
        (FRAMES, {"length": math.nan}, "`length=` is nan"),
        (FRAMES, {"settings": TrackSettings(quantum=1.0)}, "a quantum of 1 is too coarse for this field"),
        (FRAMES, {"settings": TrackSettings(quantum=1e-30)}, "a quantum of 1e-30 is too fine for this field"),
    ],
)
def test_what_cannot_be_tracked_is_refused(frames: Any, options: Any, what: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        track(frames, **{"length": known.LENGTH, **options})
    assert caught.value.fix


@pytest.mark.parametrize("options", [{"depth": 1.0}, {"min_points": 0}, {"threshold": 0.0}, {"level": -1.0}])
def test_settings_that_mean_nothing_are_refused(options: Any) -> None:
    with pytest.raises(InputError, match=f"`{next(iter(options))}=` is"):
        TrackSettings(**options)
    with pytest.raises(InputError, match="the weight `gate=`"):
        MatchWeights(gate=math.nan)


def test_a_record_of_nothing_has_no_threads() -> None:
    graph = track(np.zeros((3, 16, 16)), 1.0)
    assert (graph.counts["threads"], len(graph.vertices), keep_books(graph).unexplained) == (0, 0, 0.0)
