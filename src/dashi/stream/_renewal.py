"""Items through chains on devices, one after another: a chain that loses a device, or is to be another, ends, and the
next goes on with the first item that has not come out.

Ops of a plan have no memory: an item that is computed again has the same bits. What has come out stays, what had not is
sent again, in order; observers and snapshots see each step once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dashi.errors import DashiError, DeviceError, DeviceLostError, InputError, StreamRuleError
from dashi.runtime.device import Device
from dashi.stream._device_chain import DeviceChain, ItemResult, Period
from dashi.stream._device_stage import Observe
from dashi.stream._executor import describe
from dashi.stream._loss import LossPolicy
from dashi.stream._model import Payload
from dashi.stream._plan import StreamPlan
from dashi.stream._report import ChainEvent
from dashi.stream._stage_times import StageUse
from dashi.types import HostArray

EVENTS_KEPT: Final = 1000
Opened = Callable[[str, Device], AbstractContextManager[object]]
"""Is entered with the id of each device that is opened, and left before it is closed."""


class RetainedItems:
    """Payloads on their way: those that were sent and have not come out, and the last that has, can be sent again."""

    def __init__(self, payloads: Iterable[Payload]) -> None:
        self._source: Final = iter(payloads)
        self._sent: Final[deque[Payload]] = deque()
        self._first = 0
        """The number of the oldest of those."""
        self.out = 0
        """Items that have come out; the number of the next."""
        self.halted = False
        """No more are sent by now: those under way come out, and the chain ends."""

    def go_on(self, item: int) -> Iterator[Payload]:
        """From that item on, which is the first that has not come out or the one before: those that were sent before,
        then new ones."""
        self.halted = False
        for payload in [*self._sent][item - self._first :]:
            yield payload
            if self.halted:
                return
        for payload in self._source:
            self._sent.append(payload)
            yield payload
            if self.halted:
                return

    def came_out(self, item: int) -> bool:
        """An item is out; whether it is the first time."""
        if item < self.out:
            return False
        while self._first < self.out:
            self._sent.popleft()
            self._first += 1
        self.out += 1
        return True


class FirstLooks:
    """Hands on what observers and snapshots bring of each step of a stage once, however often it is computed."""

    def __init__(self) -> None:
        self._next: Final[dict[tuple[str, str], int]] = {}

    def once(self, kind: str, observe: Observe) -> Observe:
        """Hands on steps that are new."""

        def first(step: int, stage: str, values: Mapping[str, HostArray]) -> None:
            if step >= self._next.get((kind, stage), 0):
                self._next[kind, stage] = step + 1
                observe(step, stage, values)

        return first


@dataclass
class StageTotals:
    """What a stage did in all chains so far."""

    items_in: int = 0
    items_out: int = 0
    dispatches: int = 0
    restarts: int = 0
    seconds: StageUse = field(default_factory=StageUse)

    def add(self, record: Mapping[str, Any], seconds: StageUse | None) -> None:
        """Adds those of a chain that has ended."""
        self.items_in += record["items_in"]
        self.items_out += record["items_out"]
        self.dispatches += record["dispatches"]
        if seconds is not None:
            for name in vars(seconds):
                setattr(self.seconds, name, getattr(self.seconds, name) + getattr(seconds, name))


class RenewedChain:
    """The chain of a plan over a run. `make` makes the chain of a plan on open devices, `open_devices` opens those of a
    plan; `policy` says what happens where one is lost."""

    def __init__(
        self,
        plan: StreamPlan,
        policy: LossPolicy,
        open_devices: Callable[[StreamPlan, ExitStack], Mapping[str, Device]],
        make: Callable[[StreamPlan, Mapping[str, Device], Period], DeviceChain],
    ) -> None:
        policy.require_possible(plan)
        self.plan = plan
        self.events: Final[list[ChainEvent]] = []
        self.events_left_out = 0
        self.period: Final = Period()
        self.totals: Final = {planned.stage.id: StageTotals() for planned in plan.stages}
        self.turn: Callable[[DeviceChain, int], StreamPlan | None] | None = None
        """Called with the chain and the number of items that are out, after each; a plan that it returns is gone on
        with."""
        self._policy, self._open, self._make = policy, open_devices, make
        self._deaths = dict[str, int]()
        self._gone = set[str]()
        self._chain: DeviceChain | None = None
        self._last: list[dict[str, Any]] = []

    def run(self, payloads: Iterable[Payload]) -> Generator[ItemResult]:
        """Sends payloads through and gives results in order, numbered over all chains."""
        items, first = RetainedItems(payloads), 0
        while True:
            with ExitStack() as stack:
                chain = self._begin(stack, first)
                if chain is None:
                    continue
                following, lost, failed = None, False, None
                try:
                    for result in chain.run(items.go_on(first)):
                        if not items.came_out(first + result.step):
                            continue
                        yield replace(result, step=first + result.step)
                        if self.turn is not None and following is None:
                            following = self.turn(chain, items.out)
                            items.halted = following is not None
                except DashiError as error:
                    failed = chain.failure()
                    if not any(isinstance(one, DeviceLostError) for one in (error, failed and failed[1])):
                        raise
                    self._recover(chain.at if failed is None else failed[0], error, items.out)
                    lost = True
                    # What observers saw of the last item out may be lost with the device.
                    first = items.out if chain.looked is None else min(items.out, chain.looked)
                finally:
                    self._end(chain)
                    self.period.count(items.out)
                    if failed is not None:
                        # First: work of others that waits for its work is let go.
                        chain.stage(failed[0]).device.close()
                    if lost:  # what closing a lost device says is known already
                        stack.push(_ignore)
            if following is not None and not lost:
                self.plan, first = following, items.out
            elif not lost:
                return

    def _begin(self, stack: ExitStack, item: int) -> DeviceChain | None:
        """The chain, open; None where a device that was lost does not open again, and the plan is another now."""
        try:
            chain = stack.enter_context(self._make(self.plan, self._open(self.plan, stack), self.period))
        except DeviceError as error:
            if not self._deaths:  # none was lost: it was never there
                raise
            self._recover([*self._deaths][-1], error, item)
            return None
        chain.count_from(item)
        self._chain = chain
        return chain

    def _end(self, chain: DeviceChain) -> None:
        self._last, self._chain = chain.record(), None
        for number, record in enumerate(self._last):
            clock = chain.clock
            self.totals[record["id"]].add(record, None if clock is None else clock.totals[number])

    def _recover(self, stage: str, error: DashiError, item: int) -> None:
        """The plan to go on with, or the error where the policy has nothing left."""
        self.note("died", stage, item, describe(error))
        deaths = self._deaths.pop(stage, 0) + 1
        self._deaths[stage] = deaths  # the last one is that of the device which was lost last
        if deaths <= self._policy.restarts:
            self.totals[stage].restarts += 1
            self.note("restarted", stage, item, f"goes on at item {item}, the first that had not come out")
            return
        lost = next(planned.device for planned in self.plan.stages if planned.stage.id == stage)
        self._gone.add(lost.id)
        if not self._policy.elsewhere:
            raise error
        try:
            self.plan, where = self._policy.moved(self.plan, lost.id, self._gone)
        except (StreamRuleError, InputError) as refused:
            self.note("not moved", stage, item, refused.what)
            raise error from refused
        self.note("moved", stage, item, f"the stages of device {lost.id} go on at item {item}, on {where}")

    def note(self, kind: str, place: str, item: int, reason: str) -> None:
        """Adds to the record of the run."""
        if len(self.events) < EVENTS_KEPT:
            self.events.append(ChainEvent(kind, place, item, reason))
        else:
            self.events_left_out += 1

    def record(self) -> list[dict[str, Any]]:
        """What each stage is and did, in all chains so far, and the link behind it now."""
        chain = self._chain
        records = self._last if chain is None else chain.record()
        clock = None if chain is None else chain.clock
        whole: list[dict[str, Any]] = []
        for number, record in enumerate(records):
            totals = self.totals[record["id"]]
            if chain is not None:
                now = StageTotals(totals.items_in, totals.items_out, totals.dispatches, totals.restarts)
                now.seconds = replace(totals.seconds)
                now.add(record, None if clock is None else clock.totals[number])
                totals = now
            whole.append(
                record | {name: getattr(totals, name) for name in ("items_in", "items_out", "dispatches", "restarts")}
                | {"seconds": totals.seconds.as_json(totals.items_out)}
            )  # fmt: skip
        return whole


def _ignore(_kind: object, error: BaseException | None, _trace: object) -> bool:
    """Errors of closing what a lost device leaves."""
    return isinstance(error, DashiError)
