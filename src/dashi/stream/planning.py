"""From a configuration to a plan: ops assigned to stages, or pinned ones validated; what travels; what it will take.

plan = make_plan(load("chain.yaml"))
print(plan.prediction.period)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from dashi.errors import StreamConfigError, StreamError, StreamRuleError
from dashi.stream import _rules as rules
from dashi.stream._chains import ChainProblem, Group, solve, solve_latency
from dashi.stream._devices import completed, host_cores
from dashi.stream._model import LOSSY_CODECS, DeviceSpec, LinkMode, LinkSpec, PayloadSchema, StreamConfig
from dashi.stream._offers import check_offers
from dashi.stream._op import StreamOp
from dashi.stream._op_chain import ChainLink, op_chain
from dashi.stream._plan import Candidate, PlannedLink, PlannedStage, StreamPlan
from dashi.stream._predict import predict
from dashi.stream._rules import StagePlace
from dashi.stream._times import coded_bytes, core_seconds, given_seconds, link_seconds, op_seconds, penalty_seconds
from dashi.stream.calibration import Calibration

LinkModes = Callable[[DeviceSpec, DeviceSpec], Sequence[LinkMode]]
"""How two devices of one machine can be linked, the best first."""


def make_plan(
    config: StreamConfig,
    *,
    ops: Mapping[str, StreamOp] | None = None,
    source: PayloadSchema | None = None,
    calibration: Calibration | None = None,
    measure: bool = True,
    link_modes: LinkModes | None = None,
) -> StreamPlan:
    """The plan of a configuration. `ops` are ops that are no kernels, by id; `source` is what goes in, unless the
    configuration says it. Speeds of devices that nobody gave come from `calibration`, else from the cache, else they
    are measured (about a second each), unless `measure` is false. `link_modes` says what was probed of links.

    Raises a StreamRuleError, with the rule, the op and the device, for what the rules forbid.
    """
    return _Planner(config, ops or {}, source, calibration, measure, link_modes or _likely_modes).plan()


def _likely_modes(first: DeviceSpec, second: DeviceSpec) -> tuple[LinkMode, ...]:
    """Logical devices of one GPU can share memory; of others nothing is known before it was tried."""
    return ("P2P", "HOST_STAGING") if first.spec == second.spec else ("HOST_STAGING",)


class _Planner:
    def __init__(
        self,
        config: StreamConfig,
        ops: Mapping[str, StreamOp],
        source: PayloadSchema | None,
        calibration: Calibration | None,
        measure: bool,
        link_modes: LinkModes,
    ) -> None:
        self.config, self.link_modes = config, link_modes
        self.pinned = any(stage.ops for stage in config.stages)
        self.names = [op for stage in config.stages for op in stage.ops] if self.pinned else list(config.chain)
        if not self.names:
            raise StreamConfigError("no stage has any op.", "give stages `ops`, or write a `chain`.")
        _require_engine(config)
        self.chain = op_chain(config, self.names, ops, config.source.schema if source is None else source)
        used = {stage.device: self._device(stage.device) for stage in config.stages}
        needed = any(given_seconds(link.spec, d) is None for link in self.chain.links for d in used.values())
        devices, self.speeds, self.notes = completed(used, calibration, measure=measure, needed=needed)
        self.places = [StagePlace(stage, devices[stage.device]) for stage in config.stages]
        linked = [self._link(i) for i in range(len(self.places) - 1)]
        self.links, self.link_notes = [link for link, _ in linked], [notes for _, notes in linked]

    def _device(self, name: str) -> DeviceSpec:
        if name in self.config.devices:
            return self.config.devices[name]
        return DeviceSpec(name, name, "CPU" if name == "cpu" else "GPU")

    # Rules

    def _raise(self, found: rules.RuleBreak | None, key: tuple[str | int, ...] = ()) -> None:
        if found is not None:
            raise found.error(self.config.where.get(key, ""))

    def _break(self, index: int, stage: int) -> rules.RuleBreak | None:
        link = self.chain.links[index]
        return rules.break_of_op(link.spec, self.places[stage], self.config.determinism_tier, link.depth_before)

    def _check_groups(self, groups: Sequence[Group]) -> None:
        """All rules, for ops that are where they are."""
        stages = [place.stage.id for place in self.places]
        home, where = groups[0][0], dict[str, int]()
        for stage, begin, end in groups:
            place = self.places[stage]
            for index in range(begin, end):
                link = self.chain.links[index]
                key = ("ops", link.spec.id) if ("ops", link.spec.id) in self.config.where else ("stages", stage)
                self._raise(self._break(index, stage), key)
                if index == begin:
                    before = self.places[home]
                    tier = self.config.determinism_tier
                    self._raise(rules.break_of_move(link.spec, before, place, tier, link.depth_before), key)
                self._raise(self._reading_break(index, begin, place), key)
                where[link.spec.id] = stage
            home = stage
        for one in self.config.broadcasts:
            self._raise(rules.break_of_broadcast(one, where[one.after], stages))

    def _reading_break(self, index: int, begin: int, place: StagePlace) -> rules.RuleBreak | None:
        """R5: observers see what observers of their own stage made; the chain sees none of it."""
        link = self.chain.links[index]
        here = {
            field
            for other in self.chain.links[begin:index]
            if other.spec.observes and link.spec.observes
            for field in other.makes
        }
        fields = [field for field in link.op.reads if field not in link.reads and field not in here]
        return rules.break_of_reading(link.spec, place, fields, self.chain.observed)

    # The assignment

    def plan(self) -> StreamPlan:
        """See `make_plan`."""
        self._raise(rules.break_of_order(self.places))
        self._raise(rules.break_of_devices(self.places, self.config.determinism_tier))
        check_offers(self.config, self.places, self.chain)
        groups = self._pinned_groups() if self.pinned else self._search()
        self._check_groups([one for one in groups if one[1] < one[2]] or groups)
        return self._planned(groups)

    def _pinned_groups(self) -> list[Group]:
        groups: list[Group] = []
        begin = 0
        for stage, place in enumerate(self.places):
            groups.append((stage, begin, begin + len(place.stage.ops)))
            begin += len(place.stage.ops)
        return groups

    def _search(self) -> list[Group]:
        problem = self._problem()
        config = self.config
        if config.objective == "latency":
            solution = solve_latency(problem)
        else:
            limited = config.objective == "throughput_under_latency"
            solution = solve(problem, config.latency_limit or math.inf) if limited else solve(problem)
        if solution is None:
            raise self._impossible(problem)
        first, last = solution.groups[0][0], solution.groups[-1][0]
        by_stage = {group[0]: group for group in solution.groups}
        groups: list[Group] = []
        at = 0
        for stage in range(first, last + 1):
            groups.append(by_stage.get(stage, (stage, at, at)))
            at = groups[-1][2]
        return groups

    def _problem(self) -> ChainProblem:
        n, k = len(self.chain.links), len(self.places)
        times = np.full((n, k), math.inf)
        penalties, core = np.zeros((n, k)), np.zeros((n, k))
        for i, link in enumerate(self.chain.links):
            pin = self.config.ops[link.spec.id].stage if link.spec.id in self.config.ops else ""
            for s, place in enumerate(self.places):
                if pin in ("", place.stage.id) and self._break(i, s) is None:
                    times[i, s] = self._seconds(link, place.device)
                    core[i, s] = core_seconds(link.spec, times[i, s], place.device)
                    penalties[i, s] = penalty_seconds(link.spec, place.device)
        payloads = [self.chain.payload(cut) for cut in range(n + 1)]
        sizes = np.array([[coded_bytes(x.codec, p, x.codec_options) for p in payloads] for x in self.links])
        transfers = np.array([[link_seconds(x, int(b)) for b in row] for x, row in zip(self.links, sizes, strict=True)])
        staged = np.array([[self._link_core(j) * t for t in row] for j, row in enumerate(transfers)])
        slow = np.array(
            [[0.0 if x.mode == "P2P" else b for b in row] for x, row in zip(self.links, sizes, strict=True)]
        )
        shape = (max(0, k - 1), n + 1)
        return ChainProblem(
            times,
            penalties,
            transfers.reshape(shape).astype(float),
            np.array([math.inf if w is None else w for w in self._windows()], float),
            core,
            staged.reshape(shape).astype(float),
            host_cores(),
            np.array([not link.spec.migratable for link in self.chain.links]),
            np.array([self._glued(i) for i in range(n)]),
            slow.reshape(shape).astype(float),
        )

    def _glued(self, index: int) -> bool:
        """Whether an op reads what an observer before it made, and so belongs to its stage."""
        link = self.chain.links[index]
        return any(field in self.chain.observed and field not in link.reads for field in link.op.reads)

    def _impossible(self, problem: ChainProblem) -> StreamError:
        for i, link in enumerate(self.chain.links):
            if not np.isfinite(problem.times[i]).any():
                broken = [found for s in range(len(self.places)) if (found := self._break(i, s)) is not None]
                where = self.config.where.get(("ops", link.spec.id), "")
                return (
                    broken[-1].error(where)
                    if broken
                    else StreamError(f"op {link.spec.id!r} has no stage to run in.", "take its `stage` away.")
                )
        quickest = solve_latency(problem)
        if quickest is not None:
            return StreamError(
                f"no assignment has a latency within {self.config.latency_limit} s; the least is "
                f"{quickest.latency:.6g} s.",
                "raise `latency_limit`, or use `objective: latency`.",
            )
        return StreamRuleError.of(
            rules.R4, "", "", "no contiguous groups of ops fit the stages in their order.",
            "declare ops `migratable: true`, or raise max_semantic_depth of earlier stages.",
        )  # fmt: skip

    # Times

    def _seconds(self, link: ChainLink, device: DeviceSpec) -> float:
        return op_seconds(link.spec, link.cost, device) / link.every

    def _windows(self) -> list[int | None]:
        own = [self.config.window if link.window is None else link.window for link in self.links]
        return [
            min(window, link.max_inflight) if window and link.max_inflight else window or link.max_inflight or None
            for window, link in zip(own, self.links, strict=True)
        ]

    def _link_core(self, index: int) -> float:
        """The share of a transfer that keeps a core of the host busy: copies through it, unless a GPU does them."""
        link, ends = self.links[index], self.places[index : index + 2]
        busy = link.mode == "HOST_STAGING" and link.seconds is None
        return 1.0 if busy and all(place.device.host_cores for place in ends) else 0.0

    def _link(self, index: int) -> tuple[LinkSpec, tuple[str, ...]]:
        """The link between two neighbours as it will be, and notes on it."""
        first, second = self.places[index : index + 2]
        asked = {(link.source, link.target): link for link in self.config.links}
        default = LinkSpec(first.stage.id, second.stage.id)
        if first.stage.node != second.stage.node:
            default = replace(default, mode="TCP")
        link = asked.get((first.stage.id, second.stage.id), default)
        notes: list[str] = [] if link is not default else ["no link was asked for: " + link.mode]
        if link.mode == "P2P" and "P2P" not in (modes := self.link_modes(first.device, second.device)):
            what = (
                f"link {link.name} is to be P2P between {first.device.spec} and {second.device.spec}, which cannot "
                "share memory"
            )
            if not link.fallback:
                place = next((i for i, one in enumerate(self.config.links) if one is link), -1)
                where = self.config.where.get(("links", place), "")
                raise StreamError(
                    f"{f'{where}: ' if where else ''}{what}.",
                    f"ask for {modes[0]}, or allow it with `fallback: true`.",
                )
            link = replace(link, mode="HOST_STAGING")
            notes.append(f"HOST_STAGING instead of P2P: {first.device.spec} and {second.device.spec} share no memory")
        if link.codec in LOSSY_CODECS:
            notes.append(f"{link.codec} loses precision: the run's record names it")
        way = self.speeds.links.get((first.device.spec, second.device.spec))
        if link.mode == "HOST_STAGING" and way is not None:
            link = replace(link, bandwidth=link.bandwidth or way.bandwidth, latency=link.latency or way.latency)
        if link.seconds is None and not link.bandwidth:
            notes.append("bandwidth was not measured")
        return link, tuple(notes)

    # The plan

    def _planned(self, groups: Sequence[Group]) -> StreamPlan:
        stages = [self._stage(group, position, groups) for position, group in enumerate(groups)]
        first = groups[0][0]
        joined = range(first, groups[-1][0])
        payloads = [stages[j - first].after for j in joined]
        sizes = [
            coded_bytes(self.links[j].codec, p, self.links[j].codec_options)
            for j, p in zip(joined, payloads, strict=True)
        ]
        seconds = [link_seconds(self.links[j], size) for j, size in zip(joined, sizes, strict=True)]
        core = sum(stage.core_seconds for stage in stages)
        core += sum(self._link_core(j) * x for j, x in zip(joined, seconds, strict=True))
        prediction, windows = predict(
            [stage.seconds for stage in stages],
            seconds,
            [self._windows()[j] for j in joined],
            core_seconds=core,
            cores=host_cores(),
            names=[stage.stage.id for stage in stages],
        )
        links = tuple(
            PlannedLink(self.links[j], payloads[i], sizes[i], windows[i], seconds[i], tuple(self.link_notes[j]))
            for i, j in enumerate(joined)
        )
        return StreamPlan(
            self.config, tuple(stages), links, prediction, self._candidates(groups), self._plan_notes(groups)
        )

    def _stage(self, group: Group, position: int, groups: Sequence[Group]) -> PlannedStage:
        stage, begin, end = group
        place, links = self.places[stage], self.chain.links[begin:end]
        core = [link for link in links if not link.spec.observes]
        times = [self._seconds(link, place.device) for link in links]
        depth_in = self._depth(begin)
        return PlannedStage(
            place.stage,
            place.device,
            tuple(link.op for link in core),
            tuple(link.op for link in links if link.spec.observes),
            self._travelling(begin, position, groups),
            self._travelling(end, position + 1, groups),
            depth_in,
            max([depth_in, *(link.depth_after for link in core)]),
            math.fsum(times),
            math.fsum(core_seconds(link.spec, t, place.device) for link, t in zip(links, times, strict=True)),
            {link.spec.id: link.every for link in links if link.spec.observes},
        )

    def _depth(self, cut: int) -> int:
        return max((link.spec.depth_out for link in self.chain.links[:cut] if not link.spec.observes), default=0)

    def _travelling(self, cut: int, position: int, groups: Sequence[Group]) -> PayloadSchema:
        """The payload between two stages: what is needed later, and what is broadcast to one that is still to come."""
        later = {self.places[group[0]].stage.id for group in groups[position:]}
        makers = {link.spec.id: link for link in self.chain.links[:cut] if not link.spec.observes}
        broadcast = [
            field
            for one in self.config.broadcasts
            if one.after in makers and later & set(one.to)
            for field in makers[one.after].makes
        ]
        return self.chain.schemas[cut].only([*self.chain.needed[cut], *broadcast])

    def _candidates(self, groups: Sequence[Group]) -> tuple[Candidate, ...]:
        chosen = {index: stage for stage, begin, end in groups for index in range(begin, end)}
        candidates: list[Candidate] = []
        for index, link in enumerate(self.chain.links):
            for stage, place in enumerate(self.places):
                broken = self._break(index, stage)
                score = self._seconds(link, place.device) + penalty_seconds(link.spec, place.device)
                rule, reason = (broken.rule, broken.what) if broken else ("", "")
                seconds, here = (None if broken else score), chosen.get(index) == stage
                candidates.append(Candidate(link.spec.id, place.stage.id, place.device.id, seconds, rule, reason, here))
        return tuple(candidates)

    def _plan_notes(self, groups: Sequence[Group]) -> tuple[str, ...]:
        used = {group[0] for group in groups}
        notes = [
            f"stage {place.stage.id} is left out: no op is better off there"
            for i, place in enumerate(self.places)
            if i not in used
        ]
        atomic = [link.spec.id for link in self.chain.links if link.spec.determinism_tier >= 2]
        if atomic:
            notes.append(f"float atomics, whose bits are not repeatable: {', '.join(atomic)}")
        devices = [link.spec.id for link in self.chain.links if not link.spec.portable]
        if devices:
            notes.append(f"not portable, so that bits depend on the device: {', '.join(devices)}")
        return (*self.notes, *notes)


def _require_engine(config: StreamConfig) -> None:
    """Stages on several nodes need the engine of a cluster."""
    nodes = {stage.node for stage in config.stages}
    if len(nodes) > 1 and find_spec("mpi4py") is None:
        raise StreamError(
            f"the stages lie on {len(nodes)} nodes, and the engine that joins them, mpi4py, is not installed.",
            "install the extra `cluster`, or take `node` away from the stages.",
        )
