"""A configuration, or a plan, run: items drawn, sent through the chain on its devices, and what came out.

done = run(load("chain.yaml"), items=50)
print(done.hashes[0], done.period)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dashi.errors import DashiError, InputError, Interrupted
from dashi.runtime.device import Device
from dashi.runtime.select import open_device
from dashi.stream._contracts import debug_wanted
from dashi.stream._device_chain import DeviceChain, Period
from dashi.stream._device_stage import Hold
from dashi.stream._draws import items_of
from dashi.stream._loss import LossPolicy
from dashi.stream._model import DeviceSpec, Payload, State, StreamConfig
from dashi.stream._op import StreamOp
from dashi.stream._plan import PlannedStage, StreamPlan
from dashi.stream._plan_adapter import PlanAdapter
from dashi.stream._progress import LINES_EVERY, device_lines
from dashi.stream._renewal import FirstLooks, Opened, RenewedChain
from dashi.stream._report import ChainEvent
from dashi.stream._rules import check_depth
from dashi.stream._snapshot_files import SnapshotFiles
from dashi.stream.planning import make_plan
from dashi.types import HostArray

PREPARED_BYTES: Final = 64 << 20
"""Items of so many bytes together are drawn before the run, which is then not timed with the draws."""
PREPARED_ITEMS: Final = 4096
"""More items are drawn one by one in any case: the smallest takes some hundred bytes of the host beside its own."""
OBSERVATIONS_KEPT: Final = 1000
_MOST_QUEUES: Final = 8
_SHOWN: Final = 16
"""Values of an observer that a record has; of longer arrays it has the number."""


@dataclass(frozen=True)
class StreamObservation:
    """What observers of a stage found after a step, by field."""

    step: int
    stage: str
    values: Mapping[str, HostArray]

    def as_json(self) -> dict[str, Any]:
        """The observation as plain values; long arrays are named by their number of elements alone."""
        return {
            "step": self.step,
            "stage": self.stage,
            "values": {
                name: values.ravel().tolist() if values.size <= _SHOWN else f"{values.size} elements"
                for name, values in self.values.items()
            },
        }


@dataclass(frozen=True)
class StreamRun:
    """What a run gave: one hash per item out, in the order of the items in. `period` is the time between two items at
    the sink in seconds, None for less than two; `stages` is what each stage is and did. `fields` are the results of
    each item, where they were kept."""

    items: int
    in_order: bool
    hashes: tuple[str, ...]
    period: float | None
    predicted_period: float
    determinism_tier: int
    seconds: float
    stages: Sequence[Mapping[str, Any]] = ()
    observations: tuple[StreamObservation, ...] = ()
    observations_left_out: int = 0
    notes: tuple[str, ...] = ()
    fields: tuple[Mapping[str, HostArray], ...] = field(default=(), repr=False)
    events: tuple[ChainEvent, ...] = ()
    events_left_out: int = 0

    @property
    def lossy(self) -> tuple[str, ...]:
        """The codecs on the way that lose precision."""
        links = [stage["link"] for stage in self.stages if stage["link"] is not None]
        return tuple(dict.fromkeys(link["codec"] for link in links if link["lossy"]))

    def as_json(self) -> dict[str, Any]:
        """The run as plain values."""
        return {
            "items": self.items,
            "in_order": self.in_order,
            "hashes": list(self.hashes),
            "period_us": None if self.period is None else round(self.period * 1e6, 3),
            "predicted_period_us": round(self.predicted_period * 1e6, 3),
            "seconds": round(self.seconds, 6),
            "determinism_tier": self.determinism_tier,
            "lossy": list(self.lossy),
            "stages": [dict(stage) for stage in self.stages],
            "observations": [one.as_json() for one in self.observations],
            "observations_left_out": self.observations_left_out,
            "events": [asdict(event) for event in self.events],
            "events_left_out": self.events_left_out,
            "notes": list(self.notes),
        }


def run(
    chain: StreamConfig | StreamPlan,
    items: int | None = None,
    *,
    payloads: Iterable[Payload] | None = None,
    ops: Mapping[str, StreamOp] | None = None,
    measure: bool = True,
    serial: str | None = None,
    keep: bool = False,
    advance: Callable[[int], None] | None = None,
    remark: Callable[..., None] | None = None,
    hold: Hold | None = None,
    debug: bool | None = None,
    restarts: int = 0,
    elsewhere: str = "",
    adapt: bool = False,
    snapshots: Mapping[str, int] | None = None,
    folder: Path | str | None = None,
    opened: Opened | None = None,
) -> StreamRun:
    """Sends `items` items (the source's number, unless given) through the chain. `payloads` are the items themselves,
    where the configuration's source is not to draw them. `ops` and `measure` are those of `make_plan`, for a
    configuration.

    `serial` names one device that all ops run on, one after another, without links: its hashes are those of the chain
    wherever kernels are portable and no codec loses anything. `keep` keeps the results themselves. `advance` is called
    with 1 for each item out, `remark` every few seconds with a line for each stage: its rate, how busy its device is,
    how full its link, what it waits for. `debug` keeps a ContractLedger of who owns each State, which slots are in use,
    and who looks; None is True where the environment variable DASHI_STREAM_DEBUG is 1. Ctrl-C raises Interrupted, with
    the run so far in `partial`; errors have it in `result`.

    Where a device is lost, the chain is opened again and goes on with the first item that had not come out, `restarts`
    times for each stage; after that the stages of that device run `elsewhere`: on a device that is named, or
    "neighbour", where the rules allow it. Payloads that were passed must stay as they are until they have come out.

    `adapt` keeps the last stage from starving: windows are raised, transfers carry half (at tier 2 and above), a
    migratable op moves to the stage before. `snapshots` says behind which stages the State of every so many steps is
    written into `folder`, as STAGE-STEP.npz. `opened` is entered with each device while it is open.
    """
    plan = chain if isinstance(chain, StreamPlan) else make_plan(chain, ops=ops, measure=measure)
    count = plan.config.source.items if items is None else items
    if count < 0:
        raise InputError(f"`items={count}` cannot be sent.", "pass 0 or more.")
    chosen = _serial(plan, serial) if serial is not None else plan
    sent = iter(payloads) if payloads is not None else drawn_payloads(plan, count)
    checked = debug_wanted() if debug is None else debug
    looks, observed = FirstLooks(), Observations()
    with SnapshotFiles(chosen, snapshots or {}, folder) as files:
        written = files.settings(looks)

        def make(plan: StreamPlan, devices: Mapping[str, Device], period: Period) -> DeviceChain:
            return DeviceChain(
                plan, devices, keep=keep, observe=looks.once("observers", observed.add), hold=hold, check=check_state,
                debug=checked, snapshots=written, period=period,
            )  # fmt: skip

        def devices(plan: StreamPlan, stack: ExitStack) -> Mapping[str, Device]:
            return open_devices(plan, stack, opened)

        renewed = RenewedChain(chosen, LossPolicy(restarts, elsewhere), devices, make)
        if adapt:
            renewed.turn = PlanAdapter(renewed, ops or {}, count).turn
        return _Running(chosen, count, renewed, keep, advance, remark).go(islice(sent, count), observed, files.finish)


class Observations:
    """What observers found in a run, up to a number."""

    def __init__(self) -> None:
        self.entries = list[StreamObservation]()
        self.left_out = 0

    def add(self, step: int, stage: str, values: Mapping[str, HostArray]) -> None:
        """Keeps what was observed, or counts it."""
        if len(self.entries) < OBSERVATIONS_KEPT:
            self.entries.append(StreamObservation(step, stage, values))
        else:
            self.left_out += 1


class _Running:
    """A run under way, and what it has found so far."""

    def __init__(
        self,
        plan: StreamPlan,
        items: int,
        chain: RenewedChain,
        keep: bool,
        advance: Callable[[int], None] | None,
        remark: Callable[..., None] | None,
    ) -> None:
        self.plan, self.items, self.chain, self.keep = plan, items, chain, keep
        self.advance, self.remark = advance, remark
        self._due = time.monotonic() + LINES_EVERY
        self._events_told = 0
        self.steps, self.hashes = list[int](), list[str]()
        self.fields = list[Mapping[str, HostArray]]()

    def go(self, payloads: Iterator[Payload], observed: Observations, finish: Callable[[], None]) -> StreamRun:
        """Runs all items; `finish` returns when everybody has seen them. What came out before an error is its
        `result`."""
        start = time.perf_counter()
        with closing(self.chain.run(payloads)) as results:
            try:
                for result in results:
                    self.steps.append(result.step)
                    self.hashes.append(result.digest)
                    if self.keep:
                        self.fields.append(result.fields)
                    if self.advance is not None:
                        self.advance(1)
                    self._tell()
                finish()
            except KeyboardInterrupt as stop:
                raise Interrupted(self._done(observed, start)) from stop
            except DashiError as error:
                error.result = self._done(observed, start)
                raise
        return self._done(observed, start)

    def _tell(self) -> None:
        events = self.chain.events[self._events_told :]
        if self.remark is None or (not events and time.monotonic() < self._due):
            return
        self._due = time.monotonic() + LINES_EVERY
        self._events_told += len(events)
        self.remark(*device_lines(self.chain.record(), self.chain.period.seconds), *(event.text for event in events))

    def _done(self, observed: Observations, start: float) -> StreamRun:
        chain = self.chain
        return StreamRun(
            len(self.hashes), self.steps == list(range(len(self.steps))), tuple(self.hashes), chain.period.seconds,
            self.plan.prediction.period, self.plan.config.determinism_tier, time.perf_counter() - start,
            chain.record(), tuple(observed.entries), observed.left_out, self.plan.notes, tuple(self.fields),
            tuple(chain.events), chain.events_left_out,
        )  # fmt: skip


def check_state(state: State, planned: PlannedStage) -> None:
    """R1 again, for a State under way."""
    check_depth(planned.stage, state, replace(state, semantic_depth=planned.depth_out))


def drawn_payloads(plan: StreamPlan, items: int) -> Iterator[Payload]:
    """The items that the source of a plan draws; before the run, where they are few and small."""
    source = plan.config.source
    draws = (items_of(source, item) for item in range(items))
    if items <= PREPARED_ITEMS and items * source.schema.nbytes <= PREPARED_BYTES:
        return iter(list(draws))
    return draws


def _serial(plan: StreamPlan, device: str) -> StreamPlan:
    """All ops of a plan in one stage on one device."""
    first, last = plan.stages[0], plan.stages[-1]
    spec = DeviceSpec("serial", device)
    stage = replace(first.stage, id="serial", device="serial", max_semantic_depth=last.stage.max_semantic_depth)
    whole = replace(
        first, stage=stage, device=spec, ops=tuple(op for planned in plan.stages for op in planned.ops),
        observers=(), after=last.after, depth_out=last.depth_out, seconds=sum(p.seconds for p in plan.stages), every={},
    )  # fmt: skip
    return replace(plan, stages=(whole,), links=(), prediction=replace(plan.prediction, period=whole.seconds))


def open_devices(plan: StreamPlan, stack: ExitStack, opened: Opened | None = None) -> dict[str, Device]:
    """The devices of a plan, each with a queue for every stage on it, as far as devices have so many."""
    specs = {planned.device.id: planned.device.spec for planned in plan.stages}
    stages = [planned.device.id for planned in plan.stages]
    devices: dict[str, Device] = {}
    for name, spec in specs.items():
        devices[name] = stack.enter_context(open_device(spec, queues=min(_MOST_QUEUES, stages.count(name))))
        if opened is not None:
            stack.enter_context(opened(name, devices[name]))
    return devices
