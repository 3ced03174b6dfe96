"""What does the work of a stage: plain callables, or work that is submitted ahead of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast, runtime_checkable

from dashi.errors import InputError

_AHEAD_LIMIT = 1024


@dataclass(frozen=True)
class ItemSlots:
    """The number of an item, and the ring slots of it: of the link that it is read from, and of the link that its
    result is written into."""

    item: int
    source: int
    target: int


@dataclass(frozen=True)
class WorkerOp:
    """One op of a stage that is made of several: `call(item)` returns the item for the next op. A `migratable` one may
    be moved to a neighbour whose `max_depth` reaches `depth_out`; `bind(device)` then makes the call for the device
    of that stage, where the same call does not do."""

    id: str
    call: Callable[[Any], Any]
    migratable: bool = True
    depth_out: int = 0
    bind: Callable[[str], Callable[[Any], Any]] | None = None

    def on(self, device: str) -> WorkerOp:
        """The op for another device."""
        return self if self.bind is None else replace(self, call=self.bind(device))


@runtime_checkable
class Pending(Protocol):
    """Work that was submitted. `wait` returns its result when it is done, or raises its error."""

    def wait(self) -> Any:
        """The result, when it is there."""
        ...


@dataclass(frozen=True)
class Worker:
    """A stage of a `Pipeline`. Give it `compute`, or `ops` that are called one after another, or `submit` for work that
    a device does by itself.

    `compute(item)` returns the stage's result; it must not change the item, which is read again after a failure.
    `submit(item, slots)` returns at once; up to `ahead` items may be under way. `transfer(result)` moves a result to
    where the next stage reads it, in a thread of its own: meanwhile the next item is computed.

    `restarts` is how often the stage may begin anew after an error, `make` what then makes its new worker (else the
    callables are used again); afterwards `elsewhere`, where it is there, makes one that runs the ops on another
    device. Where neither is left, a stage of migratable `ops` leaves them to the next one (`remap`). A `volatile` stage
    loses, when it dies, what it received and what its successor does not have yet: device memory, a process. Stages
    with a memory of their own have `save` and `load`: after each `save_every` items `save()` is asked for, and after a
    failure the items since then are computed again, for `load`'s sake alone.

    `open` and `close` are called in the stage's thread, first and last. `fetch(result)` is what observers and snapshots
    are shown: a copy on the host, where results lie on a device. `lighter` is a transfer that carries less, and is
    used in its place where the pipeline may be lossy and the link holds it up.
    """

    id: str = ""
    compute: Callable[[Any], Any] | None = None
    ops: tuple[WorkerOp, ...] = ()
    submit: Callable[[Any, ItemSlots], Pending] | None = None
    transfer: Callable[[Any], Any] | None = None
    ahead: int = 2
    device: str = ""
    restarts: int = 0
    make: Callable[[], Worker] | None = None
    elsewhere: Callable[[], Worker] | None = None
    remap: bool = False
    max_depth: int | None = None
    lighter: Callable[[Any], Any] | None = None
    volatile: bool = False
    save: Callable[[], Any] | None = None
    load: Callable[[Any], None] | None = None
    save_every: int = 1
    open: Callable[[], object] | None = None
    close: Callable[[], object] | None = None
    fetch: Callable[[Any], Any] | None = None
    check: Callable[[Any], None] | None = None
    """Raises an error where a result is not what the next stage reads."""

    def __post_init__(self) -> None:
        parts = [name for name in ("compute", "ops", "submit") if getattr(self, name)]
        if len(parts) != 1:
            raise InputError(
                f"stage {self.id!r} has {' and '.join(f'`{name}=`' for name in parts) or 'nothing to do'}.",
                "give it one of three: `compute=` returns the result, `ops=` are called in turn, `submit=` returns "
                "work that is under way.",
            )
        if not 1 <= self.ahead <= _AHEAD_LIMIT:
            raise InputError(f"`ahead=` {self.ahead!r} of stage {self.id!r} is no depth.", "pass a number from 1 on.")
        if self.restarts < 0 or self.save_every < 1:
            raise InputError(
                f"stage {self.id!r} has `restarts={self.restarts}` and `save_every={self.save_every}`.",
                "pass `restarts=` from 0 and `save_every=` from 1 on.",
            )
        if (self.save is None) != (self.load is None) or (self.save is not None and self.compute is None):
            raise InputError(
                f"stage {self.id!r} has a memory, but not all of `compute=`, `save=` and `load=`.",
                "pass all three: what was saved is loaded, and the items since then are computed again.",
            )

    @property
    def depth(self) -> int:
        """How many items may be under way in it."""
        return 1 if self.submit is None else self.ahead


def as_worker(stage: object, number: int) -> Worker:
    """A worker of what a caller passed as stage `number`. A callable may have a method `close`."""
    if isinstance(stage, Worker):
        return stage if stage.id else replace(stage, id=f"stage{number}")
    if not callable(stage):
        raise InputError(
            f"stage {number} is {stage!r:.80}, which cannot be called.",
            "pass a function of one item that returns the result, or a `dashi.stream.Worker`.",
        )
    name = getattr(stage, "id", None) or getattr(stage, "__name__", "")
    label = name if isinstance(name, str) and name.isidentifier() else f"stage{number}"
    close = getattr(stage, "close", None)
    return Worker(
        label,
        compute=cast("Callable[[Any], Any]", stage),
        close=cast("Callable[[], object]", close) if callable(close) else None,
    )
