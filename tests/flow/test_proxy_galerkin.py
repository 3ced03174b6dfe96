"""Claims about the Galerkin step: exact, conservative, the same bits everywhere, the same both ways, an operator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.core.certificates.inputs import load_operator, save_operator
from dashi.core.operators._catalogue import restore
from dashi.core.rollouts.rollout import rollout
from dashi.errors import FeatureError, InputError, ShapeError
from dashi.flow import Flow, Kolmogorov, Stochastic, ensemble
from dashi.flow._operator import Vorticity
from dashi.flow.proxy._frame_recording import record_frames
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.galerkin import _terms as terms
from dashi.flow.proxy.galerkin._host import FastGalerkin
from dashi.flow.proxy.galerkin._operator import FORMS, Form, Galerkin, OnGrid, modes_of
from dashi.flow.proxy.galerkin._strategies import choose
from dashi.flow.proxy.lowpass import decode_states
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import squares
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice

SCHEMA = Schema(32, 5, 8, ((6, 0), (-4, 4), (0, 7)))
FLOWS: dict[str, Flow] = {
    "plain": Flow(32, nu=1e-2, scheme="etdrk4", dtype="float64"),
    "forced": Flow(32, nu=1e-2, scheme="rk4", dtype="float64", forcing=Kolmogorov(2, 0.5), drag=0.1),
    "heun": Flow(32, nu=1e-2, scheme="heun", dtype="float64", forcing=Kolmogorov(9), length=3.0),
}


def starts(flow: Flow, schema: Schema, count: int = 2) -> Any:
    states = ensemble(flow, "random", seeds=list(range(count)), peak=3)
    with CpuDevice() as cpu:
        return modes_of(schema, encode(schema, states, device=cpu))


def schema_of(flow: Flow, schema: Schema = SCHEMA) -> Schema:
    return Schema(flow.n, schema.k_cut, schema.mid_cut, schema.anchors, flow.length)


def eddy_of(schema: Schema) -> Any:
    return np.linspace(0, 2e-2, len(schema.modes))


def tendency(operator: Galerkin, z: Any, device: Device) -> Any:
    loaded = operator.load(device)
    source, target = device.array(z), device.empty(z.shape, z.dtype)
    with device.program(operator.tendency(device, loaded, source, target)) as program:
        program.run()
    return target.numpy()


@pytest.mark.parametrize("form", FORMS)
def test_the_truncated_tendency_is_that_of_the_full_solver_on_the_lowpass_field(form: Form, device: Device) -> None:
    flow = FLOWS["forced"]
    z = starts(flow, SCHEMA)
    own = tendency(Galerkin(flow, SCHEMA, form=form), z, device)
    whole = np.concatenate([z, np.zeros((len(z), 4))], axis=1)
    full = Vorticity(flow)
    source = device.array(decode_states(SCHEMA, whole, device=device))
    target = device.empty(source.shape, source.dtype.numpy)
    with device.program(full.tendency(device, full.load(device), source, target)) as program:
        program.run()
    expected: Any = target.numpy().reshape(len(z), -1, 2)[:, SCHEMA.places].reshape(z.shape)
    # Sums of a few hundred products of order 1.
    np.testing.assert_allclose(own, expected, rtol=0, atol=1e-13 * np.abs(expected).max())


@pytest.mark.parametrize("form", FORMS)
def test_the_quadratic_form_conserves_energy_and_enstrophy(form: Form, device: Device) -> None:
    flow = FLOWS["plain"]
    z = starts(flow, SCHEMA, 3)
    rate = tendency(Galerkin(flow, SCHEMA, form=form), z, device)
    work = (z * rate).reshape(len(z), -1, 2).sum(axis=2)
    size = np.abs(work).sum(axis=1)
    assert (size > 0.1).all()
    # Exact but for the rounding of each product.
    assert (np.abs(work.sum(axis=1)) < 1e-13 * size).all()
    assert (np.abs((work / squares(SCHEMA)).sum(axis=1)) < 1e-13 * size).all()


def test_every_triad_conserves_both_by_itself() -> None:
    listed, modes = terms.triads_of(SCHEMA.modes), SCHEMA.modes
    owner = np.repeat(np.arange(len(modes)), np.diff(listed.ends.astype(np.int64)))
    words = listed.words.astype(np.int64)
    p, q = (
        np.where((words >> bit & 1)[:, None] == 1, -modes[which], modes[which])
        for which, bit in ((words & 0x3FFF, 28), (words >> 14 & 0x3FFF, 29))
    )
    np.testing.assert_array_equal(p + q, modes[owner])
    # The three modes of a triad add up to 0; it and its conjugate are one.
    sums: dict[Any, list[float]] = {}
    for three, weight, k in zip(np.stack([p, q, -modes[owner]], axis=1), listed.weights, modes[owner], strict=True):
        key = min(tuple(sorted(map(tuple, (sign * three).tolist()))) for sign in (1, -1))
        both = sums.setdefault(key, [0.0, 0.0, 0.0])
        for j, value in enumerate((weight, weight / float((k**2).sum()), 1.0)):
            both[j] += value
    assert len(sums) > 300
    found = np.array([*sums.values()])
    np.testing.assert_allclose(found[:, :2], 0, atol=1e-12)
    assert (found[:, 2] >= 2).all()


def test_without_viscosity_a_rollout_keeps_energy_and_enstrophy() -> None:
    flow = Flow(32, nu=0.0, dt=0.01, dtype="float64")
    z = starts(flow, SCHEMA)
    made = FastGalerkin(Galerkin(flow, SCHEMA)).roll(z, 1, 100)
    power = (made**2).reshape(len(z), 2, -1, 2).sum(axis=3)
    assert np.abs(made[:, 1] - made[:, 0]).max() > 0.1
    for total in (power.sum(axis=2), (power / squares(SCHEMA)).sum(axis=2)):
        # RK4 at a Courant number of 0.05 loses that little.
        np.testing.assert_allclose(total[:, 1], total[:, 0], rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize("form", FORMS)
def test_a_step_gives_the_same_bits_on_every_backend(form: Form, name: str, dtype: str, vulkan: Device) -> None:
    flow = Flow.restore({**FLOWS[name].parameters, "dtype": dtype})
    schema = schema_of(flow)
    operator = Galerkin(flow, schema, eddy_of(schema), form)
    z = starts(flow, schema)
    with CpuDevice() as cpu:
        run = rollout(operator, z, 3, device=cpu, hash_every=1)
    two = rollout(operator, z, 3, device=vulkan, hash_every=1)
    assert [h.digest for h in run.hashes] == [h.digest for h in two.hashes]
    assert run.state.tobytes() == two.state.tobytes()
    assert np.abs(run.state - z).max() > 1e-4


@pytest.mark.parametrize("name", FLOWS)
def test_many_steps_in_a_dispatch_have_the_bits_of_single_ones(name: str, device: Device) -> None:
    flow = Flow.restore({**FLOWS[name].parameters, "dtype": "float32"})
    schema = schema_of(flow)
    operator, z = Galerkin(flow, schema, eddy_of(schema), "triads"), starts(flow, schema, 3)
    run = rollout(operator, z, 7, device=device, strategy="stepwise", hash_every=7)
    many = rollout(operator, z, 7, device=device, strategy="workgroup", hash_every=7)
    assert many.strategy == "workgroup"
    assert run.hashes == many.hashes


def test_states_too_large_for_a_workgroup_are_taken_step_by_step(vulkan: Device) -> None:
    device = vulkan
    large = Galerkin(Flow(128), Schema(128, 40), form="triads")
    assert "bytes of shared memory in galerkin_rollout" in large.unsupported_reason("workgroup", device.limits, 1)
    assert "the form grid has no kernel" in Galerkin(Flow(32), SCHEMA).unsupported_reason("workgroup", device.limits, 1)
    state = device.empty((1, *SCHEMA.low.reshape(-1).shape))
    with pytest.raises(FeatureError, match="Fix: use the strategy stepwise"):
        Galerkin(Flow(32), SCHEMA).step_many(device, {}, state, state, state, 2, "workgroup")


@pytest.mark.parametrize(
    ("scalars", "text"),
    [
        ({"stages": 5}, "pass 1 to 4 stages, and 5 rows for each"),
        ({"stages": 1, "used": 0b00110}, "let every stage add the state"),
        ({"stages": 1, "used": 0b00101}, "no tendency that is not known yet"),
    ],
)
def test_a_scheme_that_cannot_be_is_refused(scalars: dict[str, Any], text: str, device: Device) -> None:
    shapes: list[tuple[Any, Any]] = [((1, 2), np.float32), ((1,), np.float32), ((1,), np.uint32), ((2,), np.uint32)]
    arrays = [np.zeros(shape, kind) for shape, kind in [*shapes, ((2,), np.float32), ((5, 1), np.float32)]]
    given: dict[str, Any] = {"steps": 1, "used": 0b11, "longest": 1, **scalars}
    with pytest.raises(InputError, match="Fix:") as error:
        device.run("galerkin_rollout", *arrays, **given)
    assert text in str(error.value)
    odd = [
        np.zeros((1, 3), np.float32),
        *arrays[1:3],
        np.zeros(2, np.uint32),
        *arrays[4:5],
        np.zeros((2, 1), np.float32),
    ]
    with pytest.raises(ShapeError):
        device.run("galerkin_stage2", *odd, np.zeros((1, 3), np.float32), longest=1)


@pytest.mark.parametrize("name", FLOWS)
def test_all_ways_agree_to_rounding(name: str, device: Device) -> None:
    flow = FLOWS[name]
    schema = schema_of(flow)
    z, steps = starts(flow, schema), 5
    states: list[Any] = [
        rollout(Galerkin(flow, schema, eddy_of(schema), f), z, steps, device=device).state for f in FORMS
    ]
    states.append(FastGalerkin(Galerkin(flow, schema, eddy_of(schema))).roll(z, 1, steps)[:, 1])
    for other in states[1:]:
        np.testing.assert_allclose(other, states[0], rtol=0, atol=1e-13 * np.abs(z).max())


def test_a_step_of_all_modes_of_the_solver_is_the_solver_s(device: Device) -> None:
    # A flow whose modes all lie within the circle.
    flow = Flow(32, nu=1e-2, dt=0.01, dtype="float64")
    states = ensemble(flow, "taylor-green", seeds=[0])
    schema = Schema(32, 10)
    z = modes_of(schema, encode(schema, states, device=device))
    full = rollout(Vorticity(flow), states, 10, device=device).state
    own: Any = rollout(Galerkin(flow, schema), z, 10, device=device).state
    np.testing.assert_allclose(own, modes_of(schema, encode(schema, full, device=device)), rtol=0, atol=1e-14)


def test_eddy_viscosity_damps_each_mode_as_it_says(device: Device) -> None:
    flow = Flow(32, nu=1e-2, dt=0.05, scheme="etdrk4", dtype="float64", drag=0.2)
    schema = Schema(32, 4)
    z = np.zeros((1, schema.numbers))
    z[0, 10] = 1e-9  # so small that advection is nothing
    made = rollout(Galerkin(flow, schema, np.full(len(schema.modes), 3e-2)), z, 4, device=device).state
    rate = 4e-2 * squares(schema)[5] + 0.2
    np.testing.assert_allclose(made[0, 10], 1e-9 * np.exp(-rate * 0.2), rtol=1e-12)


@pytest.mark.parametrize(("k_cut", "n"), [(8, 28), (12, 40), (16, 50), (21, 64)])
def test_the_grid_is_the_smallest_that_is_free_of_aliasing(k_cut: int, n: int) -> None:
    assert terms.smallest_grid(Schema(128, k_cut).modes) == n
    assert OnGrid(Galerkin(Flow(128), Schema(128, k_cut))).flow.n == n


@pytest.mark.parametrize("form", FORMS)
def test_it_is_an_operator_like_any_other(form: Form, tmp_path: Path) -> None:
    flow = FLOWS["forced"]
    operator = Galerkin(flow, SCHEMA, eddy_of(SCHEMA), form)
    same = restore("galerkin", operator.arrays, operator.parameters)
    assert isinstance(same, Galerkin)
    assert (same.flow, same.schema, same.form) == (operator.flow, operator.schema, form)
    save_operator(tmp_path / "operator.npz", operator)
    np.savez(tmp_path / "z0.npz", z0=starts(flow, SCHEMA))
    assert load_operator(tmp_path / "operator.npz").parameters == operator.parameters
    given = ["--operator", str(tmp_path / "operator.npz"), "--z0", str(tmp_path / "z0.npz"), "--device", "cpu"]
    run = ["rollout", *given, "--steps", "4", "--hash-every", "2", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, run)
    assert done.exit_code == 0, done.output
    found = CliRunner().invoke(app, ["verify", str(tmp_path / "run" / "certificate.json"), "--device", "cpu", "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads((tmp_path / "run" / "certificate.json").read_text())["operator"]["kind"] == "galerkin"


def test_random_kicks_are_left_away() -> None:
    kicked = Flow(32, forcing=Stochastic(3, 5))
    assert Galerkin(kicked, SCHEMA).flow.forcing is None


def test_frames_of_several_blocks_are_the_states_of_single_rollouts(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.core.rollouts._segments.MOST_SEGMENTS", 2)
    flow = FLOWS["forced"]
    operator = Galerkin(flow, SCHEMA, form="triads")
    z = starts(flow, SCHEMA)
    made = record_frames(operator, z, 5, 3, device=device)
    for frame in (0, 2, 4):
        np.testing.assert_array_equal(made[frame], rollout(operator, z, 3 * (frame + 1), device=device).state)


def test_the_way_is_chosen_explained_and_can_be_asked_for(vulkan: Device) -> None:
    with CpuDevice() as cpu:
        assert choose("auto", cpu, 98, 4)[0] == "numpy"
        assert choose("triads", cpu, 98, 4) == ("triads", "triads (asked for)")
    way, why = choose("auto", vulkan, 98, 4)
    assert way in FORMS
    assert f"{way}: the faster of the two for 98 modes and 4 states" in why
    with pytest.raises(FeatureError, match="Fix: use auto, grid or triads"):
        choose("numpy", vulkan, 98, 4)
    with pytest.raises(InputError, match="there is no strategy 'fast'"):
        choose("fast", vulkan, 98, 4)


def test_what_does_not_fit_is_refused() -> None:
    flow = FLOWS["plain"]
    with pytest.raises(InputError, match="the flow has 48 x 48 points"):
        Galerkin(Flow(48), SCHEMA)
    with pytest.raises(ShapeError, match="one viscosity for each of 43 modes"):
        Galerkin(flow, SCHEMA, np.zeros(3))
    with pytest.raises(InputError, match="not finite"):
        Galerkin(flow, SCHEMA, np.full(43, np.nan))
    good = Galerkin(flow, SCHEMA)
    with pytest.raises(InputError, match="there is no form 'other'"):
        restore("galerkin", good.arrays, {**good.parameters, "form": "other"})
    with pytest.raises(InputError, match="too many or too few"):
        restore("galerkin", {}, good.parameters)
    with pytest.raises(InputError, match="too many triads"):
        terms.triads_of(Schema(512, 64).modes)
