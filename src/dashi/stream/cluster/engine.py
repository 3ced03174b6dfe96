"""Runs a chain of stages over the ranks of a cluster: the same program on every rank."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashi.errors import InputError, StalledError
from dashi.stream.cluster._computing import ThreadComputing
from dashi.stream.cluster._coordinator import ChainSettings, Coordinator, RankLoss
from dashi.stream.cluster._groups import COORDINATOR, RankGroup, first_groups
from dashi.stream.cluster._mpi_transport import MpiTransport
from dashi.stream.cluster._transport import Transport
from dashi.stream.cluster._worker import RankWorker
from dashi.stream.cluster.stage import Arrays, RankStage

WINDOW = 3
_SHORTEST_S, _LONGEST_S = 50e-6, 2e-3
"""How long a rank without work sleeps between two looks: the longer it had none, the longer."""


@dataclass(frozen=True)
class ChainRun:
    """What a chain over machines did; on rank 0 alone it is the whole chain's."""

    items: int
    seconds: float
    engine: str
    """What carried the messages, as it calls itself."""
    rank: int
    ranks: int
    groups: tuple[RankGroup, ...]
    """Which rank ran which stages at the end."""
    first_groups: tuple[RankGroup, ...]
    losses: tuple[RankLoss, ...]
    reports: Mapping[int, Mapping[str, Any]]
    """What each rank did: items, seconds of computing and of waiting for a place in the next rank's window."""


def run_chain(
    stages: Sequence[RankStage],
    items: Iterable[Arrays],
    deliver: Callable[[int, Arrays], None],
    *,
    windows: int | Sequence[int] = WINDOW,
    snapshot_every: int = 64,
    item_bytes: int = 1 << 20,
    nodes: Mapping[str, int] | None = None,
    fingerprint: str = "",
    timeout: float = 600.0,
    transport: Transport | None = None,
) -> ChainRun:
    """Sends items through the stages, in order, each stage on a rank of its own where there are enough. Every rank
    calls it with the same stages; rank 0 draws the items, and calls `deliver(step, item)` with each that comes out
    (steps count from 1; the arrays are valid until it returns).

    `windows`: items under way on each link (first that from the source, last that to the sink). `snapshot_every`: steps
    between copies of the stages' memories, which rank 0 keeps; when ranks are lost, a spare rank or a neighbour takes
    their stages over, and the items since the last copy are computed again. `item_bytes`: the largest item, as bytes on
    the way. `nodes`: the rank of each node that stages name. `fingerprint`: of the chain, so that a rank which was
    started with another is an error. `timeout`: seconds without any progress before a StalledError."""
    _check(stages, snapshot_every, item_bytes)
    each = _windows(windows, len(stages))
    carrier = MpiTransport() if transport is None else transport
    settings = ChainSettings(each, snapshot_every, item_bytes, fingerprint)
    try:
        groups = first_groups(stages, carrier.size, nodes or {})
        if carrier.rank == COORDINATOR:
            return _coordinate(Coordinator(carrier, stages, groups, iter(items), deliver, settings), carrier, timeout)
        return _work(stages, carrier, groups, fingerprint, timeout)
    finally:
        carrier.close()


def _check(stages: Sequence[RankStage], snapshot_every: int, item_bytes: int) -> None:
    names = [stage.id for stage in stages]
    if not stages or len(set(names)) != len(names):
        raise InputError(f"the stages {names} are no chain.", "pass one stage or more, each with a name of its own.")
    for name, value in (("snapshot_every", snapshot_every), ("item_bytes", item_bytes)):
        if type(value) is not int or value < 1:
            raise InputError(f"`{name}={value!r}` is no whole number of at least 1.", "pass 1 or more.")


def _windows(windows: int | Sequence[int], stages: int) -> tuple[int, ...]:
    each = (windows,) * (stages + 1) if isinstance(windows, int) else tuple(windows)
    if len(each) != stages + 1 or any(type(window) is not int or window < 1 for window in each):
        raise InputError(
            f"`windows={windows!r}` does not fit: {stages} stages have {stages + 1} links.",
            "pass one number of at least 1, or one for each link.",
        )
    return each


def _coordinate(chain: Coordinator, carrier: Transport, timeout: float) -> ChainRun:
    begin = time.perf_counter()
    try:
        pause = _Pause(timeout, chain.waiting_for)
        while not chain.complete:
            pause.after(chain.turn())
        seconds = time.perf_counter() - begin
        chain.finish()
        pause = _Pause(timeout, lambda: "ranks have not said what they did")
        while not chain.reported:
            pause.after(chain.turn())
    finally:
        chain.end()
    return ChainRun(
        chain.delivered, seconds, carrier.name, carrier.rank, carrier.size, chain.groups, chain.first_groups,
        tuple(chain.losses), dict(sorted(chain.reports.items())),
    )  # fmt: skip


def _work(
    stages: Sequence[RankStage], carrier: Transport, groups: Sequence[RankGroup], fingerprint: str, timeout: float
) -> ChainRun:
    computing = ThreadComputing()
    worker = RankWorker(carrier, stages, computing, fingerprint)
    begin = time.perf_counter()
    pause = _Pause(None, lambda: "", computing.wake.wait)
    try:
        while not worker.ended:
            computing.wake.clear()
            pause.after(worker.turn())
    finally:
        computing.close(timeout)
        worker.close()
    return ChainRun(
        worker.items, time.perf_counter() - begin, carrier.name, carrier.rank, carrier.size, tuple(groups),
        tuple(groups), (), {carrier.rank: worker.report().document},
    )  # fmt: skip


class _Pause:
    """Sleeps while there is nothing to do, longer each time, and gives up after `timeout` seconds."""

    def __init__(
        self, timeout: float | None, waiting_for: Callable[[], str], sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._timeout, self._waiting_for, self._sleep = timeout, waiting_for, sleep
        self._idle_since: float | None = None
        self._next = _SHORTEST_S

    def after(self, busy: bool) -> None:
        if busy:
            self._idle_since, self._next = None, _SHORTEST_S
            return
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if self._timeout is not None and now - self._idle_since > self._timeout:
            raise StalledError(
                f"nothing has moved for {self._timeout:g} s: {self._waiting_for()}.",
                "look at the ranks' own messages, or pass a longer `timeout=`.",
            )
        self._sleep(self._next)
        self._next = min(self._next * 1.5, _LONGEST_S)


def arrays_of(items: Iterable[Any]) -> Iterator[Arrays]:
    """Items as named arrays: an array alone is called `z`."""
    for item in items:
        yield item if isinstance(item, Mapping) else {"z": item}
