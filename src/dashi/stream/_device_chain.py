"""A chain of stages on devices: links and stages of a plan, and the loop of one thread that submits ahead of them."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from dashi.errors import DashiError, InputError, StreamError
from dashi.runtime.device import Device
from dashi.runtime.landing import Ticket
from dashi.stream._contracts import ContractLedger
from dashi.stream._device_stage import DevicePayload, DeviceStage, Hold, Observe, StageSnapshot, await_work
from dashi.stream._digests import digest_text
from dashi.stream._model import WINDOW, Payload, State
from dashi.stream._plan import PlannedLink, PlannedStage, StreamPlan
from dashi.stream._stage_times import ChainClock, StageUse
from dashi.stream.links import Link
from dashi.types import HostArray

_HOST_QUEUES: Final = 1 << 16
_MOST_PROGRAMS: Final = 4096
"""Programs of one stage: it has one for each pair of slots, before and behind it, that meet."""


@dataclass(frozen=True)
class ItemResult:
    """What came out of a chain for an item: its digest, and its fields where they are kept."""

    step: int
    digest: str
    fields: Mapping[str, HostArray] = field(default_factory=dict[str, HostArray])


class Period:
    """When the first and the last item so far were done on their device. Threads of several devices may note items."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first = self._last = 0.0
        self._items = 0

    def note(self) -> None:
        """An item is done now."""
        with self._lock:
            self._last = time.perf_counter()
            self._first = self._first or self._last
            self._items += 1

    def count(self, items: int) -> None:
        """So many are done: some that were noted will be again."""
        with self._lock:
            self._items = items

    @property
    def seconds(self) -> float | None:
        """Between two items; None for less than two."""
        with self._lock:
            return (self._last - self._first) / (self._items - 1) if self._items > 1 else None


