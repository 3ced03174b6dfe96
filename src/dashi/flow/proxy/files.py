"""Files of z: the numbers with the schema that lays them out. A file of another version is refused, not misread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.errors import FileError, InputError
from dashi.flow.grid import Floats
from dashi.flow.proxy.lowpass import require_z
from dashi.flow.proxy.schema import VERSION, Schema
from dashi.io.arrays import read_arrays, write_arrays
from dashi.types import HostArray

_VERSION: Final = "schema_version"
_DIGEST: Final = "schema_digest"


def save_z(path: Path | str, schema: Schema, z: Any) -> None:
    """Keeps z (..., D) with its schema as an .npz file, all or nothing."""
    write_arrays(Path(path), {**pack_schema(schema), "z": require_z(schema, z)})


def read_kept(path: Path | str, kind: str) -> dict[str, HostArray]:
    """The arrays of a file; where it is no .npz at all, the fix names the kind of file that was expected."""
    try:
        return read_arrays(Path(path))
    except FileError as error:
        if "numpy.savez" not in error.fix:
            raise
        raise FileError(error.what, f"name {kind}.") from error


def load_z(path: Path | str) -> tuple[Schema, Floats]:
    """The schema and the z of a file."""
    stored = read_kept(path, "a file of save_z, such as the z.npz of a run")
    schema = unpack_schema(stored, str(path))
    if "z" not in stored:
        raise FileError(f"{path} holds no z.", "name a file of save_z, such as the z.npz of a run.")
    try:
        return schema, require_z(schema, stored["z"])
    except InputError as error:
        raise FileError(f"{path}: {error.what}", error.fix) from error


def pack_schema(schema: Schema) -> dict[str, HostArray]:
    """The arrays that keep a schema."""
    packed = {f"schema_{name}": np.array(value) for name, value in schema.parameters.items()}
    return {_VERSION: np.array(VERSION, np.int64), _DIGEST: np.array(schema.digest), **packed}


def unpack_schema(stored: Mapping[str, HostArray], where: str) -> Schema:
    """The schema that arrays keep; refuses one of another version, and one that was changed."""
    plain = {name: values.item() for name, values in stored.items() if name.startswith("schema_") and not values.ndim}
    version, digest = plain.pop(_VERSION, None), plain.pop(_DIGEST, None)
    if type(version) is not int or not isinstance(digest, str):
        raise FileError(f"{where} says nothing of the schema of its z.", "write it with dashi.flow.proxy.save_z.")
    if version != VERSION:
        raise FileError(
            f"{where} holds z of schema version {version}; this dashi reads version {VERSION}.",
            "encode the flow again with this dashi, or read the file with the one that wrote it.",
        )
    try:
        schema = Schema.restore({name.removeprefix("schema_"): value for name, value in plain.items()})
    except InputError as error:
        raise FileError(f"{where}: {error.what}", error.fix) from error
    if schema.digest != digest:
        raise FileError(f"{where}: the schema does not have the digest that it claims.", "write or copy it again.")
    return schema
