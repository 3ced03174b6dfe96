"""The slots of a link and who may use which when: step t has slot t mod W, which is its consumer's until he says that
he is done, by the value t + 1 of a timeline that only grows."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from dashi.errors import BusyError, InputError
from dashi.runtime.landing import Ticket, require_tickets


class Ring:
    """W slots between one producer and one consumer. Nothing here waits for devices: what must be waited for there are
    tickets. Thread-safe: producer and consumer may be two threads."""

    def __init__(self, window: int, name: str) -> None:
        if window < 1:
            raise InputError(
                f"a window of {window} slots lets nothing through {name}.", "pass `window=` of 1 or more; 3 is usual."
            )
        self.window: Final = window
        self.name: Final = name
        self._changed = threading.Condition()
        self._taken = self._sent = self._received = 0
        self._ends: deque[list[Ticket]] = deque()
        """What ends the use of the slots of the last steps that were released, the oldest first."""
        self._released = 0

    @property
    def values(self) -> tuple[int, int]:
        """(sent, released): how far the timelines of producer and consumer are. Neither ever falls."""
        with self._changed:
            return self._sent, self._released

    def slot(self, step: int) -> int:
        """The slot of a step."""
        return step % self.window

    def take(self, step: int, timeout: float = 0.0) -> list[Ticket]:
        """The slot of the next step becomes the producer's: he writes it after what is returned. Waits, `timeout`
        seconds at most, until the consumer has released what was there before; then raises BusyError."""
        with self._changed:
            self._require(step, self._taken, "written")
            needed = step - self.window + 1
            deadline = time.monotonic() + timeout
            while self._released < needed:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    if self._released >= needed:
                        break
                    raise BusyError(
                        f"all {self.window} slots of {self.name} are full: step {step} needs that of step "
                        f"{step - self.window}, which its consumer has not released.",
                        "take items out of the chain before more go in, or pass a wider `window=`.",
                    )
            self._taken += 1
            return self._ends.popleft() if needed > 0 else []

    def sent(self, step: int) -> None:
        """The producer has submitted what fills the slot of a step."""
        with self._changed:
            self._require(step, self._sent, "sent")
            if step >= self._taken:
                raise InputError(f"step {step} of {self.name} has no slot yet.", "ask for its slot before it is sent.")
            self._sent += 1
            self._changed.notify_all()

    def receive(self, step: int) -> None:
        """The slot of a step is the consumer's now."""
        with self._changed:
            self._require(step, self._received, "received")
            if step >= self._sent:
                raise BusyError(
                    f"step {step} of {self.name} was not sent yet: {self._sent} were.", "send it before it is read."
                )
            self._received += 1

    def release(self, step: int, after: Iterable[Ticket]) -> None:
        """The consumer needs the slot of a step no more, once that work is done."""
        tickets = [ticket.end for ticket in require_tickets(after)] if after else []
        with self._changed:
            self._require(step, self._released, "released")
            if step >= self._received:
                raise InputError(
                    f"step {step} of {self.name} is released, but was not received.",
                    "receive a step before its release.",
                )
            self._ends.append(tickets)
            self._released += 1
            self._changed.notify_all()

    def _require(self, step: int, expected: int, what: str) -> None:
        if step != expected:
            raise InputError(
                f"step {step} of {self.name} is {what}, where step {expected} is next.",
                "steps go through a link in order, each once.",
            )
