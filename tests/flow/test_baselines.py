"""Claims about what closures are compared with: other training, no memory, and the climate in long runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import InputError
from dashi.flow import Flow, Kolmogorov, windows_of
from dashi.flow.evaluation import climate, climate_error, evaluate, gap_closed, time_gained
from dashi.flow.evaluation.long_run import low_fields
from dashi.flow.proxy import Model, Schema, decode, load_model, model_class, save_model
from dashi.flow.proxy._judge import Judge
from dashi.flow.proxy.states import encoded
from dashi.flow.windows import Windows
from dashi.runtime._cpu_device import CpuDevice

SCHEMA = Schema(32, 4)
FLOW = Flow(32, nu=5e-3, dt=0.02, drag=0.1, forcing=Kolmogorov(2))
SHORT: dict[str, Any] = {"iterations": 4, "long_iterations": 0, "frames": 4, "batch": 4, "checks": 1}


@pytest.fixture(scope="module")
def data() -> tuple[Windows, Windows]:
    with CpuDevice() as cpu:
        return tuple(
            windows_of(FLOW, seeds, device=cpu, steps=100, interval=5, windows=2, spin_up=200, host_fft=True)
            for seeds in ([1, 2], [3])
        )  # pyright: ignore[reportReturnType]


def fitted(name: str, data: tuple[Windows, Windows], device: CpuDevice, **options: Any) -> Model:
    return model_class(name).fit(SCHEMA, *data, device=device, **options)


def test_training_makes_an_eddy_viscosity_follow_its_training_windows_more_closely(
    data: tuple[Windows, Windows], tmp_path: Path
) -> None:
    with CpuDevice() as cpu:
        model = fitted("trained-eddy", data, cpu, **{**SHORT, "iterations": 30, "rate": 0.02})
        start = fitted("galerkin", data, cpu, factor=1.0, backscatter="scaled")
        judge = Judge(SCHEMA, data[0], cpu)
        assert judge.score(model) > judge.score(start)
        save_model(tmp_path / "model.npz", model)
        again = load_model(tmp_path / "model.npz")
        z = encoded(SCHEMA, data[1], device=cpu)[:, 0]
        assert np.array_equal(again.rollout(z, 2, device=cpu), model.rollout(z, 2, device=cpu))
    assert (again.name, again.state_size) == ("trained-eddy", start.state_size)
    assert "trained through rollouts" in again.description


def test_without_a_force_a_trained_eddy_viscosity_cannot_feed() -> None:
    flow = replace(FLOW, forcing=None, drag=0.0)
    with CpuDevice() as cpu:
        windows = windows_of(flow, [1, 2], device=cpu, steps=50, interval=5, spin_up=20, host_fft=True)
        model = model_class("trained-eddy").fit(SCHEMA, windows, None, device=cpu, **SHORT)
    assert np.all(np.asarray(model.arrays["eddy"], np.float64) >= -flow.nu)


def test_the_full_solver_that_keeps_z_alone_is_perfect_for_one_frame_and_differs_after(
    data: tuple[Windows, Windows],
) -> None:
    with CpuDevice() as cpu:
        z = encoded(SCHEMA, data[1], device=cpu)[:, 0]
        restarted, perfect = (fitted(name, data, cpu) for name in ("restarted", "perfect"))
        ours, theirs = (model.rollout(z, 4, device=cpu) for model in (restarted, perfect))
        assert np.array_equal(ours[:, :2], theirs[:, :2])
        assert not np.array_equal(ours[:, 2], theirs[:, 2])
        pieces = np.concatenate([*restarted.pieces(z, 4, device=cpu, most=3)], axis=1)
        assert np.array_equal(pieces, ours[:, 1:])
    assert not restarted.has_hidden_state


def test_the_time_gained_over_oneself_is_none_and_pairs_say_more_than_means(data: tuple[Windows, Windows]) -> None:
    with CpuDevice() as cpu:
        models = {name: fitted(name, data, cpu) for name in ("persistence", "truncation", "perfect")}
        scored = evaluate(models, data[0], device=cpu, split="train")
    nothing = time_gained(scored, "perfect", "perfect")
    assert (nothing.mean, nothing.low, nothing.high) == (0.0, 0.0, 0.0)
    gained = time_gained(scored, "truncation", "persistence")
    horizons = {line.model: line.horizons[0.5].mean() for line in scored.lines}
    assert gained.mean == pytest.approx(horizons["truncation"] - horizons["persistence"])
    assert gained.low <= gained.mean <= gained.high
    # Where there is no gap there is no part of it; a difference is there all the same.
    with pytest.raises(InputError, match="there is no gap"):
        gap_closed(scored, "perfect", base="truncation", ceiling="truncation")


def test_a_climate_is_that_of_the_lowpass_fields(data: tuple[Windows, Windows]) -> None:
    with CpuDevice() as cpu:
        z = encoded(SCHEMA, data[0], device=cpu)
        fields = np.asarray(decode(SCHEMA, z[0], device=cpu), np.float64)
    small = low_fields(SCHEMA, z[0])
    # The small grid holds the same modes, in float64.
    assert (small**2).mean() == pytest.approx((fields**2).mean(), rel=1e-5)
    # Points that both grids have: the corner, and the middle of the box.
    assert small[:, ::7, ::7] == pytest.approx(fields[:, ::16, ::16], abs=1e-4)
    ours = climate(SCHEMA, z)
    assert ours.enstrophy == pytest.approx((low_fields(SCHEMA, z.reshape(-1, SCHEMA.size)) ** 2).mean() / 2, rel=1e-5)
    same = climate_error(ours, ours)
    assert (same.energy, same.spectrum, same.distribution, same.kurtosis) == (1.0, 0.0, 0.0, 0.0)


def test_a_field_of_half_the_size_is_off_in_energy_spectrum_and_distribution(data: tuple[Windows, Windows]) -> None:
    with CpuDevice() as cpu:
        z = encoded(SCHEMA, data[0], device=cpu)
    half = z.copy()
    half[..., SCHEMA.parts["modes"]] *= 0.5
    error = climate_error(climate(SCHEMA, half), climate(SCHEMA, z))
    assert error.energy == pytest.approx(0.25, rel=1e-5)
    assert error.spectrum == pytest.approx(np.log10(4), rel=1e-5)
    assert 0.3 < error.distribution < 0.5  # half the mean size of vorticity over its rms
    assert error.kurtosis == pytest.approx(0, abs=1e-6)
    z[0, 0, 0] = np.nan
    with pytest.raises(InputError, match="not finite"):
        climate(SCHEMA, z)
