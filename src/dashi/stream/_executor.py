"""Threads over a chain: what they share, and what happens where a stage fails. The counts are `ChainState`'s."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from dashi.errors import ClosedError, InputError, StageFailedError, StalledError, StreamError
from dashi.stream._chain import ChainState
from dashi.stream._division import Division
from dashi.stream._report import ChainEvent, ChainReport, build_report, stalled_text
from dashi.stream._side_band import SideBand, SideTask
from dashi.stream._stage_threads import StageThreads
from dashi.stream._tally import LinkTally
from dashi.stream._worker import Worker

OnError = Literal["drop", "drain"]
NOTHING: Final = object()
"""What `pop` gives where nothing is there yet."""
END: Final = object()
"""What `pop` gives after the last item."""

_EVENTS_KEPT: Final = 1000


class Executor:
    """A chain that runs: its state, what lies in its slots, its threads. Every attribute is guarded by `lock`.

    Items below `limit` go through to the sink: those that were pushed when the input ended, or those before the first
    that a stage failed at. `dropping` ends all threads at once.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        windows: Sequence[int],
        capacity: Sequence[int],
        *,
        on_error: OnError,
        tasks: Sequence[SideTask],
    ) -> None:
        # Taken again by a thread that has it where the garbage collector, run by that thread, finds the pipeline dead.
        self.lock = threading.RLock()
        self.front = threading.Condition(self.lock)
        depths, volatile = [worker.depth for worker in workers], [worker.volatile for worker in workers]
        self.chain = ChainState(windows, capacity=capacity, ahead=depths, volatile=volatile)
        self.outbox: list[list[Any]] = [[None] * slots for slots in capacity]
        self.inbox: list[list[Any]] = [[None] * slots for slots in capacity]
        self.links = [LinkTally() for _ in capacity]
        self.epochs = [0] * len(capacity)
        """Changes where what is on its way over a link must not land any more."""
        self.limit = sys.maxsize
        self.ended = self.dropping = self.closed = False
        self.error: StreamError | None = None
        self.error_was_raised = False
        self.on_error: OnError = on_error
        self.events: list[ChainEvent] = []
        self.events_left_out = 0
        self.began = time.perf_counter()
        self.finished_at: float | None = None
        self.division = Division(workers)
        self.side = SideBand(tasks, self._side_failed, self.lock)
        self.stages = [StageThreads(self, number, worker) for number, worker in enumerate(workers)]
        self._stages_left = len(self.stages)
        self.on_turn: Callable[[], None] | None = None
        """Called now and then by whoever pops, with the lock held: what adapts the chain."""

    def start(self) -> None:
        """Starts the threads."""
        self.began = time.perf_counter()
        self.side.start()
        for stage in self.stages:
            stage.start()

    # The source and the sink

    def push(self, item: Any, timeout: float | None) -> bool:
        """Puts an item in; False where the first link stays full for `timeout` seconds (None: the error says why)."""
        if item is None:
            raise InputError("None is no item: it says that nothing is there.", "push a value.")
        with self.front:
            self._wait_in_front(lambda: self.chain.may_push() or self._closed_to_input(), timeout)
            self._require_open()
            if self.error is not None:
                raise self.first_error()
            if self.ended:
                raise ClosedError("an item was pushed after join().", "push before join(); make another pipeline.")
            if not self.chain.may_push():
                return False
            slot = self.chain.slot(0, self.chain.reserved[0])
            self.outbox[0][slot] = item
            self.chain.push()
            self._link_changed(0)
            self.pass_on(0)
            return True

    def _closed_to_input(self) -> bool:
        return self.closed or self.dropping or self.ended or self.error is not None

    def pop(self, timeout: float | None) -> Any:
        """The next item in order; NOTHING where none comes for `timeout` seconds, END after the last."""
        chain = self.chain
        with self.front:
            self._wait_in_front(lambda: self._item_is_there() or self._nothing_comes(), timeout)
            self._require_open()
            if self._item_is_there():
                slot = chain.slot(chain.last, chain.released[chain.last])
                item = self.inbox[chain.last][slot]
                self.outbox[chain.last][slot] = self.inbox[chain.last][slot] = None
                chain.pop()
                self._link_changed(chain.last)
                self.stages[-1].wake()
                self.front.notify_all()
                if self.on_turn is not None:
                    self.on_turn()
                return item
            if self._nothing_comes():
                if self.error is not None:
                    raise self.first_error()
                return END
            return NOTHING

    def _item_is_there(self) -> bool:
        chain = self.chain
        return not self.dropping and chain.may_pop() and chain.released[chain.last] < self.limit

    def _nothing_comes(self) -> bool:
        return self.closed or self.dropping or self.chain.released[self.chain.last] >= self.limit

    def _require_open(self) -> None:
        if self.closed or (self.dropping and self.error is None):
            raise ClosedError("this pipeline was stopped.", "make another one: dashi.stream.Pipeline(stages).")

    def _wait_in_front(self, condition: Callable[[], bool], timeout: float | None) -> None:
        limit = threading.TIMEOUT_MAX if timeout is None else min(timeout, threading.TIMEOUT_MAX)
        self.front.wait_for(condition, limit)

    def first_error(self) -> StreamError:
        """The error that ended the run, for whoever raises it."""
        assert self.error is not None
        self.error_was_raised = True
        return self.error

    def end_input(self) -> None:
        """No more items come: what was pushed is the whole."""
        with self.lock:
            self._require_open()
            if not self.ended:
                self.ended = True
                self.limit = min(self.limit, self.chain.written[0])
                self.wake_all()

    def stalled(self, doing: str, seconds: float) -> StalledError:
        """An error that says why nothing moves."""
        with self.lock:
            what, fix = stalled_text(self)
        return StalledError(f"{doing} waited {seconds:g} s: {what}", fix)

    # What the threads of stages call, with the lock held

    def pass_on(self, j: int) -> None:
        """Link j has another item: it is handed over, by a thread where there is something to transfer."""
        if j > 0 and self.stages[j - 1].sends:
            self.stages[j - 1].wake()
            return
        chain = self.chain
        while chain.may_deliver(j):
            slot = chain.slot(j, chain.delivered[j])
            self.inbox[j][slot] = self.outbox[j][slot]
            self.delivered(j)

    def delivered(self, j: int) -> None:
        """The next item of link j has reached its consumer."""
        self.chain.deliver(j)
        if j > 0:
            self.release(j - 1)
        if j == self.chain.last:
            self.front.notify_all()
        else:
            self.stages[j].wake()

    def release(self, i: int) -> None:
        """Slots of link i that stage i needs no more are free again."""
        chain = self.chain
        while chain.may_release(i):
            slot = chain.slot(i, chain.released[i])
            self.outbox[i][slot] = self.inbox[i][slot] = None
            chain.release(i)
            self._link_changed(i)
            if i == 0:
                self.front.notify_all()
            else:
                self.stages[i - 1].wake()

    def reserved(self, j: int) -> None:
        """A slot of link j was reserved."""
        self._link_changed(j)

    def _link_changed(self, j: int) -> None:
        self.links[j].use(self.chain.reserved[j] - self.chain.released[j])

    def wake_all(self) -> None:
        """Everybody looks again."""
        self.front.notify_all()
        for stage in self.stages:
            stage.wake()

    def note(self, kind: str, place: str, item: int, reason: str) -> None:
        """Adds a line to the record of the run; the first thousand are kept, others are counted."""
        if len(self.events) < _EVENTS_KEPT:
            self.events.append(ChainEvent(kind, place, item, reason))
        else:
            self.events_left_out += 1

    # What goes wrong

    def fail(self, stage: StageThreads, item: int, error: BaseException, generation: int) -> None:
        """Stage failed at an item: it begins anew, is moved, or ends the run. What an earlier life of the stage still
        has to say is written down, and no more."""
        with self.lock:
            text = describe(error)
            if generation != stage.generation or self.dropping:
                self.note("also", stage.id, item, text)
                return
            remedy = "stop" if stage.broken or stage.ended else stage.remedy(error)  # no thread would begin it anew
            if remedy == "stop":
                stage.broken, stage.dead = True, None
                self.give_up(item, failure(stage.id, item, error), stage.id)
                return
            self.note("died", stage.id, item, text)
            if not self.chain.may_survive(stage.number):
                stage.broken, stage.dead = True, None
                self.give_up(self.chain.delivered[stage.number + 1], self._lost(stage.number, error), stage.id)
                return
            self.bury(stage)
            stage.dead = remedy
            self.wake_all()

    def _lost(self, i: int, error: BaseException) -> StreamError:
        first, end = self.chain.delivered[i + 1], self.chain.released[i] - 1
        ids = [stage.id for stage in self.stages]
        lost = StageFailedError(
            f"items {first} to {end} are lost: {ids[i]!r} died while {ids[i + 1]!r} was dead, and only those two had "
            f"them ({describe(error)}).",
            f"push them again from item {first} on; of two neighbours, let one at most be `volatile`.",
        )
        lost.stage, lost.step = ids[i], first
        lost.__cause__ = error
        return lost

    def bury(self, stage: StageThreads) -> None:
        """What a dead stage took with it is lost, and lies in the slots before it again."""
        i, chain = stage.number, self.chain
        stage.generation += 1
        self.division.forget(chain.released[chain.last])
        gone = range(chain.delivered[i + 1], chain.written[i + 1]) if chain.volatile[i] else range(0)
        for item in gone:
            self.outbox[i + 1][chain.slot(i + 1, item)] = None
        if chain.volatile[i]:
            self.release(i)
            self.inbox[i] = [None] * chain.capacity[i]
            self.epochs[i] += 1
            self.epochs[i + 1] += 1
        chain.kill(i)
        self._link_changed(i + 1)
        self.pass_on(i)

    def give_up(self, item: int, error: StreamError, place: str) -> None:
        """The run ends before this item; the first error is the one that is raised."""
        self.note("failed", place, item, error.what if error.__cause__ is None else describe(error.__cause__))
        if self.error is None:
            self.error = error
        self.limit = min(self.limit, item)
        self.dropping = self.dropping or self.on_error == "drop"
        if self.dropping:
            self.side.stop(drop=True)
        self.wake_all()

    def _side_failed(self, task: SideTask, item: int, error: BaseException) -> None:
        with self.lock:
            if self.dropping:
                self.note("also", task.label, item, describe(error))
                return
            caught = error if isinstance(error, StreamError) else failure(task.label, item, error)
            self.give_up(self.chain.written[0], caught, task.label)

    # The end

    def stage_ended(self, stage: StageThreads) -> None:
        """The last of its threads ends; after the last stage there is nothing more to look at."""
        with self.lock:
            self._stages_left -= 1
            if not self._stages_left:
                self.finished_at = time.perf_counter()
                self.side.stop(drop=False)

    def ask_to_stop(self) -> None:
        """Every thread ends as soon as it can; nobody waits for that here."""
        with self.lock:
            self.dropping = True
            self.side.stop(drop=True)
            self.wake_all()

    def threads(self) -> list[tuple[str, threading.Thread]]:
        """Started threads, each with the stage that it works for."""
        with self.lock:
            mine = [(stage.id, thread) for stage in self.stages for thread in stage.threads]
        return [*mine, *(("observers", thread) for thread in self.side.threads)]

    def empty(self) -> None:
        """Lets go of everything that lay in slots."""
        with self.lock:
            self.closed = True
            self.outbox = [[None] * len(box) for box in self.outbox]
            self.inbox = [[None] * len(box) for box in self.inbox]
            self.front.notify_all()

    def report(self) -> ChainReport:
        """How the chain is doing."""
        with self.lock:
            return build_report(self)


def describe(error: BaseException) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def failure(place: str, item: int, error: BaseException) -> StreamError:
    """The error that a caller gets: it names the stage and the item, and has the stage's own as its cause. What breaks
    a rule of the chain says so itself."""
    if isinstance(error, StreamError):
        if isinstance(error, StageFailedError):
            error.stage, error.step = place, item
        return error
    failed = StageFailedError(
        f"{place!r} failed at item {item}: {describe(error)}",
        "see its cause, the error above; `restarts=` of a Worker begins a stage anew, and `on_error='drain'` first "
        "gives the items before that one.",
    )
    failed.stage, failed.step = place, item
    failed.__cause__ = error
    return failed
