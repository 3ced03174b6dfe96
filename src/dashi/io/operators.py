"""An operator as one .npz file: its arrays by name, and `kind`, `version` and parameters as arrays without axes.

So `numpy.savez("A.npz", kind="linear", version=1, A=A)` makes one by hand. Which kinds there are is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.errors import FileError, InputError
from dashi.io.arrays import read_arrays, write_arrays
from dashi.types import HostArray

_KIND, _VERSION = "kind", "version"
_RANGE: Final = 1 << 63


@dataclass(frozen=True)
class StoredOperator:
    """What a file says of an operator."""

    kind: str
    version: int
    arrays: Mapping[str, HostArray]
    parameters: Mapping[str, int | float | str]


def write_operator(path: Path, stored: StoredOperator) -> None:
    """Keeps an operator, all or nothing."""
    for name, values in stored.arrays.items():
        if values.ndim == 0 or name in (_KIND, _VERSION) or name in stored.parameters:
            raise InputError(
                f"the array {name!r} of a {stored.kind} operator cannot be told from a parameter.",
                "give it another name, and at least one axis.",
            )
    numbers = {name: _scalar(name, value) for name, value in stored.parameters.items()}
    head = {_KIND: np.array(stored.kind), _VERSION: np.array(stored.version, np.int64)}
    write_arrays(path, {**head, **numbers, **stored.arrays})


def read_operator(path: Path) -> StoredOperator:
    """The operator that a file describes."""
    stored = read_arrays(path)
    plain = {name: values.item() for name, values in stored.items() if values.ndim == 0}
    kind, version = plain.pop(_KIND, None), plain.pop(_VERSION, None)
    if not isinstance(kind, str) or type(version) is not int:
        raise FileError(
            f"{path} describes no operator: `kind` must be text and `version` an integer.",
            "write it with numpy.savez(file, kind='linear', version=1, A=A), or name a matrix with `A=`.",
        )
    arrays = {name: values for name, values in stored.items() if values.ndim}
    return StoredOperator(kind, version, arrays, plain)


def _scalar(name: str, value: Any) -> HostArray:
    if isinstance(value, str) and value:
        return np.array(value)
    if type(value) is int and -_RANGE <= value < _RANGE:
        return np.array(value, np.int64)
    if isinstance(value, float):
        return np.array(value, np.float64)
    raise InputError(f"the parameter {name!r} cannot be kept: {value!r}.", "use a number of 64 bits, or some text.")
