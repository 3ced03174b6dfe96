"""Claims about the slaved closure: its slopes are right, its bits are the same everywhere, and it beats nu_e."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.operators._catalogue import restore
from dashi.core.rollouts.rollout import rollout
from dashi.errors import DashiError, InputError
from dashi.flow import Flow, Kolmogorov
from dashi.flow.proxy import MODELS, Schema, load_model, save_model
from dashi.flow.proxy.closure._device_loss import DeviceLoss, rollout_batch
from dashi.flow.proxy.closure._model import Slaved
from dashi.flow.proxy.closure._operator import SlavedGalerkin
from dashi.flow.proxy.closure._plan import TrainingSchedule
from dashi.flow.proxy.closure._tables import Band, Closure, Parameters
from dashi.flow.proxy.closure._training import ClosureLoss, TrainingSetup
from dashi.flow.proxy.states import encoded, validation_score
from dashi.flow.windows import Windows
from dashi.flow.windows.simulated import windows_of
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

SCHEMA = Schema(32, 4, 8, ((6, 0), (-4, 4)))
FLOW = Flow(32, nu=5e-3, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0))
TINY: dict[str, Any] = {"iterations": 2, "long_iterations": 1, "frames": 2, "long_frames": 3, "batch": 4, "checks": 1}


def exact(scheme: Any = "etdrk4") -> Flow:
    return Flow(32, nu=5e-3, dt=0.02, drag=0.1, forcing=Kolmogorov(2, 1.0), scheme=scheme, dtype="float64")


def some_closure(depth: int, kind: Any, schema: Schema = SCHEMA) -> tuple[Parameters, Any, Closure]:
    """Parameters, numbers that are not special, and the closure of them."""
    parameters = Parameters(Band.of(schema, 6.0), depth, 0.2)
    numbers = parameters.start(0.4) + 0.05 * np.random.default_rng(depth).normal(size=parameters.size)
    return parameters, numbers, parameters.unpack(numbers, kind)


def some_modes(*shape: int, schema: Schema = SCHEMA) -> Any:
    return 0.3 * np.random.default_rng(5).normal(size=(*shape, 2 * len(schema.modes)))


def some_z(count: int, kind: Any) -> Any:
    made = np.zeros((count, SCHEMA.size), kind)
    made[:, SCHEMA.parts["modes"]] = some_modes(count)
    return made


@pytest.fixture(scope="module")
def data() -> dict[str, Windows]:
    """Few and short windows: 3 / 1 / 4 seeds."""
    with CpuDevice() as cpu:
        seeds = {"train": [1, 2, 3], "validation": [4], "test": [5, 6, 7, 8]}
        return {
            name: windows_of(FLOW, some, device=cpu, steps=200, interval=5, windows=2, spin_up=500, host_fft=True)
            for name, some in seeds.items()
        }


@pytest.mark.parametrize(("scheme", "depth"), [("etdrk4", 1), ("etdrk4", 2), ("heun", 3), ("rk4", 4)])
def test_the_slope_of_the_loss_is_that_of_finite_differences(scheme: str, depth: int) -> None:
    parameters, numbers, closure = some_closure(depth, np.float64)
    loss = ClosureLoss(TrainingSetup.of(exact(scheme), parameters.band, 0.1, 8.0))
    z = some_modes(3, 4)
    slope = parameters.gradient(loss(closure, z)[1])
    way = np.random.default_rng(1).normal(size=parameters.size)

    def at(step: float) -> float:
        return loss(parameters.unpack(numbers + step * way, np.float64), z)[0]

    # Central differences of a step of 1e-5 are right to about 1e-10 here.
    assert (at(1e-5) - at(-1e-5)) / 2e-5 == pytest.approx(float(slope @ way), rel=1e-6, abs=1e-9)


def test_members_that_go_one_after_another_give_the_same_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, _, closure = some_closure(2, np.float64)
    loss, z = ClosureLoss(TrainingSetup.of(exact(), parameters.band, 0.1, 8.0)), some_modes(3, 4)
    together, slopes = loss(closure, z)
    monkeypatch.setattr("dashi.flow.proxy.closure._training.MOST_BYTES", 1)
    apart, others = loss(closure, z)
    assert apart == pytest.approx(together, rel=1e-12)
    assert np.allclose(parameters.gradient(others), parameters.gradient(slopes), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("scheme", "depth"), [("etdrk4", 2), ("heun", 1), ("rk4", 4)])
def test_kernels_give_the_same_loss_and_slope_as_numpy(vulkan: VulkanDevice, scheme: str, depth: int) -> None:
    parameters, _, closure = some_closure(depth, np.float64)
    setup, z = TrainingSetup.of(exact(scheme), parameters.band, 0.1, 8.0), some_modes(3, 4)
    by_numpy, slopes = ClosureLoss(setup)(closure, z)
    by_kernels = DeviceLoss(vulkan, setup, rollout_batch(setup, depth, 3, 3))
    result, others = by_kernels(closure, z)
    by_kernels.close()
    # Both in float64, in other orders.
    assert result == pytest.approx(by_numpy, rel=1e-12)
    assert np.allclose(parameters.gradient(others), parameters.gradient(slopes), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_step_has_the_same_bits_on_numpy_and_vulkan(vulkan: VulkanDevice, depth: int) -> None:
    closure = some_closure(depth, np.float32)[2]
    operator = SlavedGalerkin(FLOW, SCHEMA, closure, 6.0)
    z = some_modes(2).astype(np.float32)
    with CpuDevice() as cpu:
        ours = rollout(operator, z, 2, device=cpu, hash_every=1)
    theirs = rollout(operator, z, 2, device=vulkan, hash_every=1)
    assert ours.hashes == theirs.hashes
    again = restore(operator.kind, operator.arrays, operator.parameters)
    assert rollout(again, z, 2, device=vulkan, hash_every=1).hashes == ours.hashes


def test_a_rollout_by_kernels_is_that_of_numpys_own_transforms(vulkan: VulkanDevice) -> None:
    flow = exact()
    model = Slaved(SCHEMA, flow, 0.1, some_closure(2, np.float64)[2], 6.0)
    z = some_z(2, np.float64)
    with CpuDevice() as cpu:
        fast = model.rollout(z, 3, device=cpu)
    # Fifteen steps in float64, in other orders of sums.
    assert np.allclose(model.rollout(z, 3, device=vulkan), fast, rtol=0, atol=1e-12)


def test_a_closure_that_lifts_nothing_is_the_bare_truncation() -> None:
    band = Band.of(SCHEMA, 6.0)
    parameters = Parameters(band, 2, 0.2)
    closure = parameters.unpack(parameters.start(1e-300), np.float64)
    flow = exact()
    z = some_z(2, np.float64)
    bare = MODELS["truncation"].restore(
        SCHEMA, 0.1, {"eddy": np.zeros(len(SCHEMA.modes))},
        {**{f"flow_{k}": v for k, v in flow.parameters.items()}, "factor": 0.0, "way": "auto", "chosen_on": 0},
    )  # fmt: skip
    with CpuDevice() as cpu:
        ours = Slaved(SCHEMA, flow, 0.1, closure, 6.0).rollout(z, 5, device=cpu)
        theirs = bare.rollout(z, 5, device=cpu)
    assert np.allclose(ours, theirs, rtol=0, atol=1e-12)


def test_numbers_of_a_closure_come_back() -> None:
    parameters, numbers, closure = some_closure(3, np.float64)
    assert np.allclose(parameters.pack(closure), numbers)


def test_modes_that_differ_by_signs_share_their_numbers() -> None:
    parameters, _, closure = some_closure(1, np.float64)
    by_mode = {
        (abs(int(y)), abs(int(x))): v for (y, x), v in zip(parameters.band.modes, closure.lift[0, 0], strict=True)
    }
    for (y, x), value in zip(parameters.band.modes, closure.lift[0, 0], strict=True):
        assert by_mode[abs(int(y)), abs(int(x))] == value


@pytest.mark.long
def test_it_beats_the_eddy_viscosity_on_seeds_that_it_has_not_seen(data: dict[str, Windows]) -> None:
    schema = Schema(32, 4)
    with CpuDevice() as cpu:
        inputs = (schema, data["train"], data["validation"])
        options: dict[str, Any] = {"iterations": 40, "long_iterations": 0, "batch": 16, "checks": 1}
        models = [
            Slaved.fit(*inputs, device=cpu, **options),
            MODELS["galerkin"].fit(*inputs, device=cpu),
            MODELS["perfect"].fit(*inputs, device=cpu),
        ]
        reference = encoded(schema, data["test"], device=cpu)
        frames = data["test"].frames - 1
        ours, eddy, perfect = (
            validation_score(schema, model.rollout(reference[:, 0], frames, device=cpu), reference) for model in models
        )
    assert models[0].state_size == models[1].state_size == schema.numbers
    assert eddy + (perfect - eddy) / 3 < ours


def test_it_comes_back_from_its_file_with_the_same_rollout(data: dict[str, Windows], tmp_path: Path) -> None:
    with CpuDevice() as cpu:
        counts: list[int] = []
        model = Slaved.fit(SCHEMA, data["train"], None, device=cpu, progress=counts.append, **TINY)
        save_model(tmp_path / "model.npz", model)
        again = load_model(tmp_path / "model.npz")
        z = some_z(1, np.float32)
        assert np.array_equal(model.rollout(z, 2, device=cpu), again.rollout(z, 2, device=cpu))
    assert sum(counts) == TINY["iterations"] + TINY["long_iterations"]
    assert again.description == model.description
    assert "slaved" in again.description
    assert "trained by NumPy or SciPy on the host" in again.description


def test_training_by_kernels_goes_the_same_way(
    data: dict[str, Windows], vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema(32, 4)
    with CpuDevice() as cpu:
        ours = Slaved.fit(schema, data["train"], None, device=cpu, **TINY)
    monkeypatch.setattr("dashi.flow.proxy.closure._model.fits", lambda *_: True)
    theirs = Slaved.fit(schema, data["train"], None, device=vulkan, **TINY)
    # Adam makes steps of the same length of slopes of any size, so small ones may differ.
    assert theirs.loss == pytest.approx(ours.loss, rel=1e-3)
    for name, start in (("keep", 1.0), ("drain", 0.0)):
        moved, other = (np.asarray(one.closure.arrays[name], np.float64) - start for one in (ours, theirs))
        assert np.linalg.norm(moved) > 0
        # Three steps go alike to some 1e-5 of their length.
        assert np.linalg.norm(other - moved) < 1e-3 * np.linalg.norm(moved), name
    assert f"by kernels on {vulkan.info.name}" in theirs.description


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"depth": 5}, "depth"),
        ({"depth": 0}, "depth"),
        ({"reach": 0.5}, "below k_cut"),
        ({"iterations": 0}, "iterations"),
        ({"rate": -1.0}, "rate"),
        ({"lift_time": float("nan")}, "lift_time"),
        ({"depht": 1}, "no option 'depht'"),
    ],
)
def test_options_that_make_no_sense_are_refused(data: dict[str, Windows], options: dict[str, Any], text: str) -> None:
    with CpuDevice() as cpu, pytest.raises(InputError, match=text) as caught:
        Slaved.fit(SCHEMA, data["train"], None, device=cpu, **options)
    assert "Fix:" in str(caught.value)


def test_former_names_of_options_are_read_and_never_beside_the_current_ones(data: dict[str, Windows]) -> None:
    former: dict[str, Any] = {"iterations": 1, "then": 1, "frames": 1, "then_frames": 2, "memory": 0.3, "batch": 1}
    current: dict[str, Any] = {"iterations": 1, "frames": 1, "batch": 1}
    current |= {"long_iterations": 1, "long_frames": 2, "lift_time": 0.3}
    with CpuDevice() as cpu:
        old, new = (Slaved.fit(SCHEMA, data["train"], None, device=cpu, **options) for options in (former, current))
        for name, table in old.arrays.items():
            assert np.asarray(table).tobytes() == np.asarray(new.arrays[name]).tobytes()
        with pytest.raises(InputError, match=r"long_iterations is there twice.* Fix: leave then away"):
            Slaved.fit(SCHEMA, data["train"], None, device=cpu, **former, long_iterations=1)


def test_a_flow_with_an_eddy_viscosity_of_its_own_is_refused() -> None:
    flow = Flow(32, smagorinsky=0.1)
    with pytest.raises(InputError, match="eddy viscosity of its own"):
        SlavedGalerkin(flow, SCHEMA, some_closure(1, np.float32)[2], 6.0)


@pytest.mark.parametrize("name", ["keep", "lift", "gain", "drain"])
def test_damaged_tables_are_refused(name: str) -> None:
    closure = some_closure(2, np.float32)[2]
    band = Band.of(SCHEMA, 6.0)
    for damaged in (closure.arrays[name][..., 1:], np.full_like(closure.arrays[name], np.nan)):
        with pytest.raises(DashiError, match=name):
            Closure.restore(band, {**closure.arrays, name: damaged}, np.float32)
    with pytest.raises(InputError, match="too many or too few"):
        Closure.restore(band, {k: v for k, v in closure.arrays.items() if k != name}, np.float32)


def test_windows_too_short_for_long_rollouts_are_used_as_they_are() -> None:
    assert [phase.frames for phase in TrainingSchedule(frames=10, long_frames=25).phases(4)] == [4, 4]
    with pytest.raises(InputError, match="one frame alone"):
        TrainingSchedule().phases(0)
