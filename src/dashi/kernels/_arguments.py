"""What a caller passes, and where: arrays by position, scalars by name. Anything else is an error that says what goes
there, before it is taken for an array of no dimensions or a number in disguise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import numpy as np

from dashi.errors import DTypeError, InputError
from dashi.kernels.abi import Kernel, Operand, Scalar

_COMPLEX: Final = (np.dtype(np.complex64), np.dtype(np.complex128), np.dtype(np.clongdouble))


def usage(kernel: Kernel) -> str:
    """How it is called: `run("axpy", x, y, a=...)`."""
    needed = [f"{s.name}=..." for s in kernel.scalars if s.default is None]
    optional = [f"{s.name}=..." for s in kernel.scalars if s.default is not None]
    return f"run({', '.join([repr(kernel.name), *(o.name for o in kernel.inputs), *(needed or optional[:1])])})"


def require_arrays(kernel: Kernel, inputs: Sequence[Any], *, stretched: bool = False) -> None:
    """Raises an error for the first input that is no array: a number, text, nothing; or one whose element type has an
    obvious way out: complex numbers are pairs here, and most kernels take no truth values. Arrays may be `stretched`,
    then any element type is for the kernel's own check to judge, and one number is an array of one element."""
    for place, value in enumerate(inputs):
        operand = kernel.inputs[place] if place < len(kernel.inputs) else None
        name = operand.name if operand else f"argument {place + 1}"
        if operand is None and not kernel.scalars:
            break  # too many: how many there may be is said where shapes are bound
        if isinstance(value, (bool, int, float, complex, np.generic)):
            raise _number_for_array(kernel, operand, name, value, inputs, stretched or kernel.broadcasts)
        if value is None or isinstance(value, (str, bytes)):
            raise InputError(
                f"kernel {kernel.name!r}: {name} is {value!r}, but an array belongs there.",
                f"call {usage(kernel)} with arrays, for instance np.zeros(5, np.float32).",
            )
        _require_element_type(kernel, operand, name, value, stretched)


def _require_element_type(kernel: Kernel, operand: Operand | None, name: str, value: Any, stretched: bool) -> None:
    dtype = getattr(value, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind == "c":
        real = f"float{4 * cast('Any', dtype).itemsize}"
        raise DTypeError(
            f"kernel {kernel.name!r}: {name} is {dtype}; complex numbers are pairs (re, im) here.",
            f"pass {name}.view(np.{real}).reshape(*{name}.shape, 2) of a C-ordered array, to a kernel of pairs.",
        )
    takes = () if operand is None else kernel.dtypes if operand.dtype == "T" else (operand.dtype,)
    if kind == "b" and "bool" not in takes and not stretched:
        raise DTypeError(
            f"kernel {kernel.name!r}: {name} is {dtype}, which is no element type here.",
            f"convert it to the type of the other arrays: {name}.astype(np.float32), for instance.",
        )


def _number_for_array(
    kernel: Kernel, operand: Operand | None, name: str, value: Any, inputs: Sequence[Any], stretched: bool
) -> InputError:
    number: Any = cast("Any", value).item() if isinstance(value, np.generic) else value
    what = f"kernel {kernel.name!r}: {name} is the number {number!r}, but an array belongs there"
    if kernel.scalars:
        return InputError(f"{what}; scalars go by name.", f"call {usage(kernel)}.")
    if operand is not None and operand.shape is not None:
        shape = f"({', '.join(map(str, operand.shape))}{',' * (len(operand.shape) == 1)})"
        return InputError(f"{what}.", f"pass an array of shape {shape}.")
    others = ((o.name, other) for o, other in zip(kernel.inputs, inputs, strict=False) if o.shape is None)
    for like, other in others:
        if getattr(other, "shape", None):
            kind = getattr(other.dtype, "numpy", other.dtype)
            if stretched:
                return InputError(f"{what}.", f"pass an array of one element: np.array({number!r}, np.{kind}).")
            return InputError(
                f"{what}; nothing is broadcast.", f"pass an array: np.full({like}.shape, {number!r}, np.{kind})."
            )
    return InputError(f"{what}.", f"pass an array of one element: np.array([{number!r}], np.float32).")


def is_number(kernel: Kernel, scalar: Scalar, value: Any) -> bool:
    """Whether a scalar is one real number. Text and complex numbers are not, though Python converts them; an array of
    several numbers is an error of its own."""
    if isinstance(value, (int, float)):
        return True
    shape = getattr(value, "shape", ())
    if tuple(shape) != ():
        arrays = ", ".join(o.name for o in kernel.inputs)
        raise InputError(
            f"kernel {kernel.name!r}: scalar {scalar.name} is an array of shape {tuple(shape)}, "
            "but one number belongs there.",
            f"pass {scalar.name} as one number; arrays go by position ({arrays}).",
        )
    return not isinstance(value, (str, bytes, bytearray, complex)) and getattr(value, "dtype", None) not in _COMPLEX
