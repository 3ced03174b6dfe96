"""Tickets of submitted work: to wait for it, to read what it left on the host, and to come after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dashi.errors import DTypeError, InputError, NoResultError, ShapeError
from dashi.runtime._clock import RunTimes, StepSpan
from dashi.runtime._gate import Gate, inside
from dashi.runtime.array import Array
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime._slots import Landing, Slot
    from dashi.runtime.device import Device


def require_own(what: str, values: object) -> None:
    """Raises where values are no array of the host that can be written."""
    if not isinstance(values, np.ndarray) or not values.flags.writeable:
        kind = "an array that is read only" if isinstance(values, np.ndarray) else type(values).__name__
        raise InputError(f"{what} is {kind}.", "pass a NumPy array of your own.")


def require_same(what: str, values: HostArray, array: Array) -> None:
    """Raises where values of the host have not the shape and type of an array."""
    if values.dtype != array.dtype.numpy:
        raise DTypeError(
            f"{what} has elements of {values.dtype}, not of {array.dtype}.",
            f"convert it: values.astype(np.{array.dtype}).",
        )
    if values.shape != array.shape:
        raise ShapeError(f"{what} has the shape {values.shape}, not {array.shape}.", "pass an array of the same shape.")


class Ticket:
    """Submitted work; of this class itself, work that was finished when it was submitted."""

    __slots__ = ("__weakref__", "device", "landing", "run", "slot")

    def __init__(self, device: Device) -> None:
        self.device = device
        self.landing: Landing | None = None
        self.slot: Slot | None = None
        self.run = 0

    def wait(self, timeout: float | None = None) -> None:
        """Returns when the work is done."""
        self.device.require_open()
        if self.landing is not None:
            self.landing.waited_for(self)

    @property
    def done(self) -> bool:
        self.device.require_open()
        return True

    def when_done(self, call: Callable[[BaseException | None], None]) -> None:
        """Calls once the work is done, with None or the error that ended it: at once where that is so already, else
        on another thread."""
        call(None)

    @property
    def end(self) -> Ticket:
        """The end of the work and nothing else: waiting for it does not change what `Program.fetched` gives."""
        return Ticket(self.device)

    @property
    def gate(self) -> Gate:
        """The gate of its device."""
        return self.device.gate

    def __repr__(self) -> str:
        return f"<Ticket of work on {self.device.info.spec}>"

    @inside
    def fetched(self, array: Array, out: HostArray | None = None) -> HostArray:
        """A copy of one of the arrays that come back with the run (`fetch`), as it was at the end of this run; waits
        for it. It is new, or `out`, of the same shape and type. Once all of them were read, the next submission may
        take their place."""
        if self.landing is None:
            raise InputError(
                "nothing comes back with this work.", "name what should: device.program(..., fetch=[...])."
            )
        known = self.landing.look_up(self, array, out)
        self.wait()
        return self.landing.of_ticket(self, *known, out)

    @inside
    def device_ns(self) -> int | None:
        """Nanoseconds that the run took on the device's own clock; waits for it. None where that is not known: programs
        made without `timed`, copies. A program has the times of as many runs as it has slots: those of earlier ones
        give way."""
        times = self._run_times()
        return None if times is None else times.end_ns - times.start_ns

    @inside
    def device_interval(self) -> tuple[int, int] | None:
        """When the run began and ended, in nanoseconds on the device's own clock (`Device.clock` relates it to the
        host's); None, and held for as long, as `device_ns`."""
        times = self._run_times()
        return None if times is None else (times.start_ns, times.end_ns)

    @inside
    def step_times(self) -> tuple[StepSpan, ...]:
        """When each step of the run was under way, on the device's own clock; waits for it. For programs made with
        `timed="steps"`."""
        times = self._run_times()
        if times is None and self.landing is not None and self.landing.times_runs:
            raise NoResultError(
                f"{self.device.info.name!r} has no clock that runs are timed by.",
                "time it elsewhere: another device of `dashi devices list`.",
            )
        if times is None or times.steps is None:
            raise InputError(
                "the steps of this work were not timed.",
                'say so when it is recorded: device.program(..., timed="steps").',
            )
        return times.steps

    def _run_times(self) -> RunTimes | None:
        if self.landing is None or not self.landing.times_runs:
            return None
        self.wait()
        return self.landing.times_of(self.run)


def require_tickets(after: Any) -> list[Ticket]:
    """What work is to come after must be tickets, in a list."""
    tickets = list(cast("Iterable[Any]", after)) if isinstance(after, Iterable) else None
    if tickets is None or not all(hasattr(ticket, "wait") for ticket in tickets):
        raise InputError(
            f"`after` takes a list of tickets, not {after!r}.", "pass what submit() or copy() gave: after=[ticket]."
        )
    return tickets


class Download(Ticket):
    """A copy of an array that is on its way to the host."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> HostArray:
        """The values, when they are there; asked again, a copy of them."""
        self.wait(timeout)
        return self._result_inside()

    @inside
    def _result_inside(self) -> HostArray:
        return self._values()

    def _values(self) -> HostArray:
        """The values, which have come."""
        raise NotImplementedError
