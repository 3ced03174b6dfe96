"""The null device: plans and records everything, computes nothing. It runs the whole path to the device without one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Never

import numpy as np

from dashi.errors import NoResultError
from dashi.kernels._build import Loader
from dashi.kernels.abi import Call, Dispatch, Kernel, Limits, Plan
from dashi.runtime._asynchronous import After
from dashi.runtime._cpu_device import EVERY_FEATURE
from dashi.runtime._events import Done, Event, relayed, when_all_done
from dashi.runtime._feeding import Feed, RunSlot, filled_slot, require_no_feed
from dashi.runtime._gate import inside
from dashi.runtime._hazards import Batch, Range, Touched, place_barriers
from dashi.runtime._slots import Landing, Slot
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device, Program, Recording, Waitable
from dashi.runtime.info import DeviceInfo, Role
from dashi.runtime.landing import Download, Ticket, require_tickets
from dashi.types import HostArray


@dataclass(frozen=True)
class Lowered:
    """A step's dispatches, the bytes that each touches, and its storage."""

    dispatches: tuple[Dispatch, ...]
    touched: tuple[Touched, ...]
    storage: tuple[Any, ...]


@dataclass(frozen=True)
class NullSlot:
    """Memory of the host that nothing is taken from."""

    feeds: Mapping[int, HostArray]

    def views(self) -> Mapping[int, HostArray]:
        """The memory itself."""
        return self.feeds


class NullProgram(Program):
    """The recorded dispatches of its steps; running them does nothing but count."""

    def __init__(self, device: Device, steps: Sequence[AnyStep], label: str, options: Recording) -> None:
        super().__init__(device, steps, label, options)
        self.recorded: list[tuple[str, Dispatch]] = [(s.name, d) for s in steps for d in s.lowered.dispatches]
        self.dispatches = len(self.recorded)
        self.submissions = 0
        commands: list[tuple[str, Touched]] = [(step.name, t) for step in steps for t in step.lowered.touched]
        touched = [command for _, command in commands]
        self._batch = Batch(touched, place_barriers(touched, options.barriers), [name for name, _ in commands])
        self.barriers = len(touched) - bytes(self._batch.barriers).count(0)
        if self.fetches or self.feeds or options.timed:
            times = _no_times if options.timed else None
            self._landing = Landing(label, self.fetches, options.slots, self._slot(), _no_result, times)

    def _slot(self) -> NullSlot:
        return NullSlot({id(array): np.zeros(array.shape, array.dtype.stored) for array in self.feeds})

    def _hand_out(self, slot: RunSlot, timeout: float | None) -> Slot:
        assert self._landing is not None
        return self._landing.hand_out(slot, self._slot, timeout)

    @inside
    def submit(self, after: Iterable[Waitable] = (), feed: Feed | None = None) -> Waitable:
        self.require_open()
        filled = filled_slot(self, feed, self.feeds) if self.feeds else require_no_feed(self, feed)
        ticket = NullTicket(self.device, require_tickets(after)) if after else Ticket(self.device)
        if self._landing is not None and filled is not None:
            filled.take(self._landing, ticket)
            self._landing.under_way(ticket, ticket.end)
        elif self._landing is not None:
            self._landing.take(ticket, self._slot)
        self.submissions += 1
        if self.device.listeners:
            self._tell(ticket)
        return ticket

    def schedule(self) -> list[Batch]:
        return [self._batch]

    def _barriers_by_step(self) -> list[int]:
        placed = iter(self._batch.barriers)
        return [sum(next(placed) != 0 for _ in step.lowered.touched) for step in self.steps]

    def close(self) -> None:
        self._closed = True


def _touched(device: Device, kernel: Kernel, dispatch: Dispatch, arrays: Mapping[str, Array]) -> Touched:
    bound = zip(kernel.shaders[dispatch.shader].buffers, dispatch.buffers, strict=True)
    ranges = [(binding.access, device.byte_range(arrays[name].storage)) for binding, name in bound]
    return Touched(
        tuple(touched for access, touched in ranges if access != "write"),
        tuple(touched for access, touched in ranges if access != "read"),
    )


def _no_result(*_: object) -> Never:
    raise NoResultError(
        "the null device computes nothing.",
        'compute elsewhere: `device="auto"`, `device="cpu"` or `device="vulkan:0"`.',
    )


def _no_times(_: NullSlot) -> None:
    """Nothing runs, and so nothing takes time."""


