"""Arrays of other libraries without a copy: memory of the host that a device borrows, and memory that it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dashi.errors import DeviceError, DTypeError, InputError, UnsupportedOperationError
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.runtime.array import Array

HOST_DEVICE = (1, 0)
"""DLPack's name for memory of the host."""


def from_dlpack(array_of: Any, borrow: Any, values: Any, copy: bool | None) -> Array:
    """What `Device.from_dlpack` gives: `borrow` takes a host array without a copy, `array_of` copies one."""
    if copy:
        return array_of(values)
    try:
        return borrow(borrowable(values))
    except (InputError, DeviceError):
        if copy is False:
            raise
        return array_of(values)


def borrowable(values: Any) -> HostArray:
    """The values as an array of the host in their own memory; raises where there is none that a device could use."""
    host = _without_copy(values)
    kind = type(values).__name__
    try:
        dtype_of(host.dtype)
    except DTypeError as error:
        raise DTypeError(error.what, error.fix) from None
    if not host.flags.c_contiguous:
        raise UnsupportedOperationError(
            f"{kind} of shape {host.shape} does not lie in one piece of memory in C order, so that it cannot be used "
            "without a copy.",
            "copy it: device.array(values); or make it dense first: np.ascontiguousarray(values).",
        )
    if not host.flags.writeable:
        raise UnsupportedOperationError(
            f"{kind} is read-only, and kernels may write what a device borrows.", "copy it: device.array(values)."
        )
    return host


def _without_copy(values: Any) -> HostArray:
    if isinstance(values, np.ndarray):
        return cast("HostArray", values)
    kind = type(values).__name__
    if not hasattr(values, "__dlpack__"):
        raise UnsupportedOperationError(
            f"{kind} has no memory that DLPack shows, so that it cannot be used without a copy.",
            "pass an array of NumPy or of a library with DLPack, or copy the values: device.array(values).",
        )
    try:
        return np.from_dlpack(values, copy=False)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UnsupportedOperationError(
            f"{kind} is not in memory of the host that can be used without a copy: {error}",
            "copy it: device.array(values).",
        ) from error


def capsule(array: Array, copy: bool | None, options: dict[str, Any]) -> Any:
    """The array for DLPack: its own memory, where the host reaches that, else a copy."""
    shown = None if copy else shown_memory(array, quick=copy is None)
    if shown is not None:
        return cast("Any", shown).__dlpack__(**options)
    if copy is False:
        raise BufferError(refusal(array))
    if copy is not None:
        options = {**options, "copy": copy}
    return cast("Any", array.numpy()).__dlpack__(**options)


def shown_memory(array: Array, *, quick: bool = False) -> HostArray | None:
    """The array's own memory as an array of the host; None where it is to be copied."""
    if array.dtype.kind == "b":  # any byte but 0 is true on a device, where NumPy knows 0 and 1
        return None
    return array.device.host_memory(array, quick=quick)


def refusal(array: Array) -> str:
    """Why the host gets the array as a copy alone."""
    return (
        f"{array.description} is not in memory that the host can use as it is: it leaves only as a copy. "
        "Fix: leave copy=False away."
    )
