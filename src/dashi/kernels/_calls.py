"""From what a caller passes to a `Call`: shapes bound to operands, dimensions unified, scalars filled in."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence

import numpy as np

from dashi.errors import DTypeError, InputError, ShapeError
from dashi.kernels._arguments import is_number, usage
from dashi.kernels._work import ceil_div
from dashi.kernels.abi import Call, Kernel, Limits, Number, Operand, Scalar, part_of
from dashi.types import DTYPES, DType, Shape
from dashi.types import dtype as dtype_of

MAX_ELEMENTS = 1 << 31
"""Shaders index with 32 bits, and a grid-stride loop steps past the end once: more would wrap round."""


def resolve_call(
    kernel: Kernel,
    dtype: str | DType,
    shapes: Sequence[Shape],
    scalars: Mapping[str, Number] | None = None,
    limits: Limits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Call:
    """Check a call against the ABI; the result names every operand's shape, the outputs' too. Without numbers of a
    `tuning` it has those of the kernel's first."""
    variant = dtype if isinstance(dtype, DType) else dtype_of(dtype)
    if variant.name not in kernel.dtypes:
        raise DTypeError(
            f"kernel {kernel.name!r} has no variant {variant.name}; it has {', '.join(kernel.dtypes)}.",
            f"convert the arrays to {DTYPES[kernel.dtypes[0]].numpy}.",
        )
    values = _scalars(kernel, variant, scalars or {})
    bound, dims, free = _bind(kernel, shapes, values)
    bound.update(_outputs(kernel, bound, values, dims, free))
    for name, shape in bound.items():
        if math.prod(shape) > MAX_ELEMENTS:
            raise ShapeError(
                f"kernel {kernel.name!r}: {name} of shape {shape} has {math.prod(shape)} elements; "
                f"shaders index at most {MAX_ELEMENTS}.",
                "split the array into smaller calls.",
            )
    if tuning is None:
        tuning = next(iter(kernel.tunings.values()), dict[str, int]())
    return Call(variant, bound, dims, values, limits if limits is not None else Limits(), tuning)


def _bind(
    kernel: Kernel, shapes: Sequence[Shape], values: Mapping[str, Number]
) -> tuple[dict[str, Shape], dict[str, int], Shape]:
    if len(shapes) != len(kernel.inputs):
        names = ", ".join(o.name for o in kernel.inputs)
        raise ShapeError(
            f"kernel {kernel.name!r} takes {len(kernel.inputs)} arrays ({names}), {len(shapes)} given.",
            f"call it with {names}, in this order.",
        )
    bound: dict[str, Shape] = {}
    dims: dict[str, int] = {s.name: int(values[s.name]) for s in kernel.scalars if s.name in _named(kernel)}
    for name, length in dims.items():
        if length < 0:
            raise ShapeError(f"kernel {kernel.name!r}: {name} is {length}, but it is a length.", f"pass {name} >= 0.")
    owner: dict[str | int, str] = {name: f"the scalar {name}" for name in dims}
    free: Shape | None = None
    for operand, given in zip(kernel.inputs, shapes, strict=True):
        shape = tuple(int(d) for d in given)
        bound[operand.name] = shape
        if kernel.shape_rule is not None and operand.shape is None:
            _viewed(kernel, operand, shape)
        elif operand.shape is None:
            free = _free(kernel, operand, shape, free)
            dims["size"] = math.prod(free)
        else:
            _unify(kernel, operand, shape, dims, owner)
    return bound, dims, free or ()


def _named(kernel: Kernel) -> set[str | int]:
    """Dimension names used anywhere in the operands."""
    shapes = (o.shape or () for o in (*kernel.inputs, *kernel.outputs))
    return {part_of(d)[0] if isinstance(d, str) else d for shape in shapes for d in shape}


def _free(kernel: Kernel, operand: Operand, own: Shape, free: Shape | None) -> Shape:
    """The shape of inputs of any shape, with one more of them."""
    shape = _viewed(kernel, operand, own)
    if kernel.broadcasts and free is not None:
        try:
            return np.broadcast_shapes(free, shape)
        except ValueError as error:
            raise ShapeError(
                f"kernel {kernel.name!r}: {operand.name} has shape {shape}, which does not stretch to {free} and back.",
                "pass arrays whose lengths agree, or are 1, axis by axis from the last.",
            ) from error
    if free is not None and shape != free:
        first = next(o.name for o in kernel.inputs if o.shape is None)
        raise ShapeError(
            f"kernel {kernel.name!r}: {operand.name} has shape {shape}, but {first} has shape {free}.",
            "pass arrays of one shape; this kernel does not broadcast.",
        )
    return shape


def _viewed(kernel: Kernel, operand: Operand, own: Shape) -> Shape:
    """The shape that counts: that of the view, if there is one, and it names elements of the array alone."""
    view = operand.view
    if view is None:
        return own
    low, high = view.bounds()
    if low < 0 or high >= math.prod(own):
        raise ShapeError(
            f"kernel {kernel.name!r}: {operand.name} has {math.prod(own)} elements, but its view names the elements "
            f"{low} to {high}.",
            "pass the array that the view is of.",
        )
    return view.shape


