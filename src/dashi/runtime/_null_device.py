"""The null device: plans and records everything, computes nothing. It runs the whole path to the device without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Never

from dashi.errors import NoResultError
from dashi.kernels._build import Loader
from dashi.kernels.abi import Call, Dispatch, Kernel, Limits, Plan
from dashi.runtime._asynchronous import After
from dashi.runtime._cpu_device import EVERY_FEATURE
from dashi.runtime._events import Done, Event, relayed, when_all_done
from dashi.runtime._gate import inside
from dashi.runtime._program import require_tickets
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Recording, ScratchPool, Step, Waitable
from dashi.runtime.info import DeviceInfo
from dashi.runtime.landing import Download, Landing, Ticket
from dashi.types import HostArray


class NullProgram(Program):
    """The recorded dispatches of its steps; running them does nothing but count."""

    def __init__(self, device: Device, steps: Sequence[Step], label: str, options: Recording) -> None:
        super().__init__(device, steps, label, options)
        self.recorded: list[tuple[str, Dispatch]] = [(s.kernel.name, d) for s in steps for d in s.lowered.dispatches]
        self.dispatches = len(self.recorded)
        self.submissions = 0
        if self.fetches:
            self._landing = Landing(label, self.fetches, options.slots, None, _no_result)

    @inside
    def submit(self, after: Iterable[Waitable] = ()) -> Waitable:
        self.require_open()
        ticket = NullTicket(self.device, require_tickets(after)) if after else Ticket(self.device)
        if self._landing is not None:
            self._landing.take(ticket, lambda: None)
        self.submissions += 1
        if self.device.listeners:
            self._tell(ticket)
        return ticket

    def close(self) -> None:
        self._closed = True


def _no_result(*_: object) -> Never:
    raise NoResultError(
        "the null device computes nothing.",
        'compute elsewhere: `device="auto"`, `device="cpu"` or `device="vulkan:0"`.',
    )


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

    def ends_memory(self, storage: Any) -> bool:
        whole, _, end = storage.place
        return end == whole.nbytes

    def write(self, array: Array, values: HostArray) -> None:
        """Forgets the values."""
        array.storage  # noqa: B018  # it must be open

    def read(self, array: Array) -> HostArray:
        array.storage  # noqa: B018  # it must be open
        _no_result()

    def lower(self, kernel: Kernel, call: Call, plan: Plan, arrays: Mapping[str, Array], scratch: ScratchPool) -> Plan:
        for dispatch in plan.dispatches:
            self._loader.load(kernel, dispatch.shader, call.dtype.name)
        return plan

    def _program(self, steps: Sequence[Step], label: str, options: Recording) -> Program:
        return NullProgram(self, steps, label, options)

    def _copy(self, source: Array, target: Array, after: Iterable[Waitable]) -> Waitable:
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

    def __init__(self, nbytes: int, place: tuple[_Nothing, int, int] | None = None) -> None:
        self.nbytes = nbytes
        self.place: tuple[_Nothing, int, int] = place or (self, 0, nbytes)
