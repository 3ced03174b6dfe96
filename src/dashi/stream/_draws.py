"""Arrays that a configuration describes: constants of ops, and the fields of the source, the same on every machine.

A number follows from the seed, the name of the field, the item and its index alone (`dashi.kernels` has the same draws
as the kernel `random_draw`).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import FileError, ShapeError, StreamConfigError, suggestion
from dashi.io.arrays import read_array
from dashi.kernels.random._draws import draws
from dashi.stream._model import Field, FieldSource, SourceSpec
from dashi.types import HostArray, Shape

_Numbers = Mapping[str, float]
_Values = npt.NDArray[Any]


def _integers(unit: _Values, numbers: _Numbers) -> _Values:
    low = int(numbers["low"])
    wide = unit.astype(np.float64) * (int(numbers["high"]) - low)
    return low + np.floor(wide).astype(np.int64)


def _trits(unit: _Values, numbers: _Numbers) -> _Values:
    support = numbers["support"]
    return np.where(unit < support, np.where(2 * unit < support, -1, 1), 0)


_DRAWN: Final[Mapping[str, tuple[str, Mapping[str, float], Callable[[_Values, _Numbers], _Values]]]] = {
    "normal": ("normal", {"mean": 0.0, "scale": 1.0}, lambda x, n: n["mean"] + n["scale"] * x.astype(np.float64)),
    "uniform": (
        "uniform",
        {"low": 0.0, "high": 1.0},
        lambda x, n: n["low"] + (n["high"] - n["low"]) * x.astype(np.float64),
    ),
    "integers": ("uniform", {"low": 0.0, "high": 2.0}, _integers),
    "trits": ("uniform", {"support": 2 / 3}, _trits),
}  # fmt: skip
"""Ways to draw: the kind of random numbers, the defaults of their own numbers, and what is made of them."""
_FIXED: Final[Mapping[str, Mapping[str, float]]] = {
    "constant": {"value": 0.0},
    "ramp": {"start": 0.0, "step": 1.0},
    "identity": {"scale": 1.0},
    "file": {},
}
WAYS: Final[tuple[str, ...]] = (*_DRAWN, *_FIXED)


def check_source(name: str, source: FieldSource) -> None:
    """Refuses a way that there is none, and numbers that it does not have."""
    if source.draw not in WAYS:
        raise StreamConfigError(
            f"{name}: there is no way {source.draw!r} to fill an array.",
            f"{suggestion(source.draw, WAYS)}use one of {', '.join(WAYS)}.",
        )
    known = _DRAWN[source.draw][1] if source.draw in _DRAWN else _FIXED[source.draw]
    if odd := sorted(set(source.numbers) - set(known)):
        raise StreamConfigError(
            f"{name}: {source.draw!r} has no number {', '.join(odd)}.",
            f"give it {', '.join(known)}." if known else "leave it away.",
        )
    if bool(source.path) != (source.draw == "file"):
        raise StreamConfigError(f"{name}: `path` and `draw: file` belong together.", "give both, or neither.")


def array_of(name: str, source: FieldSource, seed: int = 0, item: int = 0, *, rows: bool = False) -> HostArray:
    """The values of an array that is described so, read-only. With `rows` a file has one for each item, along its
    first axis, and they are used again where items are more."""
    check_source(name, source)
    form, draw = source.form, source.draw
    if draw == "file":
        values = _of_file(name, Path(source.path), form, item if rows else None)
    elif draw in _FIXED:
        values = _fixed(name, draw, {**_FIXED[draw], **source.numbers}, form.shape)
    else:
        kind, defaults, make = _DRAWN[draw]
        key = np.array([[seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF, zlib.crc32(name.encode()), item]], np.uint32)
        drawn = draws(key, math.prod(form.shape), 0, kind)[0]
        values = make(drawn, {**defaults, **source.numbers}).reshape(form.shape)
    result = np.ascontiguousarray(values).astype(form.element.numpy)
    result.setflags(write=False)
    return result


def items_of(source: SourceSpec, item: int) -> dict[str, HostArray]:
    """The payload of an item: what the source of a configuration gives."""
    return {name: array_of(name, one, source.seed, item, rows=True) for name, one in source.fields.items()}


def _fixed(name: str, draw: str, numbers: _Numbers, shape: Shape) -> _Values:
    if draw == "constant":
        return np.full(shape, numbers["value"])
    if draw == "ramp":
        return (numbers["start"] + numbers["step"] * np.arange(math.prod(shape))).reshape(shape)
    if len(shape) != 2:
        raise ShapeError(f"{name}: an identity has two axes, the shape is {shape}.", "give it a shape of two lengths.")
    return numbers["scale"] * np.eye(*shape)


def _of_file(name: str, path: Path, form: Field, item: int | None) -> _Values:
    values = read_array(path, name)
    if item is not None:
        if values.ndim == 0 or len(values) == 0:
            raise FileError(f"{path} holds no items for {name!r}.", "write an array with one row for each item.")
        values = values[item % len(values)]
    if values.shape != form.shape:
        raise FileError(
            f"{path} has {name!r} of shape {values.shape}, the configuration says {form.shape}.",
            "correct one of them.",
        )
    return values
