"""A rank that runs stages: it receives item k + 1 and sends item k - 1 while it computes item k."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.errors import DashiError, InputError, RankLostError
from dashi.stream.cluster._computing import Computing, StageJob
from dashi.stream.cluster._groups import COORDINATOR
from dashi.stream.cluster._messages import LARGEST_BYTES, Kind, Message, encoded_size
from dashi.stream.cluster._transport import RanksLost, Transport
from dashi.stream.cluster.stage import Arrays, RankStage


@dataclass(frozen=True)
class RankPart:
    """What a rank does in the chain as it is put together now."""

    generation: int
    stages: tuple[str, ...]
    source: int
    target: int
    window_in: int
    window_out: int
    first_step: int
    snapshot_every: int
    item_bytes: int
    fingerprint: str


class RankWorker:
    """The rank's side of the chain. `turn` does all that can be done without waiting."""

    def __init__(
        self, transport: Transport, stages: Sequence[RankStage], computing: Computing, fingerprint: str = ""
    ) -> None:
        self._transport, self._fingerprint = transport, fingerprint
        self._stages = {stage.id: stage for stage in stages}
        self._open: dict[str, RankStage] = {}
        self._computing = computing
        self._part: RankPart | None = None
        self._memory: Mapping[str, Arrays | None] = {}
        self._next_part: tuple[RankPart, Mapping[str, Arrays | None]] | None = None
        self._inbox: deque[Message] = deque()
        self._outbox: deque[Message] = deque()
        self._unacknowledged = 0
        self.ended = False
        self.generation = 0
        self.items = 0
        self.compute_seconds = 0.0
        self.blocked_seconds = 0.0
        self._blocked_since: float | None = None

    def turn(self) -> bool:
        """Does what can be done now; False where there was nothing. Raises RankLostError when rank 0 is lost."""
        try:
            return self._turn()
        except RanksLost:
            self._recover()
            return True

    def _turn(self) -> bool:
        busy = self._receive()
        if self.ended:
            return True
        busy |= self._take_result()
        busy |= self._take_part()
        busy |= self._send()
        return self._begin() or busy

    def _receive(self) -> bool:
        message = self._transport.receive()
        if message is None:
            return False
        if message.kind == Kind.PLAN:
            self._next_part = _part_of(message)
        elif message.kind == Kind.ITEM and self._part and message.generation == self._part.generation:
            self._inbox.append(message)
        elif message.kind == Kind.ACK and self._part and message.generation == self._part.generation:
            self._unacknowledged -= 1
        elif message.kind == Kind.FINISH:
            self._transport.send(COORDINATOR, self.report())
        elif message.kind == Kind.END:
            self.ended = True
        return True

    def _take_part(self) -> bool:
        if self._next_part is None or self._computing.busy:
            return False
        (part, memory), self._next_part = self._next_part, None
        self._drop_items()
        self._part, self.generation = part, part.generation
        if part.fingerprint != self._fingerprint or not self._stages.keys() >= set(part.stages):
            self._fail(part, StageJob(_other_chain, part.generation, error=_other_chain()))
        else:
            self._transport.open_ring(part.source, part.window_in, part.item_bytes)
            self._computing.begin(StageJob(lambda: self._take_over(part, memory), part.generation))
        return True

    def _take_over(self, part: RankPart, memory: Mapping[str, Arrays | None]) -> None:
        for name in [name for name in self._open if name not in part.stages]:
            self._open.pop(name).close()
        for name in part.stages:
            stage = self._stages[name]
            if name not in self._open:
                stage.open()
                self._open[name] = stage
            stage.restore(memory.get(name))

    def _begin(self) -> bool:
        part = self._part
        if self._computing.busy or not self._inbox or self._outbox or part is None or self._next_part is not None:
            return False
        message = self._inbox[0]
        stages = [self._open[name] for name in part.stages]
        self._computing.begin(StageJob(lambda: _computed(stages, message, part), part.generation, message))
        return True

    def _take_result(self) -> bool:
        job = self._computing.poll()
        if job is None:
            return False
        part = self._part
        if part is None or job.generation != part.generation:
            return True  # it was for the chain as it was before ranks were lost
        if job.error is not None:
            self._fail(part, job)
        elif job.message is not None:
            self.compute_seconds += job.seconds
            self._take_item(part, job.message, *job.result)
        return True

    def _take_item(self, part: RankPart, message: Message, item: Arrays, snapshot: Mapping[str, Arrays] | None) -> None:
        self._inbox.popleft()
        self.items += 1
        self._transport.release(message)
        self._transport.send(part.source, Message(Kind.ACK, part.generation, message.step))
        self._outbox.append(Message(Kind.ITEM, part.generation, message.step, arrays=item))
        if snapshot is not None:
            self._transport.send(COORDINATOR, _snapshot_message(part.generation, message.step, snapshot))

    def _fail(self, part: RankPart, job: StageJob) -> None:
        error = job.error.error if isinstance(job.error, StageFailed) else job.error
        step = job.message.step if job.message is not None else part.first_step
        what, fix = (error.what, error.fix) if isinstance(error, DashiError) else (str(error), "")
        document = {"type": type(error).__name__, "what": what[:10_000], "fix": fix[:10_000], "stage": job.stage}
        self._transport.send(COORDINATOR, Message(Kind.FAILURE, part.generation, step, document))
        self._part = None

    def _send(self) -> bool:
        part = self._part
        if not self._outbox or part is None:
            return False
        if self._unacknowledged >= part.window_out:
            self._blocked_since = self._blocked_since or time.perf_counter()
            return False
        if self._blocked_since is not None:
            self.blocked_seconds += time.perf_counter() - self._blocked_since
            self._blocked_since = None
        self._unacknowledged += 1
        self._transport.send(part.target, self._outbox.popleft())
        return True

    def _recover(self) -> None:
        lost = self._transport.recover()
        self._part = None
        self._drop_items()
        if COORDINATOR in lost:
            raise RankLostError(
                "rank 0, which has the source and the sink, was lost: the chain cannot go on.",
                "start it again; rank 0 belongs on the machine that is least likely to fail.",
            )

    def _drop_items(self) -> None:
        # What is computed now still reads its place in the ring; the ring stays until the job is done.
        self._inbox.clear()
        self._outbox.clear()
        self._unacknowledged = 0
        self._blocked_since = None

    def report(self) -> Message:
        """What this rank did, for the record of the run."""
        document: dict[str, Any] = {
            "items": self.items,
            "compute_s": self.compute_seconds,
            "blocked_s": self.blocked_seconds,
            "stages": list(self._open),
            "record": [dict(each) for stage in self._stages.values() for each in stage.record()],
        }
        return Message(Kind.REPORT, self.generation, document=document)

    def close(self) -> None:
        """Closes the stages that are open, each of them, whatever the others raise."""
        failures: list[BaseException] = []
        for stage in self._open.values():
            try:
                stage.close()
            except Exception as error:
                failures.append(error)
        self._open = {}
        if failures:
            raise failures[0]


