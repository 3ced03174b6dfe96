"""The counts of a chain: what each link has handed on, which ring slots are free, who owns an item. No threads here.

Stage i reads link i and writes link i + 1; link 0 begins at the source, the last one ends at the sink. An item is a
number, in the order of its push. On each link four counts run after one another:

    released <= delivered <= written <= reserved <= released + window

Items below `reserved` have a ring slot of the link, below `written` their value is in it, below `delivered` the
consumer has it too, and below `released` the consumer has signalled that it needs it no more: only then may the slot
be reserved again. Threads, ranks of a cluster and the tests drive the same transitions; the Promela model of the tests
is made from the text of this class, so that its methods use counts, comparisons and assignments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ItemOwner:
    """Who has the canonical state of an item: a stage by its number, the "source" or the "sink"; on its way there it
    still is the sender's."""

    place: int | str


class ChainState:
    """Counts of each link, and the transitions that may change them. `capacity` is the number of ring slots of each
    link and never changes; `window` is how many of them may be in use, and may be raised. A stage that is `volatile`
    takes what it has received and not yet handed over with it when it dies."""

    def __init__(
        self,
        window: Sequence[int],
        *,
        capacity: Sequence[int] | None = None,
        ahead: Sequence[int] | None = None,
        volatile: Sequence[bool] | None = None,
    ) -> None:
        links = len(window)
        self.window = [*window]
        self.capacity = [*(window if capacity is None else capacity)]
        self.ahead = [1] * (links - 1) if ahead is None else [*ahead]
        self.volatile = [False] * (links - 1) if volatile is None else [*volatile]
        self.last = links - 1
        self.reserved = [0] * links
        self.written = [0] * links
        self.delivered = [0] * links
        self.released = [0] * links

    # The source and the sink

    def may_push(self) -> bool:
        return self.reserved[0] < self.released[0] + self.window[0]

    def push(self) -> None:
        self.reserved[0] += 1
        self.written[0] += 1

    def may_pop(self) -> bool:
        return self.released[self.last] < self.delivered[self.last]

    def pop(self) -> None:
        self.released[self.last] += 1

    # Stages and links

    def has_input(self, i: int) -> bool:
        return self.reserved[i + 1] < self.delivered[i]

    def has_slot(self, i: int) -> bool:
        return self.reserved[i + 1] < self.released[i + 1] + self.window[i + 1]

    def may_begin(self, i: int) -> bool:
        return self.has_input(i) and self.has_slot(i) and self.reserved[i + 1] < self.written[i + 1] + self.ahead[i]

    def begin(self, i: int) -> None:
        self.reserved[i + 1] += 1

    def may_finish(self, i: int) -> bool:
        return self.written[i + 1] < self.reserved[i + 1]

    def finish(self, i: int) -> None:
        self.written[i + 1] += 1

    def may_deliver(self, j: int) -> bool:
        return self.delivered[j] < self.written[j]

    def deliver(self, j: int) -> None:
        self.delivered[j] += 1

    def may_release(self, i: int) -> bool:
        return self.released[i] < (self.delivered[i + 1] if self.volatile[i] else self.written[i + 1])

    def release(self, i: int) -> None:
        self.released[i] += 1

    # What goes wrong, and what is adapted

    def may_survive(self, i: int) -> bool:
        """Whether nothing is lost if stage i dies now. Where its successor died too, and does not have its inputs
        again yet, items may have been in the memory of those two alone."""
        return self.released[i] <= (self.delivered[i + 1] if self.volatile[i] else self.written[i + 1])

    def kill(self, i: int) -> None:
        """Stage i dies: what it had begun is begun again. A volatile one has lost the results that its successor does
        not have, and the inputs that it had received: those are delivered again from their slots, which are theirs
        until they are released."""
        if self.volatile[i]:
            self.written[i + 1] = self.delivered[i + 1]
            self.released[i] = self.delivered[i + 1]
            self.delivered[i] = self.released[i]
        self.reserved[i + 1] = self.written[i + 1]

    def may_widen(self, j: int) -> bool:
        return self.window[j] < self.capacity[j]

    def widen(self, j: int) -> None:
        self.window[j] += 1

    # Looking

    def slot(self, j: int, item: int) -> int:
        """The ring slot of an item on a link."""
        return item % self.capacity[j]

    def owner(self, item: int) -> ItemOwner | None:
        """Who owns an item; None before its push and after its pop."""
        if item >= self.written[0] or item < self.released[self.last]:
            return None
        if item < self.delivered[self.last]:
            return ItemOwner("sink")
        received = [i for i in range(self.last) if item < self.delivered[i]]
        return ItemOwner(received[-1]) if received else ItemOwner("source")

    def check(self) -> None:
        """Raises AssertionError where the counts contradict the rules above."""
        for j in range(self.last + 1):
            a, d, w, r = self.released[j], self.delivered[j], self.written[j], self.reserved[j]
            assert a <= d <= w <= r <= a + self.window[j] <= a + self.capacity[j], (j, a, d, w, r)
        for i in range(self.last):
            assert self.released[i] <= self.written[i + 1] <= self.reserved[i + 1] <= self.delivered[i], i
