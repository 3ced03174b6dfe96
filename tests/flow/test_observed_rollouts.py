"""Any observer can be put on any run, together with others; none changes a bit, and none holds the solver up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.certificates._certify import certify_folder
from dashi.core.metrics._document import Stages, build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.operators.affine import Linear
from dashi.core.rollouts._engine import DeviceEngine
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, NonFiniteError, ShapeError
from dashi.flow import Flow, ensemble
from dashi.flow._derived_fields import DERIVED
from dashi.flow._diagnostics import Diagnostics
from dashi.flow._frames import Frames
from dashi.flow._host_fft import HostVorticity
from dashi.flow._operator import Vorticity
from dashi.flow._trajectory import FlowStrides, Trajectory, TrajectoryWriter
from dashi.flow.simulation import simulate
from dashi.io._run_folder import CHECKPOINT
from dashi.runtime import Device
from dashi.runtime._cpu_device import CpuDevice

FLOW = Flow(16, nu=0.01, dt=0.01)
START = ensemble(FLOW, "random", [1, 2], peak=2)


def all_at_once(device: Device, operator: Any, taken: list[Any], kept: list[Run]) -> Run:
    frames = Frames(FLOW, 4, lambda step, fields: taken.append((step, fields["pressure"])), ["pressure", "vorticity"])
    return rollout(
        operator, START, 12, device=device, observers=[Diagnostics(FLOW, 3, transfer=True), frames], hash_every=5,
        observe_every=6, sheet_every=2, keep_every=8, keep=kept.append,
    )  # fmt: skip


def test_every_observer_looks_at_one_run_and_changes_no_bit(device: Device) -> None:
    taken, runs = list[Any](), list[Run]()
    calls = all_at_once(device, Vorticity(FLOW), taken, runs)
    alone = rollout(Vorticity(FLOW), START, 12, device=device)
    assert calls.state.tobytes() == alone.state.tobytes()
    assert [one.step for one in calls.hashes] == [5, 10, 12]
    assert [one.step for one in calls.observations] == [6, 12]
    assert calls.sheet_steps == (2, 4, 6, 8, 10, 12)
    assert [one.step for one in calls.records["diagnostics"]] == [0, 3, 6, 9, 12]
    assert [step for step, _ in taken] == [0, 4, 8, 12]
    assert [(run.steps, [h.step for h in run.hashes], run.sheet_steps) for run in runs] == [(8, [5], (2, 4, 6, 8))]
    assert runs[0].state.tobytes() == rollout(Vorticity(FLOW), START, 8, device=device).state.tobytes()
    assert calls.time == pytest.approx(0.12)


def test_operators_of_the_host_have_the_same_observers() -> None:
    """By their own measure where they know it, by the reference kernels where they do not."""
    taken, runs = list[Any](), list[Run]()
    with CpuDevice() as cpu:
        host = all_at_once(cpu, HostVorticity(FLOW), taken, runs)
        exact = all_at_once(cpu, Vorticity(FLOW), [], [])
    assert (host.strategy, host.portable, host.dispatches) == ("fast", False, 0)
    for ours, theirs in zip(host.observations, exact.observations, strict=True):
        assert ours.norm == pytest.approx(theirs.norm, rel=1e-5)
        assert ours.defect == pytest.approx(theirs.defect, rel=1e-3)
    np.testing.assert_allclose(host.sheet, exact.sheet, rtol=1e-3, atol=1e-5)
    assert [one.step for one in host.records["diagnostics"]] == [0, 3, 6, 9, 12]
    assert [run.steps for run in runs] == [8]


def test_observers_of_a_flow_are_refused_by_other_states(device: Device) -> None:
    other = Linear(np.eye(4, dtype=np.float32))
    for observer in (Diagnostics(FLOW, 1), Frames(FLOW, 1, lambda *_: None)):
        with pytest.raises(ShapeError, match=r"the run has states of shape \(4,\) .* Fix: observe runs of this flow"):
            rollout(other, np.ones(4, np.float32), 1, device=device, observers=[observer])
    with pytest.raises(InputError, match="two observers have the name 'diagnostics'"):
        rollout(Vorticity(FLOW), START, 1, device=device, observers=[Diagnostics(FLOW, 1), Diagnostics(FLOW, 2)])


def test_frames_and_checkpoints_do_not_stop_the_solver_from_submitting(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
    submitted: list[int] = []
    behind: list[int] = []
    submit = DeviceEngine.submit
    monkeypatch.setattr(
        DeviceEngine, "submit", lambda self, block, way: (submitted.append(block.last), submit(self, block, way))[1]
    )

    def look(step: int) -> None:
        behind.append(max(submitted, default=0) - step)

    simulate(
        FLOW, START, 8, device=device, frame_every=1, frame=lambda step, _: look(step), keep_every=1, look_every=1,
        keep=lambda run: look(run.steps),
    )  # fmt: skip
    assert behind == [0, 0, *[1] * 14, 0, 0]  # the next block was under way, until the last


def test_certificates_name_the_kernels_of_steps_hashes_and_diagnostics_alone(device: Device, tmp_path: Path) -> None:
    plain = simulate(FLOW, START, 4, device=device, hash_every=2)
    run = simulate(
        FLOW, START, 4, device=device, hash_every=2, frame_every=2, fields=DERIVED, frame=lambda *_: None, keep_every=2,
        keep=lambda _: None,
    )  # fmt: skip
    assert plain.kernels == run.kernels
    assert {name.split("/")[0] for name in plain.kernels} == {"hash_state", "vorticity_stage2", "vorticity_stage5"}
    assert certify_folder(plain, tmp_path, Vorticity(FLOW), START)
    assert certify_folder(simulate(FLOW, START, 1, device=device), tmp_path / "no", Vorticity(FLOW), START) is None
    assert not (tmp_path / "no").exists()


def test_metrics_say_what_the_run_says(device: Device) -> None:
    run = simulate(FLOW, START, 4, device=device, hash_every=2)
    metrics = build_metrics(
        "test",
        run,
        Placement(device, "auto"),
        Stages(),
        parts={"fft": Placement(device, "auto")},
        more={"decode_snapshots": 3},
    )
    assert (metrics.operator, metrics.states, metrics.state_shape, metrics.steps) == ("vorticity", 2, [16, 9, 2], 4)
    assert (metrics.op_backend_used, metrics.fft_backend_used, metrics.decode_snapshots) == (*[device.info.spec] * 2, 3)
    assert metrics.ns_per_step == pytest.approx(run.seconds / 4 * 1e9)
    assert metrics.hotloop_dispatches == run.dispatches


def test_a_flow_that_blows_up_leaves_the_run_before_the_block_in_which_it_did(device: Device) -> None:
    wild = 1e25 * ensemble(FLOW, "random", 1, peak=2).astype(np.float32)
    with pytest.raises(NonFiniteError) as error:
        rollout(Vorticity(FLOW), wild.astype(np.float32), 6, device=device)
    assert isinstance(error.value.rollout, Run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Diagnostics, "at_start", False)
        with pytest.raises(NonFiniteError, match="the flow blew up") as error:
            simulate(FLOW, wild.astype(np.float32), 6, device=device)
    run = error.value.rollout
    assert (run.steps, run.stopped) == (0, True)
    assert np.isfinite(run.state).all()


def recorded(folder: Path, steps: int, resume: Run | None = None) -> Run:
    every = FlowStrides(look=2, frame=2, hash=2)
    trajectory = Trajectory(
        folder / "fields.zarr", FLOW, [1, 2], ["vorticity"], every, transfer=False, provenance={},
        resume=resume is not None,
    )  # fmt: skip
    with CpuDevice() as cpu, TrajectoryWriter(trajectory, folder / CHECKPOINT, lambda: "mine") as recording:
        run = simulate(
            FLOW, START, steps, device=cpu, look_every=2, frame_every=2, hash_every=2, frame=recording.frame,
            keep=recording.keep, keep_every=2, keep_pause=recording.pause, host_fft=True, resume=resume,
        )  # fmt: skip
        recording.finish(run)
    return run


def shapes(folder: Path) -> Sequence[int]:
    import json

    names = ("vorticity", "time", "energy")
    return [json.loads((folder / "fields.zarr" / name / "zarr.json").read_text())["shape"][0] for name in names]


def test_a_recording_counts_the_frames_of_the_run_and_of_the_one_it_goes_on_from(tmp_path: Path) -> None:
    run = recorded(tmp_path, 6)
    assert shapes(tmp_path) == [4, 4, 4]
    again = recorded(tmp_path, 7, resume=run)  # without a frame of its own
    assert again.steps == 7
    assert shapes(tmp_path) == [4, 4, 5]
