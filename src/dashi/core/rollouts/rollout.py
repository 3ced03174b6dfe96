"""`rollout`: very many steps of an operator on a device, observed on strides, with the truth about how it ran."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dashi.core.observations.observation import Observation
from dashi.core.operators.operator import Operator, Way, float_array, require_finite
from dashi.core.rollouts.engine import SIDES, Engine, Harvest, Running
from dashi.core.rollouts.interrupt import deferred_interrupt
from dashi.core.rollouts.run import Run
from dashi.core.rollouts.segments import Block, Segment, Strides, next_block
from dashi.core.rollouts.ways import choose_way, limits_of
from dashi.errors import InputError, Interrupted, NonFiniteError, ShapeError
from dashi.kernels.portable import canon
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.using import using_device
from dashi.types import Array as HostArray

BLOCK_US: Final = 50_000.0
"""What a block should take: long enough to hide the host, short enough to stop and to show progress."""
MOST_RECORDED: Final = 256
"""Steps of a block that are recorded one by one."""
MOST_RERUNS: Final = 3
"""Failed blocks after which a rollout goes on step by step."""


Keep = Callable[[Run], None]
"""Is given the rollout so far, on the stride `keep_every`."""
Visit = Callable[[int, Array], None]
"""Is given the step and the states, on the device and not read back, on the stride `keep_every`."""


def rollout(
    operator: Operator,
    z0: Any,
    steps: int,
    *,
    device: Device | str,
    hash_every: int = 0,
    observe_every: int = 0,
    sheet_every: int = 0,
    bands: int | Sequence[int] = 16,
    keep_every: int = 0,
    keep: Keep | None = None,
    visit: Visit | None = None,
    way: str = "auto",
    stop_on_nonfinite: bool = True,
    progress: Callable[[int], None] | None = None,
    resume: Run | None = None,
) -> Run:
    """Advances z0 (one state, or an ensemble with a leading axis) by so many steps.

    Strides of 0 switch an observer off. `bands` of the sheet are a number of equal slices of the state, or band edges.
    `way` is auto, stepwise, workgroup or tagged: the bits are the same. A state that is no longer finite raises
    NonFiniteError with its step and index, unless `stop_on_nonfinite` is False. `resume` goes on from an earlier part
    of the same rollout. Ctrl-C raises Interrupted, a KeyboardInterrupt, whose `partial` is the Run so far.
    """
    with using_device(device) as opened:
        return _rolled_out(
            operator, z0, steps, opened, Strides(hash_every, observe_every, sheet_every, keep_every), bands, keep,
            visit, way, stop_on_nonfinite, progress, resume,
        )  # fmt: skip


def _rolled_out(
    operator: Operator, z0: Any, steps: int, device: Device, wanted: Strides, bands: int | Sequence[int],
    keep: Keep | None, visit: Visit | None, way: str, stop: bool, progress: Callable[[int], None] | None,
    resume: Run | None,
) -> Run:  # fmt: skip
    start = _start(operator, z0, steps)
    strides = wanted if keep or visit else replace(wanted, keep=0)
    edges = band_edges(operator, bands) if strides.sheet else None
    chosen, reason = choose_way(operator, device, len(start), way)
    so_far = resume or Run(0, start)
    if not 0 <= so_far.steps <= steps:
        raise InputError(f"{so_far.steps} steps are done already, {steps} asked for.", "ask for more steps.")
    if stop and resume:
        require_finite("the state to go on from", resume.state)
    so_far = replace(so_far, way=chosen, reason=reason)
    run = _Run(Engine(device, operator, canon(so_far.state), edges), so_far, steps, strides, stop)
    try:
        return run.go(keep, visit, progress or (lambda _: None))
    finally:
        run.engine.close()


def _require_operator(operator: Any) -> None:
    if not isinstance(operator, Operator):
        matrix = isinstance(operator, np.ndarray | list | tuple)
        raise InputError(
            f"{type(operator).__name__} is no operator.",
            "wrap it: dashi.core.Linear(A) advances z' = z A." if matrix else "pass one, such as dashi.core.Linear(A).",
        )


def _start(operator: Operator, z0: Any, steps: int) -> HostArray:
    _require_operator(operator)
    states = float_array("z0", z0)
    if states.shape == operator.shape:
        states = states[None]
    if states.ndim != len(operator.shape) + 1 or states.shape[1:] != operator.shape or not len(states):
        raise ShapeError(
            f"z0 has shape {np.shape(z0)}; the operator advances states of shape {operator.shape}.",
            f"pass z0 of shape {operator.shape}, or (M, {', '.join(map(str, operator.shape))}) for an ensemble.",
        )
    if states.dtype != operator.dtype:
        raise InputError(
            f"z0 is {states.dtype}, the operator is {operator.dtype}.", f"convert z0: z0.astype(np.{operator.dtype})."
        )
    require_finite("z0", states)
    if not isinstance(steps, int | np.integer) or steps < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{steps!r} steps were asked for.", "ask for a whole number, 0 or more.")
    return states


def band_edges(operator: Operator, bands: int | Sequence[int]) -> HostArray | None:
    """Edges of the bands of a state in z-space, equal slices unless given; None where states are energies already."""
    if len(operator.shape) > 1:
        return None
    d = math.prod(operator.shape)
    if isinstance(bands, int):
        if not 1 <= bands <= d:
            raise InputError(f"a state of {d} values has no {bands} bands.", f"ask for 1 to {d}.")
        return np.array([d * i // bands for i in range(bands + 1)], np.uint32)
    edges = np.array(bands, np.int64)
    if edges.ndim != 1 or len(edges) < 2 or edges[0] < 0 or edges[-1] > d or (np.diff(edges) < 0).any():
        raise InputError(f"band edges {list(bands)} do not rise within 0..{d}.", "pass rising indices, 0 to D.")
    return edges.astype(np.uint32)


class _Run:
    """One rollout under way: blocks are cut, submitted, harvested, and repeated where that is needed."""

    def __init__(self, engine: Engine, so_far: Run, end: int, strides: Strides, stop: bool) -> None:
        self.engine = engine
        self.end, self.strides, self.stop = end, strides, stop
        self.so_far = so_far
        self.way: Way = so_far.way
        self._hashes = list(so_far.hashes)
        self._seen = list(so_far.observations)
        self._rows = list(so_far.sheet)
        self._row_steps = list(so_far.sheet_steps)
        self._done = self._submitted = so_far.steps
        self._reruns = so_far.reruns
        self._most = self._first_guess()
        self._pending: deque[Running] = deque()
        self._began = time.perf_counter()
        self._exact = strides.observe > 0
        """Whether the check at the end of a block counts values, or adds them up, which costs least."""

    def _first_guess(self) -> int:
        limits = limits_of(self.engine.device)
        operator, states = self.engine.operator, self.engine.state[0].shape[0]
        most = int(BLOCK_US / max(0.05, operator.microseconds(self.way, limits, states)))
        if self.engine.device.info.type == "reference":
            # Python itself takes some 80 us a step, however small the states are.
            most = int(BLOCK_US / (80 + self.engine.state[0].size * operator.shape[-1] / 200))
        return max(1, min(most, MOST_RECORDED) if self.way == "stepwise" else most)

    def go(self, keep: Keep | None, visit: Visit | None, progress: Callable[[int], None]) -> Run:
        with deferred_interrupt() as interrupt:
            while self._done < self.end and not interrupt.asked:
                before = self._done
                self._advance()
                progress(self._done - before)
                if self.strides.keep and self._done % self.strides.keep == 0 and not self._pending:
                    if visit:
                        visit(self._done, self.engine.state[self.engine.at])
                    if keep:
                        keep(self._result(stopped=False))
            while self._pending:
                self._take(self._pending.popleft())
        result = self._result(stopped=self._done < self.end)
        if interrupt.asked:
            raise Interrupted(result)
        return result

    def _advance(self) -> None:
        """Keeps blocks under way, and takes in the oldest."""
        while self._submitted < self.end and len(self._pending) < SIDES and not self._must_keep():
            block = self._watched(next_block(self._submitted, self.end, self.strides, self._most))
            self._pending.append(self.engine.submit(block, self.way))
            self._submitted = block.last
        self._take(self._pending.popleft())

    def _watched(self, block: Block) -> Block:
        """The block, with a look at its end: then a fault is in the block in which it is seen, or in none before."""
        return replace(block, segments=(*block.segments[:-1], self._checked(block.segments[-1])))

    def _checked(self, segment: Segment) -> Segment:
        """The segment, with a look at its last states where faults are to be found."""
        if not self.stop or segment.observe:
            return segment
        return replace(segment, observe=True) if self._exact else replace(segment, check=True)

    def _must_keep(self) -> bool:
        """Whether the states must be read back before more is submitted."""
        return bool(self._pending) and self._pending[-1].block.segments[-1].keep

    def _take(self, running: Running) -> None:
        harvest = self.engine.harvest(running)
        if harvest.failed:
            self._repeat(running)
        else:
            self._accept(running, harvest)

    def _accept(self, running: Running, harvest: Harvest) -> None:
        """Books what a block left; one that is not finite, or may not be, is gone through again."""
        if self.stop and (harvest.suspect or any(seen.nonfinite for seen in harvest.observations)):
            self._locate(running, harvest)
        else:
            self._book(running.block, harvest)

    def _book(self, block: Block, harvest: Harvest) -> None:
        self._hashes += harvest.hashes
        every = self.strides.observe
        self._seen += [o for o in harvest.observations if every and (o.step % every == 0 or o.step == self.end)]
        for at, row in harvest.rows:
            self._row_steps.append(at)
            states = self.engine.state[0].shape[0]
            self._rows.append(row.astype(np.float64).reshape(-1, row.shape[-1]).sum(axis=0) / states)
        self._done = block.last

    def _wait_for_all(self) -> None:
        while self._pending:
            self._pending.popleft().ticket.wait()

    def _repeat(self, running: Running) -> None:
        """Runs a failed block again, step by step, from the states that it started from."""
        self._wait_for_all()
        self.engine.restore(running)
        self._reruns += 1
        at, segments = running.block.first, list(running.block.segments)
        for segment in segments:
            for piece in _pieces(segment):
                again = self.engine.submit(Block(at, (self._checked(piece),)), "stepwise")
                self._accept(again, self.engine.harvest(again))
                at = again.block.last
        self._submitted = self._done
        if self._reruns >= MOST_RERUNS:
            self.way = "stepwise"
            self._most = min(self._most, MOST_RECORDED)

    def _locate(self, running: Running, harvest: Harvest) -> None:
        """Finds the step at which the states ceased to be finite, keeps what came before, and raises. Where they are
        finite after all, and only their sum is not, the block has been done again."""
        bad = next((seen for seen in harvest.observations if seen.nonfinite), None)
        before = [seen.step for seen in harvest.observations if bad is None or seen.step < bad.step]
        good = max(before, default=running.block.first)
        self._wait_for_all()
        self.engine.restore(running)
        for at, segment in running.block.ends():
            first = at - segment.steps
            if at <= good:
                block = Block(first, (segment,))
                self._book(block, self.engine.harvest(self.engine.submit(block, self.way)))
                continue
            self._search(first, at, segment)
        if bad is not None:
            raise self._nonfinite(bad)
        self._submitted, self._exact = self._done, True

    def _search(self, first: int, at: int, segment: Segment) -> None:
        """Does a segment in pieces, ever smaller ones where a piece went wrong, and raises at the step that did."""
        step, stride = first, at - first
        while step < at:
            count = min(max(1, stride // 16), MOST_RECORDED, at - step)
            last = step + count == at
            piece = Segment(count, hash=segment.hash and last, observe=True, sheet=segment.sheet and last)
            running = self.engine.submit(Block(step, (piece,)), "stepwise")
            found = self.engine.harvest(running)
            if not found.observations[0].nonfinite:
                self._book(running.block, found)
                step += count
            elif count == 1:
                raise self._nonfinite(found.observations[0])
            else:
                self.engine.restore(running)
                stride = count

    def _nonfinite(self, seen: Observation) -> NonFiniteError:
        error = NonFiniteError(
            f"{seen.nonfinite} values of the state are not finite after step {seen.step}, "
            f"the first at index {seen.first_nonfinite}.",
            "look at the operator's spectral radius, or let it go on: stop_on_nonfinite=False.",
        )
        error.observation = seen
        error.rollout = replace(self._result(stopped=True), steps=seen.step)
        return error

    def _result(self, *, stopped: bool) -> Run:
        null = self.engine.device.info.type == "null"
        width = self._rows[0].shape[-1] if self._rows else 0
        return replace(
            self.so_far,
            steps=self._done,
            state=self.so_far.state if null else self.engine.states(),
            hashes=tuple(self._hashes),
            observations=tuple(self._seen),
            sheet=np.array(self._rows).reshape(len(self._rows), width),
            sheet_steps=tuple(self._row_steps),
            seconds=self.so_far.seconds + time.perf_counter() - self._began,
            dispatches=self.so_far.dispatches + self.engine.dispatches,
            reruns=self._reruns,
            stopped=stopped,
            used=tuple(self.engine.used.values()),
        )


def _pieces(segment: Segment) -> list[Segment]:
    """A segment in pieces that can be recorded step by step; the last one has its observers."""
    rest = [MOST_RECORDED] * ((segment.steps - 1) // MOST_RECORDED)
    return [*(Segment(n) for n in rest), replace(segment, steps=segment.steps - sum(rest))]
