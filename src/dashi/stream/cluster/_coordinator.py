"""Rank 0: it has the source and the sink, puts the chain together, and does so again when ranks are lost."""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dashi.errors import InputError, StageFailedError, TwinError
from dashi.stream.cluster._groups import COORDINATOR, RankGroup, RankMove, regrouped
from dashi.stream.cluster._messages import Kind, Message, encoded_size
from dashi.stream.cluster._transport import RanksLost, Transport
from dashi.stream.cluster.stage import Arrays, RankStage, copied

Deliver = Callable[[int, Arrays], None]


@dataclass(frozen=True)
class RankLoss:
    """Ranks that were lost, and how the chain went on. Steps `again_from` to `reached` were computed again, as far as
    ranks had come."""

    ranks: tuple[int, ...]
    moves: tuple[RankMove, ...]
    again_from: int
    reached: int
    seconds: float

    @property
    def text(self) -> str:
        """The loss in words."""
        moves = "; ".join(
            f"{' '.join(move.stages)} went from rank {move.lost} to rank {move.rank} ({move.reason})"
            for move in self.moves
        )
        return (
            f"lost: rank {', '.join(map(str, self.ranks))}; {moves or 'it ran nothing'}; computed again from item "
            f"{self.again_from}, of {self.reached} sent; {self.seconds:.3f} s"
        )


@dataclass(frozen=True)
class ChainSettings:
    """How a chain over machines runs."""

    windows: tuple[int, ...]
    """Items under way on each link between stages, first that from the source, last that to the sink."""
    snapshot_every: int
    item_bytes: int
    fingerprint: str = ""
    """What all ranks must have in common: a rank that was started with another is an error."""


@dataclass(eq=False)
class _Snapshots:
    """Memories of stages behind a step; complete when all stages that have memory sent theirs."""

    needed: frozenset[str]
    by_step: dict[int, dict[str, Arrays]] = field(default_factory=dict[int, dict[str, Arrays]])
    steps: int = 0

    def add(self, message: Message) -> None:
        memories = self.by_step.setdefault(message.step, {})
        for index, stage in enumerate(message.document["stages"]):
            prefix = f"{index}/"
            memories[stage] = copied(
                {name[len(prefix) :]: values for name, values in message.arrays.items() if name.startswith(prefix)}
            )

    def last_complete(self, delivered: int) -> int:
        """The last step, at most the last that was delivered, from which the chain can go on."""
        if not self.needed:
            return delivered
        complete = [s for s, memories in self.by_step.items() if self.needed <= memories.keys() and s <= delivered]
        return max(complete, default=0)

    def forget_before(self, step: int) -> None:
        for each in [each for each in self.by_step if each < step]:
            del self.by_step[each]


