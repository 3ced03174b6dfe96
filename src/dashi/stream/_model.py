"""What a stream consists of: states and what they carry, devices, links, stages, and the settings of a run.

Plain data, frozen. Ids are names that a configuration gives: of ops, devices and stages. Times are seconds, sizes
bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from dashi.errors import InputError, suggestion
from dashi.runtime.array import Array
from dashi.types import DTYPES, Cost, DType, HostArray, Shape
from dashi.types import dtype as dtype_of

IoClass = Literal["CORE", "PQ", "OBSERVER", "IO"]
"""What an op does: advance the State, encode or decode it, look at it side-band, or move it in and out."""
DeviceKind = Literal["GPU", "CPU"]
LatencyClass = Literal["low", "med", "high"]
LinkMode = Literal["P2P", "HOST_STAGING", "RDMA", "TCP"]
Codec = Literal["none", "planes", "f16", "bf16", "prune"]
"""What a link does to a payload: nothing; planes of ternary fields, lossless; or less precision, lossy."""
Objective = Literal["throughput", "latency", "throughput_under_latency"]

LOSSY_CODECS: Final[frozenset[Codec]] = frozenset({"f16", "bf16", "prune"})
WINDOW: Final = 3
"""Items of a link that may be under way, unless a configuration says otherwise."""

META_BYTES: Final = 4096
"""Bytes of diagnostics that may travel with a State, as JSON."""

PayloadArray = HostArray | Array
"""A field of a payload: on the host, or on a device."""
Payload = Mapping[str, PayloadArray]


@dataclass(frozen=True)
class Field:
    """One array of a payload: its shape, its element type by short name ("f32"), and how it lies in memory."""

    shape: Shape
    dtype: str = "f32"
    layout: str = "dense"

    @property
    def element(self) -> DType:
        return DTYPES[self.dtype]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.element.size

    @property
    def text(self) -> str:
        """Such as "f32 (16, 256)"."""
        return f"{self.dtype} {self.shape}" + ("" if self.layout == "dense" else f", {self.layout}")

    @staticmethod
    def of(array: PayloadArray) -> Field:
        """The field that an array is."""
        return Field(tuple(array.shape), dtype_of(array.dtype).name)


class PayloadSchema(Mapping[str, Field]):
    """The fields of a payload by name, in order. It is a mapping; it compares and hashes by what it holds."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Field] | Iterable[tuple[str, Field]] = ()) -> None:
        self._fields = MappingProxyType(dict(fields))

    @staticmethod
    def of(payload: Payload) -> PayloadSchema:
        """What a payload consists of."""
        return PayloadSchema({name: Field.of(array) for name, array in payload.items()})

    @property
    def nbytes(self) -> int:
        """Bytes of all fields."""
        return sum(one.nbytes for one in self.values())

    def with_fields(self, made: Mapping[str, Field]) -> PayloadSchema:
        """These fields, with those that an op makes: of the same name it replaces the former ones."""
        return PayloadSchema({**self._fields, **made})

    def only(self, names: Iterable[str]) -> PayloadSchema:
        """The fields of these names, in the order that they have here."""
        wanted = set(names)
        return PayloadSchema({name: one for name, one in self.items() if name in wanted})

    def require(self, name: str, reader: str) -> Field:
        """The field of that name; an error that names the reader where there is none."""
        if name not in self:
            raise InputError(
                f"{reader} reads the field {name!r}, which the State does not carry there; it carries "
                f"{', '.join(self) or 'nothing'}.",
                f"{suggestion(name, self)}let an earlier op or the source make {name!r}.",
            )
        return self[name]

    def __getitem__(self, name: str) -> Field:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __hash__(self) -> int:
        return hash(tuple(self._fields.items()))

    def __repr__(self) -> str:
        return f"PayloadSchema({', '.join(f'{name}: {one.text}' for name, one in self.items())})"


@dataclass(frozen=True, eq=False)
class State:
    """What travels along the chain: arrays by name, at a step and a semantic depth. `stage_id` is the stage that made
    it. `meta` are diagnostics, numbers and words by name, 4096 bytes of JSON at most: no part of the payload, nor of
    any digest."""

    step: int
    payload: Payload
    semantic_depth: int = 0
    stage_id: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.meta:
            _require_small(self.meta, self.step)

    @property
    def schema(self) -> PayloadSchema:
        return PayloadSchema.of(self.payload)

    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
        return self.schema.nbytes


def _require_small(meta: Mapping[str, Any], step: int) -> None:
    try:
        size = len(json.dumps(dict(meta)).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"`meta` of the State of step {step} holds more than numbers and words: {error}.",
            "put arrays into the payload.",
        ) from error
    if size > META_BYTES:
        raise InputError(
            f"`meta` of the State of step {step} is {size} bytes as JSON; {META_BYTES} may travel with a State.",
            "put what is large into the payload, or observe it.",
        )


