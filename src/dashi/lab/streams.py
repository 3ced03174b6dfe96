"""`run_stream`: items through a chain of stages over devices, with a run folder: metrics of every stage, hashes of all
items, snapshots, a trace of all queues."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dashi import stream
from dashi.core.metrics._document import peak_device_memory, peak_host_memory
from dashi.core.rollouts._fingerprint import fingerprints
from dashi.core.traces.queue import watch
from dashi.core.traces.trace import Trace, write_trace
from dashi.errors import DashiError, InputError, Interrupted
from dashi.io import _run_folder as run_folder
from dashi.io._files import require_writable, write_text
from dashi.io._run_names import METRICS, SNAPSHOTS, STREAM
from dashi.io.metrics import VERSION, HashRecord, Metrics, PerfFlag, StageRecord, write_metrics
from dashi.kernels.abi import Call, Kernel
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Job, Request, as_path, require_gpu_used
from dashi.lab.events import SILENT, Events
from dashi.runtime.device import Device
from dashi.runtime.info import DeviceInfo
from dashi.stream import KernelOp, StreamPlan, StreamRun

COMMAND: Final = "stream run"
_FILES: Final = (METRICS, STREAM, SNAPSHOTS)


@dataclass(frozen=True, kw_only=True)
class StreamRequest(Request):
    """Items through the chain of a plan. `dashi.stream.run` says what the fields mean; where devices are to be is in
    the plan."""

    plan: StreamPlan
    items: int | None = None
    """Left away: what the source says."""
    serial: str | None = None
    restarts: int = 0
    elsewhere: str = ""
    adapt: bool = False
    snapshots: Mapping[str, int] = field(default_factory=lambda: MappingProxyType[str, int]({}))
    """By stage, how often; they lie in the run folder."""


@dataclass(frozen=True, eq=False)
class FinishedStream:
    """What a chain did: the run, and its metrics and folder."""

    request: StreamRequest
    run: StreamRun
    metrics: Metrics
    folder: Path | None = None

    def __repr__(self) -> str:
        order = "in order" if self.run.in_order else "OUT OF ORDER"
        return f"<FinishedStream: {self.run.items} items through {len(self.run.stages)} stages, {order}>"


class _Devices:
    """What is known of the devices that a chain opened, by what opens them; their queues are traced."""

    def __init__(self, trace: Trace | None) -> None:
        self.infos: dict[str, DeviceInfo] = {}
        self.memory = 0
        self._trace = trace

    @contextmanager
    def opened(self, name: str, device: Device) -> Generator[None]:
        """Watches a device while it is open."""
        self.infos[device.info.spec] = device.info
        with nullcontext() if self._trace is None else watch(device, self._trace, name):
            try:
                yield
            finally:
                self.memory = max(self.memory, peak_device_memory(device))


def run_stream(
    request: StreamRequest, *, out: AnyPath | None = None, overwrite: bool = False, events: Events = SILENT
) -> FinishedStream:
    """Sends the items, and leaves a run folder in `out`: metrics.json with a record of every stage, stream.json with
    the hashes of all items and what happened, snapshots. A run that Ctrl-C or an error ends leaves what it came to;
    Interrupted has it in `partial`, errors in `result`."""
    require_request(request, StreamRequest)
    job = Job(command=COMMAND, request=request, out=as_path(out), overwrite=overwrite, events=events)
    job.require_place()
    if request.snapshots and job.out is None:
        raise InputError("snapshots are kept in a run folder.", "name one with `out=`.")
    trace = None if request.trace is None else Trace()
    if request.trace is not None:
        require_writable(Path(request.trace))
    job.stages.trace = trace
    devices, plan = _Devices(trace), request.plan
    count = plan.config.source.items if request.items is None else request.items
    ended: BaseException | None = None
    with job.open_folder(_settings(request, count), files=_FILES) as folder:
        try:
            with job.timed("rollout", "sending", count, "items") as advance:
                done = stream.run(
                    plan, count, serial=request.serial, advance=advance, remark=events.remark,
                    restarts=request.restarts, elsewhere=request.elsewhere, adapt=request.adapt,
                    snapshots=request.snapshots, folder=None if folder is None else folder / SNAPSHOTS,
                    opened=devices.opened,
                )  # fmt: skip
        except Interrupted as stop:
            done, ended = _partial(stop.partial, stop), stop
        except DashiError as error:
            done, ended = _partial(error.result, error), error
        finally:
            if trace is not None and request.trace is not None:
                write_trace(Path(request.trace), trace.spans)
        metrics = _metrics(request, done, devices, job, stopped=ended is not None)
        place = None
        if folder is not None:
            write_text(folder / STREAM, json.dumps(done.as_json(), indent=1) + "\n")
            write_metrics(folder / METRICS, metrics)
            place = run_folder.close_run(folder, {METRICS}, finished=ended is None)
    finished = FinishedStream(request, done, metrics, place)
    if isinstance(ended, Interrupted):
        raise Interrupted(finished) from ended
    if isinstance(ended, DashiError):
        ended.result = finished
        raise ended
    require_gpu_used(request, metrics)
    return finished


def _partial(run: Any, error: BaseException) -> StreamRun:
    """The run as far as it came; raises the error where nothing was begun."""
    if isinstance(run, StreamRun):
        return run
    raise error


def _settings(request: StreamRequest, count: int) -> dict[str, object]:
    """What decides the results."""
    plan = request.plan
    stages = " ".join(f"{p.stage.id}({','.join(op.spec.id for op in p.ops)})" for p in plan.stages)
    codecs = " ".join(p.link.codec for p in plan.links)
    snapshots = " ".join(f"{name}={every}" for name, every in sorted(request.snapshots.items()))
    return {
        "items": count, "seed": plan.config.source.seed, "stages": stages, "codecs": codecs, "snapshots": snapshots,
        "serial": request.serial or "",
    }  # fmt: skip


def _metrics(request: StreamRequest, run: StreamRun, devices: _Devices, job: Job, *, stopped: bool) -> Metrics:
    import dashi

    records = [_record(run.stages, number, devices.infos) for number in range(len(run.stages))]
    last = records[-1]
    info = devices.infos.get(last.backend_used)
    plan = request.plan
    double = any(form.dtype == "f64" for form in plan.stages[-1].after.values())
    ops = [op.spec for planned in plan.stages for op in planned.ops]
    return Metrics(
        schema_version=VERSION,
        dashi_version=dashi.__version__,
        command=COMMAND,
        finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        op_backend_requested=request.serial or plan.stages[-1].device.spec,
        op_backend_used=last.backend_used,
        op_device=last.device,
        op_device_type=last.device_type,
        hotloop_dispatches=sum(record.dispatches for record in records if record.backend_used == last.backend_used),
        device_name=last.device,
        driver_name="" if info is None else info.driver,
        driver_version="" if info is None else info.driver_info or info.driver_version,
        kernel_fingerprints=fingerprints(_kernels(plan)),
        dtype="float64" if double else "float32",
        steps=run.items,
        steps_per_s=1.0 / run.period if run.period else 0.0,
        ns_per_step=(run.period or 0.0) * 1e9,
        stage_seconds=job.stages.seconds(),
        hashes=[HashRecord(step=step, hash=digest) for step, digest in enumerate(run.hashes[:_HASHES])],
        nonfinite_count=0,
        peak_host_memory_bytes=peak_host_memory(),
        peak_device_memory_bytes=devices.memory,
        perf_flags=_flags(run),
        stopped=stopped,
        portable=all(op.portable for op in ops) and not run.lossy,
        stages=records,
    )


def _kernels(plan: StreamPlan) -> Generator[tuple[Kernel, Call]]:
    """The kernels that stages and their observers run, with the calls of an item."""
    for planned in plan.stages:
        schema = planned.taken
        for op in (*planned.ops, *planned.observers):
            if isinstance(op, KernelOp):
                yield op.resolved(schema)
            schema = schema.with_fields(op.makes(schema))


_HASHES: Final = 4096
"""Hashes that stand in the metrics; stream.json has those of all items."""


def _record(stages: Any, number: int, infos: Mapping[str, DeviceInfo]) -> StageRecord:
    stage = stages[number]
    info, seconds = infos.get(stage["device"]), stage["seconds"]
    linked = stages[number + 1]["seconds"]["linked"] if number + 1 < len(stages) else 0.0
    return StageRecord(
        id=stage["id"],
        backend_used=stage["device"],
        device=stage["name"],
        device_type="none" if info is None else info.type,
        dispatches=stage["dispatches"],
        items_in=stage["items_in"],
        items_out=stage["items_out"],
        compute_seconds=seconds["busy"],
        transfer_seconds=linked,
        starved_seconds=seconds["starved"],
        blocked_seconds=seconds["blocked"],
        restarts=stage["restarts"],
    )


def _flags(run: StreamRun) -> list[PerfFlag]:
    """Links that HOST_STAGING stood in for, and stages that went on elsewhere."""
    links = [stage["link"] for stage in run.stages if stage["link"] is not None and stage["link"]["fallback"]]
    flags = [
        PerfFlag(name="link", requested=str(link["asked"]), used=link["mode"], reason=link["why"]) for link in links
    ]
    moved = [event for event in run.events if event.kind == "moved"]
    return [*flags, *(PerfFlag(name="stage", requested=e.place, used="elsewhere", reason=e.reason) for e in moved)]
