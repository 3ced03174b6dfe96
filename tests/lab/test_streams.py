"""Chains as jobs: what their run folder says of every stage, and what is left when they end early."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dashi import errors, lab, stream
from dashi.core.traces.file import read_trace
from dashi.io.metrics import read_metrics
from dashi.report.run import read_run
from dashi.report.writing import write as write_report
from dashi.runtime import Ticket

EXAMPLE = Path(__file__).parents[2] / "examples" / "stream" / "worked_example.yaml"
ON_NUMPY = {"gpu_weak": "cpu", "gpu_mid": "cpu", "gpu_strong": "cpu"}


@pytest.fixture
def plan() -> stream.StreamPlan:
    return stream.make_plan(stream.load(EXAMPLE, devices=ON_NUMPY), measure=False)


def test_a_run_folder_has_every_stage_all_hashes_and_snapshots(plan: stream.StreamPlan, tmp_path: Path) -> None:
    trace = tmp_path / "trace.perfetto-trace"
    request = lab.StreamRequest(plan=plan, items=7, snapshots={"gpu0": 3}, trace=trace)
    done = lab.run_stream(request, out=tmp_path / "run")
    assert repr(done) == "<FinishedStream: 7 items through 4 stages, in order>"
    metrics = read_metrics(tmp_path / "run" / "metrics.json")
    assert metrics.command == "stream run"
    assert metrics.stages is not None
    assert [
        (stage.id, stage.backend_used, stage.device_type, stage.items_in, stage.items_out) for stage in metrics.stages
    ] == [(name, "cpu", "reference", 7, 7) for name in ("cpu0", "gpu0", "gpu1", "gpu2")]
    assert all(stage.compute_seconds > 0 for stage in metrics.stages)
    assert not metrics.gpu_hotloop_active
    assert [record.hash for record in metrics.hashes] == list(done.run.hashes)
    assert {name.partition("/")[0] for name in metrics.kernel_fingerprints} >= {"pq_pack_bits", "clamp", "reduce_max"}
    assert metrics.stage_seconds.rollout > 0
    document = json.loads((tmp_path / "run" / "stream.json").read_text())
    assert document["hashes"] == list(stream.run(plan, 7, serial="cpu").hashes)
    assert sorted(f.name for f in (tmp_path / "run" / "snapshots").iterdir()) == [
        "gpu0-00000000.npz", "gpu0-00000003.npz", "gpu0-00000006.npz"
    ]  # fmt: skip
    groups = {span.group for span in read_trace(trace)}
    assert "stages" in groups
    assert any("gpu_strong" in group for group in groups)


def test_stages_of_vulkan_devices_count_what_was_executed(vulkan_session: object, tmp_path: Path) -> None:
    plan = stream.make_plan(stream.load(EXAMPLE), measure=False)
    stages = lab.run_stream(lab.StreamRequest(plan=plan, items=5)).metrics.stages
    assert stages is not None
    assert [stage.device_type for stage in stages] == ["reference", "software", "software", "software"]
    assert stages[0].dispatches == 0
    assert all(stage.dispatches >= 5 and stage.dispatches % 5 == 0 for stage in stages[1:3])
    with pytest.raises(errors.DeviceNotFoundError, match="no step was executed on a GPU"):
        lab.run_stream(lab.StreamRequest(plan=plan, items=1, require_gpu=True))


def test_the_page_has_a_section_on_the_chain(plan: stream.StreamPlan, tmp_path: Path) -> None:
    lab.run_stream(lab.StreamRequest(plan=plan, items=4), out=tmp_path / "run")
    assert read_run(tmp_path / "run").metrics is not None
    page = Path(write_report(tmp_path / "run")).read_text()
    assert 'id="chain"' in page
    assert "Stages of the chain" in page
    for name in ("cpu0", "gpu0", "gpu1", "gpu2"):
        assert f"<td>{name}" in page or f">{name}<" in page


def test_a_run_that_ends_early_leaves_what_it_came_to(
    plan: stream.StreamPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = stream.run

    def losing(*args: Any, **options: Any) -> Any:
        losses = [("gpu1", 20)]

        def hold(stage: str, step: int) -> Sequence[Ticket]:
            if (stage, step) in losses:
                losses.clear()
                raise errors.DeviceLostError("the device was lost.", "open it again.")
            return ()

        return real(*args, **options, hold=hold)

    monkeypatch.setattr(stream, "run", losing)
    request = lab.StreamRequest(plan=plan, items=30)
    with pytest.raises(errors.DeviceLostError) as caught:
        lab.run_stream(request, out=tmp_path / "run")
    metrics = read_metrics(tmp_path / "run" / "metrics.json")
    assert metrics.stopped
    assert 0 < metrics.steps == caught.value.result.run.items < 30
    moved = lab.run_stream(lab.StreamRequest(plan=plan, items=30, elsewhere="neighbour"), out=tmp_path / "run")
    assert moved.run.items == 30
    assert [flag.name for flag in moved.metrics.perf_flags][-1] == "stage"
    assert not read_metrics(tmp_path / "run" / "metrics.json").stopped


def test_what_cannot_be_asked_for_is_refused(plan: stream.StreamPlan, tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match=r"snapshots are kept in a run folder\. Fix: name one with `out=`"):
        lab.run_stream(lab.StreamRequest(plan=plan, snapshots={"gpu0": 1}))
    with pytest.raises(errors.InputError, match="names the stage 'gpu9'"):
        lab.run_stream(lab.StreamRequest(plan=plan, snapshots={"gpu9": 1}), out=tmp_path / "run")
    lab.run_stream(lab.StreamRequest(plan=plan, items=2), out=tmp_path / "mine")
    with pytest.raises(errors.FileError, match="Fix: "):
        lab.run_stream(lab.StreamRequest(plan=plan, items=3), out=tmp_path / "mine")
    assert lab.run_stream(lab.StreamRequest(plan=plan, items=3), out=tmp_path / "mine", overwrite=True).run.items == 3
