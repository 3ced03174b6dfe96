"""Arrays that live on a device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Never

import numpy as np
import numpy.typing as npt

from dashi import kernels
from dashi.errors import ClosedError, ShapeError, UnsupportedOperationError
from dashi.runtime._array_text import array_repr, facts_text
from dashi.runtime._dlpack import HOST_DEVICE, capsule, refusal, shown_memory
from dashi.runtime._host_values import assignable, require_like
from dashi.runtime._host_values import host_array as host_array
from dashi.runtime._indexing import contiguous_part
from dashi.runtime._notebook import html_text
from dashi.runtime._shapes import resolved_shape, sizes_of
from dashi.types import DType, HostArray, Shape
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.runtime.device import Device

_WORDS: Final = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
"""Integers of as many bytes, as which elements are copied."""


class Array:
    """A dense, C-ordered array in the memory of a device. Closing it, or forgetting it, frees the memory.

    `a[1:3]`, `a[2]`, `a.reshape(...)` and `a.view(...)` are views: arrays in the same memory, which lives as long as
    any of them. There are no operators: kernels compute. `a.numpy()` is a copy on the host.
    """

    __slots__ = ("__weakref__", "_storage", "device", "dtype", "offset", "shape")

    def __init__(self, device: Device, shape: Shape, dtype: DType, storage: Any, offset: int = 0) -> None:
        self.device = device
        self.shape = shape
        self.dtype = dtype
        self.offset = offset
        """Bytes from the beginning of the memory that it is a part of."""
        self._storage = storage

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.size

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used: it was closed, or its device was."""
        return self._storage is None or self.device.gate.refusal is not None

    @property
    def storage(self) -> Any:
        """The device's own handle of the memory."""
        if self._storage is None:
            raise ClosedError("this array is closed.", "make a new one, or close arrays later.")
        self.device.require_open()
        return self._storage

    def overlaps(self, other: Array) -> bool:
        """Whether the two have memory in common."""
        return self.device is other.device and self.device.shared(self.storage, other.storage)

    # Views

    def reshape(self, *shape: Any) -> Array:
        """A view in another shape of as many elements; one length may be -1, which stands for what is left:
        `a.reshape(2, -1)`, `a.reshape((2, 3))`."""
        asked = sizes_of(shape[0] if len(shape) == 1 else shape)
        sizes = resolved_shape(self.size, self.shape, asked)
        return Array(self.device, sizes, self.dtype, self.storage, self.offset)

    def view(self, dtype: npt.DTypeLike | DType) -> Array:
        """A view of the bytes as elements of another type; the last axis grows or shrinks with their size."""
        element = dtype_of(dtype)
        if element.size == self.dtype.size:
            return Array(self.device, self.shape, element, self.storage, self.offset)
        last = self.shape[-1] * self.dtype.size if self.shape else 0
        if not self.shape or last % element.size:
            raise ShapeError(
                f"an array of {self.dtype} of shape {self.shape} has no view as {element}.",
                f"its last axis must hold a multiple of {element.size} bytes.",
            )
        sizes = (*self.shape[:-1], last // element.size)
        return Array(self.device, sizes, element, self.storage, self.offset)

    def __getitem__(self, index: Any) -> Array:
        """A view of a part that lies in one piece of memory: whole numbers, slices without a step, `...`. Kernels take
        parts that start at multiples of `device.part_alignment` bytes; reading and writing take any."""
        start, shape = contiguous_part(self.shape, index)
        return self.device.view(self, start * self.dtype.size, shape, self.dtype)

    def __setitem__(self, index: Any, values: Any) -> None:
        """Writes into a part: a number, or what has the part's shape or is repeated to fill it, as NumPy does."""
        part = self[index]
        part.write(values if isinstance(values, Array) else assignable(values, part.dtype, part.shape))

    # Values

    def numpy(self) -> HostArray:
        """A copy in host memory, after all work submitted so far."""
        return self.dtype.from_bytes(self.device.read(self)).reshape(self.shape)

    def item(self) -> Any:
        """The only element, as a number of Python, after all work submitted so far."""
        if self.size != 1:
            raise ShapeError(f"an array of shape {self.shape} is not one number.", "read all of them: array.numpy().")
        return self.numpy().item()

    def write(self, values: Any) -> None:
        """Replaces the contents by an array of the same shape and type, after all work submitted so far. An array of
        the same device is copied there."""
        own = isinstance(values, Array) and values.device is self.device
        source = values if own else host_array(values)
        if isinstance(source, Array):
            require_like(source.dtype, source.shape, self.dtype, self.shape)
            self.device.wait()
            self.device.copy(source, self).wait()
        else:
            require_like(source.dtype, source.shape, self.dtype.numpy, self.shape)
            self.device.write(self, self.dtype.to_stored(source))

    def astype(self, dtype: npt.DTypeLike | DType) -> Array:
        """A copy in another element type, made on the device. Floats become integers by truncation, saturated, and NaN
        0; integers wrap round; integers and wider floats are rounded to the nearest float; anything but 0 is True."""
        element = dtype_of(dtype)
        if element == self.dtype:
            return self.device.run("copy", self.view(_WORDS[element.size])).view(element)
        kernel = {("f32", "f16"): "to_f16", ("f16", "f32"): "from_f16"}.get((self.dtype.name, element.name))
        return self.device.run(kernel or kernels.cast(self.dtype.name, element.name), self)

    def close(self) -> None:
        """Ends the use of this array. Its memory goes back when no view, step or program that uses it is left: those
        work on, on every device. Closing twice is harmless."""
        self._storage = None

    def __len__(self) -> int:
        if not self.shape:
            raise UnsupportedOperationError("an array without axes has no length.", "use array.size, which is 1.")
        return self.shape[0]

    def __iter__(self) -> Never:
        raise UnsupportedOperationError(
            "an array on a device is not iterated over: every element would be a transfer of its own.",
            "read it once, `for row in array.numpy()`; views are `array[i]` for i in range(len(array)).",
        )

    def __bool__(self) -> Never:
        raise UnsupportedOperationError(
            "an array on a device is neither true nor false.",
            "ask `array is not None`, `array.size`, or array.numpy().any().",
        )

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    # Other libraries

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        """The array for any library with DLPack, as memory of the host, after all work submitted so far: the memory
        itself where the host reaches it (the NumPy device, devices in the host's memory), which lives as long as
        anybody uses it; else a copy. What work is submitted later may change the former. `copy=True` always copies,
        `copy=False` never: it raises BufferError instead."""
        return capsule(self, copy, options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST_DEVICE

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> HostArray:
        """A copy for NumPy; with `copy=False` the memory itself, where the host reaches it."""
        if copy is False:
            shown = shown_memory(self)
            if shown is None:
                raise ValueError(refusal(self))
            return shown if dtype is None else np.asarray(shown, dtype, copy=False)
        host = self.numpy()
        return host if dtype is None else host.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return array_repr(self)

    def _repr_html_(self) -> str:
        return html_text(repr(self))

    @property
    def description(self) -> str:
        """Shape, element type and device, without the values."""
        return f"Array({facts_text(self)})"
