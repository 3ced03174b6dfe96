"""The functions of `dashi.fft`: NumPy's names and arguments, over NumPy arrays or arrays of a device.

NumPy arrays may have any axes and lengths that NumPy takes, as long as the lengths transformed are at most
32,768; float32 and complex64 are transformed in fp32, everything else in fp64. Arrays of a device are transformed
there, complex numbers as pairs (..., 2), along their last axes (fft and ifft: any), and stay there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.fft.plans import KINDS, Kind, Norm, Plan, plan
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.using import using_device

Host = np.ndarray[Any, Any]
MOST_AXES: Final = 3
_NUMBERS: Final = {2: "two", 3: "three"}


def fft(
    a: Any, n: int | None = None, axis: int = -1, norm: Norm | None = None, *, device: Device | str | None = None
) -> Any:
    """The complex transform along one axis: sum of a_m exp(-2 pi i m k / n)."""
    return _transform_1d("fft", a, n, axis, norm, device)


def ifft(
    a: Any, n: int | None = None, axis: int = -1, norm: Norm | None = None, *, device: Device | str | None = None
) -> Any:
    """The inverse of `fft`."""
    return _transform_1d("ifft", a, n, axis, norm, device)


def rfft(
    a: Any, n: int | None = None, axis: int = -1, norm: Norm | None = None, *, device: Device | str | None = None
) -> Any:
    """The modes 0 ... n/2 of real values along one axis."""
    return _transform_1d("rfft", a, n, axis, norm, device)


def irfft(
    a: Any, n: int | None = None, axis: int = -1, norm: Norm | None = None, *, device: Device | str | None = None
) -> Any:
    """The inverse of `rfft`: n real values (2 (m - 1) unless given) from m modes. Imaginary parts of mode 0, and of
    mode n/2 for even n, are ignored."""
    return _transform_1d("irfft", a, n, axis, norm, device)


def fft2(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm | None = None,
    *,
    device: Device | str | None = None,
) -> Any:
    """The complex transform along two axes."""
    return _transform_2d("fft2", a, s, axes, norm, device)


def ifft2(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm | None = None,
    *,
    device: Device | str | None = None,
) -> Any:
    """The inverse of `fft2`."""
    return _transform_2d("ifft2", a, s, axes, norm, device)


def rfft2(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm | None = None,
    *,
    device: Device | str | None = None,
) -> Any:
    """The modes of real fields: `rfft` along the last of the axes, then `fft` along the other."""
    return _transform_2d("rfft2", a, s, axes, norm, device)


def irfft2(
    a: Any,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: Norm | None = None,
    *,
    device: Device | str | None = None,
) -> Any:
    """The inverse of `rfft2`; the length along the last of the axes is 2 (m - 1) unless `s` says otherwise."""
    return _transform_2d("irfft2", a, s, axes, norm, device)


def fftn(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm | None = None, *,
    device: Device | str | None = None,
) -> Any:  # fmt: skip
    """The complex transform along up to three axes: all of them, or the last ones that `s` has lengths for."""
    return _transform_nd("fft", a, s, axes, norm, device)


def ifftn(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm | None = None, *,
    device: Device | str | None = None,
) -> Any:  # fmt: skip
    """The inverse of `fftn`."""
    return _transform_nd("ifft", a, s, axes, norm, device)


def rfftn(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm | None = None, *,
    device: Device | str | None = None,
) -> Any:  # fmt: skip
    """The modes of real fields of up to three axes: `rfft` along the last of the axes, then `fft` along the others."""
    return _transform_nd("rfft", a, s, axes, norm, device)


def irfftn(
    a: Any, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm | None = None, *,
    device: Device | str | None = None,
) -> Any:  # fmt: skip
    """The inverse of `rfftn`; the length along the last of the axes is 2 (m - 1) unless `s` says otherwise."""
    return _transform_nd("irfft", a, s, axes, norm, device)


def fftfreq(n: int, d: float = 1.0) -> Host:
    """The frequencies of the modes of `fft`, in cycles per unit of the spacing d."""
    return np.fft.fftfreq(n, d)


def rfftfreq(n: int, d: float = 1.0) -> Host:
    """The frequencies of the modes of `rfft`, in cycles per unit of the spacing d."""
    return np.fft.rfftfreq(n, d)


def _transform_1d(kind: Kind, a: Any, n: int | None, axis: int, norm: Norm | None, device: Device | str | None) -> Any:
    if isinstance(a, Array):
        return _resident(kind, a, None if n is None else (n,), axis, norm, device)
    host, axes = _host(kind, a, (axis,))
    (length,) = _lengths(kind, host, axes, None if n is None else (n,))
    moved = np.moveaxis(_fitted(kind, host, axes, (length,)), axes[0], -1)
    return np.moveaxis(_computed(kind, moved, (length,), norm, device), -1, axes[0])


def _transform_nd(
    stem: Literal["fft", "ifft", "rfft", "irfft"], a: Any, s: Sequence[int] | None, axes: Sequence[int] | None,
    norm: Norm | None, device: Device | str | None,
) -> Any:  # fmt: skip
    """A transform along one to three axes, by the kind that has as many."""
    pairs = isinstance(a, Array) and stem != "rfft"
    many = len(s) if s is not None else np.ndim(a) - int(pairs)
    along = tuple(range(-many, 0)) if axes is None else tuple(int(axis) for axis in axes)
    if not 1 <= len(along) <= MOST_AXES:
        raise InputError(f"{stem}n transforms 1 to {MOST_AXES} axes, not {len(along)}.", "name some as `axes`.")
    if len(along) == 1:
        return _transform_1d(stem, a, None if s is None else int(s[0]), along[0], norm, device)
    kind: Kind = next(known for known in KINDS if known == f"{stem}{len(along)}")  # pyright: ignore[reportAssignmentType]
    return _transform_2d(kind, a, s, along, norm, device)


def _transform_2d(
    kind: Kind, a: Any, s: Sequence[int] | None, axes: Sequence[int], norm: Norm | None, device: Device | str | None
) -> Any:
    many = int(kind[-1])
    last = tuple(range(-many, 0))
    if len(axes) != many or (s is not None and len(s) != many):
        raise InputError(
            f"{kind} transforms {_NUMBERS[many]} axes, not {tuple(axes)} of lengths {s}.",
            f"pass {_NUMBERS[many]} of each.",
        )
    if isinstance(a, Array):
        if tuple(axes) != last:
            raise InputError(
                f"{kind} of an array on a device transforms its last axes, not {tuple(axes)}.", "leave `axes` away."
            )
        return _resident(kind, a, s, -1, norm, device)
    host, places = _host(kind, a, axes)
    lengths = _lengths(kind, host, places, s)
    moved = np.moveaxis(_fitted(kind, host, places, lengths), places, last)
    return np.moveaxis(_computed(kind, moved, lengths, norm, device), last, places)


def _host(kind: Kind, a: Any, axes: Sequence[int]) -> tuple[Host, tuple[int, ...]]:
    """The array in the type that is computed with, and its axes counted from the front."""
    array = np.asarray(a)
    if array.ndim < len(axes) or any(not -array.ndim <= axis < array.ndim for axis in axes):
        raise ShapeError(f"an array of shape {array.shape} has no axes {tuple(axes)}.", "name axes that it has.")
    places = tuple(axis % array.ndim for axis in axes)
    if len(set(places)) != len(places):
        raise InputError(f"the axes {tuple(axes)} are one and the same.", "name two.")
    if kind.startswith("rfft"):
        if np.iscomplexobj(array):
            raise InputError(f"{kind} takes real values, not {array.dtype}.", "use fft, or pass the real part.")
        return array.astype(np.float32 if array.dtype.name in ("float32", "float16") else np.float64), places
    single = array.dtype.name in ("float32", "float16", "complex64")
    return array.astype(np.complex64 if single else np.complex128), places


def _lengths(kind: Kind, host: Host, axes: tuple[int, ...], s: Sequence[int] | None) -> tuple[int, ...]:
    """The lengths of the field in space along the axes."""
    if s is not None:
        return tuple(int(n) for n in s)
    lengths = [host.shape[axis] for axis in axes]
    if kind.startswith("irfft"):
        lengths[-1] = 2 * (lengths[-1] - 1)
    return tuple(lengths)


def _fitted(kind: Kind, host: Host, axes: tuple[int, ...], lengths: tuple[int, ...]) -> Host:
    """The array cropped or padded with zeros at its ends, as NumPy does, so that it has these lengths in space."""
    shape = list(host.shape)
    for place, (axis, n) in enumerate(zip(axes, lengths, strict=True)):
        if n < 1:
            raise ShapeError(f"a transform of {n} values makes no sense.", "give a length of 1 or more.")
        halved = kind.startswith("irfft") and place == len(axes) - 1
        shape[axis] = n // 2 + 1 if halved else n
    if tuple(shape) == host.shape:
        return host
    padded = np.zeros(shape, host.dtype)
    common = tuple(slice(0, min(have, want)) for have, want in zip(host.shape, shape, strict=True))
    padded[common] = host[common]
    return padded


def _computed(kind: Kind, host: Host, lengths: tuple[int, ...], norm: Norm | None, device: Device | str | None) -> Host:
    """The transform along the last axes, by the device, or by NumPy where none is given."""
    if not isinstance(device, Device):
        with CpuDevice() if device is None else using_device(device) as opened:
            return _computed(kind, host, lengths, norm, opened)
    real = np.dtype(np.float32 if host.dtype in (np.float32, np.complex64) else np.float64)
    shape = (*host.shape[: -len(lengths)], *lengths)
    planned = plan(device, shape, kind, dtype=real, norm=norm)
    values = np.ascontiguousarray(host)
    if np.iscomplexobj(host):
        values = values.view(real).reshape(*host.shape, 2)
    result = planned.run(device.array(values)).numpy()
    return result if kind.startswith("irfft") else _complex(result)


def _complex(pairs: Any) -> Host:
    """Pairs (..., 2) as complex numbers."""
    kind = np.complex64 if pairs.dtype == np.float32 else np.complex128
    return pairs.view(kind)[..., 0]


def _resident(
    kind: Kind, a: Array, s: Sequence[int] | None, axis: int, norm: Norm | None, device: Device | str | None
) -> Array:
    """The transform of an array that lives on a device, as another one there."""
    if device is not None and device is not a.device and device != a.device.info.spec:
        name = device.info.name if isinstance(device, Device) else device
        raise InputError(f"{a!r} is not on {name!r}.", "leave `device` away, or copy the array over.")
    pairs = not kind.startswith("rfft")
    if pairs and (len(a.shape) < 2 or a.shape[-1] != 2):
        raise ShapeError(
            f"{kind} takes complex numbers as pairs (re, im), but the last axis of {a!r} is no pair.",
            "pass an array of shape (..., 2).",
        )
    shape = list(a.shape[:-1] if pairs else a.shape)
    count = int(kind[-1]) if kind[-1].isdigit() else 1
    if kind.startswith("irfft"):
        shape[-1] = int(s[-1]) if s is not None else 2 * (shape[-1] - 1)
    planned: Plan = plan(a.device, tuple(shape), kind, dtype=a.dtype.numpy, axis=axis, norm=norm)
    if s is not None and tuple(shape[planned.axis + 1 - count : planned.axis + 1]) != tuple(s):
        raise ShapeError(
            f"an array on a device is not cropped nor padded: it has {tuple(shape)} values, not {tuple(s)}.",
            "leave the lengths away, or make an array of those lengths.",
        )
    return planned.run(a)
