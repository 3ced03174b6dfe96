"""Whether arrays are what a kernel's operands ask for: device, variant, shapes and types, and memory kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from dashi.errors import DTypeError, InputError, ShapeError
from dashi.kernels.abi import Kernel, Operand
from dashi.runtime.array import Array
from dashi.types import DTYPES, DType, Shape

if TYPE_CHECKING:
    from dashi.runtime.device import Device


def whole_number(value: Any, what: str) -> int:
    """Any integer, as Python's own."""
    try:
        return index(value)
    except TypeError:
        raise InputError(f"{what} must be a whole number, not {value!r}.", "pass an int.") from None


def sizes_of(shape: Any) -> Shape:
    """A length, or several, as a shape."""
    try:
        return (index(shape),)
    except TypeError:
        pass
    try:
        return tuple(index(length) for length in shape)
    except TypeError:
        raise ShapeError(
            f"{shape!r} is not a shape.", "give a length or a tuple of lengths, all whole: 3 or (4, 5)."
        ) from None


def kind_of(operand: Operand, variant: DType) -> DType:
    """The element type of an operand in a variant."""
    return variant if operand.dtype == "T" else DTYPES[operand.dtype]


def variant_of(kernel: Kernel, inputs: Sequence[Array]) -> DType:
    """The variant that the inputs ask for; all operands of type T must agree."""
    chosen: tuple[str, DType] | None = None
    for operand, array in zip(kernel.inputs, inputs, strict=False):
        if operand.dtype == "T":
            if chosen is not None and array.dtype != chosen[1]:
                raise DTypeError(
                    f"kernel {kernel.name!r}: {operand.name} is {array.dtype.numpy}, "
                    f"but {chosen[0]} is {chosen[1].numpy}.",
                    f"convert one of them, for instance {operand.name}.astype(np.{chosen[1].numpy}).",
                )
            chosen = chosen or (operand.name, array.dtype)
        elif array.dtype.name != operand.dtype:
            raise DTypeError(
                f"kernel {kernel.name!r}: {operand.name} is {array.dtype.numpy}, "
                f"but must be {DTYPES[operand.dtype].numpy}.",
                f"convert it: {operand.name}.astype(np.{DTYPES[operand.dtype].numpy}).",
            )
    return chosen[1] if chosen is not None else DTYPES[kernel.dtypes[0]]


def require_on(device: Device, who: str, operand: str, array: Any) -> None:
    """What is given must be an array, and live on the device."""
    if not isinstance(array, Array):
        raise InputError(
            f"{who}: {operand} is a {type(array).__name__}, not an array of this device.",
            "pass it through device.array(...) first, or use device.run(...).",
        )
    if array.device is not device:
        raise InputError(
            f"{who}: {operand} lives on {array.device.info.name!r}, not here.",
            "copy it over: device.array(other.numpy()).",
        )


def require_fit(kernel: Kernel, operand: Operand, array: Array, shape: Shape, kind: DType) -> None:
    """An array that is given for an output must be what the kernel makes."""
    if array.shape != shape:
        raise ShapeError(
            f"kernel {kernel.name!r}: {operand.name} must have shape {shape}, the array given has {array.shape}.",
            "pass an array of that shape, or leave `out` away.",
        )
    if array.dtype != kind:
        raise DTypeError(
            f"kernel {kernel.name!r}: {operand.name} must be {kind.numpy}, the array given is {array.dtype.numpy}.",
            "pass an array of that type, or leave `out` away.",
        )


def require_apart(kernel: Kernel, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Outputs may share memory with inputs only where the kernel declares it."""
    apart = not any(a.overlaps(b) for i, a in enumerate(outputs) for b in outputs[:i])
    shared = any(a.overlaps(b) for a in outputs for b in inputs)
    if not apart or (shared and not kernel.in_place):
        raise InputError(f"kernel {kernel.name!r} cannot write over its own operands.", "pass another array as `out`.")
