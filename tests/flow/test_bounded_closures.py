"""Claims about the energy of closures: whatever their tables are, they feed no more than they may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.operators._catalogue import restore
from dashi.core.rollouts.rollout import rollout
from dashi.errors import DashiError, FileError, InputError
from dashi.flow import Flow, Kolmogorov
from dashi.flow.proxy import Schema, load_model, save_model
from dashi.flow.proxy._judge import held_energy
from dashi.flow.proxy.closure._device_loss import DeviceLoss, rollout_batch
from dashi.flow.proxy.closure._energy import best_theta
from dashi.flow.proxy.closure._host import Chain, Stack
from dashi.flow.proxy.closure._model import Slaved
from dashi.flow.proxy.closure._operator import SlavedGalerkin
from dashi.flow.proxy.closure._tables import Band, Closure, Parameters
from dashi.flow.proxy.closure._training import ClosureLoss, TrainingSetup
from dashi.flow.proxy.states import squares
from dashi.io.arrays import read_arrays, write_arrays
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

SCHEMA = Schema(32, 4)
BAND = Band.of(SCHEMA, 6.0)
NU = 5e-3


def random_closure(seed: int, depth: int, *, size: float = 1.0) -> Closure:
    """Tables without any order: gains of both signs, drains that feed."""
    draw = np.random.default_rng(seed).normal
    held, many = len(BAND.held), len(BAND.modes)
    lift = np.tril(np.ones((depth, depth)))[..., None] * draw(size=(depth, depth, many))
    return Closure(draw(size=(depth, held)), lift, size * draw(size=(depth + 1, held)), size * draw(size=held))


def random_modes(*shape: int, seed: int = 5) -> Any:
    return 0.3 * np.random.default_rng(seed).normal(size=(*shape, 2 * len(SCHEMA.modes)))


def budgets(modes: Any, tendency: Any) -> tuple[Any, Any, Any]:
    """<psi, T>, 2 E and 2 Z of modes (m, 2 K)."""
    square = np.repeat(squares(SCHEMA), 2)
    return tuple(2 * (a * b).sum(axis=1) for a, b in (
        (modes / square, tendency), (modes / square, modes), (modes, modes)))  # fmt: skip


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0])
def test_random_tables_feed_no_more_than_theta_of_what_viscosity_takes(theta: float) -> None:
    chain, limits_met = Chain(BAND, np.float64), 0
    for seed in range(24):
        closure, modes = random_closure(seed, 1 + seed % 3), random_modes(8, seed=seed)
        state = chain.enter(modes)
        bare, bounded = (
            chain.leave(Stack(chain, closure, allowance).tendency(state)[0]) for allowance in (None, theta * NU)
        )
        power, _, enstrophy = budgets(modes, bare)
        allowed = theta * NU * enstrophy
        # Sums in float64: right to 1e-13 of their terms.
        slack = 1e-12 * np.abs(power).max()
        assert (budgets(modes, bounded)[0] <= np.minimum(power, allowed) + slack).all()
        limits_met += int((power > allowed).sum())
        assert np.array_equal(bare[power <= allowed], bounded[power <= allowed])
    assert limits_met > 40


@pytest.mark.parametrize("theta", [0.0, 1.0])
def test_a_flow_without_a_force_never_gains_energy_whatever_the_tables_are(theta: float) -> None:
    flow = Flow(32, nu=NU, dt=0.02, scheme="etdrk4", dtype="float64")
    z = np.zeros((3, SCHEMA.size))
    z[:, SCHEMA.parts["modes"]] = 0.2 * random_modes(3)
    with CpuDevice() as cpu:
        for seed in range(2):
            closure = random_closure(seed, 1 + seed % 2, size=0.5)
            model = Slaved(SCHEMA, flow, 0.1, closure, 6.0, theta)
            energy = held_energy(SCHEMA, model.rollout(z, 30, device=cpu))
            # A step of RK4 keeps what the equation keeps to about 1e-6 here.
            assert (np.diff(energy, axis=1) <= 1e-6 * energy[:, :-1]).all()


def test_without_the_bound_such_tables_do_gain_energy() -> None:
    chain = Chain(BAND, np.float64)
    modes = random_modes(8)
    powers = [
        budgets(modes, chain.leave(Stack(chain, random_closure(s, 1), None).tendency(chain.enter(modes))[0]))[0]
        for s in range(8)
    ]
    assert (np.stack(powers) > 0).any()


def feeding(depth: int) -> tuple[Parameters, Any, Closure]:
    """Parameters of a closure that feeds, so that its limit acts, their numbers, and the closure."""
    parameters = Parameters(Band.of(SCHEMA, 6.0), depth, 0.2)
    numbers = parameters.start(0.4) + 0.05 * np.random.default_rng(depth).normal(size=parameters.size)
    closure = parameters.unpack(numbers, np.float64)
    numbers = parameters.pack(Closure(closure.keep, closure.lift, closure.gain, closure.drain - 0.5))
    return parameters, numbers, parameters.unpack(numbers, np.float64)


@pytest.mark.parametrize("theta", [0.0, 0.5, None])
def test_the_gradient_through_the_limit_is_that_of_finite_differences(theta: float | None) -> None:
    flow = Flow(32, nu=NU, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme="etdrk4", dtype="float64")
    parameters, numbers, closure = feeding(2)
    loss = ClosureLoss(TrainingSetup.of(flow, parameters.band, 0.1, 8.0, theta))
    z = random_modes(3, 4)
    gradient = parameters.gradient(loss(closure, z)[1])
    way = np.random.default_rng(1).normal(size=parameters.size)

    def at(step: float) -> float:
        return loss(parameters.unpack(numbers + step * way, np.float64), z)[0]

    # Central differences of a step of 1e-5 are right to about 1e-10 here.
    assert (at(1e-5) - at(-1e-5)) / 2e-5 == pytest.approx(float(gradient @ way), rel=1e-6, abs=1e-9)


def test_kernels_give_the_same_gradient_where_the_limit_acts(vulkan: VulkanDevice) -> None:
    flow = Flow(32, nu=NU, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme="heun", dtype="float64")
    parameters, _, closure = feeding(1)
    setup, z = TrainingSetup.of(flow, parameters.band, 0.1, 8.0, 0.5), random_modes(3, 3)
    by_numpy, gradients = ClosureLoss(setup)(closure, z)
    without = ClosureLoss(TrainingSetup.of(flow, parameters.band, 0.1, 8.0, None))(closure, z)[0]
    assert abs(without - by_numpy) > 1e-6
    by_kernels = DeviceLoss(vulkan, setup, rollout_batch(setup, 1, 2, 3))
    loss, others = by_kernels(closure, z)
    by_kernels.close()
    # Both in float64, in other orders.
    assert loss == pytest.approx(by_numpy, rel=1e-12)
    assert np.allclose(parameters.gradient(others), parameters.gradient(gradients), rtol=1e-9, atol=1e-14)


def test_a_bounded_step_has_the_same_bits_on_numpy_and_vulkan(vulkan: VulkanDevice) -> None:
    flow = Flow(32, nu=NU, dt=0.02)
    closure = feeding(2)[2].of_type(np.float32)
    z = random_modes(2).astype(np.float32)
    hashes = {}
    for theta in (0.0, 0.5):
        operator = SlavedGalerkin(flow, SCHEMA, closure, 6.0, theta)
        with CpuDevice() as cpu:
            hashes[theta] = rollout(operator, z, 2, device=cpu, hash_every=1).hashes
        again = restore(operator.kind, operator.arrays, operator.parameters)
        assert rollout(again, z, 2, device=vulkan, hash_every=1).hashes == hashes[theta]
    assert hashes[0.0] != hashes[0.5]


@pytest.mark.parametrize("theta", [-0.1, 1.5, float("nan")])
def test_a_theta_without_a_bound_is_refused(theta: float) -> None:
    with pytest.raises(InputError, match=r"theta is .* Fix: use a number from 0 to 1"):
        SlavedGalerkin(Flow(32, nu=NU), SCHEMA, random_closure(1, 1).of_type(np.float32), 6.0, theta)


def test_theta_is_that_of_the_right_energy_among_those_that_follow_alike() -> None:
    assert best_theta([(0.0, 30.0, 0.3), (0.5, 30.1, 0.1), (1.0, 20.0, 0.0)]) == 0.5
    assert best_theta([(0.0, 30.0, float("inf")), (1.0, 29.9, float("inf"))]) == 0.0


def test_a_file_from_before_the_bound_is_refused_and_one_with_another_theta_too(tmp_path: Path) -> None:
    flow = Flow(32, nu=NU, dt=0.02)
    model = Slaved(SCHEMA, flow, 0.1, random_closure(1, 1).of_type(np.float32), 6.0, 0.5)
    save_model(tmp_path / "model.npz", model)
    again = load_model(tmp_path / "model.npz")
    assert isinstance(again, Slaved)
    assert again.theta == 0.5
    arrays = read_arrays(tmp_path / "model.npz")
    write_arrays(tmp_path / "old.npz", {**arrays, "version": np.array(1, np.int64)})
    with pytest.raises(FileError, match=r"version 1 of the model slaved.* Fix: fit it again"):
        load_model(tmp_path / "old.npz")
    write_arrays(tmp_path / "odd.npz", {**arrays, "parameter_theta": np.array(7.0)})
    with pytest.raises(DashiError, match="theta is"):
        load_model(tmp_path / "odd.npz")
