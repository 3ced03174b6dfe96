"""Fourier transforms planned once: tables on the device, scale and shapes fixed, ready to be recorded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from dashi.errors import DTypeError, InputError, ShapeError
from dashi.fft._composed import Composition, LineTransforms, require_line
from dashi.fft._room import require_bytes
from dashi.kernels.fft._roots import is_length, real_table, table
from dashi.kernels.portable import reciprocal, sqrt
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import Shape

Kind = Literal["fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fft3", "ifft3", "rfft3", "irfft3"]
Norm = Literal["backward", "ortho", "forward"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
NORMS: Final = ("backward", "ortho", "forward")


@dataclass(frozen=True, eq=False)
class Plan:
    """A transform on one device. `shape` is that of the field in space: of the complex array for fft, ifft, fft2 and
    ifft2, of the real array for the others; axes before those transformed are batches.

    Arrays on devices hold complex numbers as pairs: `source_shape` and `target_shape` end with 2 where they are
    complex. `steps` binds the transform to two arrays, to be recorded by `device.program`, as often as wanted.
    """

    device: Device
    kind: Kind
    shape: Shape
    dtype: np.dtype[Any]
    axis: int
    scale: float
    tables: tuple[Array, ...]
    tuning: str | None = None
    portable: bool = True
    composition: Composition | None = None
    """The steps of a transform that no kernel does by itself."""

    @property
    def source_shape(self) -> Shape:
        """The shape of what is transformed."""
        return self._modes if self.kind.startswith("irfft") else self._space

    @property
    def target_shape(self) -> Shape:
        """The shape of the result."""
        return self._modes if self.kind.startswith("rfft") else self._space

    def steps(self, source: Array, target: Array | None = None) -> list[Step]:
        """The transform bound to arrays of the device; the target is made unless given: `steps[-1].outputs[0]`."""
        if source.shape != self.source_shape or source.dtype.numpy != self.dtype:
            raise ShapeError(
                f"this {self.kind} takes {self.dtype} of shape {self.source_shape}, not {source!r}.",
                "pass such an array, or plan for another shape.",
            )
        result = target if target is not None else self.device.empty(self.target_shape, self.dtype)
        if result.shape != self.target_shape or result.dtype.numpy != self.dtype:
            raise ShapeError(
                f"this {self.kind} makes {self.dtype} of shape {self.target_shape}, not {result!r}.",
                "pass such an array as target, or none.",
            )
        if self.composition is not None:
            return self.composition.steps(source, result)
        name, scalars = self._call()
        folded = self.device.part(source, 0, self._folded(self.source_shape))
        folded_result = self.device.part(result, 0, self._folded(self.target_shape))
        return [self.device.bind(name, folded, *self.tables, out=folded_result, tuning=self.tuning, **scalars)]

    def run(self, source: Array) -> Array:
        """The transform of an array of the device, now."""
        target = self.device.empty(self.target_shape, self.dtype)
        with self.device.program(self.steps(source, target), label=self.kind) as program:
            program.run()
        return target

    @property
    def _space(self) -> Shape:
        return self.shape if "rfft" in self.kind else (*self.shape, 2)

    @property
    def _modes(self) -> Shape:
        return (*self.shape[:-1], self.shape[-1] // 2 + 1, 2)

    def _folded(self, shape: Shape) -> Shape:
        """The shape that the kernel wants: batches as one axis, and lines of complex transforms between two."""
        if self.kind.endswith("2"):
            last = len(shape) - len(self.shape) + 2
            return (math.prod(shape[:-last]), *shape[-last:])
        if "rfft" in self.kind:
            return (math.prod(self.shape[:-1]), *shape[len(self.shape) - 1 :])
        axis = self.axis
        return (math.prod(self.shape[:axis]), self.shape[axis], math.prod(self.shape[axis + 1 :]), 2)

    def _call(self) -> tuple[str, dict[str, Any]]:
        if self.kind in ("rfft", "rfft2"):
            return self.kind, {"modes": self.shape[-1] // 2 + 1, "scale": self.scale}
        if self.kind in ("irfft", "irfft2"):
            return self.kind, {"scale": self.scale}
        inverse = self.kind.startswith("i")
        name = self.kind.removeprefix("i") + ("" if self.portable else "_fast")
        return name, {"inverse": int(inverse), "scale": self.scale}


def plan(
    device: Device,
    shape: int | Shape,
    kind: Kind = "fft2",
    *,
    dtype: Any = np.float32,
    axis: int = -1,
    norm: Norm | None = None,
    tuning: str | None = None,
    portable: bool = True,
) -> Plan:
    """Plans a transform of fields of this shape: see `Plan`. `dtype` is float32 or float64, `axis` the one along which
    fft and ifft transform, `norm` as NumPy's: where the factor 1/n goes. fft2 and ifft2 of float32 may do without
    being `portable`: a little faster, with the device's bits."""
    sizes = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    real = np.dtype(dtype)
    if kind not in KINDS:
        raise InputError(f"there is no transform {kind!r}.", f"use one of {', '.join(KINDS)}.")
    if real.name not in ("float32", "float64"):
        raise DTypeError(f"there are no transforms of {real}.", "use float32 or float64 (of the parts, if complex).")
    if not portable and (kind not in ("fft2", "ifft2") or real.name != "float32"):
        raise InputError(f"{kind} of {real} is always portable.", "leave `portable` away.")
    axes = _axes(kind, sizes, axis)
    lengths = [sizes[a] for a in axes]
    for n in lengths:
        require_line(n)
    scale = scale_of(math.prod(lengths), "i" if kind.startswith("i") else "", norm, real)
    _require_room(device, kind, sizes, real)
    if not kind.endswith("3") and all(is_length(n) for n in lengths):
        return Plan(device, kind, sizes, real, axes[-1], scale, _tables(device, kind, lengths, real), tuning, portable)
    if not portable or tuning is not None:
        raise InputError(
            f"{kind} of {lengths} is composed of several kernels: it is portable, and has no tunings.",
            "leave `portable` and `tuning` away.",
        )
    composition = Composition(
        LineTransforms(device, real, {}), sizes, axes, kind.startswith("i"), "rfft" in kind, scale
    )
    require_bytes(device, composition.bytes, f"{kind} of {sizes}")
    composition.prepare()
    return Plan(device, kind, sizes, real, axes[-1], scale, (), composition=composition)


