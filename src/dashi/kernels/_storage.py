"""Element types in memory and the types that formulas compute in: conversions at the edges of fused kernels, in NumPy.

A number is converted when it is loaded and when it is stored. Floats become integers by truncation, saturated at the
ends of the type, NaN becomes 0; integers become the nearest float, ties to even; integers wrap round into integers;
anything but 0 is True. f16 and bf16 are read and written through fp32. The twin is `storage.glsl` of the template.
"""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from dashi.errors import DTypeError
from dashi.kernels._float16 import narrow_bf16, narrow_f16, widen_bf16, widen_f16
from dashi.kernels._fused_glsl import FLOAT_STORAGE, STORAGE, width
from dashi.kernels.abi import Fill
from dashi.kernels.portable import canon
from dashi.kernels.spirv._emit import Body
from dashi.types import DTYPES, HostArray, Shape

COMPUTE: Final[dict[str, str]] = {
    **{name: name for name in ("f32", "f64", "i32", "u32", "i64", "u64")},
    "f16": "f32", "bf16": "f32", "i16": "i32", "i8": "i32", "u16": "u32", "u8": "u32", "bool": "u32",
}  # fmt: skip
"""The type that a formula over arrays of one element type is computed in."""


def load(values: HostArray, storage: str, compute: str) -> HostArray:
    """Elements as they are stored, as canonical values that a formula computes with."""
    target = DTYPES[compute].numpy
    if storage == "bool":
        return (values != 0).astype(target)
    with np.errstate(all="ignore"):
        if storage == "f16":
            return canon(widen_f16(values).astype(target))
        if storage == "bf16":
            return canon(widen_bf16(values).astype(target))
        if storage in FLOAT_STORAGE:
            return canon(canon(values).astype(target))
        return values.astype(target)


def store(values: HostArray, storage: str) -> HostArray:
    """Canonical results of a formula, as they are stored."""
    target = DTYPES[storage].stored
    if storage == "bool":
        return values != 0
    with np.errstate(all="ignore"):
        if storage in FLOAT_STORAGE:
            if target == np.float64:
                return values.astype(target)
            single = canon(values.astype(np.float32))
            return {"f32": np.asarray, "f16": narrow_f16, "bf16": narrow_bf16}[storage](single)
        return saturated(values, target) if values.dtype.kind == "f" else values.astype(target)


def saturated(values: HostArray, target: np.dtype[Any]) -> HostArray:
    """Floats as integers: cut towards 0, at most and at least what the type holds; NaN is 0."""
    limits = np.iinfo(target)
    numbers = cast("Any", values)
    inside = (numbers > limits.min) & (numbers < limits.max)  # the limits as floats are powers of two, or exact
    result = np.trunc(np.where(inside, numbers, 0)).astype(target)
    result[~inside & (numbers > 0)] = limits.max
    result[~inside & (numbers < 0)] = limits.min
    return result


def check_storage(name: str, storage: str, compute: str) -> None:
    """Raises a DTypeError for an operand that a formula of that type cannot read or write."""
    if storage not in STORAGE:
        raise DTypeError(f"{name} has the element type {storage!r}.", f"use one of {', '.join(STORAGE)}.")
    if storage in FLOAT_STORAGE and not DTYPES[compute].is_float:
        raise DTypeError(
            f"{name} is {DTYPES[storage]}, but a formula of {compute} reads and writes integers and truth values.",
            'compute in floats (compute="f32"), or convert the array before.',
        )


def emit_load(body: Body, number: int, storage: str, place: int) -> int:
    """The value of input `number` at a place."""
    index = body.call(f"index{number}", place)

    def word(at: str) -> int:
        return body.call(f"word{number}", body.call(at, index))

    match width(storage):
        case 8:
            return body.call(f"from_{storage}", word("low_word"), word("high_word"))
        case 4:
            return body.call(f"from_{storage}", body.call(f"word{number}", index))
        case 2:
            return body.call(f"from_{storage}", body.call("half_at", word("half_word"), index))
        case _:
            return body.call(f"from_{storage}", body.call("byte_at", word("byte_word"), index))


def emit_store(body: Body, number: int, storage: str, place: int, value: int, before: int) -> int | None:
    """Stores result `number`, element `place`. What a word of small elements holds so far is `before`; returned is what
    it holds then, or None where elements are whole words."""
    bits = body.call(f"to_{storage}", value)
    match width(storage):
        case 8:
            body.call(f"put_wide{number}", place, bits)
        case 4:
            body.call(f"put_word{number}", place, bits)
        case size:
            word = "half" if size == 2 else "byte"
            joined = body.call(f"join_{word}", before, bits, place)
            body.call(f"put_{word}{number}", place, joined)
            return joined
    return None


def any_values(storage: str) -> Fill:
    """Makes arrays of an integer type, or of truth values: any bits alike, many of them small."""
    kind = DTYPES[storage].stored

    def fill(rng: np.random.Generator, shape: Shape) -> HostArray:
        if storage == "bool":
            return rng.integers(0, 2, shape).astype(np.bool_)
        size = int(np.prod(shape, dtype=np.int64))
        wide = np.frombuffer(rng.bytes(size * kind.itemsize), kind).reshape(shape)
        return np.where(rng.random(shape) < 0.5, wide, rng.integers(0, 5, shape).astype(kind))

    return fill
