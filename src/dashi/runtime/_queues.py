"""The queues of a Vulkan device by role: for kernels as many as were asked for, one for uploads, one for downloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dashi.errors import InputError, LimitError
from dashi.runtime._events import Awaited
from dashi.runtime._ports import Port
from dashi.runtime._relay import Relay
from dashi.runtime._sync import Horizons, Queue
from dashi.runtime._vk_device import RawDevice
from dashi.runtime.info import DeviceInfo, Role

_MOST_SHARED: Final = 8
"""Queues that a device may be opened with where the driver has fewer: they share those."""


class QueuePlan:
    """How many queues of each of the driver's families are opened, and which of them each of ours uses."""

    def __init__(self, info: DeviceInfo, queues: int) -> None:
        compute = next(i for i, q in enumerate(info.queues) if q.compute)
        count = info.queues[compute].count
        most = max(count, _MOST_SHARED)
        if not 1 <= queues <= most:
            raise LimitError(
                f"{info.name!r} has {count} compute queues, {queues} asked for.",
                f"ask for 1 to {most}" + (": those that are too many share the driver's." if most > count else "."),
            )
        apart = [i for i, q in enumerate(info.queues) if q.transfer and not q.compute and not q.graphics]
        opened = min(count, queues if apart else queues + 2)
        self.families = {compute: opened}
        self.compute = [(compute, i % opened) for i in range(queues)]
        if apart:
            self.families[apart[0]] = copying = min(2, info.queues[apart[0]].count)
            self.upload, self.download = (apart[0], 0), (apart[0], copying - 1)
        else:
            # Queues that nobody asked for serve copies; without any, copies share the last.
            self.upload, self.download = ((compute, min(queues + i, opened - 1)) for i in range(2))


class Queues:
    """All queues of a device; the first are those that kernels run on, by number."""

    def __init__(
        self,
        raw: RawDevice,
        plan: QueuePlan,
        timeout: float,
        relay: Relay,
        awaited: Awaited,
        horizons: Horizons,
        *,
        export: bool,
    ) -> None:
        ports = {(f, i): Port(raw, f, i) for f, count in plan.families.items() for i in range(count)}
        opened = list[Queue]()
        try:
            for name, at in [
                *((f"queue {i}", at) for i, at in enumerate(plan.compute)),
                ("upload", plan.upload),
                ("download", plan.download),
            ]:
                opened.append(Queue(raw, ports[at], name, timeout, relay, awaited, horizons, export=export))
        except BaseException:
            for queue in opened:
                queue.close()
            raise
        self.all = tuple(opened)
        self.compute, self.upload, self.download = self.all[:-2], self.all[-2], self.all[-1]

    def __iter__(self) -> Iterator[Queue]:
        return iter(self.all)

    def for_kernels(self, queue: int | Role, spec: str) -> Queue:
        """The queue that kernels run on: by number, or "compute" for the first."""
        if queue == "upload" or queue == "download":
            raise InputError(
                f"the queue for {queue}s takes copies, no kernels.", 'leave `queue` away, or pass queue="compute".'
            )
        number = 0 if queue == "compute" else queue
        if not 0 <= number < len(self.compute):
            raise InputError(
                f"there is no compute queue {number}; this device was opened with {len(self.compute)}.",
                f"open it with more: dashi.open({spec!r}, queues={number + 1}).",
            )
        return self.compute[number]

    def close(self) -> None:
        for queue in self.all:
            queue.close()
