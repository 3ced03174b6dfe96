"""The NumPy reference device: every kernel's reference, behind the same interface."""

from __future__ import annotations

import platform
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dashi.errors import OutOfMemoryError
from dashi.kernels.abi import Call, Kernel, Limits, Plan
from dashi.runtime._asynchronous import After
from dashi.runtime._clock import HostStopwatch, RunTimes
from dashi.runtime._feeding import Feed, RunSlot, filled_slot, require_no_feed
from dashi.runtime._gate import inside, watch_forks
from dashi.runtime._hazards import Batch, Range, Touched, place_barriers
from dashi.runtime._host_queues import HostDownload, HostQueues, HostTicket
from dashi.runtime._slots import Landing, Slot
from dashi.runtime._steps import FillStep, HostStep
from dashi.runtime.array import Array
from dashi.runtime.device import LONGEST_WAIT, AnyStep, Device, Program, Recording, Step, Waitable
from dashi.runtime.info import DeviceInfo, Role
from dashi.runtime.landing import Download, require_tickets
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

EVERY_FEATURE = frozenset(
    """
    fp16 fp64 int8 int16 int64 atomics_float atomics_int64 subgroup subgroup_size_control timeline memory_model
    coop_matrix subgroup_quad rendezvous
    """.split()
)
UNLIMITED = Limits(
    groups=1 << 31,
    invocations=1024,
    shared_bytes=1 << 20,
    storage_range=1 << 62,
    storage_buffers=1 << 20,
    push_bytes=256,
    offset_alignment=1,
    loop_trips=1 << 62,
    resident=1 << 31,
)


def cpu_info() -> DeviceInfo:
    """What the NumPy device says of itself."""
    return DeviceInfo(
        spec="cpu",
        name=f"NumPy {np.__version__} on {platform.machine()}",
        type="reference",
        driver="numpy",
        driver_version=np.__version__,
        features=EVERY_FEATURE,
        limits=UNLIMITED,
        subgroup_size=32,
    )


class CpuProgram(Program):
    """Steps run in order, each by its reference."""

    device: CpuDevice

    def __init__(
        self, device: CpuDevice, steps: Sequence[AnyStep], label: str, options: Recording | None = None
    ) -> None:
        options = options or Recording()
        super().__init__(device, steps, label, options)
        self._queue = 0 if options.queue == "compute" else options.queue
        self._sources: list[HostArray] = [array.storage for array in self.fetches]
        self._targets: list[HostArray] = [_values(array) for array in self.feeds]
        self._timed = options.timed
        if self.fetches or self.feeds or self._timed:
            reader, times = _reader(self.fetches), _times if self._timed else None
            self._landing = Landing(label, self.fetches, options.slots, self._slot(), reader, times)

    def _slot(self) -> CpuSlot:
        feeds = {id(array): np.zeros_like(target) for array, target in zip(self.feeds, self._targets, strict=True)}
        return CpuSlot([np.empty_like(source) for source in self._sources], feeds, [])

    def _hand_out(self, slot: RunSlot, timeout: float | None) -> Slot:
        assert self._landing is not None
        return self._landing.hand_out(slot, self._slot, timeout)

    @inside
    def submit(self, after: Iterable[Waitable] = (), feed: Feed | None = None) -> Waitable:
        self.require_open()
        filled = filled_slot(self, feed, self.feeds) if self.feeds else require_no_feed(self, feed)
        others = require_tickets(after) if after else ()
        ticket = HostTicket(self.device, self.device.host_queues)
        if self._landing is None:
            self.device.host_queues.submit(ticket, self._queue, self.compute, others)
        else:
            self._submit_to(self._landing, filled, ticket, others)
        if self._timed:
            self._note_run(ticket)
        if self.device.listeners:
            self._tell(ticket)
        return ticket

    def _submit_to(
        self, landing: Landing, filled: RunSlot | None, ticket: HostTicket, others: Sequence[Waitable]
    ) -> None:
        slot: CpuSlot = landing.take(ticket, self._slot) if filled is None else filled.take(landing, ticket)
        work = partial(self._compute_in, slot, landing, weakref.ref(ticket))
        self.device.host_queues.submit(ticket, self._queue, work, others)
        if filled is not None:
            landing.under_way(ticket, ticket.end)

    def run(self, feed: Feed | None = None) -> None:
        device = self.device
        apart = feed is not None or self._landing is not None or device.listeners or device.failures.listed
        if apart or not self._run_here():
            super().run(feed)

    @inside
    def _run_here(self) -> bool:
        self.require_open()
        return self.device.host_queues.try_now(self.compute)

    def compute(self) -> None:
        """Does the work, on whichever thread."""
        try:
            for step in self.steps:
                _compute(step)
        except MemoryError as error:
            raise no_memory(str(error)) from error

    def _compute_in(self, slot: CpuSlot, landing: Landing, ticket: weakref.ref[HostTicket]) -> None:
        """Does the work with the values of a slot, and leaves there what comes back."""
        stopwatch = HostStopwatch(self._timed == "steps")
        try:
            for target, values in zip(self._targets, slot.feeds.values(), strict=True):
                target[...] = values
            stopwatch.lap("feed" if self._targets else None)
            if self._timed == "steps":
                self._compute_timed(stopwatch)
            else:
                self.compute()
        except BaseException:
            owner = ticket()
            if owner is not None:
                landing.give_back(owner)
            raise
        for source, target in zip(self._sources, slot.landing, strict=True):
            target[...] = source
        stopwatch.lap("fetch" if self._sources else None)
        slot.times[:] = [stopwatch.times()]

    def _compute_timed(self, stopwatch: HostStopwatch) -> None:
        try:
            for step in self.steps:
                _compute(step)
                stopwatch.lap(step.name)
        except MemoryError as error:
            raise no_memory(str(error)) from error

    def schedule(self) -> list[Batch]:
        # Each step begins when the one before it has ended.
        touched = [step.lowered.touched for step in self.steps]
        return [Batch(touched, place_barriers(touched, "all"), [step.name for step in self.steps])]

    def close(self) -> None:
        self._closed = True


