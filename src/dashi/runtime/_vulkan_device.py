"""A Vulkan device behind the shared interface: any driver, hardware or software."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from dashi.kernels._build import Binary, Loader
from dashi.kernels.abi import Call, Kernel, Limits, Plan
from dashi.kernels.spirv._float_controls import declare_float_controls
from dashi.runtime._asynchronous import After
from dashi.runtime._buffer import Buffer, Graveyard
from dashi.runtime._clock import Clock
from dashi.runtime._commands import VulkanProgram
from dashi.runtime._events import Event
from dashi.runtime._exports import Exports
from dashi.runtime._gate import inside, watch_forks
from dashi.runtime._hazards import Range
from dashi.runtime._host_runs import HostRuns
from dashi.runtime._instance import Instance
from dashi.runtime._kernel_copies import kernel_copies_faster, kernel_copy
from dashi.runtime._lowering import Preparation, Prepared, origin_of, pipeline_source
from dashi.runtime._memory import Allocator, MemoryStats
from dashi.runtime._outside_memory import borrowed_array
from dashi.runtime._pipeline import DescriptorSets, Pipelines, PipelineSource, PoolSet
from dashi.runtime._probes import SAFE_TRIPS, loop_limit
from dashi.runtime._queue_tickets import QueueTicket
from dashi.runtime._queues import QueuePlan, Queues
from dashi.runtime._relay import Relay
from dashi.runtime._residence import known_groups, resident_groups
from dashi.runtime._stages import QueueStages
from dashi.runtime._staging import Staging
from dashi.runtime._sync import Horizons, Queue
from dashi.runtime._transfers import copy_command, fill_command
from dashi.runtime._vk import skip_exit_handlers
from dashi.runtime._vk_clock import bracketed, calibrated, can_calibrate
from dashi.runtime._vk_device import create_device
from dashi.runtime._vk_external import export_timeline, external_facts, import_timeline
from dashi.runtime._vk_record import RawCommands, RawDispatch, RawSubmission, raw_dispatch
from dashi.runtime._waits import Timelines, VulkanEvent, waits_of
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device, Program, Recording, Step, Waitable
from dashi.runtime.info import DeviceInfo, Role
from dashi.runtime.landing import Download
from dashi.types import HostArray

_HARDWARE_WORK: Final = 1 << 33
_SOFTWARE_WORK: Final = 1 << 27
"""Loop trips of all invocations that run in roughly 100 ms: larger dispatches are split."""
_DISPATCHES_PER_SUBMISSION: Final = 32
"""A submission holds at most this many times the work of the largest dispatch: drivers kill long ones."""


@dataclass(frozen=True, eq=False)
class Lowered:
    """A step's dispatches, their amount of work, the buffers that must live as long as they do, by the operands that
    they are bound to, and what the dispatches were made from."""

    dispatches: tuple[RawDispatch, ...]
    work: int
    storage: Mapping[str, Buffer]
    prepared: tuple[Prepared, ...] = ()


class VulkanDevice(Device):
    """One logical device: compute queues, and a transfer queue where the hardware has one of its own. Thread-safe."""

    def __init__(self, instance: Instance, physical: int, info: DeviceInfo, timeout: float, queues: int = 1) -> None:
        super().__init__(info)
        self.instance = instance
        self.timeout = timeout
        plan = QueuePlan(info, queues)
        self.raw = raw = create_device(instance.fns, physical, info.extensions, plan.families, debug=instance.debug)
        self.external = external_facts(instance.fns, physical, info.extensions)
        self._calibrates = can_calibrate(instance.fns, physical, info.extensions)
        self._imported: weakref.WeakKeyDictionary[Queue, int] = weakref.WeakKeyDictionary()
        # What was made last goes first; what cannot be made takes with it what was made before.
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: raw.close())
            self.timelines = Timelines(raw)
            stack.callback(self.timelines.close)
            self.relay = Relay(raw)
            stack.callback(self.relay.stop)
            exports, horizons = self.external.timelines, Horizons()
            self.by_role = Queues(raw, plan, timeout, self.relay, self.awaited, horizons, export=exports)
            stack.callback(self.by_role.close)
            self.queues = self.by_role.all
            self.queue, self.transfer = self.by_role.compute[0], self.by_role.upload
            self.together = self.queue.together
            self.graveyard = Graveyard(self.queues)
            self.allocator = Allocator(self.raw, info)
            stack.callback(self.allocator.close)
            self.pipelines = Pipelines(self.raw, info)
            stack.callback(self.pipelines.close)
            self.sets = DescriptorSets(self.raw)
            stack.callback(self.sets.close)
            stack.callback(self.graveyard.close)
            self._closers = stack.pop_all()
        self.exports = Exports()
        self.host_runs = HostRuns(self.gate, horizons, self)
        watch_forks(self)
        self.work_per_dispatch = _HARDWARE_WORK if info.is_hardware else _SOFTWARE_WORK
        self._staging = self._new_staging()
        self._staging_inside: dict[int, Staging] = {}
        self.preparation = Preparation(self)
        self._uploads = QueueStages(self, self.by_role.upload, "upload")
        self._downloads = QueueStages(self, self.by_role.download, "readback")
        self._loader = Loader()
        self._binaries: dict[tuple[Any, ...], Binary] = {}
        self._lock = threading.RLock()
        self._resident = known_groups(info)
        # The trial of loops itself runs within what every driver does.
        self._limits = replace(super().limits, loop_trips=SAFE_TRIPS)
        try:
            self._limits = replace(self._limits, loop_trips=loop_limit(self))
        except BaseException:
            self._closers.close()
            raise

    def after_fork(self) -> None:
        """A child process cannot use the handles: the driver's threads are gone there."""
        self.gate.leave_behind(hardware=self.info.is_hardware)
        self.failures.after_fork()
        self.host_runs.after_fork()
        skip_exit_handlers()

    @property
    def work_per_submission(self) -> int:
        """The work of one submission at most."""
        return self.work_per_dispatch * _DISPATCHES_PER_SUBMISSION

    @property
    def limits(self) -> Limits:
        """The driver's limits, and the longest loop that runs right, which is known since the device was opened."""
        return self._limits

    def probe(self) -> frozenset[str]:
        with self._lock:
            if self._resident is None:
                self._resident = resident_groups(self.info)
        return self.features

    @property
    def resident(self) -> int:
        """Workgroups that run at the same time; 0 where that is not so, or not known before `probe`."""
        return self._resident or 0

    def assume_resident(self, groups: int) -> None:
        """Takes a number of workgroups for granted: the trial's own privilege."""
        self._resident = groups

    @property
    def features(self) -> frozenset[str]:
        return self.info.features | ({"rendezvous"} if self.resident else frozenset[str]())

    def limits_for(self, kernel: Kernel) -> Limits:
        if not any("rendezvous" in shader.features for shader in kernel.shaders.values()):
            return self.limits
        self.probe()
        return replace(self.limits, resident=self.resident)

    @inside
    def memory(self) -> MemoryStats:
        """How much device memory is reserved and used."""
        self.graveyard.drain()
        return self.allocator.stats()

    @property
    def peak_memory(self) -> int:
        """The most bytes of device memory that were reserved so far."""
        return self.allocator.stats().peak

    def _allocate(self, nbytes: int) -> Buffer:
        self.graveyard.drain()
        return Buffer(self.raw, self.allocator, self.graveyard, nbytes, "device")

    def upload_memory(self, nbytes: int) -> Buffer:
        """Memory that the host writes and the device reads."""
        return Buffer(self.raw, self.allocator, self.graveyard, nbytes, "upload")

    def feed_memory(self, nbytes: int) -> Buffer:
        """Memory of the device that the host writes."""
        return Buffer(self.raw, self.allocator, self.graveyard, nbytes, "feed")

    def landing_memory(self, nbytes: int) -> Buffer:
        """Memory that the host reads while the device works on."""
        return Buffer(self.raw, self.allocator, self.graveyard, nbytes, "readback")

    def _part(self, storage: Any, offset: int, nbytes: int) -> Buffer:
        return storage.part(offset, nbytes)

    def shared(self, first: Any, other: Any) -> bool:
        (key, start, end), (other_key, other_start, other_end) = first.bytes, other.bytes
        return key == other_key and start < other_end and other_start < end

    def byte_range(self, storage: Any) -> Range:
        return storage.bytes

    def ends_memory(self, storage: Any) -> bool:
        return storage.whole is None or storage.offset + storage.nbytes == storage.whole.nbytes

    @inside
    def wait(self) -> None:
        for queue in self.queues:
            queue.wait(queue.horizon)
        if self.failures.listed:
            self.failures.raise_next()

    @inside
    def at_work(self) -> bool:
        return any(queue.reached() < queue.horizon for queue in self.queues)

    @inside
    def write(self, array: Array, values: HostArray) -> None:
        self._staging_here().write(array.storage, values)
        if self.failures.listed:
            self.failures.raise_next()

    @inside
    def read(self, array: Array) -> HostArray:
        values = self._staging_here().read(array.storage)
        if self.failures.listed:
            self.failures.raise_next()
        return values

    def _new_staging(self) -> Staging:
        return Staging(self.raw, self.allocator, self.graveyard, self.queues)

    def _staging_here(self) -> Staging:
        """The staging buffers for the calling thread. Host steps have their own: whoever uses those of all others may
        be waiting for the step."""
        thread = threading.get_ident()
        if thread not in self.host_runs.horizons:
            return self._staging
        with self._lock:
            return self._staging_inside.setdefault(thread, self._new_staging())

    @inside
    def host_memory(self, array: Array, *, quick: bool = False) -> HostArray | None:
        buffer: Buffer = array.storage
        memory = self.info.memory_types[buffer.allocation.block.kind]
        if buffer.allocation.view is None or not memory.host_coherent or (quick and not memory.host_cached):
            return None
        self.wait()
        if not array.size:
            return np.empty(array.shape, array.dtype.numpy)
        return self.exports.show(buffer, array.shape, array.dtype, writeable=True)

    def _borrow(self, host: HostArray) -> Array:
        return borrowed_array(self, host)

    def _program(self, steps: Sequence[AnyStep], label: str, options: Recording) -> Program:
        return VulkanProgram(self, steps, label, options, self.by_role.for_kernels(options.queue, self.info.spec))

    @inside
    def clock(self) -> Clock:
        """How this device's timestamps relate to the host's clock, read now."""
        if self._calibrates:
            return calibrated(self.raw, self.info.timestamp_ns)
        return bracketed(self.raw, self.queue, self.info.timestamp_ns)

    @inside
    def export_timeline(self, queue: Queue) -> int:
        """A file descriptor of the queue's timeline, for another logical device of the same GPU."""
        return export_timeline(self.raw, queue.timeline)

    def imported(self, source: VulkanDevice, queue: Queue) -> int:
        """The timeline of another device's queue, as one of this device. Both say that they can (`external`)."""
        with self._lock:
            timeline = self._imported.get(queue)
            if timeline is None:
                timeline = self._imported[queue] = import_timeline(self.raw, source.export_timeline(queue))
                self.timelines.adopt(timeline)
            return timeline

    def _event(self, label: str) -> Event:
        return VulkanEvent(self, label)

    def _copy(self, source: Array, target: Array, after: Iterable[Waitable], queue: Role) -> Waitable:
        transfer = self.by_role.download if queue == "download" else self.transfer
        commands = RawCommands(self.raw, transfer.family)
        ticket = QueueTicket(self, transfer)
        try:
            commands.begin()
            commands.copy(source.storage.range[:2], target.storage.range[:2], source.nbytes)
            commands.results_to_host()
            commands.end()
            waits = waits_of(self, transfer, after, ticket)
            submission = RawSubmission(self.raw, [commands.handle], transfer.timeline)
            ticket.value = transfer.submit(submission, waits)
        finally:
            # The ticket remembers the buffers: they must outlive the copy, whoever closes the arrays.
            self.graveyard.watch(ticket, partial(_end_copy, commands, (source.storage, target.storage)))
        return ticket

    def _upload(self, array: Array, values: HostArray, after: After) -> Waitable:
        return self._uploads.upload(array, values, after)

    def _download(self, array: Array, after: After) -> Download:
        return self._downloads.download(array, after)

    def lower(self, kernel: Kernel, call: Call, plan: Plan, arrays: Mapping[str, Array]) -> Lowered:
        storage: dict[str, Buffer] = {name: array.storage for name, array in arrays.items()}
        return self.lower_prepared(self.preparation.dispatches(kernel, call, plan), storage)

    def lower_prepared(self, prepared: tuple[Prepared, ...], storage: Mapping[str, Buffer]) -> Lowered:
        """Dispatches that were made ready, on buffers by the names of operands."""
        dispatches: list[RawDispatch] = []
        sets: list[tuple[PoolSet, int]] = []
        for ready in prepared:
            buffers = [storage[name] for name in ready.buffers]
            held = self.sets.make(ready.pipeline, [buffer.range for buffer in buffers])
            sets.append((held, len(buffers)))
            reads = tuple([buffers[i].bound_bytes for i in ready.reads])
            writes = tuple([buffers[i].bound_bytes for i in ready.writes])
            dispatches.append(raw_dispatch(ready, held.handle, reads, writes))
        work = sum([ready.work for ready in prepared])
        lowered = Lowered(tuple(dispatches), work, storage, prepared)
        self.graveyard.watch(lowered, partial(_free_sets, self.sets, sets))
        return lowered

    def lower_copy(self, source: Array, target: Array) -> Lowered:
        if kernel_copies_faster(self, source, target):
            return kernel_copy(self, source, target).lowered
        x, y = source.storage, target.storage
        return Lowered((copy_command(x, y),), source.nbytes, {"x": x, "result": y})

    def lower_fill(self, array: Array, element: HostArray) -> Lowered:
        command, pattern = fill_command(self, array.storage, element)
        held = {"result": array.storage} if pattern is None else {"result": array.storage, "pattern": pattern}
        return Lowered((command,), array.nbytes, held)

    def lower_host(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Any:
        return [array.storage for array in inputs], [array.storage for array in outputs]

    def binary(self, kernel: Kernel, shader: str, variant: str) -> Binary:
        """The SPIR-V of a shader, read once."""
        key = (origin_of(kernel), shader, variant)
        with self._lock:
            if key not in self._binaries:
                binary = self._loader.load(kernel, shader, variant)
                self._binaries[key] = self._with_float_controls(binary) if kernel.portable else binary
            return self._binaries[key]

    def pipeline_sources(self, steps: Sequence[AnyStep]) -> tuple[PipelineSource, ...]:
        sources: dict[tuple[str, tuple[int, ...]], PipelineSource] = {}
        for step in steps:
            if isinstance(step, Step):
                for dispatch in step.kernel.plan(step.call).dispatches:
                    source = pipeline_source(self, step.kernel, step.call, dispatch)
                    sources[source.key] = source
        return tuple(sources.values())

    @inside
    def prepare_pipelines(self, sources: Sequence[PipelineSource]) -> None:
        with self._lock:
            for source in sources:
                self._binaries.setdefault((source.origin, source.shader, source.variant), source.binary)
        self.pipelines.prepare(sources)

    def _with_float_controls(self, binary: Binary) -> Binary:
        """The binary as the driver sees it; its digest keeps pipelines with and without declarations apart."""
        words = declare_float_controls(binary.words, self.info.float_controls)
        return binary if words is binary.words else Binary(words, hashlib.sha256(words).hexdigest())

    def _close(self) -> None:
        # A lost device cannot be waited for, but its objects must still be destroyed. What is held back is submitted
        # by the relay's thread, which must have ended before anything that it waits for goes.
        for queue in self.queues:
            with contextlib.suppress(Exception):
                queue.let_go()
                queue.wait(queue.submitted)
        self.host_runs.stop()
        self.relay.stop()
        with contextlib.suppress(Exception):
            self.raw.wait_idle()
        everything = contextlib.ExitStack()  # the instance last, whatever fails before
        everything.callback(self.instance.close)
        everything.callback(self._closers.close)
        self.exports.when_none_is_left(everything.close)


def _end_copy(commands: RawCommands, _buffers: tuple[Buffer, Buffer]) -> None:
    commands.close()


def _free_sets(pool: DescriptorSets, sets: Sequence[tuple[PoolSet, int]]) -> None:
    for held, buffers in sets:
        pool.free(held, buffers)
