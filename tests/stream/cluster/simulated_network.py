"""Ranks of one process, for tests of what the ranks of a chain say to one another: any order of turns, any moment of
death, the same every time."""

from __future__ import annotations

import random
from collections import defaultdict, deque

from dashi.stream.cluster._computing import Computing, StageJob
from dashi.stream.cluster._messages import Kind, Message, decode, encode
from dashi.stream.cluster._transport import RanksLost, Transport


class Network:
    """Messages under way between ranks, and which ranks are alive. Whoever was told of a loss and has recovered is of a
    later epoch, and hears nothing of earlier ones."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.random = random.Random(seed)
        self.epoch = 0
        self.alive = set(range(size))
        self.lost_at_send = -1
        """The send of rank 0 at which it hears that its target is gone; -1 for none."""
        self.sends = 0
        self.under_way: dict[tuple[int, int, int, bool], deque[bytes]] = defaultdict(deque)

    def kill(self, rank: int) -> None:
        self.alive.discard(rank)
        self.epoch += 1


class SimulatedTransport(Transport):
    name = "simulated"

    def __init__(self, network: Network, rank: int) -> None:
        self.network, self.rank, self.size = network, rank, network.size
        self._epoch = 0
        self._ring: tuple[int, int, int] | None = None
        self._places: list[bool] = []
        self._memory: dict[int, bytearray] = {}
        self._next = 0
        self.most_held = 0

    def _look(self) -> None:
        # A rank hears of a loss sooner or later, at any call.
        if self._epoch != self.network.epoch and self.network.random.random() < 0.5:
            raise RanksLost

    def open_ring(self, source: int, window: int, nbytes: int) -> None:
        self._ring, self._places, self._next = (source, window, nbytes), [False] * window, 0

    def release(self, message: Message) -> None:
        if self._places and message.slot >= 0:
            assert self._places[message.slot], "a place was released that held nothing"
            self._places[message.slot] = False
            self._memory[message.slot][:] = b"\xff" * len(self._memory[message.slot])  # the next item comes here

    def send(self, target: int, message: Message) -> None:
        self._look()
        if self.rank == 0:
            self.network.sends += 1
            if self.network.sends == self.network.lost_at_send:
                self.network.kill(target)
                raise RanksLost
        encoded = bytes(encode(message))
        if target in self.network.alive:
            self.network.under_way[self._epoch, self.rank, target, message.kind == Kind.ITEM].append(encoded)

    def receive(self) -> Message | None:
        self._look()
        if self.network.random.random() < 0.2:
            return None  # it is still under way
        sources = [s for s in range(self.size) if self.network.under_way[self._epoch, s, self.rank, False]]
        if sources and self.network.random.random() < 0.7:
            source = self.network.random.choice(sources)
            return decode(self.network.under_way[self._epoch, source, self.rank, False].popleft(), source)
        return self._receive_item()

    def _receive_item(self) -> Message | None:
        if self._ring is None:
            return None
        source, window, nbytes = self._ring
        items = self.network.under_way[self._epoch, source, self.rank, True]
        free = self._places.count(False)
        assert len(items) <= free, f"{len(items)} items are under way to {free} free places"
        if not items:
            return None
        assert not self._places[self._next], "an item came into a place that is not free"
        encoded = items.popleft()
        assert len(encoded) <= nbytes
        slot, self._next = self._next, (self._next + 1) % window
        self._places[slot] = True
        self.most_held = max(self.most_held, self._places.count(True))
        self._memory[slot] = bytearray(encoded)
        return decode(self._memory[slot], source, slot)

    def recover(self) -> frozenset[int]:
        self._epoch, self._ring, self._places = self.network.epoch, None, []
        return frozenset(range(self.size)) - frozenset(self.network.alive)

    def close(self) -> None:
        pass


class DelayedComputing(Computing):
    """Computes at some later poll."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._job: StageJob | None = None

    @property
    def busy(self) -> bool:
        return self._job is not None

    def begin(self, job: StageJob) -> None:
        assert self._job is None
        self._job = job

    def poll(self) -> StageJob | None:
        if self._job is None or self._network.random.random() < 0.5:
            return None
        job, self._job = self._job, None
        job.run()
        return job
