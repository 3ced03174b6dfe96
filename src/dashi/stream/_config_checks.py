"""What the shape of a configuration cannot say: links join neighbours, names are those of something."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from dashi.errors import StreamConfigError, suggestion
from dashi.stream._document import MOST_ELEMENTS, StreamDocument
from dashi.stream._model import FieldSource, StreamConfig
from dashi.stream._yaml import DocumentPath, YamlDocument

_NODE_MODES: Final = ("TCP", "RDMA")


def check_config(config: StreamConfig, sections: StreamDocument, document: YamlDocument) -> None:
    """Refuses what does not hold together, by the first thing that is wrong."""
    _check_stages(config, sections, document)
    _check_links(config, document)
    _check_ops(config, sections, document)
    _check_sizes(config, document)
    if config.objective == "throughput_under_latency" and config.latency_limit is None:
        raise StreamConfigError(
            f"{document.place(('objective',))}: objective throughput_under_latency without `latency_limit`.",
            "add `latency_limit:` with seconds.",
        )
    for index, broadcast in enumerate(config.broadcasts):
        path: DocumentPath = ("broadcast", index) if ("broadcast", index) in document.lines else ("broadcast",)
        known = [op for stage in config.stages for op in stage.ops] or list(config.chain)
        _require(
            broadcast.after in known,
            document,
            path,
            f"there is no op {broadcast.after!r} to broadcast after",
            broadcast.after,
            known,
        )
        stages = [stage.id for stage in config.stages]
        for name in broadcast.to:
            _require(name in stages, document, path, f"there is no stage {name!r} to broadcast to", name, stages)


def _check_stages(config: StreamConfig, sections: StreamDocument, document: YamlDocument) -> None:
    ids = [stage.id for stage in config.stages]
    for index, stage in enumerate(config.stages):
        if stage.id in ids[:index]:
            raise StreamConfigError(
                f"{document.place(('stages', index, 'id'))}: two stages are called {stage.id!r}.", "rename one."
            )
        if stage.node and sections.nodes and stage.node not in sections.nodes:
            raise StreamConfigError(
                f"{document.place(('stages', index, 'node'))}: stage {stage.id!r} names the node {stage.node!r}, which "
                f"is not there; `nodes` has {', '.join(sections.nodes)}.",
                f"{suggestion(stage.node, sections.nodes)}add it to `nodes`, or name another.",
            )
        for group in stage.offers:
            path: DocumentPath = ("stages", index, "offers")
            _require(group in config.groups, document, path, f"there is no group {group!r}", group, config.groups)


def _check_links(config: StreamConfig, document: YamlDocument) -> None:
    ids = [stage.id for stage in config.stages]
    joined: set[tuple[str, str]] = set()
    for index, link in enumerate(config.links):
        path: DocumentPath = ("links", index)
        for name in (link.source, link.target):
            _require(
                name in ids, document, path, f"link {link.name} names the stage {name!r}, which is not there", name, ids
            )
        start, end = ids.index(link.source), ids.index(link.target)
        if end <= start:
            raise StreamConfigError(
                f"{document.place(path)}: link {link.name} goes back, so that the chain has a cycle.",
                "let links lead from each stage to the next in the order of `stages`.",
            )
        if end != start + 1:
            raise StreamConfigError(
                f"{document.place(path)}: link {link.name} does not join neighbours; {', '.join(ids[start + 1 : end])} "
                "lies between.",
                f"link {link.source} to {ids[start + 1]}.",
            )
        if (link.source, link.target) in joined:
            raise StreamConfigError(f"{document.place(path)}: there are two links {link.name}.", "keep one.")
        joined.add((link.source, link.target))
        apart = config.stages[start].node != config.stages[end].node
        if apart != (link.mode in _NODE_MODES):
            raise StreamConfigError(
                f"{document.place(path)}: link {link.name} is {link.mode} between stages on "
                f"{'two nodes' if apart else 'one node'}.",
                "use TCP or RDMA." if apart else "use P2P or HOST_STAGING.",
            )
        if ("keep" in link.codec_options) != (link.codec == "prune"):
            raise StreamConfigError(
                f"{document.place(path)}: `keep` and `codec: prune` belong together on link {link.name}.",
                "give both, or neither.",
            )


def _check_ops(config: StreamConfig, sections: StreamDocument, document: YamlDocument) -> None:
    placed = [op for stage in config.stages for op in stage.ops]
    if placed and config.chain:
        raise StreamConfigError(
            f"{document.place(('chain',))}: stages have `ops`, and there is a `chain` to assign.",
            "keep the ops in the stages to pin them, or in `chain` to have them assigned.",
        )
    known = placed or list(config.chain)
    if not known:
        raise StreamConfigError(f"{document.name}:1: no stage has any op.", "give stages `ops`, or write a `chain`.")
    twice = sorted({op for op in known if known.count(op) > 1})
    if twice:
        where = document.place(("chain",) if config.chain else ("stages",))
        raise StreamConfigError(
            f"{where}: {', '.join(twice)} stands twice in the chain.",
            "give ops names of their own, and their kernels in `ops` (`kernel:`).",
        )
    stages = [stage.id for stage in config.stages]
    for name in (*sections.ops, *sections.observers):
        grouped = {op for group in config.groups.values() for op in group}
        path: DocumentPath = ("ops", name) if name in sections.ops else ("observers", name)
        _require(name in known or name in grouped, document, path, f"no stage has the op {name!r}", name, known)
    for name, settings in config.ops.items():
        if settings.stage:
            path = ("ops", name, "stage")
            if placed:
                raise StreamConfigError(
                    f"{document.place(path)}: op {name!r} has a `stage`, and stands in the `ops` of one already.",
                    "take `stage` away: it pins an op of a `chain`.",
                )
            _require(
                settings.stage in stages,
                document,
                path,
                f"there is no stage {settings.stage!r}",
                settings.stage,
                stages,
            )


def _check_sizes(config: StreamConfig, document: YamlDocument) -> None:
    """All arrays that are described are held in memory together."""
    described = [value for op in config.ops.values() for value in op.params.values() if isinstance(value, FieldSource)]
    total = sum(math.prod(array.form.shape) for array in (*described, *config.source.fields.values()))
    if total > 4 * MOST_ELEMENTS:
        raise StreamConfigError(
            f"{document.name}: the arrays that it describes have {total} elements, more than {4 * MOST_ELEMENTS}.",
            "make them smaller, or make the ops in Python (`ops=`).",
        )


def _require(ok: bool, document: YamlDocument, path: DocumentPath, what: str, name: str, known: Iterable[str]) -> None:
    if not ok:
        names = list(known)
        raise StreamConfigError(
            f"{document.place(path)}: {what}.",
            f"{suggestion(name, names)}name one of {', '.join(names) or 'those there are'}.",
        )
