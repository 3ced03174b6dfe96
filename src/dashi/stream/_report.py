"""What a chain does and did: each stage and link, decisions and accidents, in numbers and in words."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dashi.stream._tally import Wait

if TYPE_CHECKING:
    from dashi.stream._executor import Executor
    from dashi.stream._stage_threads import StageThreads

SOURCE, SINK = "source", "sink"


@dataclass(frozen=True)
class StageReport:
    """One stage: items and seconds so far. `starved_seconds` it waited for input, `blocked_seconds` for a free slot of
    `link_out`, `observing_seconds` for observers, `restarting_seconds` it was dead. `now` says what it does."""

    id: str
    device: str
    items_in: int
    items_out: int
    compute_seconds: float
    transfer_seconds: float
    starved_seconds: float
    blocked_seconds: float
    observing_seconds: float
    restarting_seconds: float
    restarts: int
    rate: float
    """Items out per second."""
    busy: float
    """The share of the time that it computed."""
    link_in: str
    link_out: str
    now: str


@dataclass(frozen=True)
class LinkReport:
    """One link: `used` of its `window` slots are in use, `mean_used` on average, `most_used` at most."""

    name: str
    window: int
    capacity: int
    used: int
    mean_used: float
    most_used: int


@dataclass(frozen=True)
class ChainEvent:
    """Something that happened to a chain: a stage died, was restarted or moved, failed, or the scheduler decided
    something. `item` is where."""

    kind: str
    place: str
    item: int
    reason: str

    @property
    def text(self) -> str:
        """The event in a line."""
        return f"{self.place}, item {self.item}: {self.kind}: {self.reason}"


@dataclass(frozen=True)
class ChainReport:
    """A chain while it runs, or after. `events` are in order; `events_left_out` more were not kept."""

    stages: tuple[StageReport, ...]
    links: tuple[LinkReport, ...]
    events: tuple[ChainEvent, ...]
    events_left_out: int
    items_in: int
    items_out: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """A line for each stage: its rate, the fill of the link before it, and what it waited for."""
        links = {link.name: link for link in self.links}
        return [_line(stage, links[stage.link_in]) for stage in self.stages]

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *(event.text for event in self.events)])


def _line(stage: StageReport, link: LinkReport) -> str:
    waits = {
        f"starved {stage.starved_seconds:.1f} s": stage.starved_seconds,
        f"blocked by {stage.link_out} {stage.blocked_seconds:.1f} s": stage.blocked_seconds,
        f"observers {stage.observing_seconds:.1f} s": stage.observing_seconds,
        f"dead {stage.restarting_seconds:.1f} s": stage.restarting_seconds,
    }
    stalls = [text for text, seconds in waits.items() if seconds >= 0.05]
    on = f" on {stage.device}" if stage.device else ""
    parts = [f"{stage.id}{on}: {stage.items_out} items, {stage.rate:.1f}/s", f"busy {stage.busy:.0%}"]
    return ", ".join([*parts, f"fill {link.used}/{link.window}", *stalls, stage.now])


def link_name(ids: list[str], j: int) -> str:
    """The name of a link by the stages on both sides."""
    ends = [SOURCE, *ids, SINK]
    return f"{ends[j]}->{ends[j + 1]}"


def build_report(run: Executor) -> ChainReport:
    """The report of a run; its lock is held."""
    seconds = (run.finished_at or time.perf_counter()) - run.began
    chain, ids = run.chain, [stage.id for stage in run.stages]
    links = [
        LinkReport(
            name=link_name(ids, j),
            window=chain.window[j],
            capacity=chain.capacity[j],
            used=chain.reserved[j] - chain.released[j],
            mean_used=run.links[j].mean,
            most_used=run.links[j].most,
        )
        for j in range(len(run.links))
    ]
    stages = [_stage_report(stage, ids, seconds) for stage in run.stages]
    pushed, popped = chain.written[0], chain.released[chain.last]
    return ChainReport(
        tuple(stages), tuple(links), tuple(run.events), run.events_left_out, pushed, popped, seconds
    )  # fmt: skip


def _stage_report(stage: StageThreads, ids: list[str], seconds: float) -> StageReport:
    tally = stage.tally
    told = getattr(stage.worker.compute, "device_seconds", None)  # of one that only submits
    compute = float(told) if isinstance(told, int | float) else tally.compute_seconds
    return StageReport(
        id=stage.id,
        device=stage.worker.device,
        items_in=tally.items_in,
        items_out=tally.items_out,
        compute_seconds=compute,
        transfer_seconds=tally.transfer_seconds,
        starved_seconds=tally.waited("starved"),
        blocked_seconds=tally.waited("blocked"),
        observing_seconds=tally.waited("observing"),
        restarting_seconds=tally.waited("restarting"),
        restarts=tally.restarts,
        rate=tally.items_out / seconds if seconds > 0 else 0.0,
        busy=compute / seconds if seconds > 0 else 0.0,
        link_in=link_name(ids, stage.number),
        link_out=link_name(ids, stage.number + 1),
        now=_now(stage, ids),
    )


def _now(stage: StageThreads, ids: list[str]) -> str:
    chain, i = stage.run.chain, stage.number
    why: Wait = stage.tally.why
    texts: dict[Wait, str] = {
        "starved": f"starved: {link_name(ids, i)} is empty",
        "blocked": f"blocked: {link_name(ids, i + 1)} is full ({chain.window[i + 1]} of {chain.window[i + 1]})",
        "observing": "waits for its observers",
        "restarting": "begins anew",
        "ahead": f"item {chain.written[i + 1]} is under way",
    }
    if stage.ended:
        return "ended"
    return texts.get(why, f"item {max(chain.reserved[i + 1] - 1, 0)} is computed")


def stalled_text(run: Executor) -> tuple[str, str]:
    """Why a chain does not move on, and what to do; the lock is held."""
    chain, ids = run.chain, [stage.id for stage in run.stages]
    full = [j for j in range(chain.last + 1) if chain.reserved[j] - chain.released[j] >= chain.window[j]]
    text = "; ".join(f"{stage.id!r}: {_now(stage, ids)}" for stage in run.stages)
    last = chain.last
    if last in full and chain.may_pop():
        first, end = chain.released[last], chain.delivered[last] - 1
        what = f"the last link ({link_name(ids, last)}) is full: items {first} to {end} are there and nobody pops them"
        return f"{what} ({text}).", (
            "pop results while you push (try_pop(), or `for result in pipeline.run(items)`), from the same thread or "
            "another."
        )
    if chain.written[0] == chain.released[last]:
        return f"nothing is in the chain: {link_name(ids, 0)} is empty ({text}).", (
            "push an item, or say that no more come: join(), end_input()."
        )
    at = next((stage for stage in run.stages if stage.tally.why in ("", "ahead") and not stage.ended), None)
    slow = f"{at.id!r} is still at work" if at is not None else "no stage is at work"
    names = ", ".join(link_name(ids, j) for j in full) or "no link"
    return f"{slow}, full: {names} ({text}).", (
        "see what that stage does; wait longer with `timeout=`, if that is what it takes."
    )