def _require_room(device: Device, kind: Kind, sizes: Shape, real: np.dtype[Any]) -> None:
    """Refuses a transform whose source and target alone do not fit the device."""
    parts = 1 if "rfft" in kind else 2
    require_bytes(device, (parts + 2) * math.prod(sizes) * real.itemsize, f"{kind} of {sizes}")


def _tables(device: Device, kind: Kind, lengths: list[int], real: np.dtype[Any]) -> tuple[Array, ...]:
    """The factors along the last axis, and along the one before it. Sides whose tables are the same share one: what a
    pass has in its caches serves the next."""
    last, others = lengths[-1], lengths[:-1]
    if "rfft" in kind:
        tables = [real_table(last, real), *(table(n, real) for n in others)]
    else:
        tables = [table(last, real, "rows" if others else "lines"), *(table(n, real, "columns") for n in others)]
    arrays: dict[bytes, Array] = {}
    for values in tables:
        if values.tobytes() not in arrays:
            arrays[values.tobytes()] = device.array(values)
    return tuple(arrays[values.tobytes()] for values in tables)


def _axes(kind: Kind, shape: Shape, axis: int) -> tuple[int, ...]:
    axes = int(kind[-1]) if kind[-1].isdigit() else 1
    if len(shape) < axes:
        raise ShapeError(f"{kind} transforms {axes} axes; shape {shape} has {len(shape)}.", "add an axis.")
    if axes > 1 or "rfft" in kind:
        if axis not in (-1, len(shape) - 1):
            raise InputError(f"a planned {kind} transforms the last axes, not axis {axis}.", "leave `axis` away.")
        return tuple(range(len(shape) - axes, len(shape)))
    if not -len(shape) <= axis < len(shape):
        raise ShapeError(f"shape {shape} has no axis {axis}.", f"use {-len(shape)} to {len(shape) - 1}.")
    return (axis % len(shape),)


def scale_of(n: int, direction: str, norm: str | None, real: np.dtype[Any]) -> float:
    """The factor of a transform of n values in all, correctly rounded (1/sqrt(n): of the rounded root)."""
    chosen = norm or "backward"
    if chosen not in NORMS:
        raise InputError(f"there is no norm {norm!r}.", f"use one of {', '.join(NORMS)}.")
    count = np.asarray(n, real)
    if chosen == "ortho":
        return float(reciprocal(sqrt(count)))
    return float(reciprocal(count)) if (chosen == "forward") != (direction == "i") else 1.0