def _computed(
    stages: Sequence[RankStage], message: Message, part: RankPart
) -> tuple[Arrays, Mapping[str, Arrays] | None]:
    item = message.arrays
    for stage in stages:
        try:
            item = stage.compute(message.step, item)
        except Exception as error:
            raise StageFailed(stage.id, error) from error
    item = _without(message.arrays, item)
    last = stages[-1].id
    require_room(last, Message(Kind.ITEM, part.generation, message.step, arrays=item), part.item_bytes)
    if not any(stage.stateful for stage in stages) or message.step % part.snapshot_every:
        return item, None
    snapshot = {stage.id: stage.snapshot() for stage in stages if stage.stateful}
    require_room(last, _snapshot_message(part.generation, message.step, snapshot), LARGEST_BYTES)
    return item, snapshot


def require_room(stage: str, message: Message, most: int) -> None:
    """Refuses, in the name of a stage, what cannot be sent: other things than numbers, or too many bytes of them."""
    try:
        size = encoded_size(message)
        if size > most:
            raise InputError(
                f"item {message.step} is {size} bytes on the way, and there is room for {most}.",
                "pass a larger `item_bytes=`, or make items smaller.",
            )
    except InputError as error:
        raise StageFailed(stage, error) from error


def _snapshot_message(generation: int, step: int, snapshot: Mapping[str, Arrays]) -> Message:
    arrays = {
        f"{index}/{name}": values for index, memory in enumerate(snapshot.values()) for name, values in memory.items()
    }
    return Message(Kind.SNAPSHOT, generation, step, {"stages": list(snapshot)}, arrays)


def _other_chain() -> InputError:
    return InputError(
        "this rank was started with another chain than rank 0.", "start every rank with the same file and arguments."
    )


def _without(received: Arrays, item: Arrays) -> Arrays:
    """The item with copies of arrays that lie where items are received: the next one may arrive there at any time."""
    return {
        name: values.copy() if any(np.may_share_memory(values, each) for each in received.values()) else values
        for name, values in item.items()
    }


class StageFailed(Exception):
    """A stage raised an error, which is `error`."""

    def __init__(self, stage: str, error: Exception) -> None:
        super().__init__(stage, error)
        self.stage, self.error = stage, error


def _part_of(message: Message) -> tuple[RankPart, Mapping[str, Arrays | None]]:
    document = dict(message.document)
    stages = tuple(document.pop("stages"))
    restored = document.pop("restored")
    part = RankPart(generation=message.generation, stages=stages, first_step=message.step, **document)
    memory: dict[str, Any] = {name: {} for name in restored}
    for key, values in message.arrays.items():
        index, _, name = key.partition("/")
        memory[restored[int(index)]][name] = values.copy()
    return part, memory
