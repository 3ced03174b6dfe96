"""Whether arrays are what a kernel's operands ask for: device, variant, shapes and types, and memory kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dashi.errors import AlignmentError, DTypeError, InputError, ShapeError
from dashi.kernels.abi import Kernel, Operand
from dashi.runtime.array import Array
from dashi.types import DTYPES, DType, Shape

if TYPE_CHECKING:
    from dashi.runtime.device import Device


def dtype_of_operand(operand: Operand, variant: DType) -> DType:
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


def require_fit(kernel: Kernel, operand: Operand, array: Array, shape: Shape, dtype: DType) -> None:
    """An array that is given for an output must be what the kernel makes."""
    if array.shape != shape:
        raise ShapeError(
            f"kernel {kernel.name!r}: {operand.name} must have shape {shape}, the array given has {array.shape}.",
            "pass an array of that shape, or leave `out` away.",
        )
    if array.dtype != dtype:
        raise DTypeError(
            f"kernel {kernel.name!r}: {operand.name} must be {dtype.numpy}, the array given is {array.dtype.numpy}.",
            "pass an array of that type, or leave `out` away.",
        )


def require_apart(kernel: Kernel, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Outputs may share memory with inputs only where the kernel declares it, and then all of it: element i of the
    result is written over element i of the input, and over no other."""
    apart = not any(a.overlaps(b) for i, a in enumerate(outputs) for b in outputs[:i])
    shared = [(a, b) for a in outputs for b in inputs if a.overlaps(b)]
    if not apart or (shared and not kernel.in_place):
        raise InputError(f"kernel {kernel.name!r} cannot write over its own operands.", "pass another array as `out`.")
    if any((a.offset, a.nbytes) != (b.offset, b.nbytes) for a, b in shared):
        raise InputError(
            f"kernel {kernel.name!r} can work in place, but `out` shares only some of its memory with an input.",
            "pass that input itself as `out`, or an array that does not overlap it.",
        )


def require_bindable(device: Device, kernel: Kernel, operand: Operand, array: Array, *, written: bool) -> None:
    """A part of an array can be an operand where shaders can start; and a result of one or two bytes an element must
    end where a vector of 16 bytes does, since shaders write those whole."""
    if array.offset and array.offset % device.part_alignment:
        raise AlignmentError(
            f"kernel {kernel.name!r}: {operand.name} starts at byte {array.offset} of its memory, where no shader of "
            f"{device.info.name!r} can.",
            f"take a part that starts at a multiple of {device.part_alignment} bytes, or a copy: "
            f"device.array({operand.name}.numpy()).",
        )
    if written and array.dtype.size < 4 and array.nbytes % 16 and not device.ends_memory(array.storage):
        raise AlignmentError(
            f"kernel {kernel.name!r}: {operand.name} ends within 16 bytes that belong to others too, and results of "
            f"{array.dtype} are written 16 bytes at a time.",
            "take a part whose size is a multiple of 16 bytes, or leave `out` away.",
        )
