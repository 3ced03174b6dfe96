"""What of a folder is compared: all of it, but for what tells where and how long something ran.

`NOT_COMPARED` is the whole list of exceptions. A folder that shards were merged into, and that of the job without
shards, have the same `compared`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from dashi.errors import FileError
from dashi.flow.evaluation.files import array_json, text_array
from dashi.io._files import read_plain
from dashi.io._run_folder import CERTIFICATE, METRICS, REPORT, SCORES
from dashi.io._run_mark import MARK
from dashi.io._run_names import FIELDS, MODEL
from dashi.io.arrays import file_digest, read_arrays
from dashi.lab._job import AnyPath, as_path
from dashi.types import HostArray

_SCORED: Final = ("settings.device", "table.*.seconds", "table.*.device")
_HEAD: Final = ("settings.device", "lines.*.seconds", "lines.*.device")
NOT_COMPARED: Final[Mapping[str, tuple[str, ...]]] = {
    MARK: ("lines",),
    METRICS: (
        "finished", "op_backend_requested", "op_backend_used", "op_device", "op_device_type", "fft_backend_requested",
        "fft_backend_used", "fft_device", "device_name", "driver_name", "driver_version", "float_rules",
        "kernel_fingerprints", "hotloop_dispatches", "steps_per_s", "ns_per_step", "stage_seconds",
        "peak_host_memory_bytes", "peak_device_memory_bytes", "perf_flags", "way", "way_reason", "reruns",
        "certificate_digest", "gpu_hotloop_active",
    ),
    CERTIFICATE: ("device", "kernels", "way", "digest"),
    f"{FIELDS}/zarr.json": ("attributes.history", "attributes.device"),
    SCORES: (
        "command", "finished", "device", "versions.driver", "versions.system",
        *(f"evaluations.*.{name}" for name in _SCORED),
    ),
    "evaluation-*.json": _SCORED,
    "evaluation-*.npz": _HEAD,
    MODEL: _HEAD,
}  # fmt: skip
"""What tells where and how long something ran: in the JSON of these files, or in the heads of scores in archives. A
star stands for every entry."""
_LARGEST: Final = 1 << 30


def compared(path: AnyPath) -> dict[str, str]:
    """SHA-256 of what is compared, by the names of files below a folder; of a file, by its name. A page that was drawn
    of the rest is left away."""
    place = as_path(path)
    if place is None or not place.exists():
        raise FileError(f"there is no {place}.", "correct the path.")
    if place.is_file():
        return {place.name: _digest(place, MODEL if place.suffix == ".npz" else place.name)}
    files = sorted(file for file in place.rglob("*") if file.is_file())
    names = {file.relative_to(place).as_posix(): file for file in files}
    return {name: _digest(file, name) for name, file in names.items() if name != REPORT}


def _digest(file: Path, name: str) -> str:
    without = next((paths for pattern, paths in NOT_COMPARED.items() if fnmatchcase(name, pattern)), None)
    if without is None:
        return file_digest(file)
    if name.endswith(".npz"):
        return _archive_digest(file, without)
    try:
        document = json.loads(read_plain(file, _LARGEST))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{file} is damaged.", "make it anew.") from error
    return _text_digest(document, without)


def _archive_digest(file: Path, without: tuple[str, ...]) -> str:
    digest = sha256()
    for key, values in read_arrays(file).items():
        content: HostArray = values
        if key.endswith("head"):
            content = text_array(_text_digest(array_json(values), without))
        digest.update(f"{key} {content.dtype} {content.shape}".encode())
        digest.update(content.tobytes())
    return digest.hexdigest()


def _text_digest(document: Any, without: tuple[str, ...]) -> str:
    for path in without:
        _remove(document, path.split("."))
    return sha256(json.dumps(document).encode()).hexdigest()


def _remove(document: Any, path: list[str]) -> None:
    """Removes what lies under a path of names; a star goes into every entry of a list."""
    first, *rest = path
    if first == "*":
        for one in cast("list[Any]", document) if isinstance(document, list) else ():
            _remove(one, rest)
    elif isinstance(document, dict):
        named = cast("dict[str, Any]", document)
        if not rest:
            named.pop(first, None)
        elif first in named:
            _remove(named[first], rest)
