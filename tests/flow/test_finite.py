"""Whatever advances states gives finite ones, or NonFiniteError with what came before, unless told to go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dashi.core.operators.affine import Affine, Linear
from dashi.core.rollouts.rollout import rollout
from dashi.errors import InputError, NonFiniteError
from dashi.flow import Flow, ensemble, stepper, windows_of
from dashi.flow._diagnostics import Diagnostics
from dashi.flow._host_fft import HostSolver
from dashi.flow.proxy.catalogue import MODELS
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.schema import Schema
from dashi.flow.simulation import simulate
from dashi.flow.v4.linear import roll
from dashi.flow.v4.solver import Solver
from dashi.flow.windows import Windows
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice

FLOW = Flow(16, nu=2e-2, dt=0.02, dtype="float32")
SCHEMA = Schema(16, k_cut=3)


def growing(d: int = 8) -> Linear:
    """2^4 a step in one component: 3 * 2^128 is past the largest float at step 32."""
    matrix = np.eye(d, dtype=np.float32)
    matrix[5, 5] = 16.0
    return Linear(matrix)


@pytest.mark.parametrize("strides", [{}, {"hash_every": 7}, {"sheet_every": 5}, {"hash_every": 40, "sheet_every": 3}])
@pytest.mark.parametrize("way", ["stepwise", "workgroup"])
def test_a_rollout_that_nobody_observes_says_at_which_step_it_ceased_to_be_finite(
    device: Device, way: str, strides: dict[str, Any]
) -> None:
    z0 = np.full(8, 3.0, np.float32)
    with pytest.raises(NonFiniteError, match=r"not finite after step 32, the first at index 5") as error:
        rollout(growing(), z0, 5000, device=device, strategy=way, bands=2, **strides)
    assert [h.step for h in error.value.rollout.hashes] == [s for s in (7, 14, 21, 28) if "hash_every" in strides][
        : 4 if strides.get("hash_every") == 7 else 0
    ]
    gone_on = rollout(growing(), z0, 100, device=device, strategy=way, bands=2, stop_on_nonfinite=False, **strides)
    assert not np.isfinite(gone_on.state).all()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_every_value_that_is_not_finite_is_seen(device: Device, value: float) -> None:
    matrix = np.diag(np.array([1, 1, 2.0**127, 1], np.float32))
    z0 = np.array([1, -1, -1 if value == -np.inf else 1, 0.5], np.float32)
    steps = 3 if np.isnan(value) else 2  # an infinity times 0 is NaN
    assert rollout(Linear(matrix), z0, steps, device=device, stop_on_nonfinite=False).state[0, 2] == value or steps == 3
    with pytest.raises(NonFiniteError):
        rollout(Linear(matrix), z0, steps, device=device)


def test_states_close_to_the_largest_float_are_finite_all_the_same(device: Device) -> None:
    """Their sum is not: the block is gone through again, with the same bits."""
    z0 = np.full(64, 3e38, np.float32)
    operator = Affine(np.eye(64, dtype=np.float32), None, "clamp", low=-3e38, high=3e38)
    strides: dict[str, Any] = {"hash_every": 10, "sheet_every": 25, "bands": 4}
    counts: list[int] = []
    more: dict[str, Any] = {"keep_every": 20, "keep": lambda run: counts.append(run.steps)}
    watched = rollout(operator, z0, 300, device=device, **strides, **more)
    alone = rollout(operator, z0, 300, device=device, stop_on_nonfinite=False, **strides)
    assert (watched.hashes, watched.sheet_steps, watched.steps) == (alone.hashes, alone.sheet_steps, 300)
    assert np.array_equal(watched.state, z0[None])
    assert counts == list(range(20, 301, 20))


def test_the_check_is_in_no_certificate_and_changes_no_bit(device: Device) -> None:
    matrix = np.linalg.qr(np.random.default_rng(3).standard_normal((33, 33)))[0].astype(np.float32)
    z0 = np.random.default_rng(4).standard_normal(33).astype(np.float32)
    watched, alone = (
        rollout(Linear(matrix), z0, 333, device=device, hash_every=50, stop_on_nonfinite=stop) for stop in (True, False)
    )
    assert watched.hashes == alone.hashes
    assert [kernel.name for kernel, _ in watched.used] == [kernel.name for kernel, _ in alone.used]


def test_a_state_to_go_on_from_is_finite(device: Device) -> None:
    gone_on = rollout(growing(), np.full(8, 3.0, np.float32), 40, device=device, stop_on_nonfinite=False)
    with pytest.raises(InputError, match="the state to go on from holds"):
        rollout(growing(), np.full(8, 3.0, np.float32), 40, device=device, resume=gone_on)


def huge(flow: Flow) -> Any:
    """States so large that their products overflow in the first steps; finite themselves."""
    return ensemble(flow, "random", 1, peak=2) * np.float32(1e25)


@pytest.fixture
def _unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look at the start: a time step that is too long is not refused before anything is computed."""
    monkeypatch.setattr(Diagnostics, "at_start", False)


