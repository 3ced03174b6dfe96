"""Arrays in .npy and .npz files, read without trust and written all or nothing.

Nothing that is read can run code: object arrays (which need pickle) and structured types are refused. Nothing is
allocated before it was checked that the file holds so many bytes, and that the machine has room for them: a header
that claims 10^12 elements, or an archive that unpacks to far more than it is, is refused.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from dashi.errors import DTypeError, FileError, InputError
from dashi.io._files import open_plain, write_atomic
from dashi.io._memory import require_room
from dashi.io._npy import LONGEST_HEADER, Header, read_header, write_header
from dashi.types import HostArray, Shape

LIMIT: Final = 1 << 36
"""The largest file, and the most that an archive may unpack to: 64 GiB."""

_MEMBERS: Final = 4096
_RATIO, _SMALL = 200, 1 << 28
"""Compressed arrays may be so many times their packed size; those of an archive that are below so many bytes, all
together, more (zeros pack very well)."""

_CHUNK: Final = 1 << 24
# Whatever bytes zipfile is given, it answers with one of these.
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, OverflowError,
    IndexError,
)  # fmt: skip


def read_arrays(
    path: Path, keys: Collection[str] | None = None, *, most: Mapping[str, int] | int | None = None
) -> dict[str, HostArray]:
    """The arrays of an .npz file under these keys (all of them, if none are named). Where it is known how many bytes
    each may have (`most`, of each key or of all), those that claim more are refused before any is read."""
    with open_plain(path, LIMIT) as (file, size):
        if file.read(4)[:2] != b"PK":
            raise _not_npz(path, "is not an .npz file")
        return _read_archive(path, file, size, keys, most)


def read_array(path: Path, key: str) -> HostArray:
    """The array under a key of an .npz file; the one array of an .npy file."""
    with open_plain(path, LIMIT) as (file, size):
        start = file.read(6)
        if start[:2] == b"PK":
            return _read_archive(path, file, size, [key], None)[key]
        if start != b"\x93NUMPY":
            raise _not_npz(path, "is neither an .npz nor an .npy file")
        file.seek(0)
        return _read_values(path, file, read_header(file, str(path)), size)


def read_exact(path: Path, shape: Shape, dtype: np.dtype[Any], *, within: Path | None = None) -> HostArray:
    """The array of an .npy file that must have this shape and type: refused by its header and size, before any memory
    is taken for it. No link leads out of the folder `within`."""
    nbytes = math.prod(shape) * dtype.itemsize
    with open_plain(path, nbytes + LONGEST_HEADER, within=within) as (file, size):
        header = read_header(file, str(path))
        if (header.dtype.newbyteorder("="), header.shape) != (dtype, shape):
            raise FileError(
                f"{path} is {header.dtype.name} of shape {header.shape}; {dtype.name} of shape {shape} is expected.",
                "get the file that was written with the run.",
            )
        return _read_values(path, file, header, size)


def file_digest(path: Path) -> str:
    """SHA-256 of the bytes of a file."""
    with open_plain(path, LIMIT) as (file, _):
        digest = sha256()
        while part := file.read(_CHUNK):
            digest.update(part)
    return digest.hexdigest()


def _not_npz(path: Path, what: str) -> FileError:
    return FileError(f"{path} {what}.", "write one with numpy.savez(file, name=array).")


def _read_archive(
    path: Path, file: IO[bytes], size: int, keys: Collection[str] | None, most: Mapping[str, int] | int | None
) -> dict[str, HostArray]:
    try:
        with zipfile.ZipFile(file) as archive:
            members = _members(path, archive, size)
            missing = sorted(set(keys or ()) - set(members))
            if missing:
                raise FileError(
                    f"{path} has no array {missing[0]!r}; it has {', '.join(sorted(members)) or 'none'}.",
                    f"write it with numpy.savez(file, {missing[0]}=array).",
                )
            names = [*members] if keys is None else [*keys]
            if most is not None:
                _require_no_more(path, {key: members[key].file_size for key in names}, most)
            require_room(sum(members[key].file_size for key in names), str(path))
            return {key: _read_member(path, archive, members[key]) for key in names}
    except InputError:
        raise
    except _BROKEN as error:
        raise FileError(f"{path} is damaged or cut short ({error}).", "write or copy it again.") from error


def _members(path: Path, archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The arrays by key, after all that their directory claims was held against the size of the file."""
    listed = archive.infolist()
    members = {info.filename.removesuffix(".npy"): info for info in listed}
    if len(listed) > _MEMBERS or len(members) < len(listed):
        raise FileError(f"{path} lists {len(listed)} arrays, or one name twice.", "write it with numpy.savez.")
    for key, info in members.items():
        packed = info.compress_type != zipfile.ZIP_STORED
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise FileError(f"{path}: {key} is packed or encrypted in a way that NumPy does not write.", _PLAIN)
        if info.compress_size > size or (not packed and info.file_size != info.compress_size):
            raise FileError(f"{path}: {key} claims more bytes than the file has.", "write or copy it again.")
        if packed and info.file_size > max(_SMALL, _RATIO * info.compress_size):
            raise FileError(f"{path}: {key} claims to unpack to {info.file_size} bytes.", _PLAIN)
    total = sum(info.file_size for info in listed)
    if total > max(_SMALL, _RATIO * size):
        raise FileError(f"{path} has {size} bytes and claims to unpack to {total}.", _PLAIN)
    if total > LIMIT:
        raise FileError(f"{path} claims to unpack to more than {LIMIT} bytes.", "split it into several files.")
    return members


