"""The shape of a configuration: one declaration, from which it is checked and its JSON schema is published."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from dashi.stream._model import Codec, DeviceKind, IoClass, LatencyClass, LinkMode, Objective

MOST_STAGES = 64
MOST_OPS = 1024
MOST_ITEMS = 1 << 40
MOST_ELEMENTS = 1 << 24
"""Elements of a constant or of a field of the source; all together may have four times as many."""

Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.\-]*$")]
Count = Annotated[int, Field(ge=1, le=MOST_ITEMS, strict=True)]
Window = Annotated[int, Field(ge=1, le=4096, strict=True)]
Depth = Annotated[int, Field(ge=0, le=1000, strict=True)]
Length = Annotated[int, Field(ge=0, le=MOST_ELEMENTS, strict=True)]
Seconds = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Real = Annotated[float, Field(allow_inf_nan=False)]


class StreamSection(BaseModel):
    """A section: keys that it does not have are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class DeviceSection(StreamSection):
    """A device under a name of your own."""

    spec: str = Field(description="What opens it: cpu, null, vulkan:0 or vulkan:part-of-name.", max_length=200)
    type: DeviceKind | None = Field(default=None, description="Left away: what the device is.")
    max_semantic_depth: Depth | None = None
    fp32_gflops: Positive | None = Field(default=None, description="Instead of the measured number.")
    mem_bw_gbs: Positive | None = Field(default=None, description="Instead of the measured number.")
    launch_s: Positive | None = Field(
        default=None, description="Seconds of a dispatch, instead of the measured number."
    )
    latency_class: LatencyClass | None = None
    features: tuple[Name, ...] | None = Field(default=None, description="Instead of what the device says.")


class StageSection(StreamSection):
    """A stage of the chain, in order."""

    id: Name
    device: str = Field(description="A name of `devices`, or what opens a device.", min_length=1, max_length=200)
    node: str = Field(default="", description="The machine, in a cluster.", max_length=200)
    max_semantic_depth: Depth = 0
    ops: tuple[Name, ...] = Field(default=(), max_length=MOST_OPS)
    offers: tuple[Name, ...] = Field(
        default=(), description="Groups of ops that it must be able to run.", max_length=64
    )


class LinkSection(StreamSection):
    """A link from a stage to the next."""

    source: Name = Field(alias="from")
    target: Name = Field(alias="to")
    mode: LinkMode = "HOST_STAGING"
    codec: Codec = "none"
    keep: Annotated[float, Field(gt=0, le=1)] | None = Field(default=None, description="The share that `prune` keeps.")
    window: Window | None = None
    max_inflight: Annotated[int, Field(ge=0, le=4096, strict=True)] = 0
    bandwidth: Positive | None = Field(default=None, description="Bytes a second, instead of the measured number.")
    latency: Positive | None = Field(default=None, description="Seconds, instead of the measured number.")
    seconds: Seconds | None = Field(default=None, description="What a transfer takes, whatever its size.")
    fallback: StrictBool = Field(default=False, description="HOST_STAGING may stand in for a mode that cannot be had.")


class ArraySection(StreamSection):
    """An array: how it is filled, its shape and its element type."""

    shape: tuple[Length, ...] = Field(default=(), max_length=8)
    dtype: str = Field(default="", description="f32, f64, i8, u32 and so on; of a constant: left away, the operand's.")
    draw: str = Field(
        default="normal", description="normal, uniform, integers, trits, constant, ramp, identity or file."
    )
    path: str = Field(
        default="", description="With `draw: file`: an .npy file, beside the configuration.", max_length=1000
    )
    mean: Real | None = None
    scale: Real | None = None
    low: Real | None = None
    high: Real | None = None
    support: Annotated[float, Field(ge=0, le=1)] | None = None
    value: Real | None = None
    start: Real | None = None
    step: Real | None = None


class FeedSection(StreamSection):
    """A field, seen in another shape."""

    field: Name
    shape: tuple[Annotated[int, Field(ge=-1, le=MOST_ELEMENTS, strict=True)], ...] = Field(max_length=8)


Parameter = StrictBool | Annotated[int, Field(strict=True)] | float | list[Any] | ArraySection


class OpSection(StreamSection):
    """What an op is besides its name."""

    kernel: str = Field(default="", description="The kernel, if it is not the one of the op's name.", max_length=80)
    inputs: dict[Name, Name | FeedSection] = Field(default={}, description="By operand: the field that feeds it.")
    params: dict[Name, Parameter] = Field(default={}, description="By operand or scalar: a constant.")
    outputs: dict[Name, Name] = Field(default={}, description="By result: the field that it becomes.")
    depth_in: Depth | None = None
    depth_out: Depth | None = None
    latency_sensitive: StrictBool | None = None
    migratable: StrictBool | None = None
    io_class: IoClass | None = None
    seconds: Seconds | dict[str, Seconds] | None = Field(
        default=None, description="What it takes: everywhere, or by device."
    )
    stage: str = Field(default="", description="Where it must run, with `chain`.", max_length=80)


class ObserverSection(StreamSection):
    """How often an observer looks."""

    every: Count = 1


class SourceSection(StreamSection):
    """What goes into the chain."""

    fields: dict[Name, ArraySection] = {}
    items: Annotated[int, Field(ge=0, le=MOST_ITEMS, strict=True)] = 1
    seed: Annotated[int, Field(ge=0, lt=1 << 64, strict=True)] = 0


class BroadcastSection(StreamSection):
    """Results of an op that later stages get besides the next."""

    after: Name
    to: tuple[Name, ...] = Field(min_length=1, max_length=MOST_STAGES)


class StreamDocument(StreamSection):
    """A chain of stages over devices, for `dashi stream`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, title="A stream")

    determinism_tier: Annotated[int, Field(ge=0, le=3, strict=True)] = Field(
        default=1, description="0: one device; 1: fixed order; 2: float atomics; 3: asynchronous."
    )
    window: Window | None = Field(
        default=None, description="Items under way on each link. Left away: as many as it takes."
    )
    objective: Objective = "throughput"
    latency_limit: Positive | None = Field(default=None, description="Seconds, for throughput_under_latency.")
    observe_every: Count = Field(default=1, description="Observers look at every so many steps.")
    devices: dict[Name, str | DeviceSection] = {}
    stages: tuple[StageSection, ...] = Field(min_length=1, max_length=MOST_STAGES)
    links: tuple[LinkSection, ...] = Field(default=(), max_length=MOST_STAGES)
    nodes: tuple[str, ...] = Field(default=(), description="The machines that stages may name.", max_length=1024)
    chain: tuple[Name, ...] = Field(default=(), description="All ops in order, to be assigned.", max_length=MOST_OPS)
    groups: dict[Name, tuple[Name, ...]] = Field(default={}, description="Named groups of ops, for `offers`.")
    ops: dict[Name, OpSection] = {}
    observers: dict[Name, ObserverSection] = {}
    source: SourceSection = SourceSection()
    result: tuple[Name, ...] = Field(default=(), description="Fields that leave the chain. None named: all.")
    broadcast: BroadcastSection | tuple[BroadcastSection, ...] = ()
