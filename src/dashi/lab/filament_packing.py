"""The jobs `dashi filament pack` and `dashi filament unpack`: a field to embedded bytes, and back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

from dashi.errors import InputError
from dashi.filament.code import Packed, Unpacked, pack, unpack
from dashi.flow.windows.sources import read_vorticity
from dashi.io._files import open_plain, require_writable, write_atomic
from dashi.io._paths import path_of
from dashi.io.arrays import read_array, write_array
from dashi.lab._arguments import require_events, require_request, require_types
from dashi.lab._job import AnyPath
from dashi.lab.events import SILENT, Events

LARGEST: Final = 1 << 26
"""Bytes of a code at most."""


@dataclass(frozen=True, kw_only=True)
class PackRequest:
    """A field to pack: an .npy file, `field` in an .npz, or the last frame of a record; and the file for its code, how
    exact or how long it is."""

    field: AnyPath
    out: AnyPath
    max_error: float | None = None
    """The error over the norm of the field; 0.001 where neither this nor `max_bytes` is set."""
    max_bytes: int | None = None
    basis: Literal["auto", "wavelets", "modes"] = "auto"
    atoms: int | None = None
    """Atoms at most; None: as many as make the code short."""

    def __post_init__(self) -> None:
        require_types(self)


@dataclass(frozen=True, kw_only=True)
class UnpackRequest:
    """A code to unpack, and the .npy file for its field."""

    code: AnyPath
    out: AnyPath
    n: int | None = None
    """Points along a side of the field; None: as it was packed."""
    prefix_bytes: int | None = None
    """How many bytes of the code to use; None: all."""

    def __post_init__(self) -> None:
        require_types(self)


def pack_field(request: PackRequest, *, events: Events = SILENT) -> Packed:
    """Packs a field into a file."""
    require_request(request, PackRequest)
    require_events(events)
    out = path_of("out", request.out)
    require_writable(out)
    source = path_of("field", request.field)
    is_array = source.suffix in (".npy", ".npz")
    field = read_array(source, "field") if is_array else read_vorticity(source).values[0, -1]
    with events.progress("packing", None, ""):
        packed = pack(
            field, max_error=request.max_error, max_bytes=request.max_bytes, basis=request.basis,
            atoms="auto" if request.atoms is None else request.atoms,
        )  # fmt: skip

    def write(file: IO[bytes]) -> None:
        file.write(packed.data)

    write_atomic(out, write)
    return packed


def unpack_field(request: UnpackRequest, *, events: Events = SILENT) -> Unpacked:
    """Unpacks a code, or the prefix of one, into an array file."""
    require_request(request, UnpackRequest)
    require_events(events)
    out = path_of("out", request.out)
    require_writable(out)
    data = read_code(path_of("code", request.code))
    if request.prefix_bytes is not None:
        if request.prefix_bytes < 0:
            raise InputError(f"`prefix_bytes={request.prefix_bytes}` is below 0.", "use a number of bytes.")
        data = data[: request.prefix_bytes]
    with events.progress("unpacking", None, ""):
        unpacked = unpack(data, n=request.n)
    write_array(out, unpacked.field)
    return unpacked


def read_code(path: Path) -> bytes:
    """The bytes of a code, which are bounded before they are read."""
    with open_plain(path, LARGEST) as (file, _):
        return file.read(LARGEST)