@pytest.mark.usefixtures("_unlimited")
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("every", [{}, {"hash_every": 2}, {"frame_every": 1}])
def test_a_simulation_that_nobody_looks_at_does_not_give_nan(every: dict[str, Any], fast: bool) -> None:
    frames: list[Any] = []

    def keep(step: int, fields: Any) -> None:
        frames.append(fields["vorticity"])

    with CpuDevice() as cpu:
        with pytest.raises(
            NonFiniteError, match=r"the flow blew up: after step \d+ its states are not finite.*smaller dt"
        ):
            simulate(FLOW, huge(FLOW), 6, device=cpu, **every, host_fft=fast, frame=keep)
        gone_on = simulate(FLOW, huge(FLOW), 6, device=cpu, **every, host_fft=fast, stop_on_nonfinite=False)
    assert all(np.isfinite(one).all() for one in frames)
    assert not np.isfinite(gone_on.state).all()


@pytest.mark.usefixtures("_unlimited")
def test_a_simulation_on_vulkan_does_not_give_nan(vulkan: Device) -> None:
    with pytest.raises(NonFiniteError, match="its states are not finite"):
        simulate(FLOW, huge(FLOW), 6, device=vulkan)


def test_a_field_of_a_frame_that_is_not_finite_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostSolver, "fields", lambda self, names: {"pressure": np.full((1, 16, 16), np.inf)})
    asked: dict[str, Any] = {"frame_every": 1, "fields": ["pressure"], "host_fft": True}
    frames: list[Any] = []
    states = ensemble(FLOW, "random", 1, peak=2)
    with CpuDevice() as cpu:
        with pytest.raises(NonFiniteError, match="after step 0 its pressure is not finite"):
            simulate(FLOW, states, 1, device=cpu, frame=lambda step, fields: frames.append(fields), **asked)
        assert not frames
        simulate(
            FLOW,
            states,
            1,
            device=cpu,
            frame=lambda step, fields: frames.append(fields),
            stop_on_nonfinite=False,
            **asked,
        )
    assert len(frames) == 2


def test_a_stepper_does_not_give_nan() -> None:
    with CpuDevice() as cpu:
        step = stepper(FLOW, cpu)
        with pytest.raises(NonFiniteError, match="the flow blew up"):
            step(step(step(huge(FLOW))))


@pytest.fixture(scope="module")
def tiny() -> Windows:
    return windows_of(FLOW, [1, 2], device="cpu", steps=20, interval=5, host_fft=True, options={"peak": 2.0})


@pytest.mark.parametrize("name", ["damped", "ridge", "delay", "dmd", "truncation", "galerkin", "slaved", "perfect"])
def test_a_model_that_blows_up_is_an_error_with_the_frames_before(name: str, tiny: Windows) -> None:
    if name == "dmd":
        pytest.importorskip("pydmd")
    options: dict[str, Any] = {"iterations": 1, "long_iterations": 0} if name == "slaved" else {}
    with CpuDevice() as cpu:
        model = MODELS[name].fit(SCHEMA, tiny, None, device=cpu, **options)
        z0 = encode(SCHEMA, tiny.fields[:, 0], device=cpu)
        blown_up(model)
        huge_z = z0 * np.float32(1e30) if name in ("truncation", "galerkin", "slaved", "perfect") else z0
        with pytest.raises(
            NonFiniteError, match=rf"values of .*{name}.* are not finite after frame \d+ of 40"
        ) as error:
            model.rollout(huge_z, 40, device=cpu)
        with pytest.raises(NonFiniteError):
            list(model.pieces(huge_z, 40, device=cpu, most=40))
        gone_on = model.rollout(huge_z, 40, device=cpu, stop_on_nonfinite=False)
    before = error.value.rollout
    assert np.isfinite(before).all()
    assert 1 <= before.shape[1] <= 40
    assert np.array_equal(gone_on[:, : before.shape[1]], before)
    assert not np.isfinite(gone_on[:, before.shape[1]]).all()


def blown_up(model: Any) -> None:
    """Makes linear maps grow beyond all bounds."""
    grown = {"damping": 1e6, "maps": 1e6, "_eigenvalues": 1e6}
    for name, factor in grown.items():
        values = getattr(model, name, None)
        if values is not None:
            bigger = tuple(v * v.dtype.type(factor) for v in values) if isinstance(values, tuple) else values * factor
            object.__setattr__(model, name, bigger)


def test_the_old_solver_and_its_map_do_not_give_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Solver(32)
    usual = Solver.start
    monkeypatch.setattr(Solver, "start", lambda self, seed: usual(self, seed) * 1e200)
    with pytest.raises(NonFiniteError, match="the field is not finite after step 1"), np.errstate(all="ignore"):
        list(solver.frames(0, 3))
    with pytest.raises(NonFiniteError, match="values of the linear map are not finite after frame 2 of 5"):
        roll(np.full(2, 1e200), np.eye(2) * 1e100, 5)
