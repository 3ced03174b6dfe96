"""A Vulkan device behind the shared interface: any driver, hardware or software."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from dashi.errors import InputError, LimitError
from dashi.kernels._build import Binary, Loader
from dashi.kernels.abi import Call, Dispatch, Groups, Kernel, Limits, Plan, Shader, features, pack
from dashi.runtime._buffer import Buffer, Graveyard
from dashi.runtime._commands import VulkanProgram, sort_waits
from dashi.runtime._gate import inside, watch_forks
from dashi.runtime._instance import Instance
from dashi.runtime._memory import Allocator, MemoryStats
from dashi.runtime._pipeline import DescriptorSets, Pipelines, PoolSet
from dashi.runtime._probes import SAFE_TRIPS, loop_limit
from dashi.runtime._residence import known_groups, resident_groups
from dashi.runtime._staging import Staging
from dashi.runtime._sync import Queue, QueueTicket
from dashi.runtime._vk import skip_exit_handlers
from dashi.runtime._vk_device import create_device
from dashi.runtime._vk_record import RawCommands, RawDispatch, RawSubmission, raw_dispatch
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Recording, ScratchPool, Step, Waitable
from dashi.runtime.info import DeviceInfo
from dashi.types import DTYPES, HostArray

_HARDWARE_WORK: Final = 1 << 33
_SOFTWARE_WORK: Final = 1 << 27
"""Loop trips of all invocations that run in roughly 100 ms: larger dispatches are split."""


@dataclass(frozen=True, eq=False)
class Lowered:
    """A step's dispatches, their amount of work, and the buffers that must live as long as they do."""

    dispatches: tuple[RawDispatch, ...]
    work: int
    buffers: tuple[Buffer, ...]


