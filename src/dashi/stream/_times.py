"""What ops and transfers take, in seconds, as far as counted work and measured speeds tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dashi.stream._codecs import wire_schema
from dashi.stream._model import Codec, DeviceSpec, LinkSpec, OpSpec, PayloadSchema
from dashi.types import Cost

PENALTIES: Final = {"low": 0.0, "med": 1e-3, "high": 1e-2}
"""Seconds that a score adds for an op that is sensitive to latency, by the latency class of the device."""
_MODE_BYTES: Final = {"HOST_STAGING": 5e9, "P2P": 20e9, "TCP": 1.2e8, "RDMA": 1e10}
_MODE_LATENCY: Final = {"HOST_STAGING": 50e-6, "P2P": 20e-6, "TCP": 200e-6, "RDMA": 5e-6}
"""Links that nobody measured."""


def op_seconds(op: OpSpec, cost: Cost, device: DeviceSpec) -> float:
    """What an op takes on a device: the time that somebody gave, else the longer of arithmetic and memory, and its
    dispatches."""
    if (own := given_seconds(op, device)) is not None:
        return own
    work = max(cost.flops / (device.fp32_gflops * 1e9), cost.bytes / (device.mem_bw_gbs * 1e9))
    return work + max(1, cost.dispatches) * device.launch_s


def given_seconds(op: OpSpec, device: DeviceSpec) -> float | None:
    """The time that a configuration has for an op on a device."""
    return op.seconds.get(device.id, op.seconds.get("*"))


def core_seconds(op: OpSpec, seconds: float, device: DeviceSpec) -> float:
    """How long cores of the host are busy meanwhile. A time that was given says nothing of that."""
    return 0.0 if given_seconds(op, device) is not None else seconds * device.host_cores


def penalty_seconds(op: OpSpec, device: DeviceSpec) -> float:
    """What the score of a latency-sensitive op gets on top where latencies are not low."""
    return PENALTIES[device.latency_class] if op.latency_sensitive else 0.0


def coded_bytes(codec: Codec, schema: PayloadSchema, options: Mapping[str, float]) -> int:
    """Bytes that a codec sends."""
    return wire_schema(codec, schema, **options).nbytes


def link_seconds(link: LinkSpec, nbytes: int) -> float:
    """What a transfer takes: the time that was given, else latency and bytes over bandwidth."""
    if link.seconds is not None:
        return link.seconds
    bandwidth = link.bandwidth or _MODE_BYTES[link.mode]
    return (link.latency or _MODE_LATENCY[link.mode]) + nbytes / bandwidth
