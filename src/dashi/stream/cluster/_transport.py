"""What the engine of a chain needs of whatever carries messages between machines: the one interface for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod

from dashi.stream.cluster._messages import Message


class RanksLost(Exception):
    """Some ranks are gone; nothing is sent or received before `Transport.recover`."""


class Transport(ABC):
    """Ranks that send one another messages.

    Ranks keep their numbers for the whole run, also when others are lost. Messages of one rank to another arrive in
    order, items apart from the rest. No call blocks, but for `recover`.
    """

    name: str
    """What carries the messages, for the record of the run, such as "MPI (Open MPI 5.0.11)"."""
    rank: int
    size: int

    @abstractmethod
    def open_ring(self, source: int, window: int, nbytes: int) -> None:
        """Makes `window` places for items of a rank, of up to `nbytes` bytes each, and is ready to receive into all of
        them. Rings that were open are closed, and what is on its way to them is lost."""

    @abstractmethod
    def release(self, message: Message) -> None:
        """Frees the place of an item: the next one may arrive there."""

    @abstractmethod
    def send(self, target: int, message: Message) -> None:
        """Begins to send; an item only where the receiver has a free place in its ring."""

    @abstractmethod
    def receive(self) -> Message | None:
        """The next message, if one is there. Raises RanksLost when a rank was lost."""

    @abstractmethod
    def recover(self) -> frozenset[int]:
        """Waits for all other ranks that are left, drops every message that was under way, and returns the numbers of
        all ranks that were lost so far: the same set on every rank."""

    @abstractmethod
    def close(self) -> None:
        """The end: waits for what is still being sent."""
