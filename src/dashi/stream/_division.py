"""Which ops each stage runs, item by item: what moves from a stage to its neighbour does so between two items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dashi.errors import InputError
from dashi.stream._worker import Worker, WorkerOp


@dataclass(frozen=True)
class _Cut:
    """From item `since` on, stage i runs the ops from `bounds[i]` to `bounds[i + 1]`."""

    since: int
    bounds: tuple[int, ...]
    ops: tuple[WorkerOp, ...]

    def of(self, stage: int) -> tuple[WorkerOp, ...]:
        return self.ops[self.bounds[stage] : self.bounds[stage + 1]]


class Division:
    """The ops of a chain, cut into stages. A cut holds from an item on, so that an item that is computed again is cut
    as it was before. Ops keep their order: one that moves goes from the edge of its stage to the next one."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        ops = tuple(op for worker in workers for op in worker.ops)
        ids = [op.id for op in ops]
        for name in ids:
            if ids.count(name) > 1:
                raise InputError(f"two ops of the chain are called {name!r}.", "give each op an id of its own.")
        bounds = [0]
        for worker in workers:
            bounds.append(bounds[-1] + len(worker.ops))
        self._cuts = [_Cut(0, tuple(bounds), ops)]
        self._seconds = dict.fromkeys(ids, 0.0)
        self._calls = dict.fromkeys(ids, 0)

    def ops_for(self, stage: int, item: int) -> tuple[WorkerOp, ...]:
        """The ops that a stage runs on an item."""
        return next(cut.of(stage) for cut in reversed(self._cuts) if item >= cut.since)

    def of(self, stage: int) -> tuple[WorkerOp, ...]:
        """The ops of a stage, as it is cut now."""
        return self._cuts[-1].of(stage)

    def forget(self, below: int) -> None:
        """Items below this are never computed again."""
        while len(self._cuts) > 1 and self._cuts[1].since <= below:
            self._cuts.pop(0)

    def count(self, op: WorkerOp, seconds: float) -> None:
        """An op ran for so long."""
        self._seconds[op.id] += seconds
        self._calls[op.id] += 1

    def mean_seconds(self, op: WorkerOp) -> float:
        """How long an op takes for an item; 0 before the first."""
        return self._seconds[op.id] / max(self._calls[op.id], 1)

    def renew(self, ops: Sequence[WorkerOp], stage: int, name: str, device: str) -> None:
        """A new worker of a stage, on a device, has made its ops anew: they stand where those of the same ids stood, in
        this stage, for whatever item. What a neighbour has taken over stays the neighbour's; what it has left to this
        stage moves to the device."""
        here = {op.id: op for op in ops}
        for op in ops:
            if op.id not in self._seconds:
                raise InputError(
                    f"the new worker of stage {name!r} has an op {op.id!r}, which the chain had not.",
                    f"make it of the ops that it had: {', '.join(self._seconds)}.",
                )
        cuts = list[_Cut]()
        for cut in self._cuts:
            renewed = [*cut.ops]
            for number in range(cut.bounds[stage], cut.bounds[stage + 1]):
                op = cut.ops[number]
                if op.id not in here:
                    here[op.id] = op.on(device)
                renewed[number] = here[op.id]
            cuts.append(replace(cut, ops=tuple(renewed)))
        self._cuts = cuts

    def move_left(self, stage: int, since: int, device: str) -> None:
        """From that item on, the stage before runs its first op, on its device."""
        first = self._cuts[-1].bounds[stage]
        self._move(stage, first + 1, range(first, first + 1), since, device)

    def move_all_right(self, stage: int, since: int, device: str) -> None:
        """From that item on, the stage behind runs all its ops, on its device."""
        bounds = self._cuts[-1].bounds
        self._move(stage + 1, bounds[stage], range(bounds[stage], bounds[stage + 1]), since, device)

    def _move(self, stage: int, bound: int, moved: range, since: int, device: str) -> None:
        now = self._cuts[-1]
        ops, bounds = [*now.ops], [*now.bounds]
        for number in moved:
            ops[number] = ops[number].on(device)
        bounds[stage] = bound
        self._cuts.append(_Cut(since, tuple(bounds), tuple(ops)))
