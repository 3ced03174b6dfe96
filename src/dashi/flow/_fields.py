"""Trajectories as Zarr (version 3, without compression), so that xarray opens them: one file for each frame of a field.

Data come first and the metadata that count them after; every file is the old one or the new one. So whoever looks,
also after a crash, sees whole frames only. https://zarr-specs.readthedocs.io/en/latest/v3/core/v3.0.html
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from dashi.errors import FileError
from dashi.io._files import do_together, make_durable, open_plain, read_plain, unwritable, write_atomic, write_text
from dashi.io._memory import require_room
from dashi.io._parts import remove
from dashi.types import HostArray, Shape

_META: Final = "zarr.json"
_LARGEST_META: Final = 1 << 24
_LONGEST: Final = 1 << 26
"""Entries of a line of numbers."""
_TYPES: Final = ("float32", "float64", "int64")
_PIECE: Final = 1 << 24
_RUN: Final = 256
"""Entries of a file of a series."""
Octets = bytes | memoryview
_AGAIN: Final = "get it again, or open it with xarray and save one frame with numpy.save."


@dataclass(frozen=True, eq=False)
class Variable:
    """An array of the store: its dimensions, without the first if it grows, and what its values mean."""

    dims: tuple[str, ...]
    dtype: str
    shape: Shape
    """Without the axis that grows."""
    attributes: Mapping[str, Any]
    grows: str = ""
    """The name of the first axis, if the array grows along it."""
    each: int = 1
    """Entries of a file along that axis."""


class FieldStore:
    """A Zarr group whose arrays grow. `lengths` says how much of each an earlier run left that is good."""

    def __init__(
        self, path: Path, variables: Mapping[str, Variable], attributes: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        self.path = path
        self._variables = dict(variables)
        self._attributes = dict(attributes)
        self._lengths = {name: 0 for name, v in variables.items() if v.grows}
        self._metadata_written: dict[str, str] = {}
        self._not_durable: list[Path] = []
        """Frames that a loss of power could still take, until `make_durable`; at the latest before they count."""
        self._not_written: list[Callable[[], object]] = []
        """Writes of coordinates and series, that `commit` does."""
        if path.exists() and not resume:
            _remove(path)
        if not (path / _META).exists():
            # A group without arrays, before any data: whatever stops the run, the folder is known as a store.
            write_text(path / _META, json.dumps(self._root({})))

    def put(self, name: str, values: HostArray) -> None:
        """A whole array that does not grow, such as a coordinate; it is written before it counts."""
        one = self._variables[name]
        place = (0,) * max(1, len(one.shape))
        self._not_written.append(partial(self._write, name, place, np.asarray(values, one.dtype)))

    def frame(self, name: str, index: int, values: HostArray) -> None:
        """Entry `index` of an array with one entry in each file."""
        self.frames(index, {name: values})

    def frames(self, index: int, fields: Mapping[str, HostArray]) -> None:
        """Entry `index` of several such arrays, by their names, whose files are written at the same time."""
        writes = [partial(self._write_frame, name, index, values) for name, values in fields.items()]
        self._not_durable += do_together(writes) if len(writes) > 1 else [write() for write in writes]
        for name in fields:
            self._lengths[name] = index + 1

    def _write_frame(self, name: str, index: int, values: HostArray) -> Path:
        one = self._variables[name]
        place = (index, *(0 for _ in one.shape))
        return self._write(name, place, np.asarray(values, one.dtype)[None], durable=False)

    def frame_from(self, name: str, index: int, pieces: Iterable[Octets]) -> None:
        """Entry `index` of an array with one entry in each file, from pieces of its bytes: little-endian, in C
        order."""

        def fill(opened: Any) -> None:
            opened.writelines(pieces)

        file = self._file(name, (index, *(0 for _ in self._variables[name].shape)))
        write_atomic(file, fill, durable=False)
        self._not_durable.append(file)
        self._lengths[name] = index + 1

    def series(self, name: str, values: HostArray) -> None:
        """All entries of an array so far, which are written before they count; files that are full already are not
        written again."""
        variable = self._variables[name]
        entries = np.asarray(values, variable.dtype).reshape(-1, *variable.shape)
        for chunk in range(self._lengths[name] // variable.each, -(-len(entries) // variable.each)):
            part = entries[chunk * variable.each : (chunk + 1) * variable.each]
            padded = np.zeros((variable.each, *variable.shape), variable.dtype)
            padded[: len(part)] = part
            place = (chunk, *(0 for _ in variable.shape))
            self._not_written.append(partial(self._write, name, place, padded))
        self._lengths[name] = len(entries)

    def count(self, name: str, entries: int) -> None:
        """So many entries of an array with one entry in each file are there: those that earlier runs left, too."""
        self._lengths[name] = entries

    def missing(self, name: str, count: int) -> int | None:
        """The first of so many entries of an array, with one entry in each file, that is not there in whole."""
        variable = self._variables[name]
        nbytes = math.prod(variable.shape) * np.dtype(variable.dtype).itemsize
        for index in range(count):
            file = self.path.joinpath(name, "c", str(index), *("0" for _ in variable.shape))
            if not file.is_file() or file.stat().st_size != nbytes:
                return index
        return None

    def make_durable(self) -> None:
        """Waits until the frames are on the disk."""
        do_together([partial(make_durable, file) for file in self._not_durable])
        self._not_durable.clear()

    def commit(self) -> None:
        """Makes what was written part of the store: data are on the disk before the metadata that count them, and those
        of arrays before those of the group."""
        do_together([*(partial(make_durable, file) for file in self._not_durable), *self._not_written])
        self._not_durable.clear()
        self._not_written.clear()
        metadata = {name: metadata_of(one, self._lengths.get(name, 0)) for name, one in self._variables.items()}
        texts = {name: json.dumps(document) for name, document in metadata.items()}
        changed = {name: text for name, text in texts.items() if self._metadata_written.get(name) != text}
        do_together([partial(write_text, self.path / name / _META, text) for name, text in changed.items()])
        self._metadata_written |= changed
        write_text(self.path / _META, json.dumps(self._root(metadata)))

    def _root(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "zarr_format": 3,
            "node_type": "group",
            "attributes": self._attributes,
            "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": dict(metadata)},
        }

    def _write(self, name: str, place: tuple[int, ...], values: HostArray, *, durable: bool = True) -> Path:
        data = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
        file = self._file(name, place)

        def fill(opened: Any) -> None:
            opened.write(data)

        write_atomic(file, fill, durable=durable)
        return file

    def _file(self, name: str, place: tuple[int, ...]) -> Path:
        return self.path.joinpath(name, "c", *(str(i) for i in place))


def metadata_of(variable: Variable, length: int) -> dict[str, Any]:
    """The metadata of an array with so many entries along the axis that grows."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [length, *variable.shape] if variable.grows else [*variable.shape],
        "data_type": variable.dtype,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [variable.each, *variable.shape] if variable.grows else [*variable.shape]},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0 if variable.dtype == "int64" else "NaN",
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "dimension_names": [variable.grows, *variable.dims] if variable.grows else [*variable.dims],
        "attributes": dict(variable.attributes),
    }


