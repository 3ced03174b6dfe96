"""The ops of a configuration in order, with what each gets and makes, and what must travel between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dashi.errors import DashiError, StreamConfigError, suggestion
from dashi.stream._kernel_ops import kernel_op
from dashi.stream._model import OpSettings, OpSpec, PayloadSchema, StreamConfig
from dashi.stream._op import StreamOp
from dashi.types import Cost


@dataclass(frozen=True)
class ChainLink:
    """An op in the chain: `spec` with what the configuration says on top, the payload that it gets, the fields that it
    reads of the payload (not of other observers), and those that it makes."""

    op: StreamOp
    spec: OpSpec
    taken: PayloadSchema
    reads: tuple[str, ...]
    makes: PayloadSchema
    cost: Cost
    depth_before: int
    every: int = 1

    @property
    def depth_after(self) -> int:
        return max(self.depth_before, self.spec.depth_out)


@dataclass(frozen=True)
class OpChain:
    """All ops in order; `schemas[c]` is the whole payload after c of them, `needed[c]` the fields of it that later ops
    or the result need. `observed` has the observer of each field that one makes."""

    links: tuple[ChainLink, ...]
    schemas: tuple[PayloadSchema, ...]
    needed: tuple[frozenset[str], ...]
    observed: Mapping[str, str]

    def payload(self, cut: int) -> PayloadSchema:
        """What travels after so many ops."""
        return self.schemas[cut].only(self.needed[cut])


def op_chain(config: StreamConfig, names: Sequence[str], ops: Mapping[str, StreamOp], source: PayloadSchema) -> OpChain:
    """The ops of these names: those settled, else kernels. `source` is what goes into the chain."""
    schema, observations = source, PayloadSchema()
    links: list[ChainLink] = []
    schemas = [schema]
    observed: dict[str, str] = {}
    depth = 0
    for name in names:
        settings = config.ops.get(name, OpSettings())
        try:
            link = _link(config, name, settings, ops, schema, observations, depth)
        except DashiError as error:
            what = f"op {name!r}: {_plain(name, error.what)}"
            raise StreamConfigError(f"{_where(config, name)}{what}", error.fix) from error
        links.append(link)
        if link.spec.observes:
            observations = observations.with_fields(link.makes)
            observed |= dict.fromkeys(link.makes, name)
        else:
            schema, depth = schema.with_fields(link.makes), link.depth_after
            observed = {field: who for field, who in observed.items() if field not in link.makes}
        schemas.append(schema)
    _require_result(config, schema)
    return OpChain(tuple(links), tuple(schemas), _needed(config, links, schema), observed)


def _link(
    config: StreamConfig,
    name: str,
    settings: OpSettings,
    ops: Mapping[str, StreamOp],
    schema: PayloadSchema,
    observations: PayloadSchema,
    depth: int,
) -> ChainLink:
    # What observers made is there for whoever asks, so that the rule, not a missing name, says who may not.
    visible = observations.with_fields(schema)
    op = ops[name] if name in ops else kernel_op(name, settings, visible)
    spec = _spec(op.spec, settings)
    reads = tuple(field for field in op.reads if field in schema)
    every = (settings.observe_every or config.observe_every) if spec.observes else 1
    return ChainLink(op, spec, visible, reads, PayloadSchema(op.makes(visible)), op.cost(visible), depth, every)


def _spec(spec: OpSpec, settings: OpSettings) -> OpSpec:
    """What is known of an op, with what the configuration says on top."""
    settled = {
        "depth_in": settings.depth_in, "depth_out": settings.depth_out, "migratable": settings.migratable,
        "latency_sensitive": settings.latency_sensitive, "io_class": settings.io_class,
        "seconds": settings.seconds or None,
    }  # fmt: skip
    return replace(spec, **{key: value for key, value in settled.items() if value is not None})


def _needed(config: StreamConfig, links: Sequence[ChainLink], final: PayloadSchema) -> tuple[frozenset[str], ...]:
    live = frozenset(config.result or final)
    needed = [live]
    for link in reversed(links):
        makes = frozenset[str]() if link.spec.observes else frozenset(link.makes)
        live = (live - makes) | frozenset(link.reads)
        needed.append(live)
    return tuple(reversed(needed))


def _require_result(config: StreamConfig, final: PayloadSchema) -> None:
    for name in config.result:
        if name not in final:
            raise StreamConfigError(
                f"the result names the field {name!r}, which nothing makes; at the end there are {', '.join(final)}.",
                f"{suggestion(name, final)}name fields of the chain in `result`.",
            )


def _where(config: StreamConfig, name: str) -> str:
    place = config.where.get(("ops", name)) or next(
        (config.where.get(("stages", i), "") for i, stage in enumerate(config.stages) if name in stage.ops), ""
    )
    return f"{place}: " if place else ""


def _plain(name: str, what: str) -> str:
    """An error of an op without its name, which stands before it already."""
    return what.removeprefix(f"op {name!r}: ")
