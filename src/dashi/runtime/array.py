"""Arrays that live on a device."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dashi.errors import ClosedError, DashiError, DTypeError, InputError, OutOfMemoryError, ShapeError
from dashi.types import Array as HostArray
from dashi.types import DType, Shape, dtype

if TYPE_CHECKING:
    from dashi.runtime.device import Device


class Array:
    """A dense, C-ordered array in the memory of a device. Closing it, or forgetting it, frees the memory."""

    __slots__ = ("__weakref__", "_storage", "device", "dtype", "shape")

    def __init__(self, device: Device, shape: Shape, kind: DType, storage: Any) -> None:
        self.device = device
        self.shape = shape
        self.dtype = kind
        self._storage = storage

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.size

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

    def numpy(self) -> HostArray:
        """A copy in host memory, after all work submitted so far."""
        flat = self.device.read(self).view(self.dtype.numpy)
        return flat.reshape(self.shape)

    def write(self, values: Any) -> None:
        """Replaces the contents by an array of the same shape and type."""
        host = host_array(values)
        if host.dtype != self.dtype.numpy:
            raise DTypeError(
                f"an array of {host.dtype} cannot be written to one of {self.dtype.numpy}.",
                f"convert it first: values.astype(np.{self.dtype.numpy}).",
            )
        if host.shape != self.shape:
            raise ShapeError(
                f"an array of shape {host.shape} cannot be written to one of shape {self.shape}.",
                "pass an array of the same shape.",
            )
        self.device.write(self, host)

    def close(self) -> None:
        """Gives the memory back, as soon as no step that is bound to it is left. Closing twice is harmless."""
        self._storage = None

    def __dlpack__(self, **options: Any) -> Any:
        """A host copy through DLPack, so that any array library can take it."""
        host: Any = self.numpy()
        return host.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, kind: Any = None, copy: bool | None = None) -> HostArray:
        host = self.numpy()
        return host if kind is None else host.astype(kind)

    def __repr__(self) -> str:
        return f"Array({self.dtype.name}, shape={self.shape}, on {self.device.info.name!r})"


def host_array(values: Any) -> HostArray:
    """Anything that NumPy or DLPack understands, as a C-ordered NumPy array (without a copy where possible)."""
    if np.ma.is_masked(values):
        raise InputError(
            "a masked array would lose its mask on the device.",
            "fill it, and pass the mask as an array of its own: values.filled(0), values.mask.",
        )
    try:
        if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
            host: HostArray = np.asarray(cast("Any", values))
        else:
            host = _from_dlpack(values)
        dtype(host.dtype)
        return np.ascontiguousarray(host).reshape(host.shape)
    except DashiError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(f"the host has not enough memory for this: {error}.", "use smaller arrays.") from error
    except (ArithmeticError, AttributeError, BufferError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"NumPy cannot take these values ({type(cast('Any', values)).__name__}) as an array: {error}",
            "pass an array, or lists of one length. A torch tensor that requires grad: tensor.detach(); one of "
            "bfloat16: tensor.float().",
        ) from error


def _from_dlpack(values: Any) -> HostArray:
    """An array of another library. Memory of another device comes through the host, by that library's own copy."""
    try:
        return np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError):
        for method in ("get", "cpu"):
            copy = getattr(values, method, None)
            if copy is not None:
                return np.asarray(copy())
        return np.asarray(values)