def _require_no_more(path: Path, sizes: Mapping[str, int], most: Mapping[str, int] | int) -> None:
    """Refuses arrays that claim more bytes than they may have."""
    for key, size in sizes.items():
        limit = most if isinstance(most, int) else most[key]
        if size > limit + LONGEST_HEADER:
            raise FileError(
                f"{path}: {key} claims {size} bytes, and {limit} are expected.",
                "get the file that was written with the run.",
            )


_PLAIN: Final = "write it with numpy.savez, which does not compress."


def _read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> HostArray:
    where = f"{path}: {info.filename.removesuffix('.npy')}"
    with archive.open(info) as file:
        return _read_values(where, file, read_header(file, where), info.file_size)


def _read_values(where: object, file: IO[bytes], header: Header, size: int) -> HostArray:
    """The elements, once it is known that the file claims exactly as many bytes as they take."""
    if header.offset + header.nbytes != size:
        raise FileError(
            f"{where} claims shape {header.shape} of {header.dtype}, {header.nbytes} bytes, but holds "
            f"{max(0, size - header.offset)}.",
            "write or copy it again.",
        )
    require_room(header.nbytes, str(where))
    octets = np.empty(header.nbytes, np.uint8)
    done = 0
    while done < header.nbytes:
        part = file.read(min(_CHUNK, header.nbytes - done))
        if not part:
            raise FileError(f"{where} is cut short after {done} bytes.", "write or copy it again.")
        octets[done : done + len(part)] = np.frombuffer(part, np.uint8)
        done += len(part)
    file.read(1)  # the end: now zipfile compares the checksum
    values = header.array(octets)
    if values.dtype.kind == "U" and _has_no_letters(values):
        raise FileError(f"{where} holds text with letters that there are none of.", "write it again.")
    return values


def _has_no_letters(text: HostArray) -> bool:
    """Whether an array of text holds numbers of no letter: halves of surrogate pairs, and what is beyond Unicode."""
    codes = np.ascontiguousarray(text).reshape(-1).view(np.uint32)
    return bool((((codes >= 0xD800) & (codes < 0xE000)) | (codes > 0x10FFFF)).any())


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """An .npz file, all or nothing. The same arrays give the same bytes."""
    stored = {name: _storable(name, values) for name, values in arrays.items()}

    def write(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, values in stored.items():
                # A date of its own would give the same arrays other bytes.
                info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                with archive.open(info, "w", force_zip64=True) as member:
                    _write_values(member, values)

    write_atomic(path, write)


def write_array(path: Path, values: Any) -> None:
    """An .npy file, all or nothing."""
    made = _storable(path.name, values)
    write_atomic(path, lambda file: _write_values(file, made))


def _write_values(file: IO[bytes], values: HostArray) -> None:
    write_header(file, values)
    file.write(values.reshape(-1).view(np.uint8).data if values.size else b"")


def _storable(name: str, values: Any) -> HostArray:
    # ascontiguousarray alone would make a one-element vector of a number.
    array = np.asarray(values)
    contiguous: HostArray = np.ascontiguousarray(array).reshape(array.shape)
    if contiguous.dtype.kind not in "fiubU":
        raise DTypeError(
            f"{name} is an array of {contiguous.dtype}, which is not kept in files.",
            "convert it to numbers or text first.",
        )
    return contiguous.astype(contiguous.dtype.newbyteorder("<"), copy=False)
