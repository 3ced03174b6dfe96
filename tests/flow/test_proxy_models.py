"""Claims about the models of z: they are rolled out alone, and generalise or do not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dashi.errors import InputError, ShapeError
from dashi.flow import Flow
from dashi.flow import _diagnostics as diagnostics
from dashi.flow.decode import statistics
from dashi.flow.grid import shell_numbers
from dashi.flow.proxy import Schema, model_class
from dashi.flow.proxy._dmd import Dmd
from dashi.flow.proxy._eddy import eddy_viscosity, shells_of, subgrid
from dashi.flow.proxy._judge import Judge, held_energy
from dashi.flow.proxy._linear import Delay, Ridge
from dashi.flow.proxy._perfect import Perfect
from dashi.flow.proxy._persistence import Damped
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.galerkin._model import GalerkinModel, Truncation
from dashi.flow.proxy.lowpass import decode
from dashi.flow.proxy.states import correlations, encoded, squares, validation_score
from dashi.flow.windows import Windows
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice

FLOW = Flow(64, nu=2e-3, dt=0.02, scheme="etdrk4")
SCHEMA = Schema(64, 8)
SMALL = Schema(32, 4)


@pytest.fixture(scope="module")
def turbulence(windows_of: Callable[..., Windows]) -> tuple[Windows, Windows, Windows]:
    """Training, validation and test windows of decaying flow, of different seeds: 30 frames every 0.1."""
    train, validation, test = (
        windows_of(FLOW, seeds, 30, 5, 50) for seeds in ([1, 2, 3, 4, 5, 6], [11, 12], [21, 22, 23])
    )
    return train, validation, test


def test_galerkin_generalises_and_linear_maps_do_not(turbulence: tuple[Windows, Windows, Windows]) -> None:
    train, validation, test = turbulence
    with CpuDevice() as cpu:
        reference = encoded(SCHEMA, test, device=cpu)
        score: dict[str, float] = {}
        for name in ("persistence", "damped", "ridge", "truncation", "galerkin", "perfect"):
            model = model_class(name).fit(SCHEMA, train, validation, device=cpu)
            z = model.rollout(reference[:, 0], test.frames - 1, device=cpu)
            assert z.shape == reference.shape
            np.testing.assert_array_equal(z[:, 0], reference[:, 0])
            assert model.state_size == 196
            score[name] = validation_score(SCHEMA, z, reference)
    assert score["galerkin"] > 1.5 * max(score["persistence"], score["damped"], score["ridge"]), score
    assert score["galerkin"] > score["truncation"], score
    assert score["perfect"] > score["galerkin"], score
    assert score["damped"] > score["persistence"] > score["ridge"], score


def test_the_eddy_viscosity_is_sensible(turbulence: tuple[Windows, Windows, Windows], vulkan: Device) -> None:
    train, _, _ = turbulence
    with CpuDevice() as cpu:
        fit = subgrid(SCHEMA, train, device=cpu)
        viscosity = eddy_viscosity(SCHEMA, fit)
    shell = shells_of(SCHEMA)
    at = {int(s): float(viscosity[shell == s][0]) for s in np.unique(shell)}
    # Modes beyond the cut drain those just below it, several times as fast as viscosity does, and feed the largest
    # (Kraichnan 1976).
    assert 2 * FLOW.nu < min(at[7], at[8]), at
    assert max(at.values()) < 100 * FLOW.nu, at
    assert max(at[1], at[2], at[3]) < 0, at
    assert [*at.values()][:7] == sorted([*at.values()][:7]), at
    drained = -(fit.tau * fit.modes).sum(axis=1)
    assert drained.mean() > 0
    by_kernels = eddy_viscosity(SCHEMA, subgrid(SCHEMA, train, device=vulkan, most=20))
    by_numpy = eddy_viscosity(SCHEMA, subgrid(SCHEMA, train, device=cpu, most=20))
    # float32 there, float64 here; nu_e is a small difference of sums.
    np.testing.assert_allclose(by_kernels, by_numpy, rtol=0, atol=2e-5 * np.abs(by_numpy).max())


def test_the_default_model_of_a_decaying_flow_never_gains_energy(turbulence: tuple[Windows, Windows, Windows]) -> None:
    train, validation, test = turbulence
    with CpuDevice() as cpu:
        z0 = encoded(SCHEMA, test, device=cpu)[:, 0]
        model = GalerkinModel.fit(SCHEMA, train, validation, device=cpu)
        recipe = GalerkinModel.fit(SCHEMA, train, validation, device=cpu, backscatter="scaled", factor=model.factor)
        ours, fed = (held_energy(SCHEMA, m.rollout(z0, 200, device=cpu)) for m in (model, recipe))
        thinner = model.of_flow(replace(FLOW, nu=1e-4))
    # Ten times as long as the windows it was chosen on. float32 rounds every one of 5 steps of a frame.
    assert (np.diff(ours, axis=1) <= 2e-6 * ours[:, :1]).all()
    assert (ours[:, -1] > 0.2 * ours[:, 0]).all()
    # What it is kept from: as learned and scaled, nu_e feeds the large scales for ever.
    assert (fed[:, -1] > 1.5 * fed[:, 0]).all()
    assert (model.backscatter, recipe.backscatter) == ("bounded", "scaled")
    assert "where it drains (chosen on " in model.description
    assert model.eddy.min() < 0
    for one in (model, thinner):
        assert (one.eddy.astype(np.float64) + one.flow.nu >= 0).all()


def test_backscatter_that_makes_a_forced_flow_gain_energy_is_bounded(
    tiny: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def feeding(schema: Schema, _: Any) -> Any:
        return np.where(shells_of(schema) <= 1, -20 * tiny.flow.nu, tiny.flow.nu)

    with CpuDevice() as cpu:
        assert GalerkinModel.fit(SMALL, tiny, tiny.take([2]), device=cpu).backscatter == "scaled"
        monkeypatch.setattr("dashi.flow.proxy.galerkin._model.eddy_viscosity", feeding)
        monkeypatch.setattr("dashi.flow.proxy._judge.LONGER", 40)
        for validation in (tiny.take([2]), None):
            model = GalerkinModel.fit(SMALL, tiny, validation, device=cpu)
            assert model.backscatter == "bounded"
            assert model.eddy.min() == pytest.approx(-tiny.flow.nu, rel=1e-6)


def test_shells_are_the_same_wherever_they_are_counted() -> None:
    square = np.arange(2000)
    by_hand = [next(s for s in range(99) if (2 * s - 1) ** 2 <= 4 * k < (2 * s + 1) ** 2) for k in square[1:]]
    assert shell_numbers(square).tolist() == [0, *by_hand]
    assert shells_of(SCHEMA).tolist() == statistics.shells(64).reshape(-1)[SCHEMA.places].tolist()
    found = diagnostics.shells(FLOW)
    owner = np.repeat(np.arange(found.count), np.diff(found.offsets.astype(np.int64)))
    assert owner.tolist() == statistics.shells(64).reshape(-1)[found.places].tolist()


def test_tau_is_what_the_truncation_misses(tiny: Windows) -> None:
    with CpuDevice() as cpu:
        everything = Schema(32, 10)
        lowpass = decode(everything, encode(everything, tiny.fields.astype(np.float64), device=cpu), device=cpu)
        flow = replace(tiny.flow, dtype="float64")
        held = Windows(flow, tiny.interval, lowpass, tiny.seeds, tiny.starts)
        none = subgrid(everything, held, device=cpu)
        some = subgrid(SMALL, held, device=cpu)
    # A field that the modes hold whole misses nothing.
    assert np.abs(none.tau).max() < 1e-12
    assert np.abs(some.tau).max() > 1e-3


def test_ensembles_roll_as_their_members_do(tiny: Windows, device: Device) -> None:
    model = GalerkinModel.fit(SMALL, tiny, None, device=device)
    z0 = encoded(SMALL, tiny, device=device)[:, 0]
    together = model.rollout(z0, 4, device=device)
    apart = np.concatenate([model.rollout(z0[j : j + 1], 4, device=device) for j in range(len(z0))])
    np.testing.assert_allclose(together, apart, rtol=0, atol=1e-6)


@pytest.mark.parametrize("way", ["grid", "triads"])
def test_a_rollout_of_frames_has_the_bits_of_the_operator(way: Any, tiny: Windows, device: Device) -> None:
    from dashi.core.rollouts.rollout import rollout

    model = GalerkinModel.fit(SMALL, tiny, None, device=device, strategy=way, factor=1.5)
    assert model.factor == 1.5
    z0 = encoded(SMALL, tiny, device=device)[:, 0]
    run = model.rollout(z0, 3, device=device)
    held = SMALL.parts["modes"]
    states = rollout(model.operator(way), np.ascontiguousarray(z0[:, held]), 3 * tiny.interval, device=device).state
    assert np.ascontiguousarray(run[:, 3, held]).tobytes() == states.tobytes()


def test_the_scalars_follow_the_modes(tiny: Windows) -> None:
    with CpuDevice() as cpu:
        model = Truncation.fit(SMALL, tiny, None, device=cpu)
        z0 = encoded(SMALL, tiny, device=cpu)[:, 0]
        z = model.rollout(z0, 5, device=cpu).astype(np.float64)
    power = z[..., 0 : SMALL.numbers : 2] ** 2 + z[..., 1 : SMALL.numbers : 2] ** 2
    energy, enstrophy = (power / squares(SMALL)).sum(axis=-1), power.sum(axis=-1)
    for name, own in (("energy", energy), ("enstrophy", enstrophy)):
        rest = z[..., SMALL.parts[name]][..., 0] - own
        np.testing.assert_allclose(rest, rest[:, :1] + 0 * rest, rtol=0, atol=1e-5)
    for name in ("mid_energy", "high_energy"):
        assert (z[..., SMALL.parts[name]] == z[:, :1, SMALL.parts[name]]).all()


def test_correlation_from_z_is_that_of_the_fields(tiny: Windows) -> None:
    with CpuDevice() as cpu:
        z = encoded(SMALL, tiny, device=cpu)
        fields = decode(SMALL, z, device=cpu).astype(np.float64)
    values = correlations(SMALL, z[:, 1:], z[:, :-1])
    for w in range(len(tiny)):
        expected = np.corrcoef(fields[w, 1].reshape(-1), tiny.fields[w, 0].reshape(-1))[0, 1]
        assert values[w, 0] == pytest.approx(expected, abs=1e-5)


def test_the_factor_is_chosen_on_validation_windows_alone(tiny: Windows) -> None:
    with CpuDevice() as cpu:
        plain = GalerkinModel.fit(SMALL, tiny, None, device=cpu, backscatter="scaled")
        chosen = GalerkinModel.fit(SMALL, tiny, tiny.take([2]), device=cpu, backscatter="scaled")
        none = GalerkinModel.fit(SMALL, tiny, tiny.take([2]), device=cpu, factor=0.0)
    assert (plain.factor, plain.chosen_on, chosen.chosen_on) == (1.0, 0, 1)
    np.testing.assert_allclose(chosen.eddy, chosen.factor * plain.eddy, rtol=1e-6)
    assert not none.eddy.any()
    assert "1 validation windows" in chosen.description


def test_of_ranks_that_score_alike_the_one_that_correlates_best_is_taken(
    tiny: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydmd")
    monkeypatch.setattr("dashi.flow.proxy._judge.validation_score", lambda *_: 0.0)
    with CpuDevice() as cpu:
        judge = Judge(SMALL, tiny.take([2]), cpu)
        models = {rank: Dmd.fit(SMALL, tiny, None, device=cpu, rank=rank) for rank in (4, 8, 15)}
        chosen = Dmd.fit(SMALL, tiny, tiny.take([2]), device=cpu)
    known = {rank: judge.score_and_correlation(model)[1] for rank, model in models.items()}
    best = max(known, key=lambda rank: known[rank])
    assert best > 4, known
    assert chosen.description == models[best].description
    assert f"rank {best} of 48 from 15 pairs of frames" in chosen.description


def test_delays_start_from_one_frame(tiny: Windows, device: Device) -> None:
    model = Delay.fit(SMALL, tiny, None, device=device, delays=3, penalty=1e-6)
    z = encoded(SMALL, tiny, device=device)
    run = model.rollout(z[:, 0], 5, device=device)
    width = SMALL.numbers
    first, second = (m.astype(np.float64) for m in model.maps[:2])
    start = z[:, 0, :width].astype(np.float64)
    one = start @ first[0]
    two = one @ second[0] + start @ second[1]
    np.testing.assert_allclose(run[:, 1, :width], one, rtol=0, atol=1e-5)
    np.testing.assert_allclose(run[:, 2, :width], two, rtol=0, atol=1e-5)
    assert model.state_size == 3 * width
    assert Ridge.fit(SMALL, tiny, None, device=device).state_size == width


def test_the_perfect_model_is_the_solver_from_the_lowpass_start(tiny: Windows, device: Device) -> None:
    model = Perfect.fit(SMALL, tiny, None, device=device)
    z0 = encoded(SMALL, tiny, device=device)[:, 0]
    fields = model.rollout_fields(z0, 2, device=device)
    z = model.rollout(z0, 2, device=device)
    assert fields.shape == (3, 3, 32, 32)
    np.testing.assert_allclose(fields[:, 0], decode(SMALL, z0, device=device), rtol=0, atol=1e-5)
    np.testing.assert_allclose(encode(SMALL, fields[:, 2], device=device), z[:, 2], rtol=0, atol=1e-6)
    # Modes beyond z grow from nothing.
    assert (z[:, 2, SMALL.parts["high_energy"]] < z0[:, SMALL.parts["high_energy"]]).all()
    assert (z[:, 2, SMALL.parts["mid_energy"]] > 0).all()


def test_ctrl_c_leaves_no_half_of_a_perfect_rollout(tiny: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []

    def pressed(*given: Any, **named: Any) -> Any:
        counts.append(len(counts))
        if counts[-1] == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return encode(*given, **named)

    with CpuDevice() as cpu:
        model = Perfect.fit(SMALL, tiny, None, device=cpu)
        z0 = encoded(SMALL, tiny, device=cpu)[:, 0]
        monkeypatch.setattr("dashi.flow.proxy._perfect.encode", pressed)
        monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
        with pytest.raises(KeyboardInterrupt):
            model.rollout(z0, 6, device=cpu)
    # The block under way was finished, and no other was begun.
    assert counts == [0, 1]


def test_another_flow_keeps_the_closure(tiny: Windows) -> None:
    with CpuDevice() as cpu:
        model = GalerkinModel.fit(SMALL, tiny, None, device=cpu)
    other = model.of_flow(replace(tiny.flow, nu=1e-2, dt=0.01))
    assert (other.steps, other.interval, other.flow.nu) == (2 * model.steps, model.interval, 1e-2)
    with pytest.raises(InputError, match="dt that divides"):
        model.of_flow(replace(tiny.flow, dt=0.03))


def test_what_cannot_be_fitted_or_rolled_is_refused(tiny: Windows) -> None:
    with CpuDevice() as cpu:
        with pytest.raises(InputError, match="the flow has 32 x 32 points"):
            GalerkinModel.fit(Schema(64, 4), tiny, None, device=cpu)
        with pytest.raises(InputError, match=r"has no option 'facter'. Fix: use factor, strategy, backscatter"):
            GalerkinModel.fit(SMALL, tiny, None, device=cpu, facter=1.0)
        other = Windows(replace(tiny.flow, nu=1e-3), tiny.interval, tiny.fields, tiny.seeds, tiny.starts)
        with pytest.raises(InputError, match="of another flow than the training windows"):
            Damped.fit(SMALL, tiny, other, device=cpu)
        single = Windows(tiny.flow, 2, tiny.fields[:, :1], tiny.seeds, tiny.starts)
        with pytest.raises(ShapeError, match="windows of two or more"):
            Damped.fit(SMALL, single, None, device=cpu)
        with pytest.raises(InputError, match="Fix: use 1 to 5 delays"):
            Delay.fit(SMALL, tiny, None, device=cpu, delays=6)
        model = GalerkinModel.fit(SMALL, tiny, None, device=cpu)
        z0 = encoded(SMALL, tiny, device=cpu)[:, 0]
        with pytest.raises(ShapeError, match="numbers"):
            model.rollout(z0[:, :-1], 2, device=cpu)
        with pytest.raises(InputError, match="one z for each state"):
            model.rollout(z0[0], 2, device=cpu)
        with pytest.raises(InputError, match="not finite"):
            model.rollout(np.where(z0 > 0.01, np.nan, z0), 2, device=cpu)
    with pytest.raises(InputError, match=r"there is no model 'other'. Fix: use one of damped"):
        model_class("other")


def test_a_model_says_where_it_runs(tiny: Windows, vulkan: Device) -> None:
    with CpuDevice() as cpu:
        for name in ("persistence", "damped", "ridge", "truncation", "perfect"):
            model = model_class(name).fit(SMALL, tiny, None, device=cpu)
            host = name in ("persistence", "damped")
            on_cpu = {"ridge": cpu.info.name}.get(name, "NumPy's own transforms")
            assert model.where(cpu, 3) == ("NumPy on the host" if host else on_cpu)
            there = model.where(vulkan, 3)
            assert there == "NumPy on the host" if host else there.startswith(vulkan.info.name)
        grid = GalerkinModel.fit(SMALL, tiny, None, device=cpu, strategy="grid")
        assert grid.where(vulkan, 3) == f"{vulkan.info.name}, strategy grid"
        assert GalerkinModel.fit(SMALL, tiny, None, device=cpu, way="grid").strategy == "grid"  # its former name
