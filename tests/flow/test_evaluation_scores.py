"""Claims about scores: what each number means, what failures are called, how sure a mean is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dashi.errors import InputError
from dashi.flow import Flow, Kolmogorov, Stochastic, ensemble, to_field
from dashi.flow._resample import resample
from dashi.flow.evaluation import classify, perturbed, spread
from dashi.flow.evaluation.perturb import same_times
from dashi.flow.evaluation.scores import Spectra, carried_shells, correlation, horizons, spectrum_error
from dashi.flow.grid import Floats
from dashi.flow.windows import UNKNOWN

FLOW = Flow(n=32, nu=5e-3, dt=0.02, scheme="etdrk4")


@pytest.fixture(scope="module")
def fields() -> Floats:
    return to_field(ensemble(FLOW, "random", [1, 2]))


# ---- scores


def test_shells_of_energy_add_up_to_the_energy_of_the_field(fields: Floats) -> None:
    field = fields[0].astype(np.float64)
    energy, enstrophy = Spectra(FLOW).of(field[None])
    assert enstrophy.sum() == pytest.approx((field**2).mean() / 2, rel=1e-9)
    k = np.fft.fftfreq(32, 1 / 32)
    square = k[:, None] ** 2 + k[None, :] ** 2
    modes = np.abs(np.fft.fft2(field) / 32**2) ** 2
    assert energy.sum() == pytest.approx((modes / np.where(square > 0, square, np.inf)).sum() / 2, rel=1e-6)
    assert energy[0, 0] == 0


def test_correlation_knows_sign_and_scale_alone() -> None:
    field = np.random.default_rng(0).standard_normal((1, 8, 8))
    assert correlation(3 * field + 1, field) == pytest.approx([1.0])
    assert correlation(-field, field) == pytest.approx([-1.0])
    assert correlation(0 * field, field) == [0.0]


def test_a_horizon_is_the_time_of_the_first_frame_below() -> None:
    series = np.array([[1.0, 0.95, 0.85, 0.4, 0.9], [1.0, 1.0, 1.0, 1.0, 1.0], [1.0, np.nan, 1, 1, 1]])
    found = horizons(series, np.arange(5) * 0.1, (0.9, 0.5))
    np.testing.assert_allclose(found[0.9], [0.2, 0.4, 0.1])
    np.testing.assert_allclose(found[0.5], [0.3, 0.4, 0.1])


def test_a_spectrum_ten_times_too_high_is_wrong_by_one() -> None:
    reference = np.array([0.0, 1.0, 0.5, 0.25])
    assert spectrum_error(10 * reference, reference, slice(1, 4)) == pytest.approx(1.0)
    assert spectrum_error(0 * reference, reference, slice(1, 2)) == pytest.approx(12, abs=0.3)  # the floor


def test_a_shell_counts_as_carried_if_all_of_it_is() -> None:
    assert carried_shells(8, 30) == slice(1, 8)
    assert carried_shells(8.5, 30) == slice(1, 9)
    assert carried_shells(1, 30) == slice(1, 2)


def test_resampling_keeps_what_both_grids_resolve(fields: Floats) -> None:
    finer = resample(fields, 48)
    assert finer.shape == (2, 48, 48)
    np.testing.assert_allclose(resample(finer, 32), fields, atol=2e-5)
    np.testing.assert_allclose((finer**2).mean(), (fields**2).mean(), rtol=1e-5)


# ---- failures, on synthetic series

TIME = np.linspace(0, 20, 201)
STEADY = 1 + 0.03 * np.sin(1.3 * TIME)
FINE = np.ones_like(TIME)


@pytest.mark.parametrize(
    ("energy", "expected"),
    [
        pytest.param(0.95 * STEADY, "none", id="low-passed"),
        pytest.param(0.95 * (1 + 0.04 * np.sin(0.9 * TIME + 1)), "none", id="another-phase"),
        pytest.param(np.exp(0.05 * TIME), "drift", id="grows"),
        pytest.param(np.exp(-0.05 * TIME), "drift", id="decays-a-little"),
        pytest.param(np.exp(-0.3 * TIME), "collapse", id="dies"),
        pytest.param(np.exp(0.5 * np.sin(2 * TIME)), "oscillation", id="swings"),
        pytest.param(np.exp(-0.05 * TIME + 0.5 * np.sin(2 * TIME)), "oscillation", id="swings-on-a-slope"),
        pytest.param(np.exp(0.5 * TIME), "blow-up", id="explodes"),
        pytest.param(np.where(TIME > 5, np.nan, 1.0), "blow-up", id="not-finite"),
    ],
)
def test_a_failure_has_the_name_that_its_definition_gives(energy: Floats, expected: str) -> None:
    assert classify(energy, STEADY, energy < 10) == expected


def test_what_the_reference_does_too_is_no_failure() -> None:
    swinging = np.exp(0.5 * np.sin(2 * TIME))
    assert classify(np.exp(0.5 * np.sin(2 * TIME + 1)), swinging, FINE) == "none"
    dying = np.exp(-0.3 * TIME)
    assert classify(0.9 * dying, dying, FINE) == "none"
    assert classify(FINE, dying, FINE) == "drift"


def test_a_bend_is_no_oscillation() -> None:
    assert classify(np.exp(-0.004 * (TIME - 10) ** 2), STEADY, FINE) in ("drift", "none")


# ---- spread


def test_the_interval_covers_the_mean_of_seeds_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(200):
        values = rng.standard_normal(24)
        found = spread(values, range(24), draws=400)
        inside += found.low <= 0 <= found.high
    assert 170 <= inside <= 200  # 95 %, a little less for so few seeds


def test_windows_of_one_seed_are_drawn_together() -> None:
    values = np.repeat([0.0, 1.0, 2.0, 3.0], 8)
    seeds = np.repeat([1, 2, 3, 4], 8).tolist()
    together, apart = spread(values, seeds), spread(values, seeds, by="windows")
    assert together.high - together.low > 1.5 * (apart.high - apart.low)
    unknown = spread(values, [UNKNOWN] * 32)
    assert (unknown.low, unknown.high) == (apart.low, apart.high)


def test_one_seed_has_no_spread() -> None:
    alone = spread(np.array([1.0, 2.0]), [7, 7])
    assert alone.mean == 1.5
    assert math.isnan(alone.low)
    assert str(alone) == "1.5"


# ---- perturbed flows


def test_a_perturbed_flow_differs_in_one_parameter() -> None:
    assert perturbed(FLOW, "nu", 0.01) == replace(FLOW, nu=0.01)
    assert perturbed(FLOW, "cs", 0.17) == replace(FLOW, smagorinsky=0.17)
    assert perturbed(FLOW, "n", 48.0) == replace(FLOW, n=48)
    assert perturbed(FLOW, "drag", 0.3) == replace(FLOW, drag=0.3)
    forced = replace(FLOW, forcing=Kolmogorov(2, 1.0))
    assert perturbed(forced, "force_wavenumber", 3.0).forcing == Kolmogorov(3, 1.0)
    assert perturbed(forced, "force_amplitude", 2).forcing == Kolmogorov(2, 2.0)
    kicked = replace(FLOW, forcing=Stochastic(3, 5, 0.1))
    assert perturbed(kicked, "force_rate", 0.2).forcing == Stochastic(3, 5, 0.2)
    for flow, name, text in (
        (FLOW, "length", "'length' is not perturbed.*drag"), (FLOW, "force_amplitude", "the flow has no force"),
        (forced, "force_wavenumbr", "did you mean force_wavenumber"), (kicked, "force_seed", "not perturbed"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=text):
            perturbed(flow, name, 1)
    with pytest.raises(InputError, match="no whole number"):
        perturbed(forced, "force_wavenumber", 2.5)
    with pytest.raises(InputError, match="no number of points"):
        perturbed(FLOW, "n", 48.5)


def test_another_dt_takes_as_many_steps_as_fill_the_time() -> None:
    assert same_times(FLOW, perturbed(FLOW, "dt", 0.01), 50) == 100
    with pytest.raises(InputError, match="does not divide"):
        same_times(FLOW, perturbed(FLOW, "dt", 0.03), 50)
