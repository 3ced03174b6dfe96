"""Stages of a chain in metrics documents: a GPU was at work only if one of them says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dashi.errors import FileError
from dashi.io.metrics import Metrics, read_metrics, write_metrics
from dashi.runtime import open_device
from dashi.runtime.info import DeviceInfo
from dashi.stream import Pipeline
from dashi.stream._stage_records import stage_records


def document(**more: Any) -> dict[str, Any]:
    none = dict.fromkeys(("dashi_version", "command", "finished", "op_device", "device_name", "driver_name"), "x")
    return {
        **none,
        "schema_version": 1,
        "op_backend_requested": "cpu",
        "op_backend_used": "cpu",
        "op_device_type": "reference",
        "hotloop_dispatches": 0,
        "driver_version": "",
        "kernel_fingerprints": {},
        "dtype": "float32",
        "steps": 3,
        "steps_per_s": 1.0,
        "ns_per_step": 1.0,
        "stage_seconds": {},
        "hashes": [],
        "nonfinite_count": 0,
        "peak_host_memory_bytes": 0,
        "peak_device_memory_bytes": 0,
        "perf_flags": [],
        **more,
    }


def infos() -> tuple[DeviceInfo, DeviceInfo, DeviceInfo]:
    with open_device("cpu") as device:
        cpu = device.info
    software = replace(cpu, spec="vulkan:0", name="llvmpipe", type="software")
    return cpu, software, replace(cpu, spec="vulkan:1", name="a GPU", type="discrete")


def test_stages_stand_in_the_document_and_the_claim_is_derived_of_all(tmp_path: Any) -> None:
    cpu, software, gpu = infos()
    with Pipeline([lambda x: x, lambda x: x + 1, lambda x: x]) as pipeline:
        assert list(pipeline.run(range(3))) == [1, 2, 3]
        report = pipeline.report()

    def metrics(second: DeviceInfo, dispatches: int) -> Metrics:
        devices = {"stage0": cpu, "stage1": second}
        return Metrics.model_validate(document(stages=stage_records(report, devices, {"stage1": dispatches})))

    assert metrics(gpu, 6).gpu_hotloop_active
    assert not metrics(gpu, 0).gpu_hotloop_active
    assert not metrics(software, 6).gpu_hotloop_active
    path = tmp_path / "metrics.json"
    write_metrics(path, metrics(gpu, 6))
    stages = read_metrics(path).stages
    assert stages is not None
    assert [(stage.id, stage.backend_used, stage.device_type, stage.dispatches) for stage in stages] == [
        ("stage0", "cpu", "reference", 0),
        ("stage1", "vulkan:1", "discrete", 6),
        ("stage2", "none", "none", 0),
    ]
    assert all((stage.items_in, stage.items_out, stage.restarts) == (3, 3, 0) for stage in stages)
    path.write_text(path.read_text().replace('"gpu_hotloop_active": true', '"gpu_hotloop_active": false'))
    with pytest.raises(FileError, match="gpu_hotloop_active contradicts"):
        read_metrics(path)


def test_documents_without_stages_are_as_they_were() -> None:
    metrics = Metrics.model_validate(document())
    assert metrics.stages is None
    assert not metrics.gpu_hotloop_active
    whole = {"op_backend_used": "vulkan:0", "op_device_type": "discrete", "hotloop_dispatches": 1}
    assert Metrics.model_validate(document(**whole)).gpu_hotloop_active
