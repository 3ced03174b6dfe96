"""Claims about viscosity: what a flow loses is what its equation says, in fp32 too, however short its steps are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi.errors import InputError
from dashi.flow import initial
from dashi.flow._schemes import exponential_less_one
from dashi.flow.equations import Flow
from dashi.flow.simulation import simulate
from dashi.kernels import get
from dashi.kernels.spectral._increments import MOST, TICK, last_digits, steps_counted, ticked
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice

SPEEDS = (1.0, 1.3, 1.9)
"""Members whose modes lie at different places between two powers of two: a digit is another part of each."""


def waves(flow: Flow, wavenumber: int) -> Any:
    """Members of one standing wave each, of |k|^2 = 2 wavenumber^2: no member advects itself."""
    members = [initial.taylor_green(flow, wavenumber=wavenumber, speed=speed) for speed in SPEEDS]
    return np.stack(members).astype(flow.numpy_dtype)


def relative_decay(flow: Flow, wavenumber: int, steps: int, device: Device, *, host_fft: bool = False) -> Any:
    """The rate at which the waves of every member decay, over the rate that the equation says."""
    start = waves(flow, wavenumber)
    run = simulate(flow, start, steps, device=device, host_fft=host_fft)
    ratio = run.state[:, wavenumber, wavenumber, 0].astype(np.float64) / start[:, wavenumber, wavenumber, 0]
    return -np.log(ratio) / (flow.damping(2.0 * wavenumber**2) * flow.dt * steps)


@pytest.mark.parametrize(
    ("n", "nu", "dt", "wavenumber"),
    [
        (16, 2e-3, 0.01, 1),
        (16, 1e-4, 1e-3, 1),
        (24, 3.1e-5, 0.00125, 1),
        (30, 3.1e-5, 0.00125, 4),
        (16, 1e-5, 5e-4, 4),
    ],
)
def test_effective_viscosity_is_viscosity(n: int, nu: float, dt: float, wavenumber: int) -> None:
    # 2000 steps: what is rounded stays below a few of the last digits in all, here up to 2e-3 of the decay. A float32
    # of exp(L dt) has 0.89, 0.77 and 1.12 of the viscosity in the second, third and last row.
    flow = Flow(n, nu=nu, dt=dt, scheme="heun")
    with CpuDevice() as cpu:
        relative = relative_decay(flow, wavenumber, 2000, cpu, host_fft=True)
    np.testing.assert_allclose(relative, 1, atol=2e-3)


@pytest.mark.parametrize("scheme", ["rk4", "heun", "etdrk4"])
def test_a_device_damps_as_the_equation_says(scheme: Any, vulkan: Device) -> None:
    relative = relative_decay(Flow(8, nu=3.1e-5, dt=0.00125, scheme=scheme), 1, 400, vulkan)
    np.testing.assert_allclose(relative, 1, atol=1e-2)  # a fifth of the steps above


def test_an_eddy_viscosity_damps_on_top_and_not_in_place(vulkan: Device) -> None:
    plain, eddy = (Flow(8, nu=1e-4, dt=1e-3, scheme="heun", smagorinsky=cs) for cs in (0.0, 0.1))
    assert (relative_decay(eddy, 1, 50, vulkan) > relative_decay(plain, 1, 50, vulkan)).all()


@pytest.mark.parametrize(("order", "power"), [(2, 4), (4, 8)])
def test_hyperviscosity_damps_by_its_power_of_the_wave_number(order: int, power: int, vulkan: Device) -> None:
    flow = Flow(12, nu=0.0, dt=0.01, hyperviscosity=1e-3, hyperviscosity_order=order, dtype="float64")
    assert flow.damping(4.0) == pytest.approx(1e-3 * 2.0**power)
    np.testing.assert_allclose(relative_decay(flow, 2, 5, vulkan), 1, rtol=1e-12)


def test_flows_without_hyperviscosity_are_described_as_they_were() -> None:
    plain, hyper = Flow(8), Flow(8, hyperviscosity=1e-6, hyperviscosity_order=4)
    assert "hyperviscosity" not in plain.parameters
    assert Flow.restore(plain.parameters) == plain
    assert Flow.restore(hyper.parameters) == hyper
    incomplete = {name: value for name, value in hyper.parameters.items() if name != "hyperviscosity_order"}
    with pytest.raises(InputError, match="'hyperviscosity_order' is missing"):
        Flow.restore(incomplete)


@pytest.mark.parametrize("bad", [{"hyperviscosity": -1.0}, {"hyperviscosity_order": 3}, {"hyperviscosity_order": "2"}])
def test_other_hyperviscosities_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        Flow(8, **bad)
    assert refused.value.fix


def test_exponentials_less_one_have_all_their_digits() -> None:
    x = np.array([-1e-300, -3e-9, -1e-4, -0.1, -0.499, -0.5, -3.0, -50.0, 0.0])
    np.testing.assert_allclose(exponential_less_one(x), np.expm1(x), rtol=5e-16, atol=0)


def test_parts_of_the_last_digit_add_up_to_nothing() -> None:
    # So evenly that the sum of any stretch is below 2, where random ones would reach 30 here.
    sums = np.cumsum(last_digits(np.arange(1 << 14)).astype(np.float64))
    assert np.abs(sums).max() < 2


def test_the_clock_counts_and_begins_again(device: Device) -> None:
    clock = np.array([0, TICK, MOST - TICK, MOST, 1, 5, np.nan, -1], np.float32)
    assert steps_counted(clock).tolist() == [0, 1, 2**23 - 1, 2**23, 1, 5, 0, 0]
    state = np.zeros((8, 2, 2, 2), np.float32)
    state[:, 0, 0, 1] = clock
    nothing = np.zeros((2, 2), np.float32)
    after = device.run("mode_step2", state, state, nothing, nothing).numpy()[:, 0, 0, 1]
    np.testing.assert_array_equal(after, ticked(clock))
    assert after[:6].tolist() == [TICK, 2 * TICK, MOST, 0, 1, 5]


def test_a_step_that_changes_its_state_is_not_done_in_place() -> None:
    assert get("mode_sum2").in_place
    assert not get("mode_step2").in_place