def series_variable(grows: str, dims: Sequence[str], shape: Shape, dtype: str, **attributes: Any) -> Variable:
    """An array that grows by small entries, many to a file."""
    return Variable(tuple(dims), dtype, shape, attributes, grows, _RUN)


def _remove(path: Path) -> None:
    """An earlier run's store; anything else is left alone."""
    try:
        if not (path / _META).is_file() and any(path.iterdir()):
            raise FileError(f"{path} is there already and is no Zarr group.", "choose another place with `out=`.")
        remove(path)
    except OSError as error:
        raise unwritable(path, error) from error


def read_frame(path: Path, name: str = "vorticity", index: int = -1) -> HostArray:
    """One frame of a field of a store that this module wrote, read without trust."""
    file = path / name / _META
    data = read_plain(file, _LARGEST_META, within=path)
    shape, dtype = _checked(file, data)
    at = index if index >= 0 else shape[0] + index
    if not 0 <= at < shape[0]:
        raise FileError(f"{path} holds {shape[0]} frames of {name}, not number {index}.", "choose another frame.")
    nbytes = math.prod(shape[1:]) * dtype.itemsize
    chunk = path.joinpath(name, "c", str(at), *("0" for _ in shape[1:]))
    return np.frombuffer(_octets(path, chunk, nbytes), dtype).reshape(shape[1:]).astype(dtype.newbyteorder("="))


def read_attributes(path: Path) -> dict[str, Any]:
    """What a store says of itself, read without trust."""
    attributes = _document(path, path / _META).get("attributes")
    if not isinstance(attributes, dict):
        raise FileError(f"{path / _META} is no metadata of a Zarr group: it is damaged or cut short.", _AGAIN)
    return cast("dict[str, Any]", attributes)


