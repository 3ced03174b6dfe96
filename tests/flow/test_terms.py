"""Claims about terms of one's own: exact solutions, the same bits everywhere, certificates, what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import verify
from dashi.core import certify, rollout
from dashi.core.operators._catalogue import restore
from dashi.errors import InputError, NonFiniteError, ShapeError
from dashi.flow import Flow, Kolmogorov, Stochastic, initial, to_field
from dashi.flow.proxy import Schema
from dashi.flow.proxy.galerkin._operator import Galerkin
from dashi.flow.simulation import simulate
from dashi.flow.terms import FlowWithTerms, beta_plane
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice


@pytest.fixture(name="cpu")
def numpy_device() -> Iterator[Device]:
    """NumPy: what a device gives is held to it by `test_terms_have_the_same_bits_on_every_device`."""
    with CpuDevice() as opened:
        yield opened


def places(n: int) -> tuple[Any, Any]:
    line = np.arange(n) * 2 * np.pi / n
    return np.meshgrid(line, line)


def phase(state: Any, row: int, column: int) -> float:
    """The angle of a mode of vorticity of the first member."""
    modes = state.reshape(-1, *state.shape[-3:])[0]
    return math.atan2(modes[row, column, 1], modes[row, column, 0])


BETA, STEPS = 2.0, 10


@pytest.mark.parametrize("scheme", ["rk4", "etdrk4"])
def test_rossby_waves_move_as_fast_as_they_should(scheme: Any, cpu: Device) -> None:
    # One wave alone does not advect itself: its phase turns by beta k_x / k^2 in a unit of time, to fourth order.
    x, y = places(16)
    turned = BETA * 2 / (2**2 + 1) * 0.01 * STEPS
    plain, own = (Flow(16, nu=0, dt=0.01, dtype="float64", scheme=scheme, beta=beta) for beta in (BETA, 0.0))
    run = simulate(plain, initial.from_field(plain, np.cos(2 * x + y)), STEPS, device=cpu)
    operator = FlowWithTerms(own, factors={"rossby": beta_plane(own, BETA)})
    again = rollout(operator, operator.start(np.cos(2 * x + y)), STEPS, device=cpu)
    for state in (run.state, again.state):
        assert phase(state, 1, 2) == pytest.approx(turned, abs=1e-10)


def test_the_host_solver_knows_beta() -> None:
    x, y = places(16)
    flow = Flow(16, nu=0, dt=0.01, dtype="float64", beta=BETA)
    with CpuDevice() as cpu:
        run = simulate(flow, initial.from_field(flow, np.cos(2 * x + y)), STEPS, device=cpu, host_fft=True)
    assert phase(run.state, 1, 2) == pytest.approx(BETA * 2 / 5 * 0.01 * STEPS, abs=1e-10)


def test_a_beta_plane_is_part_of_what_describes_a_flow() -> None:
    flow = Flow(16, beta=0.5)
    assert Flow.restore(flow.parameters) == flow
    assert "beta" not in Flow(16).parameters
    with pytest.raises(InputError, match="knows no beta plane"):
        Galerkin(flow, Schema(16, 2.0))
    with pytest.raises(InputError, match="beta is nan"):
        Flow(16, beta=math.nan)


def test_a_scalar_across_a_steady_shear_decays_by_diffusion_alone(cpu: Device) -> None:
    # u(y) and s(y): nothing is carried across, so the variance decays as exp(-2 kappa k^2 t), here exactly.
    _, y = places(16)
    operator = FlowWithTerms(Flow(16, nu=0.0, dt=0.01, dtype="float64"), scalars={"dye": 0.05})
    run = rollout(operator, operator.start(np.cos(2 * y), dye=3 + np.cos(3 * y)), STEPS, device=cpu)
    dye = to_field(run.state.reshape(operator.shape)[1])
    assert dye.mean() == pytest.approx(3, rel=1e-14)
    assert dye.var() == pytest.approx(0.5 * math.exp(-2 * 0.05 * 9 * 0.01 * STEPS), rel=1e-12)


def test_a_mixed_scalar_loses_the_variance_that_its_slopes_dissipate(cpu: Device) -> None:
    # d <s^2> / dt = -2 kappa <|grad s|^2>: advection moves variance, and neither makes nor loses any.
    x, y = places(32)
    kappa = 0.05
    operator = FlowWithTerms(Flow(32, nu=0.02, dt=0.01, dtype="float64"), scalars={"dye": kappa})
    states = [operator.start(np.cos(x) + np.sin(2 * y), dye=np.sin(x + y))]
    for _ in range(4):
        states.append(rollout(operator, states[-1], 5, device=cpu).state.reshape(operator.shape))
    squared, slopes = [], []
    for state in states:
        z = state[1].view(np.complex128)[..., 0]
        weight = np.full(z.shape, 2.0)
        weight[:, [0, -1]] = 1
        k2 = (np.fft.fftfreq(32, 1 / 32)[:, None] ** 2) + np.arange(17)[None, :] ** 2
        squared.append((weight * abs(z) ** 2).sum())
        slopes.append((weight * k2 * abs(z) ** 2).sum())
    # Simpson's rule over four intervals of 0.05
    lost = 2 * kappa * 0.05 / 3 * (slopes[0] + 4 * slopes[1] + 2 * slopes[2] + 4 * slopes[3] + slopes[4])
    assert squared[0] - squared[-1] == pytest.approx(lost, rel=1e-5)


def test_a_force_of_ones_own_is_the_force_that_the_flow_knows(cpu: Device) -> None:
    _, y = places(16)
    known = Flow(16, forcing=Kolmogorov(2, 0.5), dtype="float64")
    own = FlowWithTerms(Flow(16, dtype="float64"), forces={"wind": -2 * 0.5 * np.cos(2 * y)})
    as_formula = FlowWithTerms(Flow(16, dtype="float64"), formulas={"w": "-cos(2 * y)"})
    start = initial.random(known, 1, peak=2)
    runs = [simulate(known, start, 3, device=cpu).state[0]]
    runs += [rollout(one, start[None], 3, device=cpu).state.reshape(start.shape) for one in (own, as_formula)]
    for other in runs[1:]:
        np.testing.assert_allclose(other[..., 0], runs[0][..., 0], atol=1e-15)


ALL: dict[str, Any] = {
    "scalars": {"dye": 1e-2, "heat": 0.0},
    "formulas": {"w": "-0.1 * w * abs(w) + 0.2 * heat_x", "dye": "where(h > 0, -v, 0.5 * sin(x))"},
}


def with_everything(dtype: str = "float32", n: int = 12) -> FlowWithTerms:
    x, y = places(n)
    flow = Flow(n, dtype=dtype, drag=0.1, beta=0.3, hyperviscosity=1e-4, forcing=Kolmogorov(2, 0.5))
    return FlowWithTerms(
        flow, factors={"more": beta_plane(flow, 0.2)}, forces={"wind": np.cos(y)}, fields={"h": np.sin(x)}, **ALL
    )


def start_of(operator: FlowWithTerms) -> Any:
    x, y = places(operator.flow.n)
    two = np.stack([np.cos(x) + np.sin(2 * y), np.sin(x - y)])
    return operator.start(two, dye=two[::-1] + 1, heat=np.cos(two))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_terms_have_the_same_bits_on_every_device(dtype: str, vulkan: Device) -> None:
    operator = with_everything(dtype)
    z0 = start_of(operator)
    with CpuDevice() as cpu:
        here = rollout(operator, z0, 4, device=cpu, hash_every=2)
    there = rollout(operator, z0, 4, device=vulkan, hash_every=2)
    assert [one.digest for one in here.hashes] == [one.digest for one in there.hashes]
    alone = rollout(operator, z0[1], 4, device=vulkan).state
    np.testing.assert_array_equal(alone[0], there.state[1])


def test_a_certificate_holds_the_terms(vulkan: Device, tmp_path: Path) -> None:
    operator = with_everything()
    z0 = start_of(operator)
    certify(rollout(operator, z0, 4, device=vulkan, hash_every=2), operator, z0, tmp_path / "run")
    verify(tmp_path / "run", device="cpu")
    again = restore(operator.kind, operator.arrays, operator.parameters)
    assert isinstance(again, FlowWithTerms)
    assert (again.parameters, list(again.scalars)) == (operator.parameters, ["dye", "heat"])


def test_no_term_is_the_flow_itself(cpu: Device) -> None:
    flow = Flow(16, dtype="float64")
    start = initial.random(flow, 1, peak=2)
    plain = simulate(flow, start, 3, device=cpu).state[0]
    own = rollout(FlowWithTerms(flow), start[None], 3, device=cpu).state.reshape(plain.shape)
    np.testing.assert_allclose(own, plain, atol=1e-15)


X = np.zeros((8, 8))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"forces": {"wind": X[:4]}}, r"the force 'wind' has shape \(4, 8\), the flow takes \(8, 8\)"),
        ({"forces": {"wind": X + math.nan}}, "force:wind holds 64 values that are not finite"),
        ({"factors": {"f": X}}, r"the factor 'f' has shape \(8, 8\), the flow takes \(8, 5\)"),
        ({"fields": {"h": [["a"]]}}, "the field 'h' holds"),
        ({"fields": {"u": X}}, "no scalar or field can be called 'u'"),
        ({"fields": {"dye_x": X}, "scalars": {"dye": 0.1}}, "two things are called 'dye_x'"),
        ({"scalars": {"dye": -1.0}}, "the diffusivity of dye is -1.0"),
        ({"scalars": dict.fromkeys("abcdefghi", 0.0)}, "there are 9 scalars"),
        ({"formulas": {"dye": "v"}}, "a formula is added to 'dye', which is nothing"),
        ({"formulas": {"w": "vv"}}, "reads 'vv', which is no field"),
        ({"formulas": {"w": "v +"}}, "cannot be read"),
        ({"formulas": {"w": "sin(v, v)"}}, "cannot be read"),
        ({"formulas": {"w": "().__class__"}}, "something else than arithmetic"),
        ({"formulas": {"w": "v.real"}}, "something else than arithmetic"),
        ({"formulas": {"w": "[v][0]"}}, "something else than arithmetic"),
        ({"formulas": {"w": "v" + " + v" * 400}}, "text of at most 1000 letters"),
    ],
)
def test_terms_that_cannot_be_meant_are_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, ShapeError), match=said) as refused:
        FlowWithTerms(Flow(8), **more)
    assert refused.value.fix


def test_flows_that_terms_do_not_go_with_are_refused() -> None:
    for flow in (Flow(8, smagorinsky=0.1), Flow(8, forcing=Stochastic(1, 2))):
        with pytest.raises(InputError, match="terms of your own go without"):
            FlowWithTerms(flow)


def test_a_term_that_is_no_number_ends_the_run(cpu: Device) -> None:
    operator = FlowWithTerms(Flow(8), formulas={"w": "sqrt(w - 100)"})
    with pytest.raises(NonFiniteError):
        rollout(operator, operator.start(np.cos(places(8)[0])), 2, device=cpu)
