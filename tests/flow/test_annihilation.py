"""Annihilation: surrogates are what they say, statistics have known values, planted depths are recovered."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dashi.errors import InputError
from dashi.flow.annihilation import (
    ESTIMATORS,
    GAUGES,
    NULLS,
    AnnihilationSettings,
    DepthMeter,
    measure_depth,
    planted_field,
)
from dashi.flow.annihilation import depth as depths
from dashi.flow.annihilation._surrogates import SurrogateMaker
from dashi.flow.annihilation.depth import end_of, interval, octaves_to, standardise
from dashi.flow.annihilation.estimators import Measured
from dashi.flow.annihilation.scales import band_tables, centres, mode_counts, octave_numbers, scale_count
from dashi.flow.annihilation.survival import grid_levels, surviving_points
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.device import Device

N = 32
QUICK: dict[str, Any] = {"surrogates": 3, "rounds": 2, "resamples": 20}


@pytest.fixture(scope="module")
def field() -> np.ndarray:
    return np.asarray(planted_field(N, 1, 3, seed=5))


@pytest.mark.parametrize("null", NULLS)
def test_every_null_is_measured_with_the_same_bits_on_every_device(
    null: str, device: Device, field: np.ndarray
) -> None:
    with CpuDevice() as cpu:
        expected = measure_depth(field, null=null, device=cpu, **QUICK)
    assert measure_depth(field, null=null, device=device, **QUICK).hash == expected.hash


@pytest.mark.parametrize("bands", ["shannon", "gaussian"])
def test_doubles_are_measured_with_the_same_bits_on_every_device(bands: str, device: Device, field: np.ndarray) -> None:
    with CpuDevice() as cpu:
        expected = measure_depth(field, dtype="float64", bands=bands, device=cpu, **QUICK)
    assert measure_depth(field, dtype="float64", bands=bands, device=device, **QUICK).hash == expected.hash


@pytest.mark.parametrize("gauge", ["circulation", "streamfunction"])
def test_signs_in_a_gauge_have_the_same_bits_on_every_device(gauge: str, device: Device, field: np.ndarray) -> None:
    with CpuDevice() as cpu:
        expected = measure_depth(field, gauge=gauge, device=cpu, **QUICK)
    assert measure_depth(field, gauge=gauge, device=device, **QUICK).hash == expected.hash


def test_which_points_are_active_does_not_depend_on_the_gauge(field: np.ndarray) -> None:
    found = {g: measure_depth(field, gauge=g, angle=0.4, **QUICK) for g in GAUGES}
    turned = [measure_depth(field, gauge="axis", angle=angle, **QUICK) for angle in (0.4 + math.pi, 1.3, -2.0)]
    active = [[s.active for s in f.survival] for f in (*found.values(), *turned)]
    assert all(a == active[0] for a in active)
    signs = {g: [b.statistic for b in f.bands] for g, f in found.items()}
    assert len({tuple(v) for v in signs.values()}) > 2
    # What turns the signs of all scales alike changes no relation between them: a flip, the sign of the large flow.
    assert np.allclose(signs["axis"], [b.statistic for b in turned[0].bands], atol=1e-3)
    assert signs["circulation"] == signs["vorticity"]


def test_the_tangent_of_a_shear_lies_along_it_and_has_its_direction() -> None:
    y = np.arange(32) * 2 * np.pi / 32
    waves = np.cos(3 * y) + np.cos(6 * y) + np.cos(12 * y)
    along = measure_depth(np.broadcast_to(waves[:, None], (32, 32)), gauge="axis", angle=0.0, tau=0.0, **QUICK)
    # Bands of w = cos(k y) have u = sin(k y) / k along x: at every point the sign is that of sin(k y).
    expected = [np.sign(np.sin(k * y)) for k in (3, 6, 12)]
    products = [(a * b)[np.abs(a * b) > 0].mean() for a, b in pairwise(expected)]
    assert np.allclose([b.statistic for b in along.bands[2:]], products, atol=0.2)


def test_another_seed_and_another_null_give_other_surrogates(field: np.ndarray) -> None:
    first = measure_depth(field, seed=1, **QUICK)
    assert measure_depth(field, seed=2, **QUICK).bands != first.bands
    assert measure_depth(field, seed=1, null="shift", **QUICK).bands != first.bands
    assert measure_depth(field, seed=1, **QUICK).as_json() == first.as_json()


def surrogates(field: np.ndarray, batch: int, first: int = 0, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """The field's modes, and those of its surrogates, as complex numbers."""
    with CpuDevice() as cpu:
        settings = AnnihilationSettings(dtype="float64", **options)
        maker = SurrogateMaker(cpu, len(field), batch, settings)
        maker.field[...] = field
        maker.draw(0, first, settings.seed)
        with cpu.program([*maker.loading, *maker.steps]) as program:
            program.run()
        made = [a.numpy().view(np.complex128)[..., 0] for a in (maker.field_modes, maker.modes)]
    return made[0], made[1]


