"""Stages of a chain as they stand in a metrics document."""

from __future__ import annotations

from collections.abc import Mapping

from dashi.io.metrics import StageRecord
from dashi.runtime.info import DeviceInfo
from dashi.stream._report import ChainReport, StageReport


def stage_records(
    report: ChainReport, devices: Mapping[str, DeviceInfo], dispatches: Mapping[str, int]
) -> list[StageRecord]:
    """A record of each stage. `devices` says by stage id where it ran (stages that are not in it call Python on the
    host), `dispatches` how many were executed there."""
    return [_record(stage, devices.get(stage.id), dispatches.get(stage.id, 0)) for stage in report.stages]


def _record(stage: StageReport, device: DeviceInfo | None, dispatches: int) -> StageRecord:
    return StageRecord(
        id=stage.id,
        backend_used="none" if device is None else device.spec,
        device="none" if device is None else device.name,
        device_type="none" if device is None else device.type,
        dispatches=dispatches,
        items_in=stage.items_in,
        items_out=stage.items_out,
        compute_seconds=stage.compute_seconds,
        transfer_seconds=stage.transfer_seconds,
        starved_seconds=stage.starved_seconds,
        blocked_seconds=stage.blocked_seconds,
        restarts=stage.restarts,
    )
