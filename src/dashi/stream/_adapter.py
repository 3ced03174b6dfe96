"""Carries out what `decide` says about a chain that runs, and writes it into its record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from dashi.stream._adapt import ChainTimes, decide

if TYPE_CHECKING:
    from dashi.stream._executor import Executor

EVERY: Final = 32
"""Items between two looks."""


class Adapter:
    """Looks at a run after every so many items; the run's lock is held. `lossy` allows smaller payloads."""

    def __init__(self, run: Executor, *, lossy: bool, every: int = EVERY) -> None:
        self._run, self._lossy, self._every = run, lossy, every
        self._items = 0
        self._before = self._look()

    def turn(self) -> None:
        """An item came out."""
        self._items += 1
        if self._items % self._every:
            return
        now = self._look()
        times, self._before = self._times(self._before, now), now
        if times is None:
            return
        run = self._run
        decision = decide(times, [stage.id for stage in run.stages])
        if decision is None:
            return
        place, item = run.stages[decision.at].id, run.chain.reserved[decision.at]
        if decision.action == "widen":
            run.chain.widen(decision.at + 1)
            run.stages[decision.at].wake()
        elif decision.action == "shrink":
            run.stages[decision.at].lightened = True
        else:
            device = run.stages[decision.at - 1].worker.device
            try:
                run.division.move_left(decision.at, item, device)
            except Exception as error:  # an op's `bind` is a caller's own; whoever pops gets his item all the same
                run.note("not moved", place, item, f"{decision.reason}; {type(error).__name__}: {error}")
                return
        run.note(decision.action, place, item, decision.reason)

    def _look(self) -> tuple[float, float, list[float], list[float], list[int]]:
        tallies = [stage.tally for stage in self._run.stages]
        return (
            time.perf_counter(),
            tallies[-1].waited("starved"),
            [tally.compute_seconds for tally in tallies],
            [tally.transfer_seconds for tally in tallies],
            [tally.items_out for tally in tallies],
        )

    def _times(
        self,
        before: tuple[float, float, list[float], list[float], list[int]],
        now: tuple[float, float, list[float], list[float], list[int]],
    ) -> ChainTimes | None:
        run, chain = self._run, self._run.chain
        items = [b - a for a, b in zip(before[4], now[4], strict=True)]
        if not all(items):
            return None
        compute = [(b - a) / n for a, b, n in zip(before[2], now[2], items, strict=True)]
        transfer = [(b - a) / n for a, b, n in zip(before[3], now[3], items, strict=True)][:-1]
        return ChainTimes(
            compute=compute,
            transfer=transfer,
            windows=chain.window[1:-1],
            widest=chain.capacity[1:-1],
            starved=(now[1] - before[1]) / max(now[0] - before[0], 1e-9),
            lighter=[self._lossy and stage.can_lighten for stage in run.stages[:-1]],
            movable=[self._movable(i) for i in range(len(run.stages))],
        )

    def _movable(self, i: int) -> float | None:
        """Seconds of the first op of a stage, where the rules let the stage before run it: it is migratable (R4), and
        not too deep for that device (R2). Order, and so R1, stays as it is."""
        run = self._run
        ops = run.division.of(i)
        if i == 0 or not ops or run.stages[i - 1].broken or not run.stages[i - 1].worker.ops:
            return None
        deepest = run.stages[i - 1].worker.max_depth
        if not ops[0].migratable or (deepest is not None and ops[0].depth_out > deepest):
            return None
        return run.division.mean_seconds(ops[0])
