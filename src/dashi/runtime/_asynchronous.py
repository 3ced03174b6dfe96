"""What a device does while nobody waits: copies, uploads and downloads behind tickets, and events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast, get_args

from dashi.errors import AlignmentError, InputError
from dashi.runtime._events import Awaited, Event
from dashi.runtime._gate import Gate, inside
from dashi.runtime._host_values import host_array, require_like
from dashi.runtime._kernel_copies import kernel_can_copy, kernel_copies_faster, kernel_copy
from dashi.runtime._operands import require_on
from dashi.runtime._program import Waitable
from dashi.runtime._steps import require_copyable
from dashi.runtime._submissions import Listener, Listeners
from dashi.runtime.array import Array
from dashi.runtime.info import DeviceInfo, Role
from dashi.runtime.landing import Download, require_tickets
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device

CopyBy = Literal["auto", "transfer", "kernel"]
CopyQueue = Literal["upload", "download"]
_COPY_BY: Final = get_args(CopyBy)
_COPY_QUEUES: Final = get_args(CopyQueue)
_T = TypeVar("_T", bound=Waitable)
After = Sequence[Waitable] | None
"""The work that comes first; None: all that was submitted so far."""


class Asynchronous(ABC):
    """The part of a device that starts copies and returns at once."""

    info: DeviceInfo
    gate: Gate
    awaited: Awaited
    listeners: Listeners

    @abstractmethod
    def _copy(self, source: Array, target: Array, after: Sequence[Waitable], queue: Role) -> Waitable:
        """Starts a copy between arrays of equal shape and type on the queue for uploads or downloads."""

    @abstractmethod
    def _upload(self, array: Array, values: HostArray, after: After) -> Waitable:
        """Starts a copy of host values, which may change as soon as it returns."""

    @abstractmethod
    def _download(self, array: Array, after: After) -> Download:
        """Starts a copy to the host."""

    def _event(self, label: str) -> Event:
        """A new event."""
        return Event(self._device, label)

    @property
    def _device(self) -> Device:
        return cast("Device", self)

    @inside
    def on_submit(self, call: Listener) -> Callable[[], None]:
        """From now on `call` is told of every submission to this device, on the thread that submits: programs, copies,
        uploads and downloads, with their queue, label and ticket (`Submission`). Calling what this returns ends it."""
        return self.listeners.add(call)

    @inside
    def event(self, label: str = "") -> Event:
        """Something that work can be submitted `after`, of any queue and device, before it happens:
        `program.submit(after=[event])` returns at once, and the work begins when `event.signal()` is called. The label
        is what errors call it. Closing the device lets go what waits for events that nobody signalled."""
        return self._event(str(label))

    @inside
    def copy(
        self,
        source: Array,
        target: Array,
        after: Iterable[Waitable] = (),
        *,
        by: CopyBy = "auto",
        queue: CopyQueue = "upload",
    ) -> Waitable:
        """Starts a copy from one array of this device to another, and returns at once. `after` names the work that must
        be done first. The driver copies on the queue for uploads (`by="transfer"`), with `queue="download"` on that for
        downloads; a kernel on the first queue (`by="kernel"`), which moves several times as much on a GPU; "auto" takes
        the kernel where it saves more than it costs to start one. The bits are the same."""
        require_copyable(self._device, source, target)
        if queue not in _COPY_QUEUES:
            raise InputError(
                f"queue={queue!r} is none of {', '.join(map(repr, _COPY_QUEUES))}.", "leave it away: 'upload' is usual."
            )
        tickets = require_tickets(after) if after else ()
        if self._by_kernel(by, source, target):
            with self._device.program([kernel_copy(self._device, source, target)], label="copy") as program:
                return program.submit(after=tickets)
        return self._tell(queue, "copy", self._copy(source, target, tickets, queue))

    def _by_kernel(self, by: CopyBy, source: Array, target: Array) -> bool:
        if by not in _COPY_BY:
            raise InputError(f"by={by!r} is none of {', '.join(map(repr, _COPY_BY))}.", "leave it away.")
        device = self._device
        if by == "kernel" and not kernel_can_copy(device, source, target):
            raise AlignmentError(
                f"a kernel cannot copy {source.description} to {target.description}.",
                f"copy a multiple of 4 bytes, from and to multiples of {device.part_alignment}, or by='transfer'.",
            )
        return by == "kernel" or (by == "auto" and kernel_copies_faster(device, source, target))

    @inside
    def upload(self, array: Array, values: Any, after: Iterable[Waitable] | None = None) -> Waitable:
        """Starts a copy of host values into an array of the same shape and type, and returns at once: what comes after
        it is submitted with `after=[ticket]`. The values are copied before this returns, and may then change. `after`
        names the work that must be done first, as what still reads the array; unless it is given, that is all work
        submitted so far to this device, on any queue."""
        require_on(self._device, "upload", "an array", array)
        host = host_array(values)
        require_like(host.dtype, host.shape, array.dtype.numpy, array.shape)
        ticket = self._upload(array, array.dtype.to_stored(host), None if after is None else require_tickets(after))
        return self._tell("upload", "upload", ticket)

    @inside
    def download(self, array: Array, after: Iterable[Waitable] | None = None) -> Download:
        """Starts a copy of an array to the host, and returns at once; `ticket.result()` waits for it and gives the
        values, whatever is submitted meanwhile. `after` names the work that must be done first, as what writes the
        array; unless it is given, that is all work submitted so far to this device, on any queue."""
        require_on(self._device, "download", "an array", array)
        ticket = self._download(array, None if after is None else require_tickets(after))
        return self._tell("download", "download", ticket)

    def _tell(self, queue: str, label: str, ticket: _T) -> _T:
        if self.listeners:
            self.listeners.tell(self._device, queue, label, ticket)
        return ticket
