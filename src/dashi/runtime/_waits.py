"""What a submission waits for on the device itself: timelines of other queues, of events, and of other devices."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, cast

from dashi.runtime._events import Event, RelayedEvent
from dashi.runtime._host_gates import Failable
from dashi.runtime._queue_tickets import QueueTicket
from dashi.runtime._sync import Queue
from dashi.runtime._vk_device import RawDevice
from dashi.runtime._vk_external import ExternalFacts
from dashi.runtime._vk_record import Waits
from dashi.runtime.landing import Ticket

if TYPE_CHECKING:
    from dashi.runtime._vulkan_device import VulkanDevice
    from dashi.runtime.device import Device

Handover = Literal["timeline", "exported timeline", "relay"]
"""How work of one device waits for that of another: a timeline of its own, one that the other exported, or a thread of
the host that waits for the one and signals the other."""


class Timelines:
    """Timelines for events, which are used again: an event that is forgotten leaves its own to the next."""

    def __init__(self, raw: RawDevice) -> None:
        self._raw = raw
        self._free: list[tuple[int, int]] = []
        self._all: list[int] = []

    def take(self) -> tuple[int, int]:
        """A timeline and a value that it has not reached."""
        try:
            timeline, value = self._free.pop()
        except IndexError:
            timeline, value = self._raw.create_timeline(), 0
            self._all.append(timeline)
        return timeline, value + 1

    def adopt(self, timeline: int) -> None:
        """Destroys it with the others."""
        self._all.append(timeline)

    def give(self, timeline: int, value: int) -> None:
        self._free.append((timeline, value))

    def signal(self, timeline: int, value: int) -> None:
        self._raw.signal_timeline(timeline, value)

    def close(self) -> None:
        for timeline in self._all:
            self._raw.destroy("Semaphore", timeline)
        self._all.clear()
        self._free.clear()


class VulkanEvent(Event):
    """An event that is a value of a timeline as well, which the device waits for by itself."""

    __slots__ = ("_timelines", "timeline", "value")

    def __init__(self, device: VulkanDevice, label: str) -> None:
        super().__init__(device, label)
        self._timelines = device.timelines
        self.timeline, self.value = self._timelines.take()
        weakref.finalize(self, self._timelines.give, self.timeline, self.value).atexit = False

    def _reach(self) -> None:
        self._timelines.signal(self.timeline, self.value)


class RelayedVulkanEvent(VulkanEvent, RelayedEvent):
    """The end of another device's work, as a timeline of this one."""

    __slots__ = ()


def waits_of(device: VulkanDevice, queue: Queue, after: Iterable[Ticket], ticket: QueueTicket) -> Waits:
    """The timelines and values that a submission to the queue waits for. Work of the same queue is ordered anyway; work
    of other devices gets a timeline of this one, unless theirs can be had. `ticket` is that of the submission."""
    waits: dict[int, int] = {}
    events: list[Event] = []
    failable: list[Failable] = []
    for other in after:
        if isinstance(other, QueueTicket):
            failable += [event for event in other.events if not event.succeeded]
            if other.queue is queue:
                continue
            if other.device is device:
                timeline = other.queue.timeline
                waits[timeline] = max(other.value, waits.get(timeline, 0))
                continue
            if handover(other.device, device) == "exported timeline":
                timeline = device.imported(cast("VulkanDevice", other.device), other.queue)
                waits[timeline] = max(other.value, waits.get(timeline, 0))
                continue
        elif isinstance(other, VulkanEvent) and other.device is device:
            waits[other.timeline] = other.value
            events.append(other)
            continue
        event = RelayedVulkanEvent(device, other.device.info.spec)
        other.when_done(event.finish)
        waits[event.timeline] = event.value
        events.append(event)
    if events or failable:
        ticket.events = [*events, *failable]
        device.awaited.add(events)
    return [*waits.items()]


def handover(source: Device, sink: VulkanDevice) -> Handover:
    """How work of `sink` waits for work of `source`. What itself waits for events is relayed, also where timelines can
    be exported: the host can let go what a relay holds, so that a device can be closed."""
    if source is sink:
        return "timeline"
    theirs: ExternalFacts | None = getattr(source, "external", None)
    ours = sink.external
    if theirs is not None and theirs.timelines and ours.timelines and theirs.identity == ours.identity:
        return "relay" if source.awaited.outstanding else "exported timeline"
    return "relay"