@dataclass(frozen=True)
class OpSpec:
    """What the scheduler knows of an op.

    `cost` is the counted work for the State that it gets; `seconds` are times that somebody measured or chose, by
    device id ("*" for all others), which count instead. A device needs `required_features`. An op that is not
    `migratable` stays in the stage that a configuration put it in; one that is `host_only` calls Python, not kernels,
    and runs on CPU devices alone.
    """

    id: str
    depth_in: int = 0
    depth_out: int = 0
    cost: Cost = field(default_factory=Cost)
    latency_sensitive: bool = False
    determinism_tier: int = 0
    required_features: frozenset[str] = frozenset()
    io_class: IoClass = "CORE"
    migratable: bool = True
    host_only: bool = False
    portable: bool = True
    """Whether its bits are the same on every device."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def observes(self) -> bool:
        """Whether it looks on side-band, and passes the State through."""
        return self.io_class == "OBSERVER"


@dataclass(frozen=True)
class DeviceSpec:
    """A device that a configuration names. `spec` opens it (`dashi.open(spec)`). Numbers that are 0 are not known:
    calibration measures them. `launch_s` is what a dispatch takes however little it computes."""

    id: str
    spec: str
    kind: DeviceKind = "GPU"
    max_semantic_depth: int | None = None
    """The greatest depth it may work at; None where its stages alone say so."""
    fp32_gflops: float = 0.0
    mem_bw_gbs: float = 0.0
    launch_s: float = 0.0
    latency_class: LatencyClass = "low"
    features: frozenset[str] = frozenset()
    host_cores: int = 0
    """Cores of the host that are busy while it computes: none of a GPU, one of NumPy, all of a software device."""


@dataclass(frozen=True)
class LinkSpec:
    """The way from a stage to the next, by stage ids. `bandwidth` is bytes a second, `latency` seconds; 0 where they
    are not known. `seconds`, where given, is what a transfer takes. `window` None means the run's. `max_inflight` 0 is
    no bound besides the window."""

    source: str
    target: str
    mode: LinkMode = "HOST_STAGING"
    codec: Codec = "none"
    window: int | None = None
    bandwidth: float = 0.0
    latency: float = 0.0
    max_inflight: int = 0
    seconds: float | None = None
    fallback: bool = False
    """Whether HOST_STAGING may stand in for a mode that cannot be had."""
    codec_options: Mapping[str, float] = field(default_factory=dict[str, float])
    """Numbers of the codec: the share of values that `prune` keeps, as {"keep": 0.5}."""

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"


@dataclass(frozen=True)
class StageSpec:
    """A place in the chain: a device, the depth it may reach, and the ops pinned to it (none where the planner is to
    choose them). `offers` are groups of ops that it must be able to run. `node` names the machine."""

    id: str
    device: str
    node: str = ""
    max_semantic_depth: int = 0
    ops: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()


@dataclass(frozen=True)
class BroadcastSpec:
    """After this op, its results are given to these stages besides the next."""

    after: str
    to: tuple[str, ...]


@dataclass(frozen=True)
class FieldSource:
    """How an array is made: `draw` names the way ("normal", "uniform", "trits", "integers", "constant", "ramp",
    "identity", "file"), `numbers` its numbers, `path` the file of "file". A field of item k of the source is row k of
    such a file. A constant of an op whose `form` has no dtype takes the operand's."""

    form: Field
    draw: str = "normal"
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    path: str = ""


Value = int | float | str | HostArray | FieldSource
"""A parameter of an op: a number, a word, a constant array, or how one is made."""


@dataclass(frozen=True)
class SourceSpec:
    """What goes into the chain: fields by name, how many items, and the seed that all draws come from."""

    fields: Mapping[str, FieldSource] = field(default_factory=dict[str, FieldSource])
    items: int = 1
    seed: int = 0

    @property
    def schema(self) -> PayloadSchema:
        return PayloadSchema({name: one.form for name, one in self.fields.items()})


@dataclass(frozen=True)
class OpSettings:
    """What a configuration says of an op. None, or nothing, leaves what the kernel declares.

    `kernel` names a kernel, unless it has the op's own name. `inputs` says which field of the payload feeds which
    operand, with a shape where it is to be seen in another (`Feed`); `params` are constants, by operand or scalar;
    `outputs` names the fields that results become, by operand.
    """

    kernel: str = ""
    inputs: Mapping[str, Feed] = field(default_factory=dict[str, Any])
    params: Mapping[str, Value] = field(default_factory=dict[str, Value])
    outputs: Mapping[str, str] = field(default_factory=dict[str, str])
    depth_in: int | None = None
    depth_out: int | None = None
    latency_sensitive: bool | None = None
    migratable: bool | None = None
    io_class: IoClass | None = None
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    stage: str = ""
    """The stage that it must be in, where the planner chooses the others."""
    observe_every: int | None = None


@dataclass(frozen=True)
class Feed:
    """A field of the payload as an operand sees it: of its own shape, or of another with as many elements (one length
    may be -1)."""

    field: str
    shape: Shape | None = None


@dataclass(frozen=True)
class StreamConfig:
    """A whole run as a configuration describes it. `chain` are the ops in order where the planner assigns them; with
    `ops` in the stages it is empty. `result` are the fields that leave the sink: none named means all. `where` is the
    file and line of each part, for errors: ("stages", 1) and the like."""

    stages: tuple[StageSpec, ...]
    links: tuple[LinkSpec, ...]
    devices: Mapping[str, DeviceSpec] = field(default_factory=dict[str, DeviceSpec])
    ops: Mapping[str, OpSettings] = field(default_factory=dict[str, OpSettings])
    chain: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Names of groups of ops, for `StageSpec.offers`."""
    source: SourceSpec = field(default_factory=SourceSpec)
    result: tuple[str, ...] = ()
    determinism_tier: int = 1
    window: int | None = None
    """The window of links that name none; None: as wide as the period needs."""
    observe_every: int = 1
    broadcasts: tuple[BroadcastSpec, ...] = ()
    objective: Objective = "throughput"
    latency_limit: float | None = None
    """Seconds, for `throughput_under_latency`."""
    where: Mapping[tuple[str | int, ...], str] = field(default_factory=dict[tuple[str | int, ...], str])

    def stage(self, name: str) -> StageSpec:
        """The stage of that id."""
        stages = {stage.id: stage for stage in self.stages}
        if name not in stages:
            raise InputError(
                f"there is no stage {name!r}; the stages are {', '.join(stages)}.",
                f"{suggestion(name, stages)}name one of the stages.",
            )
        return stages[name]
