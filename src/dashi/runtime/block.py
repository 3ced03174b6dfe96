"""Memory that may be larger than what a shader can bind, of which parts within that limit are arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from dashi.errors import AlignmentError, ClosedError, InputError, LimitError, ShapeError
from dashi.runtime._shapes import sizes_of, whole_number
from dashi.runtime.array import Array
from dashi.types import DType
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.runtime.device import Device


class Block:
    """A piece of a device's memory, up to its largest allocation. `block.array(offset, shape, dtype)` is a part of it
    as an array; parts may overlap, and the memory lives as long as any of them. Use it in a `with` block, or close it:
    that ends its use, not that of its arrays."""

    __slots__ = ("__weakref__", "_part", "_storage", "device", "nbytes")

    def __init__(self, device: Device, nbytes: int, storage: Any, part: Callable[[Any, int, int], Any]) -> None:
        self.device = device
        self._part = part
        self.nbytes = nbytes
        self._storage = storage

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used: it was closed, or its device was."""
        return self._storage is None or self.device.gate.refusal is not None

    @property
    def alignment(self) -> int:
        """Bytes: arrays start at multiples of it."""
        return self.device.part_alignment

    def array(
        self,
        offset: SupportsIndex,
        shape: SupportsIndex | Iterable[SupportsIndex],
        dtype: npt.DTypeLike | DType = np.float32,
    ) -> Array:
        """An array in this memory, from a byte on that is a multiple of `alignment`, no larger than what the device can
        bind. Its contents are whatever lies there."""
        if self._storage is None:
            raise ClosedError("this block is closed.", "make a new one, or close blocks later.")
        self.device.require_open()
        start = whole_number(offset, "the byte at which an array starts")
        sizes, element = sizes_of(shape), dtype_of(dtype)
        nbytes = math.prod(sizes) * element.size
        if start % self.alignment:
            raise AlignmentError(
                f"an array of a block cannot start at byte {start} on {self.device.info.name!r}.",
                f"start it at a multiple of {self.alignment} bytes (block.alignment).",
            )
        if start < 0 or any(n < 0 for n in sizes) or start + nbytes > self.nbytes:
            raise ShapeError(
                f"{nbytes} bytes from byte {start} on are not within a block of {self.nbytes} bytes.",
                "choose a part of the block.",
            )
        limit = self.device.limits.storage_range
        if nbytes > limit:
            raise LimitError(
                f"an array of {nbytes} bytes is larger than {self.device.info.name!r} can bind ({limit}).",
                "take several arrays of the block, each within the limit.",
            )
        place = start if nbytes else 0  # nothing lies nowhere: at the end of the memory no descriptor could start
        return Array(self.device, sizes, element, self._part(self._storage, place, nbytes), place)

    def close(self) -> None:
        """Ends the use of the block. Its memory goes back when no array, step or program that uses it is left. Closing
        twice is harmless."""
        self._storage = None

    def __enter__(self) -> Block:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<Block of {self.nbytes} bytes on {self.device.info.spec}{closed}>"


def block_size(device: Device, nbytes: SupportsIndex) -> int:
    """The size of a block, one byte or more, and no more than a device allocates at once."""
    size = whole_number(nbytes, "the size of a block")
    if size < 1:
        raise InputError(f"a block of {size} bytes would hold nothing.", "ask for one byte or more.")
    most = device.info.max_allocation
    if most and size > most:
        raise LimitError(
            f"a block of {size} bytes is larger than {device.info.name!r} allocates at once ({most}).",
            "make several blocks.",
        )
    return size
