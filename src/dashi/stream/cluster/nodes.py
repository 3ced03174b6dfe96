"""A plan whose stages lie on several nodes: neighbouring stages of a node are one stage of a chain over ranks."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import numpy as np

from dashi.errors import InputError, Interrupted, StreamError
from dashi.runtime.array import Array
from dashi.stream._contracts import debug_wanted
from dashi.stream._device_chain import DeviceChain
from dashi.stream._digests import WORDS, digest_text
from dashi.stream._model import WINDOW, Field, Payload
from dashi.stream._plan import PlannedStage, StreamPlan
from dashi.stream._predict import predict
from dashi.stream.cluster._messages import Kind, Message, encoded_size
from dashi.stream.cluster._transport import Transport
from dashi.stream.cluster.engine import ChainRun, run_chain
from dashi.stream.cluster.stage import Arrays, RankStage
from dashi.stream.running import Observations, StreamRun, check_state, drawn_payloads, open_devices
from dashi.types import HostArray

DIGEST: Final = "dashi.digest"
"""The field that the last node adds: the digest of the item."""
OBSERVED: Final = "dashi.observed/"
"""What observers found after an item travels with it to rank 0, as fields "dashi.observed/STAGE/NAME": so there is one
of each step, whichever ranks are lost."""
_JOB_RANKS: Final = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
_JOB_SIZES: Final = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


class NodeStage(RankStage):
    """Neighbouring stages of a plan that run on one node. Items are computed one after another; within the node they
    stay on its devices."""

    def __init__(self, plan: StreamPlan, *, last: bool) -> None:
        self.plan: Final = plan
        self.node = plan.stages[0].stage.node or None
        self.id = "+".join(planned.stage.id for planned in plan.stages)
        self._last = last
        self._stack = ExitStack()
        self._devices: Mapping[str, Any] = {}
        self._chain: DeviceChain | None = None
        self._begun = False
        self._observed = dict[str, HostArray]()
        self.computed: list[dict[str, Any]] = []

    def open(self) -> None:
        self._stack = ExitStack()
        self._devices = open_devices(self.plan, self._stack)

    def restore(self, memory: Arrays | None) -> None:
        self._close_chain()
        self._chain = DeviceChain(
            self.plan, self._devices, keep=True, observe=self._observe, check=check_state, debug=debug_wanted()
        )
        self._begun = False

    def _observe(self, step: int, stage: str, values: Arrays) -> None:
        self._observed |= {f"{OBSERVED}{stage}/{name}": np.array(array) for name, array in values.items()}

    def compute(self, step: int, item: Arrays) -> Arrays:
        chain = self._chain
        assert chain is not None
        if not self._begun:  # items of a chain count from 0, also where the chain over ranks goes on in between
            chain.count_from(step - 1)
            self._begun = True
        earlier = {name: values for name, values in item.items() if name.startswith(OBSERVED)}
        payload = {name: np.array(values) for name, values in item.items() if name not in earlier}
        result = chain.read(chain.submit(payload))
        chain.finish()
        observed, self._observed = self._observed, {}
        digest = {DIGEST: np.frombuffer(bytes.fromhex(result.digest), np.uint8)} if self._last else {}
        return {**result.fields, **earlier, **observed, **digest}

    def record(self) -> Sequence[Mapping[str, Any]]:
        if self._chain is None:
            return self.computed
        return [*self.computed, *self._chain.record()]

    def _close_chain(self) -> None:
        chain, self._chain = self._chain, None
        if chain is not None:
            self.computed = [*self.computed, *chain.record()]
            chain.close()

    def close(self) -> None:
        self._close_chain()
        self._stack.close()


def node_stages(plan: StreamPlan) -> list[NodeStage]:
    """The stages of a chain over ranks: a run of neighbours on one node each."""
    runs: list[list[int]] = []
    for i, planned in enumerate(plan.stages):
        if runs and plan.stages[runs[-1][-1]].stage.node == planned.stage.node:
            runs[-1].append(i)
        else:
            runs.append([i])
    return [NodeStage(_part(plan, run), last=run is runs[-1]) for run in runs]


def _part(plan: StreamPlan, run: Sequence[int]) -> StreamPlan:
    stages, links = plan.stages[run[0] : run[-1] + 1], plan.links[run[0] : run[-1]]
    return replace(plan, stages=stages, links=links, candidates=())


def has_nodes(plan: StreamPlan) -> bool:
    """Whether the stages of a plan lie on several nodes."""
    return len({planned.stage.node for planned in plan.stages}) > 1


def job_rank() -> int | None:
    """The rank of this process, where MPI has started it; else None. Loads nothing."""
    rank = next((os.environ[name] for name in _JOB_RANKS if name in os.environ), "")
    return int(rank) if rank.isdecimal() else None


def require_ranks_fit(plan: StreamPlan, ranks: int | None = None, serial: str | None = None) -> None:
    """Raises InputError where ranks, those to be started (`ranks`) or those of the job that this process belongs to,
    would each run the whole chain: for a run on one device (`serial`), and for stages that name no nodes. A job of one
    process is none."""
    rank = job_rank()
    if ranks is None and (rank is None or _job_size() == 1):
        return
    what = f"this process is rank {rank} of a job" if ranks is None else f"`ranks={ranks}` asks for ranks"
    away = "start one process without MPI" if ranks is None else "leave `ranks=` away"
    if ranks is not None and rank is not None:
        raise InputError(f"{what}, and this process is rank {rank} of a job that has its ranks already.", f"{away}.")
    if serial is not None:
        raise InputError(f"{what}, and `serial={serial}` runs all ops on one device.", f"{away}, or `serial=`.")
    if not has_nodes(plan):
        raise InputError(
            f"{what}, and the stages ({', '.join(planned.stage.id for planned in plan.stages)}) lie on one node: "
            "every rank would run the whole chain.",
            f"give stages `node: NAME` in the file, or {away}.",
        )


def _job_size() -> int | None:
    """How many ranks the job has, where the environment says it."""
    size = next((os.environ[name] for name in _JOB_SIZES if name in os.environ), "")
    return int(size) if size.isdecimal() else None


def run_nodes(
    plan: StreamPlan,
    items: int | None = None,
    *,
    payloads: Iterable[Payload] | None = None,
    keep: bool = False,
    advance: Callable[[int], None] | None = None,
    timeout: float = 600.0,
    transport: Transport | None = None,
) -> StreamRun | None:
    """Sends items through a plan whose stages lie on several nodes. Every rank of the job calls it with the same plan;
    rank 0 gets the run, with the hashes that one device gives, the others None. What the job needs is one rank for
    each node, one for source and sink, and as many spares as wanted."""
    if transport is None and job_rank() is None:
        nodes = len(node_stages(plan))
        raise StreamError(
            f"the stages lie on {nodes} nodes, and this process is no rank of a job.",
            f"start mpiexec -n {nodes + 1} ..., or pass `ranks={nodes + 1}` for ranks of this machine.",
        )
    count = plan.config.source.items if items is None else items
    if count < 0:
        raise InputError(f"`items` of {count} cannot be sent.", "pass 0 or more.")
    stages = node_stages(plan)
    _require_no_codecs(plan, stages)
    sink = _Sink(keep, advance)
    source = iter(payloads) if payloads is not None else drawn_payloads(plan, count)
    start = time.perf_counter()
    try:
        done = run_chain(
            stages, _on_the_host(islice(source, count)), sink.take, windows=_windows(plan, stages),
            item_bytes=_item_bytes(plan), fingerprint=_fingerprint(plan), timeout=timeout, transport=transport,
        )  # fmt: skip
    except KeyboardInterrupt as stop:
        raise Interrupted(sink.run(plan, time.perf_counter() - start, None)) from stop
    return sink.run(plan, done.seconds, done) if done.rank == 0 else None


def _on_the_host(payloads: Iterable[Payload]) -> Iterator[Arrays]:
    for payload in payloads:
        yield {name: array.numpy() if isinstance(array, Array) else array for name, array in payload.items()}


def _windows(plan: StreamPlan, stages: Sequence[NodeStage]) -> list[int]:
    """The windows of the links between nodes, and those of source and sink."""
    ends = {stage.plan.stages[-1].stage.id for stage in stages[:-1]}
    between = [link.window for planned, link in zip(plan.stages, plan.links, strict=False) if planned.stage.id in ends]
    return [WINDOW, *between, WINDOW]


def _item_bytes(plan: StreamPlan) -> int:
    """The largest item on any link, as bytes on the way."""
    digest: Arrays = {DIGEST: np.zeros(4 * WORDS, np.uint8)}
    observed = {name: form for planned in plan.stages for name, form in _observed_fields(planned).items()}
    schemas = [plan.stages[0].taken, *(planned.after for planned in plan.stages)]
    items: list[Arrays] = [
        {name: np.broadcast_to(np.zeros((), form.element.numpy), form.shape) for name, form in fields.items()}
        for fields in ({**schema, **observed} for schema in schemas)
    ]
    return max(encoded_size(Message(Kind.ITEM, 0, arrays={**item, **digest})) for item in items)


def predicted_period(plan: StreamPlan, stages: Sequence[NodeStage]) -> float:
    """The period of a plan over these nodes: stages of a node run one after another, with the links between them."""
    ends = {stage.plan.stages[-1].stage.id for stage in stages[:-1]}
    between = [link for planned, link in zip(plan.stages, plan.links, strict=False) if planned.stage.id in ends]
    nodes = [
        sum(planned.seconds for planned in stage.plan.stages) + sum(link.seconds for link in stage.plan.links)
        for stage in stages
    ]
    return predict(nodes, [link.seconds for link in between], [link.window for link in between])[0].period


def _observed_fields(planned: PlannedStage) -> dict[str, Field]:
    """What observers of a stage may bring, by the names that it travels under."""
    schema, results = planned.taken, dict[str, Field]()
    for op in (*planned.ops, *planned.observers):
        fields = op.makes(schema)
        schema = schema.with_fields(fields)
        results |= fields if op.spec.observes else {}
    return {f"{OBSERVED}{planned.stage.id}/{name}": form for name, form in results.items()}


def _text(schema: Mapping[str, Field]) -> list[str]:
    return [f"{name}: {form.text}" for name, form in schema.items()]


def _fingerprint(plan: StreamPlan) -> str:
    """A digest of what every rank must agree on: stages with their ops, and what travels."""
    form = [
        [planned.stage.id, planned.stage.node, [op.spec.id for op in planned.ops], _text(planned.after)]
        for planned in plan.stages
    ]
    return hashlib.blake2b(json.dumps(form).encode(), digest_size=16).hexdigest()


def _require_no_codecs(plan: StreamPlan, stages: Sequence[NodeStage]) -> None:
    ends = {stage.plan.stages[-1].stage.id for stage in stages[:-1]}
    for planned, link in zip(plan.stages, plan.links, strict=False):
        if planned.stage.id in ends and link.link.codec != "none":
            raise StreamError(
                f"link {link.link.name} joins two nodes, and links between nodes do not have the codec "
                f"{link.link.codec!r}.",
                "take `codec` away from it.",
            )


class _Sink:
    """What came out, on rank 0."""

    def __init__(self, keep: bool, advance: Callable[[int], None] | None) -> None:
        self._keep, self._advance = keep, advance
        self._hashes, self._steps = list[str](), list[int]()
        self._fields = list[Arrays]()
        self._observed = Observations()
        self._first = self._last = 0.0

    def take(self, step: int, item: Arrays) -> None:
        """Keeps an item's digest, and its fields where they are wanted."""
        self._last = time.perf_counter()
        self._first = self._first or self._last
        self._steps.append(step)
        self._hashes.append(digest_text(item[DIGEST].view(np.uint32)))
        self._take_observations(step - 1, item)
        if self._keep:
            own = (DIGEST, OBSERVED)
            self._fields.append({name: each.copy() for name, each in item.items() if not name.startswith(own)})
        if self._advance is not None:
            self._advance(1)

    def _take_observations(self, step: int, item: Arrays) -> None:
        by_stage = dict[str, dict[str, HostArray]]()
        for name, values in item.items():
            if name.startswith(OBSERVED):
                stage, _, field = name.removeprefix(OBSERVED).partition("/")
                by_stage.setdefault(stage, {})[field] = values.copy()
        for stage, found in by_stage.items():
            self._observed.add(step, stage, found)

    def run(self, plan: StreamPlan, seconds: float, done: ChainRun | None) -> StreamRun:
        """The run so far."""
        items = len(self._hashes)
        stages = [
            {**stage, "rank": rank}
            for rank, report in (done.reports.items() if done is not None else ())
            for stage in report["record"]
        ]
        engine = () if done is None else (f"nodes are joined by {done.engine}",)
        losses = () if done is None else tuple(loss.text for loss in done.losses)
        return StreamRun(
            items, self._steps == list(range(1, items + 1)), tuple(self._hashes),
            (self._last - self._first) / (items - 1) if items > 1 else None,
            predicted_period(plan, node_stages(plan)), plan.config.determinism_tier, seconds, stages,
            tuple(self._observed.entries), self._observed.left_out, (*plan.notes, *engine, *losses),
            tuple(self._fields),
        )  # fmt: skip
