"""How fast links are: bytes per second with all slots in use, and the time that one small item takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program
from dashi.runtime.landing import Ticket
from dashi.stream._model import Field, PayloadSchema

if TYPE_CHECKING:
    from dashi.stream.links import Link

SINGLES: Final = 20
"""Items that latency is the median of."""
MOST_ITEMS: Final = 2000


@dataclass(frozen=True)
class LinkRate:
    """`bandwidth` in bytes of payload per second, from the source's own memory to the target's; `latency` in seconds,
    from the submission of one small item until the host knows that it has arrived."""

    bandwidth: float
    latency: float
    nbytes: int
    items: int

    @property
    def gb_per_s(self) -> float:
        """10^9 bytes per second."""
        return self.bandwidth * 1e-9

    def seconds(self, nbytes: int) -> float:
        """What an item of so many bytes takes."""
        return self.latency + nbytes / self.bandwidth


def measure_link(make: Callable[[PayloadSchema], Link], schema: PayloadSchema, seconds: float) -> LinkRate:
    """The rates of links like those that `make` gives, measured for so long."""
    with ExitStack() as stack:
        small = stack.enter_context(_Traffic(make(PayloadSchema({"bytes": Field((4,), "u8")}))))
        small.single()
        latency = statistics.median(small.single() for _ in range(SINGLES))
        large = stack.enter_context(_Traffic(make(schema)))
        large.single()
        one = large.single()
        items = max(3 * large.link.window, min(MOST_ITEMS, round(seconds / max(one, 1e-6))))
        took = large.many(items)
    return LinkRate(schema.nbytes * items / took, latency, schema.nbytes, items)


def single_seconds(link: Link) -> float:
    """The median time of one item alone over a link, which is closed then."""
    with _Traffic(link) as traffic:
        traffic.single()
        return statistics.median(traffic.single() for _ in range(SINGLES))


class _Traffic:
    """Items that go over a link from memory of the source to memory of the target. Where an end is memory of both,
    a copy on its device brings them there, or takes them away."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._next = 0
        slots = range(link.window)
        self._own = [_own_arrays(device, link.schema) for device in (link.source, link.target)]
        direct = link.way in ("device", "exported", "host")
        out, back = link.dma
        self._writers = [self._copies(link.source, link.outgoing(b), write=True) for b in slots if direct and not out]
        self._readers = [self._copies(link.target, link.incoming(b), write=False) for b in slots if direct and not back]

    def _copies(self, device: Device, there: Mapping[str, Array], *, write: bool) -> Program:
        own = self._own[0 if write else 1]
        pairs = [(own[name], there[name]) if write else (there[name], own[name]) for name in there]
        steps = [device.copy_step(source, target) for source, target in pairs if source.nbytes]
        return device.program(steps, label="link")

    def _go(self, timeout: float) -> list[Ticket]:
        """Sends one item, without waiting for it."""
        t, link = self._next, self.link
        self._next += 1
        tickets = link.take(t, timeout)
        if self._writers:
            tickets = [self._writers[t % link.window].submit(after=tickets)]
        arrived = link.send(t, after=tickets)
        link.receive(t)
        if self._readers:
            arrived = [self._readers[t % link.window].submit(after=arrived)]
        link.release(t, after=arrived)
        return arrived

    def single(self) -> float:
        """Seconds of one item."""
        start = time.perf_counter()
        for ticket in self._go(0.0):
            ticket.wait()
        return time.perf_counter() - start

    def many(self, items: int) -> float:
        """Seconds of so many, all slots in use; at most twice the window is submitted ahead."""
        start = time.perf_counter()
        ahead = list[list[Ticket]]()
        for _ in range(items):
            ahead.append(self._go(0.0))
            if len(ahead) > 2 * self.link.window:
                for ticket in ahead.pop(0):
                    ticket.wait()
        for tickets in ahead:
            for ticket in tickets:
                ticket.wait()
        return time.perf_counter() - start

    def __enter__(self) -> _Traffic:
        return self

    def __exit__(self, *_: object) -> None:
        for program in (*self._writers, *self._readers):
            program.close()
        self.link.close()


def _own_arrays(device: Device, schema: PayloadSchema) -> dict[str, Array]:
    return {name: device.zeros(one.shape, one.element) for name, one in schema.items()}