class NullTicket(Ticket):
    """Nothing, done after other work, which may be of other devices."""

    __slots__ = ("_after",)

    def __init__(self, device: Device, after: Sequence[Ticket]) -> None:
        super().__init__(device)
        self._after = [other if other.device is device else relayed(other, device) for other in after]
        device.awaited.add([other for other in self._after if isinstance(other, Event)])

    def wait(self, timeout: float | None = None) -> None:
        for other in self._after:
            other.wait(timeout)
        super().wait()

    @property
    def done(self) -> bool:
        return super().done and all(other.done for other in self._after)

    def when_done(self, call: Done) -> None:
        when_all_done(self._after, call)

    @property
    def end(self) -> Ticket:
        return NullTicket(self.device, self._after)


class NullDownload(NullTicket, Download):
    """A download of nothing."""

    __slots__ = ()

    def _values(self) -> HostArray:
        _no_result()


class NullDevice(Device):
    """Accepts everything that a Vulkan device with Vulkan's guaranteed limits would."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(
            DeviceInfo(
                spec="null",
                name="null",
                type="null",
                driver="null",
                features=EVERY_FEATURE,
                subgroup_size=32,
                limits=limits or Limits(invocations=256, storage_range=1 << 32, resident=128),
            )
        )

        self._loader = Loader()

    def _allocate(self, nbytes: int) -> Any:
        return _Nothing(nbytes)

    def _part(self, storage: Any, offset: int, nbytes: int) -> Any:
        whole, start, _ = storage.place
        return _Nothing(nbytes, (whole, start + offset, start + offset + nbytes))

    def shared(self, first: Any, other: Any) -> bool:
        return first.place[0] is other.place[0] and first.place[1] < other.place[2] and other.place[1] < first.place[2]

    def byte_range(self, storage: Any) -> Range:
        whole, start, end = storage.place
        return (whole.key, start, end)

    def ends_memory(self, storage: Any) -> bool:
        whole, _, end = storage.place
        return end == whole.nbytes

    def write(self, array: Array, values: HostArray) -> None:
        """Forgets the values."""
        array.storage  # noqa: B018  # it must be open

    def read(self, array: Array) -> HostArray:
        array.storage  # noqa: B018  # it must be open
        _no_result()

    def lower(self, kernel: Kernel, call: Call, plan: Plan, arrays: Mapping[str, Array]) -> Lowered:
        for dispatch in plan.dispatches:
            self._loader.load(kernel, dispatch.shader, call.dtype.name)
        touched = tuple(_touched(self, kernel, dispatch, arrays) for dispatch in plan.dispatches)
        return Lowered(plan.dispatches, touched, tuple(array.storage for array in arrays.values()))

    def lower_copy(self, source: Array, target: Array) -> Lowered:
        return self._touching((source,), (target,))

    def lower_fill(self, array: Array, element: HostArray) -> Lowered:
        return self._touching((), (array,))

    def lower_host(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Lowered:
        return self._touching(inputs, outputs)

    def _touching(self, reads: Sequence[Array], writes: Sequence[Array]) -> Lowered:
        storage = [[array.storage for array in arrays] for arrays in (reads, writes)]
        ranges = [tuple(map(self.byte_range, pieces)) for pieces in storage]
        return Lowered((), (Touched(ranges[0], ranges[1]),), (*storage[0], *storage[1]))

    def _program(self, steps: Sequence[AnyStep], label: str, options: Recording) -> Program:
        return NullProgram(self, steps, label, options)

    def _copy(self, source: Array, target: Array, after: Iterable[Waitable], queue: Role) -> Waitable:
        return NullTicket(self, list(after)) if after else Ticket(self)

    def _upload(self, array: Array, values: HostArray, after: After) -> Waitable:
        array.storage  # noqa: B018  # it must be open
        return NullTicket(self, after) if after else Ticket(self)

    def _download(self, array: Array, after: After) -> Download:
        array.storage  # noqa: B018  # it must be open
        return NullDownload(self, after or ())

    def _close(self) -> None:
        """Nothing to free."""


class _Nothing:
    """Storage that holds nothing."""

    _keys = itertools.count(1)

    def __init__(self, nbytes: int, place: tuple[_Nothing, int, int] | None = None) -> None:
        self.nbytes = nbytes
        self.key = next(_Nothing._keys)
        self.place: tuple[_Nothing, int, int] = place or (self, 0, nbytes)