def read_line(path: Path, name: str) -> HostArray:
    """A series or coordinate of numbers of a store that this module wrote, read without trust."""
    file = path / name / _META
    metadata = _document(path, file)
    try:
        (length,) = metadata["shape"]
        (each,) = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        codecs = [codec["name"] for codec in metadata["codecs"]]
        dtype = metadata["data_type"]
    except (ValueError, KeyError, TypeError) as error:
        raise FileError(f"{file} is no metadata of a line of numbers: it is damaged or cut short.", _AGAIN) from error
    plain = all(type(n) is int and 0 <= n <= _LONGEST for n in (length, each)) and (each or not length)
    if not plain or dtype not in _TYPES or codecs != ["bytes"]:
        raise FileError(f"{file} describes an array that this program does not read.", _AGAIN)
    kind = np.dtype(dtype).newbyteorder("<")
    parts = [
        _octets(path, path / name / "c" / str(j), each * kind.itemsize)
        for j in range(-(-length // each) if each else 0)
    ]
    return np.frombuffer(b"".join(parts), kind)[:length].astype(kind.newbyteorder("="))


class StoredFields:
    """A store of which it is known beforehand what its arrays must be, read without trust and in pieces: metadata other
    than those that this module writes for such arrays are refused."""

    def __init__(self, path: Path, variables: Mapping[str, Variable], lengths: Mapping[str, int]) -> None:
        self.path, self._variables, self._lengths = path, variables, lengths
        for name, variable in variables.items():
            file = path / name / _META
            if _document(path, file) != metadata_of(variable, lengths.get(variable.grows, 0)):
                raise FileError(f"{file} describes another array than this run has.", "run it again.")

    def frame(self, name: str, index: int) -> Iterator[bytes]:
        """The bytes of entry `index` of an array with one entry in each file, in pieces."""
        variable = self._variables[name]
        file = self.path.joinpath(name, "c", str(index), *("0" for _ in variable.shape))
        nbytes = math.prod(variable.shape) * np.dtype(variable.dtype).itemsize
        if not file.exists():
            raise FileError(f"{file} is missing: the store is damaged or cut short.", "run it again.")
        with open_plain(file, nbytes, within=self.path) as (opened, size):
            if size != nbytes:
                raise FileError(f"{file} has {size} bytes instead of {nbytes}: it is damaged or cut short.", _AGAIN)
            while piece := opened.read(_PIECE):
                yield piece

    def series(self, name: str) -> HostArray:
        """All entries of an array that grows by many to a file."""
        variable, length = self._variables[name], self._lengths[self._variables[name].grows]
        kind = np.dtype(variable.dtype).newbyteorder("<")
        nbytes = variable.each * math.prod(variable.shape) * kind.itemsize
        require_room(-(-length // variable.each) * nbytes, str(self.path / name))
        zeros = ["0" for _ in variable.shape]
        parts = [
            np.frombuffer(_octets(self.path, self.path.joinpath(name, "c", str(j), *zeros), nbytes), kind)
            for j in range(-(-length // variable.each))
        ]
        whole: HostArray = np.concatenate(parts).reshape(-1, *variable.shape)[:length]
        return whole.astype(kind.newbyteorder("="))


def _document(store: Path, file: Path) -> dict[str, Any]:
    data = read_plain(file, _LARGEST_META, within=store)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file} is no metadata of Zarr: it is damaged or cut short.", _AGAIN) from error
    if not isinstance(document, dict):
        raise FileError(f"{file} is no metadata of Zarr: it is damaged or cut short.", _AGAIN)
    return cast("dict[str, Any]", document)


def _octets(store: Path, chunk: Path, nbytes: int) -> bytes:
    if not chunk.exists():
        raise FileError(f"{chunk} is missing: the store is damaged or cut short.", _AGAIN)
    with open_plain(chunk, nbytes, within=store) as (opened, size):
        require_room(nbytes, str(chunk))
        if size != nbytes:
            raise FileError(f"{chunk} has {size} bytes instead of {nbytes}: it is damaged or cut short.", _AGAIN)
        return opened.read(nbytes)


def _checked(file: Path, data: bytes) -> tuple[Shape, np.dtype[Any]]:
    """Shape and type from the metadata of an array, if they are what this module writes."""
    try:
        metadata = cast("dict[str, Any]", json.loads(data))
        shape = tuple(metadata["shape"])
        chunks = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
        codecs = [codec["name"] for codec in metadata["codecs"]]
        dtype = metadata["data_type"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"{file} is no metadata of a Zarr array: it is damaged or cut short.", _AGAIN) from error
    plain = all(type(n) is int and 0 <= n <= 1 << 40 for n in shape) and 3 <= len(shape) <= 4
    if not plain or dtype not in _TYPES or codecs != ["bytes"] or chunks != (1, *shape[1:]):
        raise FileError(f"{file} describes an array that this program does not read.", _AGAIN)
    if math.prod(shape[1:]) > 1 << 34:
        raise FileError(f"{file} claims frames of shape {shape[1:]}.", _AGAIN)
    return shape, np.dtype(dtype).newbyteorder("<")
