"""The metrics of a run: a document made from what was executed."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import MappingProxyType
from typing import Any

from dashi.core.metrics._placement import Placement
from dashi.core.observations.verdict import Verdict
from dashi.core.rollouts.run import Run
from dashi.core.traces.trace import Trace
from dashi.io.metrics import VERSION, HashRecord, Metrics, PerfFlag, StageSeconds, VerdictRecord
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device


class Stages:
    """The clock of a run: seconds by stage, and of everything since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._seconds: dict[str, float] = {}
        self.trace: Trace | None = None
        """Where stages are noted too, if anywhere."""

    @contextmanager
    def time(self, stage: str) -> Generator[None]:
        """Adds what happens within to a stage of `StageSeconds`."""
        began = time.perf_counter()
        try:
            with self.trace.stage(stage) if self.trace else nullcontext():
                yield
        finally:
            self._seconds[stage] = self._seconds.get(stage, 0.0) + time.perf_counter() - began

    def seconds(self) -> StageSeconds:
        return StageSeconds(**self._seconds, wall=time.perf_counter() - self._start)


def build_metrics(
    command: str,
    run: Run,
    place: Placement,
    stages: Stages,
    *,
    verdict: Verdict | None = None,
    flags: Sequence[PerfFlag] = (),
    certificate: str | None = None,
    parts: Mapping[str, Placement] = MappingProxyType({}),
    more: Mapping[str, Any] = MappingProxyType({}),
) -> Metrics:
    """The metrics of a run: what advanced the states and where, as the run itself says. `parts` ("fft",
    "decode") say where they ran; `more` are fields of `Metrics` that only the caller knows."""
    import dashi

    info = run.device or place.device.info
    values: dict[str, Any] = {}
    for part, at in parts.items():
        there = {"backend_requested": at.requested, "backend_used": at.device.info.spec, "device": at.device.info.name}
        values |= {f"{part}_{name}": value for name, value in there.items()}
    per_step = run.seconds_per_step
    metrics = Metrics(
        schema_version=VERSION,
        dashi_version=dashi.__version__,
        command=command,
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        op_backend_requested=place.requested,
        op_backend_used=info.spec,
        op_device=info.name,
        op_device_type=info.type,
        hotloop_dispatches=run.dispatches,
        device_name=info.name,
        driver_name=info.driver,
        driver_version=info.driver_info or info.driver_version,
        float_rules=info.float_rules or None,
        kernel_fingerprints=dict(run.kernels),
        dtype="float64" if run.operator.dtype.itemsize == 8 else "float32",
        steps=run.steps,
        steps_per_s=1.0 / per_step if per_step else 0.0,
        ns_per_step=per_step * 1e9,
        stage_seconds=stages.seconds(),
        hashes=[HashRecord(step=h.step, hash=h.digest) for h in run.hashes],
        nonfinite_count=run.observations[-1].nonfinite if run.observations else 0,
        peak_host_memory_bytes=peak_host_memory(),
        peak_device_memory_bytes=peak_device_memory(place.device),
        perf_flags=[*place.flags, *flags],
        stopped=run.stopped,
        portable=run.operator.portable,
        way=run.strategy,
        way_reason=run.reason,
        reruns=run.reruns,
        states=run.state.shape[0],
        state_shape=list(run.operator.shape),
        operator=run.operator.kind,
        final_norm=run.observations[-1].norm if run.observations else None,
        verdict=VerdictRecord(**verdict.as_json()) if verdict else None,
        certificate_digest=certificate,
    )
    return metrics.model_copy(update={**values, **more})


def peak_host_memory() -> int:
    """The largest resident set of this process so far, in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # elsewhere it is told in KiB


def peak_device_memory(device: Device) -> int:
    """The most that was reserved on the device so far, in bytes; 0 for devices that have no memory of their own."""
    return device.peak_memory if isinstance(device, VulkanDevice) else 0