@dataclass(frozen=True)
class CpuSlot:
    """The memory that the results of a run come back to, and that which its values come from."""

    landing: Sequence[HostArray]
    feeds: Mapping[int, HostArray]
    times: list[RunTimes]
    """When the latest run began and ended."""

    def views(self) -> Mapping[int, HostArray]:
        """The memory that values come from, for somebody to fill."""
        return self.feeds


def _reader(arrays: Sequence[Array]) -> Callable[[CpuSlot, int, HostArray | None], HostArray]:
    """Copies of arrays out of a slot."""
    forms = [(array.dtype, array.shape) for array in arrays]

    def read(slot: CpuSlot, index: int, out: HostArray | None) -> HostArray:
        dtype, shape = forms[index]
        values = slot.landing[index]
        if out is None:
            return dtype.from_bytes(values.copy()).reshape(shape)
        np.copyto(out, dtype.from_bytes(values).reshape(shape))
        return out

    return read


def _times(slot: CpuSlot) -> RunTimes:
    return slot.times[0]


def no_memory(why: str) -> OutOfMemoryError:
    """The error for memory of the host that NumPy did not get."""
    return OutOfMemoryError(
        f"the host has not enough memory for this: {why.rstrip('.')}.",
        "close arrays that are no longer needed, or use smaller ones.",
    )


@dataclass(frozen=True, eq=False)
class Lowered:
    """The memory that a step reads and writes, which lives as long as the step, whoever closes its arrays."""

    inputs: tuple[HostArray, ...]
    outputs: tuple[HostArray, ...]

    @property
    def touched(self) -> Touched:
        """What it reads and writes, in hazard tracking."""
        return Touched(tuple(map(_byte_range, self.inputs)), tuple(map(_byte_range, self.outputs)))


def _byte_range(values: HostArray) -> Range:
    start = values.ctypes.data
    return (0, start, start + values.nbytes)


def _compute(step: AnyStep) -> None:
    lowered: Lowered = step.lowered
    if isinstance(step, Step):
        _call_reference(step, lowered)
    elif isinstance(step, HostStep):
        step.call([_read_only(values) for values in lowered.inputs], lowered.outputs)
    else:
        lowered.outputs[0][...] = step.value if isinstance(step, FillStep) else lowered.inputs[0]


def _read_only(values: HostArray) -> HostArray:
    view = values.view()
    view.flags.writeable = False
    return view


def _call_reference(step: Step, lowered: Lowered) -> None:
    returned = step.kernel.reference(*lowered.inputs, **step.call.scalars)
    results = returned if isinstance(returned, tuple) else (returned,)
    for target, result in zip(lowered.outputs, results, strict=True):
        target[...] = np.asarray(result).reshape(target.shape)


