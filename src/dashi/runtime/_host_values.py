"""Values of the host on their way to a device: as C-ordered NumPy arrays of an element type that devices store."""

from __future__ import annotations

import sys
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from dashi.errors import DashiError, DTypeError, InputError, OutOfMemoryError, ShapeError
from dashi.types import DType, HostArray, Shape
from dashi.types import dtype as dtype_of

_HOST_KINDS: Final = frozenset({1, 3, 11, 13})
"""DLPack's numbers for memory that the host reads: its own, that pinned for CUDA or ROCm, and CUDA's managed memory."""


def host_array(values: Any, dtype: npt.DTypeLike | DType | None = None) -> HostArray:
    """Anything that NumPy or DLPack understands, as a C-ordered NumPy array (without a copy where possible), converted
    to `dtype` where one is named."""
    masked: Any = sys.modules.get("numpy.ma")  # not imported for the question: without it nothing is masked
    if masked is not None and masked.is_masked(values):
        raise InputError(
            "a masked array would lose its mask on the device.",
            "fill it, and pass the mask as an array of its own: values.filled(0), values.mask.",
        )
    target = None if dtype is None else dtype_of(dtype)
    try:
        if isinstance(values, np.ndarray) or not hasattr(values, "__dlpack__"):
            host = _from_numpy(values, target)
        else:
            host = _from_dlpack(values)
        if target is not None and host.dtype != target.numpy:
            _require_real(host)
            host = host.astype(target.numpy)
        dtype_of(host.dtype)
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


def lies_on_a_device(values: Any) -> bool:
    """Whether values of another library, or of a device of ours, lie where the host has to copy them from."""
    if values is None or isinstance(values, np.ndarray) or not hasattr(values, "__dlpack_device__"):
        return False
    kind, _ = values.__dlpack_device__()
    return int(kind) not in _HOST_KINDS


def assignable(values: Any, dtype: DType, shape: Shape) -> HostArray:
    """What `part[...] = values` writes: repeated as NumPy repeats it to fill the shape. Arrays must have the part's
    element type; numbers and lists of numbers have none of their own, and become it where no kind of number is lost."""
    has_type = hasattr(values, "__dlpack__") and getattr(values, "ndim", 1) > 0
    host = host_array(values)
    if not has_type and host.dtype != dtype.numpy:
        if not _fits_kind(host, dtype):
            raise DTypeError(
                f"values of {host.dtype} cannot be written to an array of {dtype}.",
                f"convert them first: np.asarray(values, np.{dtype}).",
            )
        host = host_array(values, dtype)
    if host.ndim <= len(shape) and all(n in (1, m) for n, m in zip(host.shape[::-1], shape[::-1], strict=False)):
        return np.ascontiguousarray(np.broadcast_to(host, shape)).reshape(shape)
    raise ShapeError(
        f"values of shape {host.shape} cannot be written to a part of shape {shape}.",
        "pass values of that shape, or one number.",
    )


def _fits_kind(host: HostArray, dtype: DType) -> bool:
    """Whether numbers without a type of their own may become that type: whole ones any number (NumPy refuses those out
    of range), fractions only fractions."""
    return np.can_cast(host.dtype, dtype.numpy, "same_kind") or (host.dtype.kind == "i" and dtype.kind == "u")


def _from_numpy(values: Any, target: DType | None) -> HostArray:
    plain: HostArray = np.asarray(values)
    if target is None or hasattr(values, "dtype"):
        return plain
    _require_real(plain)
    # Numbers of Python become the type at once: NumPy then refuses those out of its range.
    return np.asarray(values, target.numpy)


def _require_real(host: HostArray) -> None:
    if host.dtype.kind == "c":
        dtype_of(host.dtype)  # its error says how complex numbers are stored


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


def require_like(
    dtype: np.dtype[Any] | DType, shape: Shape, array_dtype: np.dtype[Any] | DType, array_shape: Shape
) -> None:
    """What is written to an array must have its element type and shape."""
    if dtype != array_dtype:
        raise DTypeError(
            f"an array of {dtype} cannot be written to one of {array_dtype}.",
            f"convert it first: values.astype(np.{array_dtype}).",
        )
    if shape != array_shape:
        raise ShapeError(
            f"an array of shape {shape} cannot be written to one of shape {array_shape}.",
            "pass an array of the same shape.",
        )
