"""Handles of values that stay on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dashi.errors import ClosedError
from dashi.graph._recordings import Place
from dashi.graph.ir import TensorType
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device
    from dashi.runtime.landing import Ticket


class Resident:
    """A value on a device: an input that was bound, or a result that was left there. It lives until it is freed, or
    its pipeline is closed."""

    __slots__ = ("__weakref__", "_place", "device", "end", "name", "type")

    def __init__(self, name: str, type_: TensorType, device: Device, place: Place, end: Ticket | None = None) -> None:
        self.name = name
        self.type = type_
        self.device = device
        self._place: Place | None = place
        self.end = end
        """The end of the run that writes it."""

    @property
    def freed(self) -> bool:
        """Whether it can no longer be used."""
        return self._place is None

    @property
    def place(self) -> Place:
        """The memory that holds the value; a ClosedError where the handle was freed."""
        if self._place is None:
            raise ClosedError(f"the handle of {self.name!r} was freed.", "bind the value again, or free it later.")
        return self._place

    def take_place(self) -> Place:
        """Frees the handle, and returns the memory that held the value."""
        place = self.place
        self._place = None
        return place

    def __repr__(self) -> str:
        return f"<Resident {self.name}: {self.type} on {self.device.info.spec}{', freed' if self.freed else ''}>"


ResidentValues = Mapping[str, "HostArray | Resident"]
"""Arrays of the host or handles, by the names of inputs."""