class VulkanDevice(Device):
    """One logical device: compute queues, and a transfer queue where the hardware has one of its own. Thread-safe."""

    def __init__(self, instance: Instance, physical: int, info: DeviceInfo, timeout: float, queues: int = 1) -> None:
        super().__init__(info)
        self.instance = instance
        families = _families(info, queues)
        self.raw = raw = create_device(instance.fns, physical, info.extensions, families, debug=instance.debug)
        # What was made last goes first; what cannot be made takes with it what was made before.
        with contextlib.ExitStack() as stack:
            stack.callback(lambda: raw.close())
            self.queues = tuple(Queue(self.raw, f, i, timeout) for f, count in families.items() for i in range(count))
            for queue in self.queues:
                stack.callback(queue.close)
            self.queue, self.transfer = self.queues[0], self.queues[-1]
            self.graveyard = Graveyard(self.queues)
            self.allocator = Allocator(self.raw, info)
            stack.callback(self.allocator.close)
            self.pipelines = Pipelines(self.raw, info)
            stack.callback(self.pipelines.close)
            self.sets = DescriptorSets(self.raw)
            stack.callback(self.sets.close)
            stack.callback(self.graveyard.close)
            self._closers = stack.pop_all()
        watch_forks(self)
        self.work_per_dispatch = _HARDWARE_WORK if info.is_hardware else _SOFTWARE_WORK
        self._staging = Staging(self.raw, self.allocator, self.graveyard, self.queues)
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
        skip_exit_handlers()

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

    def _allocate(self, nbytes: int) -> Buffer:
        self.graveyard.drain()
        return Buffer(self.raw, self.allocator, self.graveyard, nbytes, "device")

    def landing(self, nbytes: int) -> Buffer:
        """Memory that the host reads while the device works on."""
        return Buffer(self.raw, self.allocator, self.graveyard, nbytes, "readback")

    def _part(self, storage: Any, offset: int, nbytes: int) -> Buffer:
        return storage.part(offset, nbytes)

    def shared(self, first: Any, other: Any) -> bool:
        return (
            first.key == other.key
            and first.offset < other.offset + other.nbytes
            and other.offset < first.offset + first.nbytes
        )

    def ends_memory(self, storage: Any) -> bool:
        return storage.whole is None or storage.offset + storage.nbytes == storage.whole.nbytes

    @inside
    def wait(self) -> None:
        for queue in self.queues:
            queue.wait(queue.submitted)

    @inside
    def at_work(self) -> bool:
        return any(queue.reached() < queue.submitted for queue in self.queues)

    @inside
    def write(self, array: Array, values: HostArray) -> None:
        self._staging.write(array.storage, values)

    @inside
    def read(self, array: Array) -> HostArray:
        return self._staging.read(array.storage)

    def _program(self, steps: Sequence[Step], label: str, options: Recording) -> Program:
        compute = [q for q in self.queues if self.info.queues[q.family].compute]
        queue = options.queue
        if not 0 <= queue < len(compute):
            raise InputError(
                f"there is no compute queue {queue}; this device was opened with {len(compute)}.",
                f"open it with more: dashi.open({self.info.spec!r}, queues={queue + 1}).",
            )
        return VulkanProgram(self, steps, label, options, compute[queue])

    def _copy(self, source: Array, target: Array, after: Iterable[Waitable]) -> Waitable:
        commands = RawCommands(self.raw, self.transfer.family)
        ticket = QueueTicket(self, self.transfer)
        try:
            commands.begin()
            commands.copy(source.storage.range[:2], target.storage.range[:2], source.nbytes)
            commands.results_to_host()
            commands.end()
            waits = sort_waits(self, self.transfer, after)
            submission = RawSubmission(
                self.raw, [commands.handle], self.transfer.timeline, [w.queue.timeline for w in waits]
            )
            ticket.value = self.transfer.submit(submission, tuple(w.value for w in waits))
        finally:
            # The ticket remembers the buffers: they must outlive the copy, whoever closes the arrays.
            self.graveyard.watch(ticket, partial(_end_copy, commands, (source.storage, target.storage)))
        return ticket

    def lower(
        self, kernel: Kernel, call: Call, plan: Plan, arrays: Mapping[str, Array], scratch: ScratchPool
    ) -> Lowered:
        named = dict(arrays)
        for name, (kind, count) in plan.scratch.items():
            element = call.dtype if kind == "T" else DTYPES[kind]
            key = (name, element.name, count)
            if key not in scratch:
                scratch[key] = self.empty(count, element)
            named[name] = scratch[key]
        dispatched = [self._dispatch(kernel, call, dispatch, named) for dispatch in plan.dispatches]
        buffers = tuple(array.storage for array in named.values())
        lowered = Lowered(tuple(raw for raw, _, _ in dispatched), sum(work for _, work, _ in dispatched), buffers)
        sets = [(held, len(d.buffers)) for (_, _, held), d in zip(dispatched, plan.dispatches, strict=True)]
        self.graveyard.watch(lowered, partial(_free_sets, self.sets, sets))
        return lowered

    def _dispatch(
        self, kernel: Kernel, call: Call, dispatch: Dispatch, arrays: Mapping[str, Array]
    ) -> tuple[RawDispatch, int, PoolSet]:
        shader = kernel.shaders[dispatch.shader]
        spec = tuple(dispatch.spec.get(s.name, s.default) for s in shader.spec)
        invocations = self._invocations(kernel, shader, spec)
        binary = self._binary(kernel, dispatch.shader, call.dtype.name)
        push = pack(shader.push, dispatch.push, call.dtype)
        quads = "subgroup_quad" in features(kernel, shader, call.dtype.name)
        pipeline = self.pipelines.get(kernel.name, binary, len(shader.buffers), len(push), spec, full_subgroups=quads)
        buffers: list[Buffer] = [arrays[name].storage for name in dispatch.buffers]
        held = self.sets.make(pipeline, [b.range for b in buffers])
        access = list(zip(shader.buffers, buffers, strict=True))
        work = math.prod(dispatch.groups) * invocations * dispatch.trips
        raw = raw_dispatch(
            pipeline,
            held.handle,
            push,
            dispatch.groups,
            frozenset(b.key for binding, b in access if binding.access != "write"),
            frozenset(b.key for binding, b in access if binding.access != "read"),
            split(dispatch.groups, work, self.work_per_dispatch),
        )
        return raw, work, held

    def _invocations(self, kernel: Kernel, shader: Shader, spec: tuple[int, ...]) -> int:
        values = {s.name: v for s, v in zip(shader.spec, spec, strict=True)}
        total = math.prod(values[n] if isinstance(n, str) else n for n in shader.local)
        if total > self.limits.invocations:
            raise LimitError(
                f"kernel {kernel.name!r} has workgroups of {total} invocations; {self.info.name!r} allows "
                f"{self.limits.invocations}.",
                "choose another device, for instance cpu.",
            )
        return total

    def _binary(self, kernel: Kernel, shader: str, variant: str) -> Binary:
        key = (kernel.binaries.key if kernel.binaries else kernel.folder, shader, variant)
        with self._lock:
            if key not in self._binaries:
                self._binaries[key] = self._loader.load(kernel, shader, variant)
            return self._binaries[key]

    def _close(self) -> None:
        # A lost device cannot be waited for, but its objects must still be destroyed.
        with contextlib.suppress(Exception):
            self.raw.wait_idle()
        try:
            self._closers.close()
        finally:
            self.instance.close()


def _families(info: DeviceInfo, queues: int) -> dict[int, int]:
    """Queue families to open and how many of each: compute queues first, then one for transfer, if it is apart."""
    compute = next(i for i, q in enumerate(info.queues) if q.compute)
    if not 1 <= queues <= info.queues[compute].count:
        raise LimitError(
            f"{info.name!r} has {info.queues[compute].count} compute queues, {queues} asked for.",
            f"ask for 1 to {info.queues[compute].count}.",
        )
    apart = [i for i, q in enumerate(info.queues) if q.transfer and not q.compute and not q.graphics]
    return {compute: queues, **dict.fromkeys(apart[:1], 1)}


def _end_copy(commands: RawCommands, _buffers: tuple[Buffer, Buffer]) -> None:
    commands.close()


def _free_sets(pool: DescriptorSets, sets: Sequence[tuple[PoolSet, int]]) -> None:
    for held, buffers in sets:
        pool.free(held, buffers)


def split(groups: Groups, work: int, budget: int) -> tuple[tuple[Groups, Groups], ...]:
    """Cuts a dispatch along its longest axis into (base, count) pieces of at most `budget` work; none if it fits."""
    pieces = min(-(-work // budget), max(groups))
    if pieces <= 1:
        return ()
    axis = groups.index(max(groups))
    size = -(-groups[axis] // pieces)
    cut: list[tuple[Groups, Groups]] = []
    for start in range(0, groups[axis], size):
        base, count = [0, 0, 0], list(groups)
        base[axis], count[axis] = start, min(size, groups[axis] - start)
        cut.append(((base[0], base[1], base[2]), (count[0], count[1], count[2])))
    return tuple(cut)
