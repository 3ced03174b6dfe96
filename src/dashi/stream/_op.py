"""What a stage runs: an op maps one schema to another, by kernels on a device or by Python on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from dashi.runtime._steps import AnyStep
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.stream._model import Field, OpSpec, Payload, PayloadSchema
from dashi.types import Cost

Constants = Mapping[str, Array]
"""Constant arrays of an op on a device."""


class StreamOp(Protocol):
    """An op as the planner sees it. It reads fields of the payload and makes others; fields that it does not make pass
    through. `spec` is a snapshot for the schema that it was planned with."""

    @property
    def spec(self) -> OpSpec: ...

    @property
    def reads(self) -> tuple[str, ...]:
        """Fields that it needs."""
        ...

    def makes(self, schema: PayloadSchema) -> Mapping[str, Field]:
        """The fields that it makes of a payload like that, by name. Raises an InputError where it cannot."""
        ...

    def cost(self, schema: PayloadSchema) -> Cost:
        """The counted work for such a payload."""
        ...


@runtime_checkable
class DeviceOp(StreamOp, Protocol):
    """An op that records steps on a device. `load` is called once for each device that runs it, `bind` once for each
    set of buffers (ring slots): `inputs` are the fields that it reads, `outputs` those that it makes, by their names
    in the payload; no output is an input. Whoever holds the steps holds the constants as well."""

    def load(self, device: Device) -> Constants: ...

    def bind(
        self, device: Device, constants: Constants, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
    ) -> Sequence[AnyStep]: ...


@runtime_checkable
class HostOp(StreamOp, Protocol):
    """An op that computes on the host: it takes a payload of host arrays, which it must not write, and returns the
    fields that it makes."""

    def call(self, payload: Payload) -> Payload: ...
