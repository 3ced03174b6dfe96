"""The threads of one stage: one computes or submits, one waits for what was submitted, one transfers results."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from dashi.errors import StreamError
from dashi.stream._contract import check_result, nothing_returned
from dashi.stream._stage_memory import StageMemory
from dashi.stream._tally import StageTally, Wait
from dashi.stream._worker import ItemSlots, Pending, Worker

if TYPE_CHECKING:
    from dashi.stream._executor import Executor

Remedy = Literal["restart", "move", "leave", "stop"]


@dataclass(frozen=True)
class Turn:
    """An item that a stage has begun to compute, or to send, in one of its lives."""

    slots: ItemSlots
    value: Any
    generation: int
    epoch: int = 0


class StageThreads:
    """A stage at work. `dead` is what is to be done about its death, while it is dead; `generation` counts its lives;
    a `broken` stage takes no more items. Attributes are guarded by the lock of the run."""

    def __init__(self, run: Executor, number: int, worker: Worker) -> None:
        self.run = run
        self.number = number
        self.id = worker.id
        self.worker = self._first = worker
        self.tally = StageTally()
        self.threads: list[threading.Thread] = []
        self.generation = 0
        self.lightened = False
        self.dead: Remedy | None = None
        self.broken = self.ended = self.moved = False
        self._ready = threading.Condition(run.lock)
        self._submitted = threading.Condition(run.lock)
        self._sendable = threading.Condition(run.lock)
        self._under_way: deque[tuple[Turn, Pending, float]] = deque()
        self._sending = self._closed = False
        self._free_since = 0.0
        self._shown = 0
        self._memory = StageMemory(worker)
        self.sends = worker.transfer is not None

    def start(self) -> None:
        """Starts its threads."""
        self._start_thread(self._compute_all, "")
        self._start_others(self.worker)

    def _start_others(self, worker: Worker) -> None:
        names = {thread.name for thread in self.threads}
        if worker.submit is not None and self._thread_name("wait") not in names:
            self._start_thread(self._await_all, "wait")
        if worker.transfer is not None and self._thread_name("transfer") not in names:
            self._start_thread(self._send_all, "transfer")

    def _thread_name(self, part: str) -> str:
        return f"dashi-stream-{self.id}" + (f"-{part}" if part else "")

    def _start_thread(self, target: Callable[[], None], part: str) -> None:
        thread = threading.Thread(target=target, name=self._thread_name(part), daemon=True)
        thread.start()
        self.threads.append(thread)

    def wake(self) -> None:
        """Lets all threads of the stage look again; the lock is held."""
        self._ready.notify()
        self._submitted.notify()
        self._sendable.notify()

    def remedy(self, error: BaseException) -> Remedy:
        """What is done about an error. A broken contract is broken again by the same callable."""
        if isinstance(error, StreamError) or not isinstance(error, Exception):
            return "stop"
        if self.tally.restarts < self._first.restarts:
            return "restart"
        if self._first.elsewhere is not None and not self.moved:
            return "move"
        return "leave" if self._may_leave() else "stop"

    def _may_leave(self) -> bool:
        """Whether the next stage may run its ops: all are migratable, and that one is made of ops, and deep enough."""
        run, i = self.run, self.number
        if not self._first.remap or i + 1 >= len(run.stages) or not run.division.of(i):
            return False
        heir = run.stages[i + 1]
        deepest = heir.worker.max_depth
        fits = all(op.migratable and (deepest is None or op.depth_out <= deepest) for op in run.division.of(i))
        return fits and bool(heir.worker.ops) and not heir.broken

    @property
    def can_lighten(self) -> bool:
        """Whether its transfer may carry less, and does not yet."""
        return self.worker.lighter is not None and not self.lightened

    # Computing

    def _compute_all(self) -> None:
        run = self.run
        try:
            self._attempt(self._open, run.chain.reserved[self.number + 1])
            while (turn := self._next()) is not None:
                if isinstance(turn, Turn):
                    self._do(turn)
                else:
                    self._revive(turn)
        finally:
            with run.lock:
                self.ended = True
                self._submitted.notify()
            for thread in self.threads[1:]:
                thread.join()
            self._close()
            run.stage_ended(self)

    def _next(self) -> Turn | Remedy | None:
        """The next item, begun, when it and a slot for its result are there; what is to be done where the stage died;
        None at the end."""
        run, chain, i = self.run, self.run.chain, self.number
        with run.lock:
            while True:
                if run.dropping or self.broken or (self.dead is None and self._safe() >= run.limit):
                    self.tally.waits_for("")
                    return None
                if self.dead is not None:
                    if not self._under_way and not self._sending:
                        return self.dead
                    self.tally.waits_for("restarting")
                elif chain.may_begin(i) and chain.reserved[i + 1] < run.limit:
                    self.tally.waits_for("")
                    return self._begin()
                else:
                    self.tally.waits_for(self._reason())
                self._ready.wait()

    def _begin(self) -> Turn:
        run, chain, i = self.run, self.run.chain, self.number
        item = chain.reserved[i + 1]
        slots = ItemSlots(item, chain.slot(i, item), chain.slot(i + 1, item))
        chain.begin(i)
        run.reserved(i + 1)
        self.tally.items_in += 1
        return Turn(slots, run.inbox[i][slots.source], self.generation)

    def _safe(self) -> int:
        """Items below are out of this stage's hands: it will neither compute nor send them again."""
        return self._sent() if self.sends else self.run.chain.written[self.number + 1]

    def _reason(self) -> Wait:
        chain, i = self.run.chain, self.number
        if chain.reserved[i + 1] - chain.written[i + 1] >= chain.ahead[i]:
            return "ahead"
        if not chain.has_input(i):
            return "ahead" if self._under_way else "starved"
        return "blocked"

    def _do(self, turn: Turn) -> None:
        run, worker, value = self.run, self.worker, turn.value
        began = time.perf_counter()
        try:
            if worker.compute is not None:
                self._finish(turn, worker.compute(value), began)
            elif worker.submit is None:
                self._finish(turn, self._run_ops(turn.slots.item, value), began)
            else:
                pending = worker.submit(value, turn.slots)
                with run.lock:
                    self._under_way.append((turn, pending, began))
                    self._submitted.notify()
        except BaseException as error:  # whoever pops gets it
            run.fail(self, turn.slots.item, error, turn.generation)

    def _run_ops(self, item: int, value: Any) -> Any:
        division, result = self.run.division, value
        for op in division.ops_for(self.number, item):
            began = time.perf_counter()
            before, result = result, op.call(result)
            division.count(op, time.perf_counter() - began)
            check_result(f"{self.id}: {op.id}", item, before, result, device=self.worker.device, last=True)
        return result

    def _finish(self, turn: Turn, result: Any, began: float) -> None:
        """Hands a result on."""
        run, j, worker, item = self.run, self.number + 1, self.worker, turn.slots.item
        ended = time.perf_counter()
        check_result(self.id, item, turn.value, result, device=worker.device, last=j == run.chain.last)
        if worker.check is not None:
            worker.check(result)
        self._show(item, result)
        self._memory.keep(item, turn.value, run.chain.delivered[j])
        with run.lock:
            if turn.generation != self.generation or item >= run.limit:
                return
            run.outbox[j][turn.slots.target] = result
            run.chain.finish(self.number)
            self.tally.items_out += 1
            self.tally.compute_seconds += ended - max(began, self._free_since)
            self._free_since = ended
            run.release(self.number)
            run.pass_on(j)
            self._ready.notify()

    def _show(self, item: int, result: Any) -> None:
        """Shows a result to those who look on; once, however often it is computed."""
        if item < self._shown:
            return
        tasks = self.run.side.of(self.number, item)
        if tasks:
            fetch = self.worker.fetch
            shown = result if fetch is None else fetch(result)
            with self.run.lock:
                self.tally.waits_for("observing")
            for task in tasks:
                self.run.side.show(task, item, shown)
            with self.run.lock:
                self.tally.waits_for("")
        self._shown = item + 1

    # Waiting for what was submitted

    def _await_all(self) -> None:
        run = self.run
        while True:
            with run.lock:
                while not self._under_way:
                    if self.ended:
                        return
                    self._submitted.wait()
                turn, pending, began = self._under_way[0]
            try:
                result = pending.wait()
                if turn.generation == self.generation and turn.slots.item < run.limit:
                    self._finish(turn, result, began)
            except BaseException as error:  # whoever pops gets it
                run.fail(self, turn.slots.item, error, turn.generation)
            with run.lock:
                self._under_way.popleft()
                self._ready.notify()
            del turn, pending

    # Transferring

    def _send_all(self) -> None:
        run, j = self.run, self.number + 1
        while (turn := self._next_to_send()) is not None:
            began, item = time.perf_counter(), turn.slots.item
            try:
                moved = self._moved(turn.value)
                if moved is None:
                    raise nothing_returned(self.id, "transfer", item)
            except BaseException as error:  # whoever pops gets it
                run.fail(self, item, error, turn.generation)
                moved = None
            with run.lock:
                self._sending = False
                self.tally.transfer_seconds += time.perf_counter() - began
                if moved is not None and turn.epoch == run.epochs[j]:
                    run.inbox[j][turn.slots.target] = moved
                    run.delivered(j)
                self._ready.notify()
            del turn, moved

    def _moved(self, result: Any) -> Any:
        worker = self.worker
        transfer = worker.lighter if self.lightened and worker.lighter is not None else worker.transfer
        return result if transfer is None else transfer(result)

    def _next_to_send(self) -> Turn | None:
        run, chain, j = self.run, self.run.chain, self.number + 1
        with run.lock:
            while True:
                if run.dropping or self._sent() >= run.limit:
                    return None
                taken = j < chain.last and run.stages[j].dead is not None
                if chain.may_deliver(j) and self.dead is None and not taken and chain.delivered[j] < run.limit:
                    self._sending = True
                    item = chain.delivered[j]
                    slots = ItemSlots(item, chain.slot(self.number, item), chain.slot(j, item))
                    return Turn(slots, run.outbox[j][slots.target], self.generation, run.epochs[j])
                self._sendable.wait()

    def _sent(self) -> int:
        """Items below will not be sent again."""
        chain, j = self.run.chain, self.number + 1
        again = j < chain.last and chain.volatile[j]
        return chain.released[j] if again else chain.delivered[j]

    # Beginning anew

    def _open(self) -> None:
        if self.worker.open is not None:
            self.worker.open()
        self._memory.load(self.worker, self.run.chain.written[self.number + 1])

    def _revive(self, remedy: Remedy) -> None:
        run = self.run
        item = run.chain.written[self.number + 1]
        make = {"move": self._first.elsewhere, "leave": self._leave_ops}.get(remedy, self._first.make)
        with run.lock:
            self.tally.waits_for("restarting")
            self.moved = self.moved or remedy == "move"
            self.tally.restarts += remedy == "restart"
        if make is not None:
            self._close()
        if not self._attempt(lambda: self._begin_anew(make), item):
            return
        with run.lock:
            self.dead = None
            where = f" on {self.worker.device}" if self.worker.device else ""
            kind = {"move": "moved", "leave": "left"}.get(remedy, "restarted")
            if remedy == "leave":
                where = f": {run.stages[self.number + 1].id!r} runs its ops"
            run.note(kind, self.id, item, f"goes on{where} at item {item}, the first that was not handed on")
            run.wake_all()

    def _begin_anew(self, make: Callable[[], Worker] | None) -> None:
        if make is None:
            self._memory.load(self.worker, self.run.chain.written[self.number + 1])
            return
        worker = replace(make(), id=self.id)
        with self.run.lock:
            if worker.ops:  # else it runs none
                self.run.division.renew(worker.ops, self.number, self.id, worker.device)
            self.worker, self._closed = worker, False
            self.run.chain.ahead[self.number] = self.worker.depth
            self.sends = self.sends or self.worker.transfer is not None
            self._start_others(self.worker)
        self._open()

    def _leave_ops(self) -> Worker:
        """Gives its ops to the next stage; what remains passes items through."""
        heir = self.run.stages[self.number + 1].worker
        with self.run.lock:
            self.run.division.move_all_right(self.number, self.run.chain.written[self.number + 1], heir.device)
        return Worker(self.id, compute=_pass, device=heir.device)

    def _attempt(self, call: Callable[[], object], item: int) -> bool:
        try:
            call()
        except BaseException as error:  # whoever pops gets it
            self.run.fail(self, item, error, self.generation)
            return False
        return True

    def _close(self) -> None:
        worker = self.worker
        if worker.close is None or self._closed:
            return
        self._closed = True
        try:
            worker.close()
        except BaseException as error:  # the stage has ended all the same, and its first error counts
            with self.run.lock:
                self.run.note("close failed", self.id, self.run.chain.written[self.number + 1], repr(error))


def _pass(value: Any) -> Any:
    return value