def in_space(modes: np.ndarray) -> np.ndarray:
    return np.fft.irfft2(modes)


def test_phase_surrogates_have_the_power_of_every_mode(field: np.ndarray) -> None:
    modes, made = surrogates(field, 2, null="phase")
    pairs = np.ones(modes.shape, bool)
    pairs[0, 0] = pairs[N // 2] = pairs[:, N // 2] = False
    assert np.allclose(np.abs(made)[:, pairs], np.abs(modes)[pairs], rtol=1e-12)
    relation = np.abs((made[0] * np.conj(modes))[pairs].sum()) / (np.abs(modes)[pairs] ** 2).sum()
    assert relation < 0.5


def test_shuffled_and_iaaft_surrogates_have_the_values_of_the_field(field: np.ndarray) -> None:
    for null in ("shuffle", "iaaft"):
        _, made = surrogates(field, 2, null=null, rounds=10)
        for surrogate in in_space(made):
            assert np.allclose(np.sort(surrogate, axis=None), np.sort(field, axis=None), atol=1e-12)
            assert not np.allclose(surrogate, field, atol=0.1)


def test_iaaft_comes_nearer_to_the_spectrum_with_every_round(field: np.ndarray) -> None:
    def gap(rounds: int) -> float:
        modes, made = surrogates(field, 1, null="iaaft", rounds=rounds)
        return float(np.abs(np.abs(made[0]) - np.abs(modes)).sum() / np.abs(modes).sum())

    assert gap(20) < 0.7 * gap(2)
    assert measure_depth(field, null="iaaft", **QUICK).null_residual < 0.2  # type: ignore[operator]


def test_shifted_surrogates_move_every_octave_by_whole_points(field: np.ndarray) -> None:
    modes, made = surrogates(field, 1, null="shift")
    numbers = octave_numbers(N)
    moves: set[tuple[int, int]] = set()
    for octave in range(scale_count(N) + 1):
        one, other = (in_space(np.where(numbers == octave, m, 0)) for m in (modes, made[0]))
        places = [
            (y, x)
            for y in range(N)
            for x in range(N)
            if np.allclose(np.roll(one, (y, x), (0, 1)), other, atol=1e-9 * np.abs(one).max())
        ]
        assert places
        moves.add(places[0])
    assert len(moves) > 1


def test_a_surrogate_is_the_same_in_any_batch(field: np.ndarray) -> None:
    for null in NULLS:
        _, several = surrogates(field, 3, null=null, rounds=2)
        _, alone = surrogates(field, 1, first=2, null=null, rounds=2)
        assert alone[0].tobytes() == several[2].tobytes(), null


def test_power_surrogates_have_the_slope_asked_for() -> None:
    _, made = surrogates(np.asarray(planted_field(64, 1, 2)), 8, null="power", slope=2.0)
    numbers, power = octave_numbers(64), (np.abs(made) ** 2).mean(axis=0)
    means = [power[numbers == j].mean() for j in range(1, 5)]
    assert np.allclose(np.array(means[:-1]) / means[1:], 4.0, rtol=0.3)


def test_orthogonal_bands_divide_the_modes_and_overlapping_ones_peak_in_the_middle() -> None:
    for n in (32, 48, 100):
        tables = band_tables(n, "shannon")
        assert set(np.unique(tables.sum(axis=0))) <= {0.0, 1.0}
        assert [int(t.sum()) for t in tables] == [int((octave_numbers(n) == j).sum()) for j in range(len(tables))]
    line = band_tables(1024, "gaussian")[:, 0]
    assert np.allclose(line.argmax(axis=1)[3:], centres(1024)[3:], rtol=0.1)
    assert np.allclose(mode_counts(64)[:3], [8, 40, 176], rtol=0.3)


def measured(states: list[int]) -> Measured:
    counts = np.zeros((2, 1, 15), np.int64)
    np.add.at(counts[1, 0], states, 1)
    ones = np.ones((2, 1))
    return Measured(counts, ones, ones, 0.5 * ones, (1000, 1000))


def test_statistics_have_their_values_where_these_are_known() -> None:
    persistence, information = ESTIMATORS["persistence"].of, ESTIMATORS["information"].of
    same, opposite, mixed = [0, 14, 13, 1], [4, 10, 11, 3], [0, 4, 10, 14]
    assert [persistence(measured(s))[1] for s in (same, opposite, mixed, [6, 7])] == [1.0, -1.0, 0.0, 0.0]
    assert information(measured([0, 14] * 100))[1] == pytest.approx(1.0, abs=1e-3)
    assert information(measured([0, 4, 10, 14] * 100))[1] == pytest.approx(0.0, abs=1e-3)
    assert information(measured([0, 14] * 100))[1] < 1.0  # the bias is taken off
    assert ESTIMATORS["concentration"].of(measured(same))[1] == 0.5
    assert ESTIMATORS["flatness"].of(measured([7] * 5))[1] == 5.0


def test_p_is_the_rank_of_the_data_among_largest_values_over_scales() -> None:
    rng = np.random.default_rng(0)
    null, tested = rng.standard_normal((99, 4)), np.array([1, 2, 3])
    far = np.array([0.0, 9.0, 0.0, 0.0])
    chances = standardise(far, null, tested).chances(far)
    assert chances[1] == 0.01
    assert chances[2] > 0.3
    flat = np.concatenate([null[:, :3], np.ones((99, 1))], axis=1)
    assert standardise(np.append(far[:3], 1.0), flat, tested).chances(np.append(far[:3], 1.0))[3] == 1.0


def test_depth_ends_at_the_first_scale_that_is_not_above_the_null() -> None:
    tested = np.array([2, 3, 4])
    assert [end_of(np.array(above), tested) for above in ([0, 0, 1, 0, 1], [1, 1, 0, 1, 1], [0, 0, 1, 1, 1])] == [
        3,
        2,
        5,
    ]
    assert octaves_to(64, 4, 2, 4.0) == 2.0
    assert octaves_to(64, 5, 2, 4.0) == 3.0
    assert octaves_to(64, 2, 2, 3.0) == 0.0
    assert interval([float(v) for v in range(201)]) == (5.0, 195.0)


def test_scales_without_enough_modes_or_past_a_gap_are_not_tested() -> None:
    power = np.ones(5)
    assert depths.tested_scales(64, 1.2, power, 1).tolist() == [2, 3, 4]
    assert depths.tested_scales(64, 1.2, power, 8).tolist() == [1, 2, 3, 4]
    assert depths.tested_scales(64, 6.0, power, 8).tolist() == [3, 4]
    power[3] = 0.0
    assert depths.tested_scales(64, 1.2, power, 8).tolist() == [1, 2]
    assert depths.tested_scales(64, 40.0, power, 8).tolist() == []


def test_points_survive_while_every_scale_has_one_sign() -> None:
    states = np.array([[[1, -2]], [[2, -2]], [[2, 2]], [[-2, 1]]])
    assert surviving_points(states, 1) == [(2, 2), (2, 1), (1, 0)]


def test_levels_of_the_grid_are_the_logarithm_of_its_side_for_any_field() -> None:
    rng = np.random.default_rng(1)
    smooth = np.sin(np.linspace(0, 2 * np.pi, 64, endpoint=False))[None] * np.ones((64, 1)) + 0.3
    for n in (16, 64, 256):
        assert abs(grid_levels(rng.standard_normal((n, n)), 1.0) - math.log2(n)) <= 1
    assert grid_levels(smooth, 1.0) == 6


def test_planted_depth_is_recovered_by_what_has_power_and_not_by_signs_alone() -> None:
    field = planted_field(64, 2, 4, seed=3, snr=6.0)
    found = measure_depth(field, surrogates=39, resamples=20, estimator="information")
    assert {found.results[name].depth.end for name in ("information", "concentration", "flatness")} == {4}
    assert abs(found.depth.octaves - 2.0) < 0.5
    assert found.depth.low <= found.depth.octaves <= found.depth.high
    assert "information above the null 'phase' for" in found.verdict
    assert found.results["persistence"].depth.end < 4  # isolated vortices are ringed by the other sign in every band


def test_noise_has_no_depth_and_too_few_surrogates_decide_nothing() -> None:
    noise = np.random.default_rng(7).standard_normal((N, N))
    found = measure_depth(noise, surrogates=19, resamples=20)
    assert found.depth.octaves == 0.0
    assert found.verdict == "no persistence above the null 'phase' from the integral scale on"
    assert measure_depth(noise, **QUICK).verdict == "undecided: 3 surrogates cannot reach 5 %"


def false_alarms(null: str, draws: int) -> int:
    """Of so many fields of noise, how many are above the null at any scale, by persistence."""
    rng = np.random.default_rng(11)
    settings = AnnihilationSettings(null=null, surrogates=19, resamples=1)
    with CpuDevice() as cpu, DepthMeter(cpu, N, settings) as meter:
        found = [meter.measure(rng.standard_normal((N, N)), seed=seed) for seed in range(draws)]
    return sum(any(band.above for band in f.bands) for f in found)


def test_noise_raises_false_alarms_as_rarely_as_stated() -> None:
    # 8 or more of 40 come by chance in 6 of 1,000 cases where the rate is 5 %.
    assert false_alarms("phase", 40) < 8


@pytest.mark.long
@pytest.mark.parametrize("null", ["phase", "shift"])
def test_many_fields_of_noise_raise_false_alarms_at_the_stated_rate(null: str) -> None:
    # Four standard deviations of 300 draws at 5 % are 15.
    assert abs(false_alarms(null, 300) - 15) <= 15


def test_several_fields_are_one_sample_and_their_surrogates_differ(field: np.ndarray) -> None:
    both = measure_depth(np.stack([field, field]), **QUICK)
    assert both.fields == 2
    alone = measure_depth(field, **QUICK)
    assert [b.statistic for b in both.bands] == [b.statistic for b in alone.bands]
    assert [b.null_mean for b in both.bands] != [b.null_mean for b in alone.bands]
    shared = {s.k: s.active for s in alone.survival}
    doubled = [s.active == 2 * shared[s.k] for s in both.survival if s.k in shared]
    assert doubled
    assert all(doubled)


def test_size_and_mean_of_a_field_do_not_matter(field: np.ndarray) -> None:
    plain, moved = (measure_depth(f, **QUICK) for f in (field, 1e-30 * field.astype(np.float64)))
    assert [b.statistic for b in plain.bands] == [b.statistic for b in moved.bands]
    raised = measure_depth(field + 1000.0, **QUICK)
    assert np.allclose([b.statistic for b in plain.bands], [b.statistic for b in raised.bands], atol=0.02)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.full((32, 32), 3.0), "constant"),
        (np.where(np.eye(32) > 0, np.nan, 1.0), "not finite"),
        (np.ones((32, 16)), "square periodic vorticity"),
        (np.ones(32), "square periodic vorticity"),
        (np.zeros((8, 8)), "fewer than three octaves"),
        (np.zeros((0, 32, 32)), "square periodic vorticity"),
        (np.zeros((32, 32), complex), "no real numbers"),
        (np.zeros((22, 22)), "22"),
    ],
)  # fmt: skip
def test_what_is_no_field_is_refused(bad: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        measure_depth(bad, **QUICK)
    assert caught.value.fix


def test_one_active_point_and_thresholds_that_leave_nothing_are_measured(field: np.ndarray) -> None:
    single = np.zeros((N, N))
    single[3, 4] = 1.0
    assert measure_depth(single, **QUICK).fields == 1
    nothing = measure_depth(field, tau=1e5, **QUICK)
    assert {band.statistic for band in nothing.bands} == {0.0}
    assert nothing.survival[0].active == 0 == nothing.survival[0].fraction


@pytest.mark.parametrize(
    "options",
    [
        {"null": "other"}, {"estimator": "other"}, {"bands": "other"}, {"dtype": "float16"}, {"surrogates": 0},
        {"surrogates": True}, {"seed": -1}, {"tau": float("nan")}, {"tau": -1.0}, {"rounds": 0}, {"slope": 99.0},
        {"resamples": 0},
    ],
)  # fmt: skip
def test_settings_without_a_meaning_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        AnnihilationSettings(**options)
    assert caught.value.fix


def test_settings_are_passed_in_one_way(field: np.ndarray) -> None:
    settings = replace(AnnihilationSettings(), surrogates=3)
    with pytest.raises(InputError, match="two ways"):
        measure_depth(field, settings, seed=3)


@pytest.mark.parametrize("bad", [{"first": 0}, {"end": 9}, {"snr": 0.0}, {"count": 0}, {"shape": "rings"}])
def test_structures_that_cannot_be_planted_are_refused(bad: dict[str, Any]) -> None:
    options: dict[str, Any] = {"first": 1, "end": 3, **bad}
    with pytest.raises(InputError):
        planted_field(32, options.pop("first"), options.pop("end"), **options)
