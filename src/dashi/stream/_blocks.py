"""Parts of arrays for several devices, and how results of parts get to one device and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dashi.errors import DTypeError, InputError, ShapeError
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.landing import Ticket
from dashi.stream._model import Field
from dashi.stream.links import Link
from dashi.types import HostArray, Shape
from dashi.types import dtype as dtype_of


@dataclass(frozen=True)
class Part:
    """Elements or rows `start` to `stop`, which one device has."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start

    @property
    def slice(self) -> slice:
        return slice(self.start, self.stop)


def parts_of(count: int, devices: int, unit: int = 1) -> list[Part]:
    """As many parts as devices, in order, of about one size, with borders at multiples of `unit`. Each has something:
    an error where there is too little for that."""
    units = -(-count // unit)
    if devices < 1 or units < devices:
        raise InputError(
            f"{count} cannot be cut into {devices} parts with borders at multiples of {unit}.",
            f"pass at least one device, and {max(1, units)} at most.",
        )
    borders = [min(count, units * i // devices * unit) for i in range(devices + 1)]
    return [Part(start, stop) for start, stop in pairwise(borders)]


def require_values(name: str, values: HostArray, shape: Shape, dtype: str) -> None:
    """Values of the host for a pattern: of its shape and type."""
    if tuple(values.shape) != shape:
        raise ShapeError(f"`{name}` has the shape {values.shape}, not {shape}.", "pass an array of that shape.")
    if dtype_of(values.dtype).name != dtype:
        raise DTypeError(f"`{name}` has elements of {values.dtype}, not of {dtype}.", "convert it: values.astype(...).")


def require_floats(name: str, values: HostArray) -> str:
    """The short name of the type of values, which must be one that sums are made of."""
    kind = dtype_of(values.dtype).name
    if kind not in ("f32", "f64"):
        raise DTypeError(f"`{name}` has elements of {values.dtype}.", "pass float32 or float64.")
    return kind


class Gathering:
    """Links from several devices to one: each brings its rows of an array of all."""

    def __init__(self, devices: Sequence[Device], target: Device, rows: Sequence[int], width: int, dtype: str) -> None:
        self.links = [
            Link(device, target, {"rows": Field((count, width), dtype)}, window=1)
            for device, count in zip(devices, rows, strict=True)
        ]
        self.whole = target.zeros((sum(rows), width), dtype)
        starts = np.cumsum([0, *rows])
        self.steps = [
            target.copy_step(link.incoming(0)["rows"], self.whole[int(start) : int(stop)])
            for link, start, stop in zip(self.links, starts, starts[1:], strict=False)
        ]

    def outgoing(self, number: int) -> Array:
        """Where the device of that number writes its rows."""
        return self.links[number].outgoing(0)["rows"]

    def take(self, number: int, step: int) -> list[Ticket]:
        """What a device's writing comes after."""
        return self.links[number].take(step)

    def send(self, step: int, written: Sequence[Ticket]) -> list[Ticket]:
        """Brings the rows of all devices to the target: what its work comes after."""
        arrived = [t for link, one in zip(self.links, written, strict=True) for t in link.send(step, after=[one])]
        for link in self.links:
            link.receive(step)
        return arrived

    def release(self, step: int, after: Ticket) -> None:
        """The target has read the rows."""
        for link in self.links:
            link.release(step, after=[after])

    def close(self) -> None:
        for link in self.links:
            link.close()
