"""What a rollout reads: states and operators from files, checked before any device sees them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certificate import STATE, Certificate, InputRecord, Source, array_digest
from dashi.core.operators._catalogue import operator_class, restore
from dashi.core.operators.operator import Operator, Parameter, require_finite
from dashi.errors import CertificateError, DTypeError, FileError, InputError
from dashi.io._run_reading import named_file
from dashi.io.arrays import read_array, read_arrays, write_arrays
from dashi.io.operators import StoredOperator, read_operator, write_operator
from dashi.types import HostArray

_NUMBERS: Final = "fiub"
_ORIGINAL: Final = "get the original certificate, or make a new one."


def read_source(path: Path, key: str) -> Source:
    """An array of a file, with where it came from."""
    return Source(path, key, read_array(named_file(path), key))


def run_dtype(asked: str | None, z0: HostArray) -> np.dtype[Any]:
    """The element type of a run: the one asked for, else that of the initial states."""
    if asked is not None:
        return np.dtype(asked)
    if z0.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise DTypeError(
            f"z0 is an array of {z0.dtype}; a run has states of float32 or float64.",
            "say which with `dtype=`, or save z0 as one of them.",
        )
    return z0.dtype


def as_floats(name: str, values: HostArray, dtype: np.dtype[Any]) -> HostArray:
    """The values as finite numbers of the run's element type."""
    if values.dtype.kind not in _NUMBERS:
        raise DTypeError(f"{name} is an array of {values.dtype}, not of numbers.", "save it as float32 or float64.")
    if values.dtype.kind == "f":
        require_finite(name, values)
    with np.errstate(over="ignore"):
        floats: HostArray = np.ascontiguousarray(values.astype(dtype)).reshape(values.shape)
    if not np.isfinite(floats).all():  # pyright: ignore[reportArgumentType] - floats by now
        raise InputError(f"{name} has values that {dtype} cannot hold.", "use `dtype=float64`.")
    return floats


def operator_sources(path: Path) -> tuple[StoredOperator, dict[str, Source]]:
    """An operator's file as it stands, and its arrays as sources."""
    stored = read_operator(path)
    return stored, {name: Source(path, name, values) for name, values in stored.arrays.items()}


def make_operator(
    kind: str, version: int, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter], dtype: np.dtype[Any]
) -> Operator:
    """The operator of that kind; its arrays of floats become those of the run. Refuses another version's."""
    current = operator_class(kind).version
    if version != current:
        raise InputError(
            f"made by version {version} of {kind}; this dashi computes version {current}: other bits.",
            "use the dashi that made it, or make it anew with this one.",
        )
    floats = {n: as_floats(n, v, dtype) if v.dtype.kind == "f" else v for n, v in arrays.items()}
    return restore(kind, floats, parameters)


def save_operator(path: Path, operator: Operator) -> None:
    """Keeps an operator as one .npz file that a rollout takes as its `operator`."""
    write_operator(path, StoredOperator(operator.kind, operator.version, operator.arrays, operator.parameters))


def load_operator(path: Path, dtype: Any = None) -> Operator:
    """The operator that a file describes, in the element type of its arrays unless another is named."""
    stored, _ = operator_sources(path)
    floats = [values.dtype for values in stored.arrays.values() if values.dtype.kind == "f"]
    kind = np.dtype(dtype) if dtype is not None else np.result_type(*floats) if floats else np.dtype(np.float64)
    return make_operator(stored.kind, stored.version, stored.arrays, stored.parameters, kind)


def save_inputs(path: Path, operator: Operator, z0: HostArray) -> dict[str, Source]:
    """Puts inputs, as they are used, into one file: a certificate beside it can be verified wherever both are moved."""
    arrays = {STATE: z0, **operator.arrays}
    write_arrays(path, arrays)
    return {name: Source(path, name, values) for name, values in arrays.items()}


def certified_inputs(certificate: Certificate, folder: Path, inputs: Path | None) -> tuple[Operator, HostArray]:
    """The operator and the initial states that a certificate in `folder` names, found and held to their digests."""
    sources = {one.name: _certified(one, folder, inputs) for one in certificate.inputs}
    dtype = np.dtype(certificate.dtype)
    z0 = as_floats(STATE, sources.pop(STATE), dtype)
    stated = certificate.operator
    try:
        operator = make_operator(stated.kind, stated.version, sources, stated.parameters, dtype)
    except InputError as error:
        raise CertificateError(f"the operator cannot be made again: {error.what}", error.fix) from error
    missing = sorted(set(operator.parameters) - set(stated.parameters))
    if missing:
        raise CertificateError(f"the certificate does not say what {missing[0]!r} of its operator is.", _ORIGINAL)
    if certificate.portable != operator.portable:
        raise CertificateError(
            "the certificate is of a run that is not portable: its hashes are those of one device and driver alone.",
            "certify a run without `portable=False`.",
        )
    return operator, z0


def _certified(record: InputRecord, folder: Path, inputs: Path | None) -> HostArray:
    path = locate(record.path, folder, inputs)
    if not os.path.isfile(path):  # says no to names that the system refuses, where Path raises
        raise FileError(
            f"the input {record.name!r} is not there: {path}.",
            "put it there, or say in which folder it is with `inputs=`.",
        )
    if path.suffix == ".npy" and record.key != record.name:
        raise CertificateError(f"{path} has one array and no key {record.key!r}.", _ORIGINAL)
    values = read_arrays(path, [record.key])[record.key] if path.suffix != ".npy" else read_array(path, record.key)
    if (values.dtype.name, values.shape) != (record.dtype, record.shape):
        raise CertificateError(
            f"{path}: {record.key} is {values.dtype.name} of shape {values.shape}; the certificate says {record.dtype} "
            f"of shape {record.shape}.",
            "find the file that was used (`inputs=` looks in another folder).",
        )
    if array_digest(values) != record.digest:
        raise CertificateError(
            f"{path}: {record.key} is not the {record.name} of this certificate: its digest is other.",
            "find the file that was used (`inputs=` looks in another folder).",
        )
    return values


def locate(recorded: str, folder: Path, inputs: Path | None) -> Path:
    """Where a certificate's input is: below its folder, below the working folder, or by its name in `inputs`.

    A certificate may come from anyone, so its paths lead nowhere else.
    """
    path = Path(recorded)
    if inputs is not None:
        return inputs / path.name
    target = (folder / path).resolve()
    allowed = (folder.resolve(), Path.cwd().resolve())
    if path.is_absolute() or "\0" in recorded or not any(target.is_relative_to(root) for root in allowed):
        raise CertificateError(
            f"the certificate names an input outside of its folder: {recorded}.",
            f"if you trust it, say where the input is: `inputs={Path(recorded).parent}`.",
        )
    return named_file(folder / path)