class Coordinator:
    """The chain, as rank 0 sees it. `turn` does all that can be done without waiting."""

    def __init__(
        self,
        transport: Transport,
        stages: Sequence[RankStage],
        groups: Sequence[RankGroup],
        items: Iterator[Arrays],
        deliver: Deliver,
        settings: ChainSettings,
    ) -> None:
        self._transport, self._stages, self._settings = transport, stages, settings
        self._groups = list(groups)
        self._items, self._deliver = items, deliver
        self._snapshots = _Snapshots(frozenset(stage.id for stage in stages if stage.stateful))
        self._retained: deque[tuple[int, Arrays]] = deque()
        self._drawn = 0
        self._exhausted = False
        self._unacknowledged = 0
        self._sent = 0
        self._digests: dict[int, bytes] = {}
        self._lost: frozenset[int] = frozenset()
        self.delivered = 0
        self.generation = 0
        self.losses: list[RankLoss] = []
        self.reports: dict[int, Mapping[str, Any]] = {}
        self._finishing = False
        self.first_groups = tuple(groups)

    @property
    def groups(self) -> tuple[RankGroup, ...]:
        """Which rank runs what now."""
        return tuple(self._groups)

    @property
    def complete(self) -> bool:
        """Whether every item of the source was delivered."""
        return self._exhausted and self.delivered == self._drawn

    def turn(self) -> bool:
        """Does what can be done now; False where there was nothing."""
        return self._with_who_is_left(self._assemble if self.generation == 0 else self._move_on)

    def _move_on(self) -> bool:
        return self._receive() | self._feed()

    def _with_who_is_left(self, act: Callable[[], object]) -> bool:
        """Does something; where ranks were lost on the way, puts the chain together without them instead."""
        try:
            return act() is not False
        except RanksLost:
            self._recover()
            return True

    def _window(self, index: int) -> int:
        """The window of the link before group `index` (that to the sink is the last)."""
        if index == len(self._groups):
            return self._settings.windows[-1]
        first = self._groups[index].stages[0]
        return self._settings.windows[[stage.id for stage in self._stages].index(first)]

    def _assemble(self) -> None:
        """Tells every rank of the groups its part, and goes on behind the last step that all can go on from."""
        self.generation += 1
        start = self._snapshots.last_complete(self.delivered)
        memories = self._snapshots.by_step.get(start, {})
        self._sent, self._unacknowledged = start, 0
        ranks = [group.rank for group in self._groups]
        for i, group in enumerate(self._groups):
            document = {
                "stages": list(group.stages),
                "restored": [name for name in group.stages if name in memories],
                "source": ranks[i - 1] if i else COORDINATOR,
                "target": ranks[i + 1] if i + 1 < len(ranks) else COORDINATOR,
                "window_in": self._window(i),
                "window_out": self._window(i + 1),
                "snapshot_every": self._settings.snapshot_every,
                "item_bytes": self._settings.item_bytes,
                "fingerprint": self._settings.fingerprint,
            }
            arrays = {
                f"{index}/{name}": values
                for index, stage in enumerate(stage for stage in group.stages if stage in memories)
                for name, values in memories[stage].items()
            }
            self._transport.send(group.rank, Message(Kind.PLAN, self.generation, start, document, arrays))
        self._transport.open_ring(ranks[-1], self._window(len(self._groups)), self._settings.item_bytes)

    def _feed(self) -> bool:
        if self._unacknowledged >= self._window(0):
            return False
        step = self._sent + 1
        if step > self._drawn and not self._draw():
            return False
        item = self._retained[step - self._retained[0][0]][1]
        self._unacknowledged += 1
        self._sent = step
        self._transport.send(self._groups[0].rank, Message(Kind.ITEM, self.generation, step, arrays=item))
        return True

    def _draw(self) -> bool:
        if self._exhausted:
            return False
        item = next(self._items, None)
        if item is None:
            self._exhausted = True
            return False
        size = encoded_size(Message(Kind.ITEM, 0, self._drawn + 1, arrays=item))
        most = self._settings.item_bytes
        if size > most:
            raise InputError(
                f"item {self._drawn + 1} is {size} bytes on the way, and there is room for {most}.",
                "pass a larger `item_bytes=`, or make items smaller.",
            )
        self._drawn += 1
        self._retained.append((self._drawn, copied(item)))
        return True

    def _receive(self) -> bool:
        message = self._transport.receive()
        if message is None:
            return False
        if message.kind == Kind.REPORT:
            self.reports[message.source] = message.document
        elif message.generation != self.generation:
            pass
        elif message.kind == Kind.ACK:
            self._unacknowledged -= 1
        elif message.kind == Kind.ITEM:
            self._take(message)
        elif message.kind == Kind.SNAPSHOT:
            self._snapshots.add(message)
            self._forget()
        elif message.kind == Kind.FAILURE:
            raise _stage_error(message)
        return True

    def _take(self, message: Message) -> None:
        try:
            self._deliver_once(message)
        finally:
            self._transport.release(message)
        self._transport.send(message.source, Message(Kind.ACK, self.generation, message.step))
        self._forget()

    def _deliver_once(self, message: Message) -> None:
        """Hands an item on, or holds one that was computed again to the first time."""
        digest = _digest(message.arrays)
        if message.step > self.delivered:
            self._deliver(message.step, message.arrays)
            self.delivered = message.step
            self._digests[message.step] = digest
        elif self._digests.get(message.step, digest) != digest:
            raise TwinError(
                f"item {message.step} was computed again after ranks were lost, and has other bits than before.",
                "let stages depend on their memory and the item alone, and use portable kernels.",
            )

    def _forget(self) -> None:
        """Drops what no recovery needs: items and digests up to the last step that the chain could go on from."""
        step = self._snapshots.last_complete(self.delivered)
        self._snapshots.forget_before(step)
        while self._retained and self._retained[0][0] <= step:
            self._retained.popleft()
        for each in [each for each in self._digests if each <= step]:
            del self._digests[each]

    def _recover(self) -> None:
        """Goes on without the ranks that were lost. More may be lost meanwhile: then it begins again."""
        begin, reached, before = time.perf_counter(), self._sent, self._lost
        moves: list[RankMove] = []
        while True:
            self._lost = self._transport.recover()
            try:
                if self._finishing:
                    self._tell(Kind.FINISH)
                else:
                    moves += self._regroup()
                    self._assemble()
                break
            except RanksLost:
                continue
        new = tuple(sorted(self._lost - before))
        again = self.delivered if self._finishing else self._sent
        self.losses.append(RankLoss(new, tuple(moves), again + 1, reached, time.perf_counter() - begin))

    def _regroup(self) -> list[RankMove]:
        used = {group.rank for group in self._groups}
        spares = [rank for rank in range(1, self._transport.size) if rank not in used and rank not in self._lost]
        fixed = frozenset(stage.id for stage in self._stages if not stage.migratable)
        self._groups, moves = regrouped(self._groups, self._lost, spares, fixed)
        return moves

    def finish(self) -> None:
        """Asks all ranks that are left what they did."""
        self._finishing = True
        self._with_who_is_left(lambda: self._tell(Kind.FINISH))

    def end(self) -> None:
        """Lets all ranks that are left go. Nothing that is lost from now on can be mended."""
        with suppress(RanksLost):  # whoever hears of that instead of the end gives up by himself
            self._tell(Kind.END)

    def _tell(self, kind: Kind) -> None:
        for rank in range(self._transport.size):
            if rank != COORDINATOR and rank not in self._lost:
                self._transport.send(rank, Message(kind, self.generation))

    @property
    def reported(self) -> bool:
        """Whether all ranks that are left have said what they did."""
        return self.reports.keys() | self._lost | {COORDINATOR} == set(range(self._transport.size))

    def waiting_for(self) -> str:
        """What the chain waits for, in words."""
        ranks = ", ".join(f"rank {group.rank} ({' '.join(group.stages)})" for group in self._groups)
        return f"{self.delivered} of {self._sent} items came out of {ranks}"


def _digest(arrays: Arrays) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name, values in sorted(arrays.items()):
        digest.update(f"{name} {values.dtype.str} {values.shape} ".encode())
        digest.update(np.ascontiguousarray(values).data)
    return digest.digest()


def _stage_error(message: Message) -> StageFailedError:
    said = message.document
    error = StageFailedError(
        f"{f'the stage {stage!r} on ' if (stage := said['stage']) else ''}rank {message.source} failed at item "
        f"{message.step}: {said['type']}: {said['what']}",
        said["fix"] or "mend the stage.",
    )
    error.stage, error.step = said["stage"], message.step
    return error
