"""A plan: which stage runs which ops, what travels on each link, and what the whole will take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dashi.runtime._notebook import html_table
from dashi.stream._model import DeviceSpec, LinkSpec, PayloadSchema, StageSpec, StreamConfig
from dashi.stream._op import StreamOp


@dataclass(frozen=True)
class PlannedStage:
    """A stage with its ops: `ops` advance the State in order, `observers` look on, in order, every so many steps
    (`every[op id]`). `taken` is the schema of States that come in; `after` that of those that go out: what later stages
    or the result need, and no more. `seconds` is the time that one item takes here, its share of
    the observers' time included."""

    stage: StageSpec
    device: DeviceSpec
    ops: tuple[StreamOp, ...]
    observers: tuple[StreamOp, ...]
    taken: PayloadSchema
    after: PayloadSchema
    depth_in: int
    depth_out: int
    seconds: float
    core_seconds: float = 0.0
    """How many of them a core of the host is busy."""
    every: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class PlannedLink:
    """A link with what travels on it: `schema` as stages see it, `nbytes` as the codec sends it. `window` is how many
    items may be under way. `notes` say what became of it: why a fallback, what the codec loses."""

    link: LinkSpec
    schema: PayloadSchema
    nbytes: int
    window: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """What a plan will take, in seconds: the period between items, the latency of one, and the term of the period
    that rules."""

    period: float
    latency: float
    bound_by: str
    terms: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Candidate:
    """A stage that an op might run in: its score in seconds, or the rule that excludes it."""

    op: str
    stage: str
    device: str
    seconds: float | None
    excluded_by: str = ""
    reason: str = ""
    chosen: bool = False


@dataclass(frozen=True)
class PlanExplanation:
    """Why ops are where they are: per op the stages that it might run in, and per link what it is. It prints as
    tables."""

    candidates: tuple[Candidate, ...]
    links: tuple[PlannedLink, ...]
    notes: tuple[str, ...] = ()

    HEAD = ("op", "stage", "device", "score µs", "verdict")
    LINK_HEAD = ("link", "mode", "codec", "bytes", "µs", "window", "notes")

    def rows(self) -> list[tuple[str, ...]]:
        """The table of ops: a score in microseconds, or the rule that excludes the stage."""
        return [
            (
                one.op,
                one.stage,
                one.device,
                "" if one.seconds is None else micro(one.seconds),
                "chosen" if one.chosen else f"{one.excluded_by}: {one.reason}" if one.excluded_by else "",
            )
            for one in self.candidates
        ]

    def link_rows(self) -> list[tuple[str, ...]]:
        """The table of links."""
        return [
            (p.link.name, p.link.mode, p.link.codec, str(p.nbytes), micro(p.seconds), str(p.window), "; ".join(p.notes))
            for p in self.links
        ]

    def __str__(self) -> str:
        return "\n\n".join((aligned(self.HEAD, self.rows()), aligned(self.LINK_HEAD, self.link_rows()), *self.notes))

    def _repr_html_(self) -> str:
        return html_table(self.HEAD, self.rows()) + html_table(self.LINK_HEAD, self.link_rows())


@dataclass(frozen=True)
class StreamPlan:
    """The whole of it, as `make_plan` makes it. It prints as a table; in a notebook it is one."""

    config: StreamConfig
    stages: tuple[PlannedStage, ...]
    links: tuple[PlannedLink, ...]
    prediction: Prediction
    candidates: tuple[Candidate, ...] = ()
    notes: tuple[str, ...] = ()

    HEAD = ("stage", "device", "ops", "depth", "µs", "link", "µs", "window")

    def rows(self) -> list[tuple[str, ...]]:
        """The table: each stage with the link that leads on from it."""
        links = [(p.link.mode, micro(p.seconds), str(p.window)) for p in self.links]
        return [
            (
                planned.stage.id,
                f"{planned.device.id} ({planned.device.spec})",
                " ".join([*(op.spec.id for op in planned.ops), *(f"[{op.spec.id}]" for op in planned.observers)]),
                f"{planned.depth_in} to {planned.depth_out}",
                micro(planned.seconds),
                *way,
            )
            for planned, way in zip(self.stages, [*links, ("", "", "")], strict=True)
        ]

    @property
    def summary(self) -> str:
        """The prediction in a line."""
        p = self.prediction
        observed = "; observers in brackets" if any(one.observers for one in self.stages) else ""
        return f"period {micro(p.period)} µs (bound by {p.bound_by}), latency {micro(p.latency)} µs{observed}"

    def explain(self) -> PlanExplanation:
        """Why ops are where they are, and what each link is."""
        return PlanExplanation(self.candidates, self.links, self.notes)

    def as_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary: stages, links, the prediction with its terms, candidates."""
        return {
            "determinism_tier": self.config.determinism_tier,
            "objective": self.config.objective,
            "predicted_period_us": self.prediction.period * 1e6,
            "predicted_latency_us": self.prediction.latency * 1e6,
            "bound_by": self.prediction.bound_by,
            "terms_us": {name: seconds * 1e6 for name, seconds in self.prediction.terms.items()},
            "stages": [_stage_json(one) for one in self.stages],
            "links": [_link_json(one) for one in self.links],
            "candidates": [asdict(one) for one in self.candidates],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n".join((aligned(self.HEAD, self.rows()), "", self.summary, *self.notes))

    def _repr_html_(self) -> str:
        return html_table(self.HEAD, self.rows(), self.summary)


def micro(seconds: float) -> str:
    """Seconds as microseconds, three digits."""
    return f"{seconds * 1e6:.3g}" if seconds < 1e-3 else f"{seconds * 1e6:.0f}"


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in text."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _stage_json(planned: PlannedStage) -> dict[str, Any]:
    return {
        "id": planned.stage.id,
        "device": planned.device.id,
        "spec": planned.device.spec,
        "node": planned.stage.node,
        "ops": [op.spec.id for op in planned.ops],
        "observers": {op.spec.id: planned.every[op.spec.id] for op in planned.observers},
        "depth_in": planned.depth_in,
        "depth_out": planned.depth_out,
        "predicted_us": planned.seconds * 1e6,
        "core_us": planned.core_seconds * 1e6,
        "sends": {name: one.text for name, one in planned.after.items()},
    }


def _link_json(planned: PlannedLink) -> dict[str, Any]:
    return {
        "from": planned.link.source,
        "to": planned.link.target,
        "mode": planned.link.mode,
        "codec": planned.link.codec,
        "bytes": planned.nbytes,
        "window": planned.window,
        "predicted_us": planned.seconds * 1e6,
        "notes": list(planned.notes),
    }
