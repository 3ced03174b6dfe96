"""NetCDF files and Zarr stores that others wrote: opened by xarray, after what could harm is refused.

Nothing that is read can run code: of a Zarr store every codec is known here before any chunk is decoded (`pickle` is
none of them). Only the variables that are asked for are loaded. Whatever xarray, zarr, numcodecs or HDF5 answer with
when a file is damaged becomes a FileError.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import re
import stat
import traceback
import warnings
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

from dashi.errors import DashiError, FileError, InputError, install_extra
from dashi.io._files import read_plain
from dashi.io._memory import require_room
from dashi.io.arrays import LIMIT

NETCDF: Final = (".nc", ".nc4", ".netcdf", ".h5")
_LARGEST_META: Final = 1 << 24
_CODECS: Final = frozenset({
    "blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd", "shuffle", "delta", "fixedscaleoffset", "quantize",
    "bitround", "packbits", "astype", "adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3", "vlen-utf8",
    "vlen-bytes", "bytes", "endian", "transpose", "sharding_indexed",
})  # fmt: skip
"""Codecs that turn bytes into numbers or text, and do nothing else; in Zarr 3 some begin with `numcodecs.`."""
_METADATA: Final = (".zarray", "zarr.json")
_AGAIN: Final = "write it again with xarray: data[['vorticity']].to_zarr(...), or .to_netcdf(...)."
_BYTES: Final = re.compile(r"\d+")


@contextlib.contextmanager
def open_foreign(source: Path) -> Generator[Any]:
    """An xarray Dataset of a file or store, not yet loaded. Errors of the libraries that read it, also while it is in
    use, are FileErrors."""
    with reading(source), open_dataset(source) as data:
        yield data


def open_dataset(source: Path) -> Any:
    """An xarray Dataset of a file or store, which reads as it is used, and stays open until it is closed."""
    xarray = _xarray(source)
    if not source.exists():
        raise FileError(f"there is no file {source}.", "correct the path.")
    is_store = source.suffix == ".zarr"
    with reading(source):
        if is_store:
            require_known_codecs(source)
        elif not stat.S_ISREG(source.stat().st_mode):
            raise FileError(f"{source} is not an ordinary file.", "name a file.")
        # Metadata in one piece are an addition that a store may lack.
        how: dict[str, Any] = {"engine": "zarr", "consolidated": False} if is_store else {}
        return _opened(xarray, source, how)


@contextlib.contextmanager
def reading(source: Path) -> Generator[None]:
    """Whatever goes wrong with what is in a file is told as an error of that file, and nothing is printed of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except DashiError:
        raise
    except Exception as error:  # the libraries answer damaged files with anything at all
        raise FileError(
            f"{source} cannot be read: {_reason(error)}.", "write the file again, or a part of it."
        ) from error


def _opened(xarray: Any, source: Path, how: dict[str, Any]) -> Any:
    try:
        return xarray.open_dataset(source, **how)
    except Exception as error:
        _close_half_open(error)
        raise FileError(
            f"xarray does not open {source}: {_reason(error)}.",
            "install what reads it (scipy, netcdf4 or h5netcdf; zarr for stores), or write the file again.",
        ) from error


def _close_half_open(error: BaseException) -> None:
    """Closes the files that h5netcdf had begun to open: left to themselves they fail once more when they are forgotten,
    which Python prints."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        half = frame.f_locals.get("self")
        if type(half).__module__ == "h5netcdf.core" and getattr(half, "_closed", True) is False:
            half._writable = False
            with contextlib.suppress(Exception):
                half.close()


def _xarray(source: Path) -> Any:
    try:
        return importlib.import_module("xarray")
    except ImportError as error:
        raise InputError(
            f"xarray is not installed, and {source} is opened by it.", f"{install_extra('fields')}."
        ) from error


def _reason(error: BaseException) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def load_variables(data: Any, names: Sequence[str], coordinates: Sequence[str], source: Path) -> Any:
    """Some variables of a Dataset in memory, with these coordinates and no others; refused if they are too large."""
    chosen = data[[name for name in names if name in data.variables]]
    chosen = chosen.drop_vars([name for name in chosen.coords if name not in coordinates])
    if chosen.nbytes > LIMIT:
        raise FileError(
            f"{source} unpacks to {chosen.nbytes / 2**30:.0f} GiB; at most {LIMIT >> 30} GiB are read.",
            "write a part of it to a file of its own, with fewer times or variables.",
        )
    require_room(chosen.nbytes, str(source))
    return chosen.load()


def require_known_codecs(store: Path) -> None:
    """Refuses a Zarr store with a codec that is not known here, with chunks too large for memory, or with anything in
    it but ordinary files and folders."""
    for file in _files(store):
        if file.name not in _METADATA:
            continue
        data = read_plain(file, _LARGEST_META)
        try:
            value: Any = json.loads(data)
        except (ValueError, RecursionError, MemoryError) as error:
            raise FileError(f"{file} is no metadata of Zarr: it is damaged or cut short.", _AGAIN) from error
        document = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        for codec in _codecs_of(document):
            name = codec.removeprefix("numcodecs.")
            if name not in _CODECS:
                raise FileError(f"{file} asks for the codec {codec[:40]!r}, which is not read.", _AGAIN)
        _require_small_chunks(file, document)


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder; a link to a folder, a pipe and a device are refused."""
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                yield from _files(path)
            elif entry.is_file():
                yield path
            else:
                raise FileError(f"{path} is neither a file nor a folder.", "copy the store without links.")


def _codecs_of(document: Any) -> list[str]:
    """The names of all codecs in the metadata of an array: filters and compressor in Zarr 2, nested lists in Zarr 3."""
    if isinstance(document, list):
        return [name for part in cast("list[Any]", document) for name in _codecs_of(part)]
    if not isinstance(document, dict):
        return []
    metadata = cast("dict[str, Any]", document)
    listed: list[Any] = [metadata.get(key) for key in ("filters", "compressor", "codecs", "index_codecs")]
    names: list[str] = []
    for part in listed:
        for codec in cast("list[Any]", part) if isinstance(part, list) else [part]:
            if codec is None:
                continue
            named = cast("dict[str, Any]", codec) if isinstance(codec, dict) else {"name": codec}
            names += [str(named.get("id", named.get("name"))), *_codecs_of(named.get("configuration"))]
    return names


def _require_small_chunks(file: Path, document: dict[str, Any]) -> None:
    """A chunk is decoded in whole, however little of it is read."""
    chunks: Any = document.get("chunks")
    try:
        chunks = document["chunk_grid"]["configuration"]["chunk_shape"] if chunks is None else chunks
        shape = [int(size) for size in cast("list[Any]", chunks)]
        itemsize = int((_BYTES.findall(str(document.get("dtype", document.get("data_type")))) or ["8"])[0])
    except (KeyError, TypeError, ValueError):
        return  # a group, or what xarray will not open
    nbytes = math.prod(shape) * (itemsize if "dtype" in document else -(-itemsize // 8))
    if nbytes > LIMIT:
        raise FileError(f"{file} claims chunks of {nbytes} bytes.", _AGAIN)
    require_room(nbytes, f"a chunk of {file.parent}")