class DeviceChain:
    """The stages of a plan on open devices, by the ids that the plan has for them. Several stages on one device have a
    queue of it each, as far as it was opened with so many.

        with DeviceChain(plan, devices) as chain:
            for result in chain.run(payloads):
                print(result.step, result.digest)

    `keep` brings the fields of results to the host too. With `debug` a ContractLedger is told who owns the State of a
    step, which slots are taken and released, and who looks. Close it before the devices.
    """

    def __init__(
        self,
        plan: StreamPlan,
        devices: Mapping[str, Device],
        *,
        keep: bool = False,
        timed: bool = True,
        observe: Observe | None = None,
        hold: Hold | None = None,
        check: Callable[[State, PlannedStage], None] | None = None,
        debug: bool = False,
        snapshots: Mapping[str, StageSnapshot] | None = None,
        period: Period | None = None,
    ) -> None:
        missing = sorted({stage.device.id for stage in plan.stages} - set(devices))
        if missing:
            raise InputError(
                f"the plan needs the device {missing[0]!r}, which was not passed.", "pass `devices` by the plan's ids."
            )
        _require_few_programs(plan)
        self.plan: Final = plan
        self.period: Final = period or Period()
        self.links: Final[list[Link]] = []
        self.stages: Final[list[DeviceStage]] = []
        self._keep = keep
        self._ledger: Final = ContractLedger() if debug else None
        self._next = 0
        self.at = ""
        """The stage whose work was submitted last, or that could not be."""
        used = dict[str, int]()
        try:
            for planned, source, target in zip(plan.links, plan.stages, plan.stages[1:], strict=False):
                self.links.append(_link(planned, devices[source.device.id], devices[target.device.id]))
                self.links[-1].ledger = self._ledger
            for number, stage in enumerate(plan.stages):
                queue = used.setdefault(stage.device.id, 0)
                used[stage.device.id] += 1
                device = devices[stage.device.id]
                self.stages.append(
                    DeviceStage(
                        stage, device,
                        self.links[number - 1] if number else None,
                        self.links[number] if number < len(self.links) else None,
                        window=self._sink_window, unread=self._unread, queue=queue % queues_of(device), keep=keep,
                        timed=timed, observe=observe, hold=hold, check=check, ledger=self._ledger,
                        failed=self._raise_failure, snapshot=(snapshots or {}).get(stage.stage.id),
                    )
                )  # fmt: skip
            self.clock: Final = self._new_clock() if timed else None
        except BaseException:
            self.close()
            raise

    def _new_clock(self) -> ChainClock:
        clock = ChainClock([stage.device for stage in self.stages], [link.window for link in self.links])
        for stage, one in zip(self.stages, clock.stages, strict=True):
            stage.clock = one
        return clock

    @property
    def _sink_window(self) -> int:
        return self.links[-1].window if self.links else WINDOW

    @property
    def _unread(self) -> int:
        """Results that may be under way before the oldest is read: as many as there are slots in all links."""
        return sum(link.window for link in self.links) + self._sink_window + 2

    def run(self, payloads: Iterable[Payload]) -> Generator[ItemResult]:
        """Sends payloads through the chain and gives the results in order. One thread submits all work ahead of the
        devices: it waits for the slots that the first stage is fed through, and for the oldest result."""
        pending: deque[State] = deque()
        for payload in payloads:
            while len(pending) >= self._unread:
                yield self._next_result(pending.popleft())
            pending.append(self.submit(payload))
        while pending:
            yield self._next_result(pending.popleft())
        self.finish()
        if self._ledger is not None:
            self._ledger.close()

    def _next_result(self, state: State) -> ItemResult:
        """The result of an item, after what observers brought of all items before it: they are done by then."""
        result = self.read(state)
        for stage in self.stages:
            stage.read_looks(state.step)
        return result

    def count_from(self, step: int) -> None:
        """The first item of this chain is that step of the run, for observers: before any item is submitted."""
        for stage in self.stages:
            stage.first_step = step

    def finish(self) -> None:
        """Waits for what observers bring of the items that were submitted, and hands it to `observe`."""
        for stage in self.stages:
            stage.finish()

    def submit(self, payload: Payload) -> State:
        """Submits the work of all stages for the next item, and returns before any of it is done."""
        state = State(self._next, payload, self.plan.stages[0].depth_in, "source")
        self._next += 1
        ledger = self._ledger
        if ledger is not None:
            ledger.take(state.step, self.stages[0].id)
        for number, stage in enumerate(self.stages):
            self.at = stage.id
            state = stage(state)
            if ledger is not None and number + 1 < len(self.stages):
                ledger.hand_over(state.step, stage.id, self.stages[number + 1].id)
        self._note(state)
        return state

    def _note(self, state: State) -> None:
        assert isinstance(state.payload, DevicePayload)
        state.payload.after[0].when_done(lambda error: self.period.note() if error is None else None)

    def read(self, state: State) -> ItemResult:
        """The result of an item, which is waited for."""
        payload = state.payload
        assert isinstance(payload, DevicePayload)
        assert payload.digest is not None
        ticket: Ticket = payload.after[0]
        await_work(ticket, self._raise_failure)
        fields = {name: ticket.fetched(array) for name, array in payload.fetched_fields.items()}
        result = ItemResult(state.step, digest_text(ticket.fetched(payload.digest)), fields)
        if self._ledger is not None:
            self._ledger.hand_over(state.step, self.stages[-1].id, "")
        for stage in self.stages:
            stage.item_out(state.step)
        if self.clock is not None:
            self.clock.item_out(state.step)
        return result

    def _raise_failure(self) -> None:
        """Raises the error of the first stage that is known to have failed: work that comes after its work may never
        begin."""
        failed = self.failure()
        if failed is not None:
            self.at = failed[0]
            raise failed[1]

    @property
    def looked(self) -> int | None:
        """The first step of the run of which an observer or snapshot was not read; None where there is none."""
        return min((step for stage in self.stages if (step := stage.unread_look) is not None), default=None)

    def stage(self, name: str) -> DeviceStage:
        """The stage of that id."""
        return next(stage for stage in self.stages if stage.id == name)

    def failure(self) -> tuple[str, DashiError] | None:
        """The first stage of the chain whose work failed (it, its device or the link to it), and its error; None where
        all that was submitted was done."""
        failures = [(stage.id, failed) for stage in self.stages if (failed := stage.failure()) is not None]
        first = min((step for _, (step, _) in failures), default=0)
        return next(((name, error) for name, (step, error) in failures if step == first), None)

    def record(self) -> list[dict[str, Any]]:
        """What each stage is and did, and the link behind it."""
        return [
            {
                "id": stage.id,
                "device": stage.device.info.spec,
                "name": stage.device.info.name,
                "ops": [op.spec.id for op in stage.planned.ops],
                "observers": [op.spec.id for op in stage.planned.observers],
                "items_in": stage.items_in,
                "items_out": stage.items_out,
                "dispatches": stage.dispatches,
                "device_us": None if stage.device_seconds is None else round(stage.device_seconds * 1e6, 3),
                "predicted_us": round(stage.planned.seconds * 1e6, 3),
                "seconds": self._seconds(number),
                "restarts": 0,
                "link": self._link_record(number) if number < len(self.links) else None,
            }
            for number, stage in enumerate(self.stages)
        ]

    def _seconds(self, number: int) -> dict[str, float]:
        """What a stage did with its time, by the device's clock: work, and waiting by reason."""
        clock = self.clock
        return (StageUse() if clock is None else clock.totals[number]).as_json(self.stages[number].items_out)

    def _link_record(self, number: int) -> dict[str, Any]:
        used = None if self.clock is None else self.clock.mean_used(number)
        return self.links[number].record() | {"mean_used": None if used is None else round(used, 3)}

    def close(self) -> None:
        """Lets go of stages and links; what is under way is finished first. Closing twice is harmless."""
        for stage in self.stages:
            stage.close()
        for link in self.links:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def queues_of(device: Device) -> int:
    """How many queues for kernels a device has: as many as it was opened with; those of the host are made as they are
    named."""
    by_role = getattr(device, "by_role", None)
    return _HOST_QUEUES if by_role is None else len(by_role.compute)


def _require_few_programs(plan: StreamPlan) -> None:
    """Before any memory is taken: windows without a common divisor make as many pairs of slots as their product."""
    windows = [link.window for link in plan.links]
    for stage, before, behind in zip(plan.stages[1:], windows, windows[1:], strict=False):
        programs = math.lcm(before, behind)
        if programs > _MOST_PROGRAMS:
            raise StreamError(
                f"stage {stage.stage.id!r} between links of windows {before} and {behind} would have {programs} "
                f"programs, more than {_MOST_PROGRAMS}: one for each pair of slots.",
                "give both links the same window, or one a multiple of the other's.",
            )


def _link(planned: PlannedLink, source: Device, target: Device) -> Link:
    spec = planned.link
    return Link(
        source, target, planned.schema, window=planned.window, mode=spec.mode, codec=spec.codec,
        codec_options=spec.codec_options, strict=not spec.fallback, name=f"the link {spec.name}",
    )  # fmt: skip
