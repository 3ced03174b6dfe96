"""Claims about the solver: the same bits everywhere, what it conserves, what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dashi.bench import flow as bench
from dashi.bench.peers import flow as peers
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, NonFiniteError, ShapeError
from dashi.flow import grid, initial
from dashi.flow._operator import Vorticity
from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.flow.simulation import simulate
from dashi.flow.stepper import stepper
from dashi.kernels.portable import exp
from dashi.runtime import Device, open_device
from dashi.runtime._cpu_device import CpuDevice

FLOWS: dict[str, dict[str, Any]] = {
    "rk4": {},
    "eddy": {"smagorinsky": 0.17},
    "forced": {"scheme": "etdrk4", "forcing": Kolmogorov(2, 0.5), "drag": 0.1},
    "kicked": {"scheme": "heun", "forcing": Stochastic(2, 4, 0.5, 3), "dt": 0.005},
}


def flow_of(name: str, dtype: str = "float64", n: int = 16) -> Flow:
    return Flow(**{"n": n, "nu": 1e-2, "dtype": dtype, **FLOWS[name]})


def starts(flow: Flow, seeds: tuple[int, ...] = (1,)) -> Any:
    return initial.ensemble(flow, "random", list(seeds), peak=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_gives_the_same_bits_on_every_backend(name: str, dtype: str, vulkan: Device) -> None:
    flow = flow_of(name, dtype)
    every: dict[str, Any] = {"look_every": 2, "hash_every": 2}
    with CpuDevice() as cpu:
        run = simulate(flow, starts(flow), 4, device=cpu, **every, transfer=True)
    two = simulate(flow, starts(flow), 4, device=vulkan, **every, transfer=True)
    assert [h.digest for h in run.hashes] == [h.digest for h in two.hashes]
    assert [h.step for h in run.hashes] == [2, 4]
    for a, b in zip(run.records["diagnostics"], two.records["diagnostics"], strict=True):
        np.testing.assert_array_equal(a.energy_spectrum, b.energy_spectrum)
        np.testing.assert_array_equal(a.transfer, b.transfer)
        assert a.speed == b.speed


@pytest.mark.parametrize("n", [12, 20])
def test_sizes_that_are_no_powers_of_two_give_the_same_bits_too(n: int, vulkan: Device) -> None:
    flow = flow_of("rk4", "float32", n)
    with CpuDevice() as cpu:
        one = simulate(flow, starts(flow), 2, device=cpu, hash_every=2)
    two = simulate(flow, starts(flow), 2, device=vulkan, hash_every=2)
    assert one.hashes == two.hashes


def test_looks_and_frames_change_no_bit(device: Device) -> None:
    flow = flow_of("kicked")
    bare = rollout(Vorticity(flow), starts(flow), 6, device=device, hash_every=6)
    result = simulate(
        flow, starts(flow), 6, device=device, look_every=1, frame_every=3, hash_every=6, transfer=True,
        fields=("vorticity", "pressure"), frame=lambda run, fields: None,
    )  # fmt: skip
    assert bare.hashes == result.hashes


def test_a_member_of_an_ensemble_is_the_run_with_its_seed(device: Device) -> None:
    together = simulate(flow_of("kicked"), starts(flow_of("kicked"), (3, 4)), 3, device=device)
    alone = flow_of("kicked")
    alone = Flow(**{**alone.__dict__, "forcing": Stochastic(2, 4, 0.5, 4)})
    single = simulate(alone, starts(alone, (4,)), 3, device=device)
    np.testing.assert_array_equal(together.state[1], single.state[0])


def test_a_run_that_goes_on_has_the_hashes_of_one_that_never_stopped(device: Device) -> None:
    flow = flow_of("kicked")
    whole = simulate(flow, starts(flow), 6, device=device, hash_every=2, look_every=3)
    half = simulate(flow, starts(flow), 4, device=device, hash_every=2)
    rest = simulate(flow, starts(flow), 6, device=device, hash_every=2, resume=half)
    assert rest.hashes == whole.hashes
    assert rest.steps == 6


@pytest.mark.parametrize("name", FLOWS)
def test_fast_is_the_same_scheme(name: str) -> None:
    flow = flow_of(name)
    with CpuDevice() as cpu:
        one, two = (
            simulate(flow, starts(flow, (1, 2)), 5, device=cpu, look_every=5, transfer=True, host_fft=fast)
            for fast in (False, True)
        )
    assert one.portable
    assert not two.portable
    # Both round some hundreds of operations of numbers of order 1.
    np.testing.assert_allclose(two.state, one.state, atol=1e-14)
    for a, b in zip(one.records["diagnostics"], two.records["diagnostics"], strict=True):
        np.testing.assert_allclose(b.energy_spectrum, a.energy_spectrum, atol=1e-14)
        np.testing.assert_allclose(b.palinstrophy, a.palinstrophy, rtol=1e-12)
        np.testing.assert_allclose(b.transfer, a.transfer, atol=1e-13)
        assert b.speed == pytest.approx(a.speed, rel=1e-12)


def test_fields_follow_from_taylor_greens_vorticity(device: Device) -> None:
    flow = Flow(n=16, nu=0.0, dtype="float64")
    line = np.arange(16) * flow.dx
    x, y = line[None, :], line[:, None]
    taken: dict[str, Any] = {}
    names = ("vorticity", "streamfunction", "velocity_x", "velocity_y", "strain_normal", "strain_shear", "pressure")
    simulate(
        flow, initial.ensemble(flow, "taylor-green", [0]), 1, device=device, frame_every=1, fields=names,
        frame=lambda run, fields: taken.update(fields),
    )  # fmt: skip
    exact = {
        "vorticity": 2 * np.cos(x) * np.cos(y),
        "streamfunction": np.cos(x) * np.cos(y),
        "velocity_x": -np.cos(x) * np.sin(y),
        "velocity_y": np.sin(x) * np.cos(y),
        "strain_normal": 2 * np.sin(x) * np.sin(y),
        "strain_shear": 0 * x * y,
        "pressure": -(np.cos(2 * x) + np.cos(2 * y)) / 4,
    }
    for name in names:
        np.testing.assert_allclose(taken[name][0], exact[name], atol=1e-14, err_msg=name)


def test_spectra_add_up_to_the_means_over_the_box(device: Device) -> None:
    flow = flow_of("rk4")
    taken: dict[str, Any] = {}
    run = simulate(
        flow, starts(flow), 2, device=device, look_every=2, frame_every=2, transfer=True,
        fields=("vorticity", "velocity_x", "velocity_y"), frame=lambda run, fields: taken.update(fields),
    )  # fmt: skip
    last = run.records["diagnostics"][-1]
    u, v, w = taken["velocity_x"], taken["velocity_y"], taken["vorticity"]
    assert last.energy[0] == pytest.approx(np.mean(u * u + v * v) / 2, rel=1e-13)
    assert last.enstrophy[0] == pytest.approx(np.mean(w * w) / 2, rel=1e-13)
    assert last.speed == pytest.approx((np.abs(u) + np.abs(v)).max(), rel=1e-13)
    assert last.transfer is not None
    assert abs(last.transfer.sum()) < 1e-15


def test_the_laminar_kolmogorov_flow_is_steady(device: Device) -> None:
    flow = Flow(n=16, nu=0.1, drag=0.2, dt=0.05, forcing=Kolmogorov(2, 1.5), dtype="float64", scheme="etdrk4")
    k = 2
    steady = np.zeros((1, 16, 9, 2))
    steady[0, [k, -k], 0, 0] = -0.5 * 1.5 * k / (flow.nu * k * k + flow.drag)
    run = simulate(flow, steady, 20, device=device)
    np.testing.assert_allclose(run.state, steady, atol=1e-14)


def test_kicks_put_in_energy_at_their_rate() -> None:
    flow = Flow(n=16, nu=0.0, dt=0.01, forcing=Stochastic(2, 4, 0.5, 0), dtype="float64")
    with CpuDevice() as cpu:
        run = simulate(flow, np.zeros((64, 16, 9, 2)), 20, device=cpu, host_fft=True, look_every=20)
    # 64 members of some 40 modes: the mean is known to 3 %.
    assert float(np.mean(run.records["diagnostics"][-1].energy)) == pytest.approx(0.5 * run.time, rel=0.1)


def test_initial_fields_do_not_depend_on_the_grid() -> None:
    coarse, fine = (initial.random(Flow(n=n), 5, peak=3) for n in (32, 64))
    np.testing.assert_allclose(coarse[:5, :5], fine[:5, :5], rtol=1e-4)


@pytest.mark.parametrize("name", initial.INITIAL)
def test_every_initial_condition_is_a_truncated_real_field(name: str) -> None:
    flow = Flow(n=48, dtype="float64")
    states = initial.ensemble(flow, name, [0])
    assert states.shape == (1, 48, 25, 2)
    assert np.isfinite(states).all()
    assert not states[0][~grid.dealiased(48)].any()
    assert not states[0, 0, 0].any()
    np.testing.assert_allclose(grid.to_modes(grid.to_field(states)), states, atol=1e-13)


def test_bad_flows_are_refused_with_a_fix() -> None:
    for n in (15, 22, 8192, 0):
        with pytest.raises(InputError, match="there is no solver for n"):
            Flow(n=n)
    with pytest.raises(InputError, match="use n = 64 or 70"):
        Flow(n=66)
    refused: tuple[dict[str, Any], ...] = (
        {"dt": 0.0},
        {"nu": -1.0},
        {"nu": math.nan},
        {"length": 0.0},
        {"dtype": "float16"},
        {"scheme": "euler"},
    )
    for bad in refused:
        with pytest.raises(InputError):
            Flow(n=16, **bad)
    for forcing in (Kolmogorov(6), Kolmogorov(0), Stochastic(0, 3), Stochastic(2, 9), Stochastic(seed=-1)):
        with pytest.raises(InputError):
            Flow(n=16, forcing=forcing)


def test_bad_states_are_refused_with_a_fix(device: Device) -> None:
    flow = flow_of("rk4")
    with pytest.raises(ShapeError, match="the states have shape"):
        simulate(flow, np.zeros((3, 3)), 1, device=device)
    with pytest.raises(InputError, match="float32"):
        simulate(flow, starts(flow).astype(np.float32), 1, device=device)
    with pytest.raises(InputError, match="not finite"):
        simulate(flow, np.full((16, 9, 2), np.nan), 1, device=device)
    with pytest.raises(InputError, match="there is no field"):
        simulate(flow, starts(flow), 1, device=device, fields=("speed",))
    with pytest.raises(InputError, match="there is no initial condition"):
        initial.ensemble(flow, "chaos", [0])
    with pytest.raises(InputError, match="does not fit these options"):
        initial.ensemble(flow, "random", [0], colour=3)
    with pytest.raises(InputError, match="the flow 16 x 16"):
        initial.from_field(flow, np.zeros((8, 8)))


def test_a_time_step_that_is_too_long_is_refused_with_one_that_is_not(device: Device) -> None:
    flow = flow_of("rk4")
    states = 40 * starts(flow)
    with pytest.raises(InputError, match="Courant number") as caught:
        simulate(flow, states, 10, device=device)
    told = float(caught.value.fix.split("dt = ")[1].split()[0])
    better = Flow(**{**flow.__dict__, "dt": told})
    assert simulate(better, states, 1, device=device).steps == 1


def test_a_flow_that_blows_up_says_when(device: Device) -> None:
    flow = Flow(n=16, nu=0.0, dt=0.01, dtype="float32", forcing=Kolmogorov(2, 1e36))
    with pytest.raises(NonFiniteError, match="blew up: after step 8 its energy is not finite; after step 0") as caught:
        simulate(flow, np.zeros((1, 16, 9, 2), np.float32), 16, device=device, look_every=8)
    assert "use a smaller dt than 0.01" in caught.value.fix


def test_fast_goes_with_numpy_alone(vulkan: Device) -> None:
    flow = flow_of("rk4")
    with pytest.raises(InputError, match="NumPy's own transform"):
        simulate(flow, starts(flow), 1, device=vulkan, host_fft=True)


def test_the_null_device_records_a_flow_and_computes_nothing() -> None:
    flow = flow_of("eddy")
    with open_device("null") as device:
        run = simulate(flow, starts(flow), 8, device=device, look_every=4, hash_every=4, frame_every=4)
    assert run.steps == 8
    assert run.dispatches > 8
    assert isinstance(run, Run)
    assert not run.records


def test_a_flow_comes_back_from_its_parameters() -> None:
    for name in FLOWS:
        flow = flow_of(name)
        assert Flow.restore(flow.parameters) == flow
        restored = Vorticity.restore({}, flow.parameters)
        assert restored.parameters == Vorticity(flow).parameters


def test_a_stepper_is_a_function_of_states(device: Device) -> None:
    flow = flow_of("kicked")
    step = stepper(flow, device)
    states = starts(flow)[0]
    run = simulate(flow, states, 2, device=device)
    np.testing.assert_array_equal(step(step(states)), run.state[0])
    with pytest.raises(ShapeError, match="this stepper takes"):
        step(starts(flow, (1, 2)))


def test_a_step_is_timed_only_if_it_is_right(device: Device) -> None:
    if device.info.type == "reference":
        found = bench.beside_plain(16)
        assert found.ratio > 0
        return
    measured = bench.measure(device, 16, "float64")
    assert measured.good
    assert measured.dispatches == 12
    assert measured.us > 0


def test_peers_are_asked_for_by_name() -> None:
    with pytest.raises(InputError, match="there is no peer"):
        peers.load("abacus")
    flow = Flow(n=16, forcing=Kolmogorov(2))
    with pytest.raises(InputError, match="plain rk4 only"):
        peers.PlainFlow(flow, starts(flow))


def test_the_plain_solver_is_the_same_scheme() -> None:
    flow = flow_of("rk4")
    plain = peers.PlainFlow(flow, starts(flow))
    plain.run(3)
    with CpuDevice() as cpu:
        wanted = peers.complex_state(flow, simulate(flow, starts(flow), 3, device=cpu).state)
    np.testing.assert_allclose(plain.state, wanted, atol=1e-11)


def test_the_device_class_stays_near_the_portable_one(device: Device) -> None:
    flow = flow_of("rk4", "float32")
    exact, fast = (
        rollout(Vorticity(flow, portable=not fast), starts(flow), 5, device=device).state.astype(np.float64)
        for fast in (False, True)
    )
    assert np.linalg.norm(fast - exact) <= 1e-5 * np.linalg.norm(exact)
    with pytest.raises(InputError, match="the device class has float32 and rk4 without eddy viscosity and beta only"):
        Vorticity(flow_of("eddy", "float32"), portable=False)


@pytest.mark.parametrize("name", ["shear-layer", "lamb-oseen"])
def test_a_device_makes_the_initial_states_that_numpy_makes(name: str, vulkan: Device) -> None:
    flow = Flow(512, dtype="float64")
    there, here = (initial.ensemble(flow, name, [1], device=device) for device in (vulkan, None))
    np.testing.assert_array_equal(there, here)


@pytest.mark.parametrize("peak", [0.3, 6.0, 40.0])
def test_random_states_leave_out_no_mode_with_energy(peak: float) -> None:
    # Modes past 23 peaks are not looked at: there the spectrum is 0 in the portable float64.
    first = int(23 * peak) + 1
    assert exp(np.array([-1.5 * (first / peak) * (first / peak)])) == 0
    assert initial.random(Flow(64), 3, peak=peak).any()