def _values(array: Array) -> HostArray:
    return array.storage.view(array.dtype.stored).reshape(array.shape)


def _flat_bytes(host: HostArray) -> HostArray:
    return host.reshape(-1).view(np.uint8)


class CpuDevice(Device):
    """Runs the NumPy reference of each kernel, in a thread of its own: what is submitted, one after another, as a queue
    does."""

    needs_scratch = False

    def __init__(self, timeout: float = LONGEST_WAIT) -> None:
        super().__init__(cpu_info())
        self.timeout = timeout
        self.host_queues = HostQueues(self)
        watch_forks(self)

    def after_fork(self) -> None:
        """A child process may go on with it: it holds nothing but memory. Those who were inside are gone there, and
        what was under way has failed."""
        self._closing = threading.RLock()
        self.gate.entered.clear()
        self.failures.after_fork()
        self.host_queues.after_fork()

    def _allocate(self, nbytes: int) -> Any:
        try:
            return np.zeros(nbytes, np.uint8)
        except (MemoryError, ValueError) as error:
            raise no_memory(str(error)) from error

    def _part(self, storage: Any, offset: int, nbytes: int) -> Any:
        return storage[offset : offset + nbytes]

    def shared(self, first: Any, other: Any) -> bool:
        return np.may_share_memory(first, other)

    def byte_range(self, storage: Any) -> Range:
        return _byte_range(storage)

    def ends_memory(self, storage: Any) -> bool:
        whole = storage if storage.base is None else storage.base
        if not isinstance(whole, np.ndarray):  # memory that was borrowed
            whole = storage
        return storage.ctypes.data + storage.nbytes == whole.ctypes.data + whole.nbytes

    def write(self, array: Array, values: HostArray) -> None:
        target = _values(array)

        def assign() -> None:
            target[...] = values

        self.host_queues.settled(assign)

    def read(self, array: Array) -> HostArray:
        return self.host_queues.settled(array.storage.copy)

    @inside
    def host_memory(self, array: Array, *, quick: bool = False) -> HostArray:
        return self.host_queues.settled(partial(_values, array))

    def _borrow(self, host: HostArray) -> Array:
        # The root of what it is the memory of: not a part of an array whose end would be elsewhere.
        storage = np.frombuffer(_flat_bytes(host).data, np.uint8) if host.nbytes else np.zeros(0, np.uint8)
        return Array(self, host.shape, dtype_of(host.dtype), storage)

    def lower(self, kernel: Kernel, call: Call, plan: Plan, arrays: Mapping[str, Array]) -> Any:
        return Lowered(
            tuple(_values(arrays[operand.name]) for operand in kernel.inputs),
            tuple(_values(arrays[operand.name]) for operand in kernel.outputs),
        )

    def lower_copy(self, source: Array, target: Array) -> Lowered:
        return Lowered((_values(source),), (_values(target),))

    def lower_fill(self, array: Array, element: HostArray) -> Lowered:
        return Lowered((), (_values(array),))

    def lower_host(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Lowered:
        return Lowered(tuple(map(_values, inputs)), tuple(map(_values, outputs)))

    def _program(self, steps: Sequence[AnyStep], label: str, options: Recording) -> Program:
        return CpuProgram(self, steps, label, options)

    def _copy(self, source: Array, target: Array, after: Iterable[Waitable], queue: Role) -> Waitable:
        ticket = HostTicket(self, self.host_queues)
        self.host_queues.submit(ticket, queue, partial(np.copyto, target.storage, source.storage), after)
        return ticket

    def _upload(self, array: Array, values: HostArray, after: After) -> Waitable:
        ticket = HostTicket(self, self.host_queues)
        work = partial(np.copyto, _values(array), np.array(values))
        self.host_queues.submit(ticket, "upload", work, after)
        return ticket

    def _download(self, array: Array, after: After) -> Download:
        ticket = HostDownload(self, self.host_queues)
        source, values = array.storage, ticket.values
        dtype, shape = array.dtype, array.shape

        def work() -> None:
            values.append(dtype.from_bytes(source.copy()).reshape(shape))

        self.host_queues.submit(ticket, "download", work, after)
        return ticket

    @inside
    def wait(self) -> None:
        self.host_queues.settle()

    def at_work(self) -> bool:
        return self.host_queues.at_work

    def _close(self) -> None:
        self.host_queues.stop()
