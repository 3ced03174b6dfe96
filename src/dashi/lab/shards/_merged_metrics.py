"""The metrics of a run that was made of shards: what they counted, added up; the seconds are those of all of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from dashi.io.metrics import HashRecord, Metrics, PerfFlag, StageSeconds


def merged_metrics(parts: Sequence[Metrics], hashes: Sequence[HashRecord], certificate: str | None) -> Metrics:
    """One document of those of all shards, in their order. Where it ran is told of the first; that others ran on
    another device is told by a flag."""
    first = parts[0]
    per_step = sum(part.ns_per_step for part in parts)
    flags = {(flag.name, flag.requested): flag for part in parts for flag in part.perf_flags}
    for part in parts:
        if part.op_device != first.op_device:
            used = ", ".join(dict.fromkeys(one.op_device for one in parts))
            flag = PerfFlag(name="shards", requested=first.op_device, used=used, reason="shards ran on several devices")
            flags[flag.name, flag.requested] = flag
    more: dict[str, Any] = {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hotloop_dispatches": sum(part.hotloop_dispatches for part in parts),
        "kernel_fingerprints": {name: digest for part in parts for name, digest in part.kernel_fingerprints.items()},
        "steps_per_s": 1e9 / per_step if per_step else 0.0,
        "ns_per_step": per_step,
        "stage_seconds": _added([part.stage_seconds for part in parts]),
        "hashes": list(hashes),
        "peak_host_memory_bytes": max(part.peak_host_memory_bytes for part in parts),
        "peak_device_memory_bytes": max(part.peak_device_memory_bytes for part in parts),
        "perf_flags": list(flags.values()),
        "reruns": sum(part.reruns or 0 for part in parts),
        "states": sum(part.states or 0 for part in parts),
        "certificate_digest": certificate,
    }
    return Metrics.model_validate(first.model_copy(update=more).model_dump(exclude={"gpu_hotloop_active"}))


def _added(seconds: Sequence[StageSeconds]) -> StageSeconds:
    names = [*StageSeconds.model_fields]
    ran = {name: [getattr(one, name) for one in seconds if getattr(one, name) is not None] for name in names}
    return StageSeconds(**{name: sum(values) for name, values in ran.items() if values})