def _unify(kernel: Kernel, operand: Operand, shape: Shape, dims: dict[str, int], owner: dict[str | int, str]) -> None:
    declared = operand.shape or ()
    text = "(" + ", ".join(str(d) for d in declared) + ")"
    if len(shape) != len(declared):
        raise ShapeError(
            f"kernel {kernel.name!r}: {operand.name} has shape {shape}, but its {len(declared)} dimensions are {text}.",
            f"reshape {operand.name} to {text}.",
        )
    for length, name in zip(shape, declared, strict=True):
        expected = _length(name, dims) if isinstance(name, int) or "/" in name else dims.setdefault(name, length)
        if length != expected:
            known = f"is fixed at {name}" if isinstance(name, int) else f"is {expected}"
            known += f" in {owner[name]}" if name in owner else ""
            raise ShapeError(
                f"kernel {kernel.name!r}: {operand.name} has shape {shape} for {text}, but {name} {known}.",
                f"give {operand.name} the length {expected} there.",
            )
        if isinstance(name, str) and "/" not in name:
            owner.setdefault(name, operand.name)


def _outputs(
    kernel: Kernel, bound: Mapping[str, Shape], values: Mapping[str, Number], dims: Mapping[str, int], free: Shape
) -> dict[str, Shape]:
    """The shapes of the outputs, by the kernel's own rule where it has one."""
    if kernel.shape_rule is None:
        left = without_axes(free, kernel.reduces) if kernel.reduces else free
        return {operand.name: _output(operand, dims, left) for operand in kernel.outputs}
    seen = {o.name: bound[o.name] if o.view is None else o.view.shape for o in kernel.inputs}
    names = (operand.name for operand in kernel.outputs)
    return dict(zip(names, kernel.shape_rule(seen, values), strict=True))


def _output(operand: Operand, dims: Mapping[str, int], free: Shape) -> Shape:
    if operand.shape is None:
        return free
    return tuple(_length(d, dims) for d in operand.shape)


def reduced_axes(shape: Shape, axes: Sequence[int]) -> tuple[int, ...]:
    """The axes as numbers from 0, in order; a ShapeError where an array of that shape has no such axes."""
    rank = len(shape)
    listed = sorted({axis % rank for axis in axes if -rank <= axis < rank}) if rank else []
    if len(listed) != len(axes):
        raise ShapeError(
            f"an array of shape {shape} has not the axes {', '.join(map(str, axes))}, each once.",
            f"name axes from {-rank} to {rank - 1}, each once." if rank else "pass an array with at least one axis.",
        )
    return tuple(listed)


def without_axes(shape: Shape, axes: Sequence[int]) -> Shape:
    """The lengths of the other axes."""
    gone = reduced_axes(shape, axes)
    return tuple(length for axis, length in enumerate(shape) if axis not in gone)


def _length(dimension: str | int, dims: Mapping[str, int]) -> int:
    if isinstance(dimension, int):
        return dimension
    name, parts = part_of(dimension)
    return ceil_div(dims[name], parts)


def _scalars(kernel: Kernel, variant: DType, passed: Mapping[str, Number]) -> dict[str, Number]:
    declared = {s.name: s for s in kernel.scalars}
    unknown = sorted(set(passed) - set(declared))
    if set(unknown) & {o.name for o in kernel.inputs}:
        raise InputError(
            f"kernel {kernel.name!r}: {', '.join(unknown)} passed by name, but arrays go by position.",
            f"call {usage(kernel)}.",
        )
    if unknown:
        offer = f"its scalars are {', '.join(declared)}" if declared else "it takes none"
        raise InputError(
            f"kernel {kernel.name!r} has no scalar {', '.join(map(repr, unknown))}; {offer}.",
            "remove or rename it.",
        )
    values: dict[str, Number] = {}
    for name, scalar in declared.items():
        value = passed.get(name, scalar.default)
        if value is None:
            raise InputError(f"kernel {kernel.name!r} needs the scalar {name!r}.", f"pass {name}=...")
        values[name] = _number(kernel, scalar, value, variant)
    return values


def _number(kernel: Kernel, scalar: Scalar, value: Number, variant: DType) -> Number:
    """The number as the device will see it: rounded to its type here, so that every backend starts from one value."""
    kind = variant if scalar.dtype == "T" else DTYPES[scalar.dtype]
    rounded = None
    if is_number(kernel, scalar, value):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            rounded = _rounded(value, kind)
    if rounded is not None:
        return rounded
    raise DTypeError(
        f"kernel {kernel.name!r}: scalar {scalar.name} is {value!r}, which is not a {kind.numpy} number.",
        f"pass {scalar.name} as a number that {kind.numpy} can hold.",
    )


def _rounded(value: Number, kind: DType) -> Number | None:
    """The number in its type; None for what an integer type cannot hold."""
    if kind.is_float:
        with np.errstate(over="ignore"):
            return float(np.asarray(float(value), dtype=kind.numpy))
    whole = int(value)
    bits = 1 if kind.kind == "b" else 8 * kind.size
    low, high = (0, 1 << bits) if kind.kind in "ub" else (-1 << (bits - 1), 1 << (bits - 1))
    return whole if whole == value and low <= whole < high else None
