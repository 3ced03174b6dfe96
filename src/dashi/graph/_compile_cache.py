"""What compiling left on disk: the lowered graph and the binaries of its kernels, by everything that they follow from.

An entry is named by graph, class, passes, device, driver, tunings and this installation's code: whatever changes, it is
not found. What is damaged is ignored, and written anew. Nothing here can fail a compile.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_origin

from dashi._cache import cache_folder, read_cache, write_cache
from dashi.errors import DashiError
from dashi.graph.ir import Graph, print_graph
from dashi.graph.registry import get
from dashi.graph.text import parse_graph
from dashi.kernels._build import Binary
from dashi.runtime._pipeline import PipelineSource
from dashi.runtime._tuning import from_environment

if TYPE_CHECKING:
    from dashi.graph.pass_order import Pass
    from dashi.runtime.device import Device

ENVIRONMENT: Final = "DASHI_GRAPH_CACHE"
"""`off` leaves the cache alone."""
MOST_BYTES: Final = 256 << 20
MOST_ENTRIES: Final = 1024
_LARGEST: Final = 64 << 20
_FORMAT: Final = 1
_PACKAGE: Final = Path(__file__).parents[1]
_CODE: Final = ("graph", "kernels", "runtime")
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class CacheEntry:
    """A compiled graph, without a device: its program id, the graph behind all passes, and the sources of pipelines."""

    program_id: str
    graph: Graph
    pipelines: tuple[PipelineSource, ...]


def is_on() -> bool:
    """Whether the environment lets graphs be cached."""
    return os.environ.get(ENVIRONMENT, "").lower() not in ("0", "off", "no", "false")


def entry_key(graph: Graph, class_: str, passes: Sequence[Pass], device: Device) -> str:
    """The name of an entry: a digest of all that it follows from; nothing for passes of somebody else's, whose code is
    not known, and for graphs whose constants no entry would hold."""
    if not all(type(step).__module__.startswith("dashi.graph.") for step in passes):
        return ""
    if sum(node.type.nbytes for node in graph.of("constant") if node.get("data") is not None) > _LARGEST:
        return ""
    versions = sorted({(node.op, get(node.op).version) for node in graph.nodes})
    facts = (_FORMAT, _code(), class_, repr(tuple(passes)), versions, device_facts(device), print_graph(graph))
    return hashlib.sha256("\0".join(map(str, facts)).encode()).hexdigest()


def device_facts(device: Device) -> str:
    """Device, driver, what kernels are planned and compiled for, and the tunings that were chosen for it."""
    info, limits = device.info, device.limits
    facts = {
        "backend": info.spec.partition(":")[0],
        "device": [info.name, info.vendor_id, info.device_id, info.uuid],
        "driver": [info.driver, info.driver_info, info.driver_version, info.api_version],
        "features": sorted(device.features),
        "limits": repr(replace(limits, features=frozenset())),  # a set has no order
        "float_controls": repr(info.float_controls),
        "tunings": [device.tunings.known, from_environment()],
    }
    return json.dumps(facts, sort_keys=True)


@cache
def _code() -> str:
    """A digest of the places, sizes and times of the files that make graphs into kernels."""
    facts = "\n".join(line for part in _CODE for line in _files(_PACKAGE / part))
    return hashlib.sha256(facts.encode()).hexdigest()


def _files(folder: Path | str) -> Iterator[str]:
    with os.scandir(folder) as listed:
        for entry in sorted(listed, key=lambda entry: entry.name):
            if entry.is_dir():
                # A folder of binaries has an index, which is written whenever one of them changes.
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif not entry.name.endswith(".spv"):
                about = entry.stat()
                yield f"{entry.path} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"


def read_entry(key: str, graph: Graph) -> tuple[CacheEntry | None, str]:
    """The entry of a graph, and `hit`; or None, and `miss`, or `damaged` where there is one that cannot be used."""
    path = _path(key)
    body = read_cache(path)
    if not body:
        return None, "damaged" if path.exists() else "miss"
    try:
        entry = _decoded(body, key, graph)
    except (ValueError, KeyError, TypeError, RecursionError, DashiError):
        return None, "damaged"
    with contextlib.suppress(OSError):
        os.utime(path)  # those that are used stay longest
    return entry, "hit"


def write_entry(key: str, entry: CacheEntry) -> str:
    """Keeps an entry; returns why it could not be kept, or nothing."""
    text = print_graph(entry.graph)
    try:
        if print_graph(parse_graph(text)) != text:
            return "its text does not give the same graph"
    except DashiError as error:
        return error.what
    body = _encoded(key, entry, text)
    if len(body) > _LARGEST:
        return f"it has {len(body)} bytes, more than {_LARGEST}"
    failure = write_cache(_path(key), body)
    if not failure:
        _make_room(_path(key).parent)
    return failure


def _path(key: str) -> Path:
    return cache_folder() / "graphs" / f"{key}.bin"


def _encoded(key: str, entry: CacheEntry, text: str) -> bytes:
    binaries = {source.binary.digest: source.binary.words for source in entry.pipelines}
    header = {
        "key": key,
        "program_id": entry.program_id,
        "graph": text,
        "notes": entry.graph.notes,
        "binaries": {digest: len(words) for digest, words in binaries.items()},
        "pipelines": [
            [s.name, s.origin, s.shader, s.variant, s.binary.digest, s.buffers, s.push_bytes, s.spec, s.full_subgroups]
            for s in entry.pipelines
        ],
    }
    first = json.dumps(header).encode()
    return b"".join((len(first).to_bytes(8, "little"), first, *binaries.values()))


def _decoded(body: bytes, key: str, graph: Graph) -> CacheEntry:
    end = 8 + int.from_bytes(body[:8], "little")
    header: Any = json.loads(body[8:end])
    if header["key"] != key:
        raise ValueError("the entry is another's")
    binaries: dict[str, Binary] = {}
    for digest, nbytes in _of(dict[str, int], header["binaries"]).items():
        words, end = body[end : end + _of(int, nbytes)], end + nbytes
        if hashlib.sha256(words).hexdigest() != digest:
            raise ValueError("a binary is another")
        binaries[digest] = Binary(words, digest)
    pipelines = tuple(_source(facts, binaries) for facts in _of(list[Any], header["pipelines"]))
    notes = tuple(_of(str, note) for note in _of(list[str], header["notes"]))
    lowered = replace(parse_graph(_of(str, header["graph"])), params=graph.params, notes=notes)
    if not _DIGEST.fullmatch(_of(str, header["program_id"])):
        raise ValueError("the program has no id")
    return CacheEntry(header["program_id"], lowered, pipelines)


def _source(facts: Sequence[Any], binaries: Mapping[str, Binary]) -> PipelineSource:
    name, origin, shader, variant, digest, buffers, push_bytes, spec, full = facts
    name, origin, shader, variant = (_of(str, text) for text in (name, origin, shader, variant))
    numbers = tuple(_of(int, number) for number in _of(list[int], spec))
    buffers, push_bytes, full = _of(int, buffers), _of(int, push_bytes), _of(bool, full)
    return PipelineSource(
        name, origin, shader, variant, binaries[digest], buffers, push_bytes, numbers, full_subgroups=full
    )


def _of(kind: type[_Kind], value: Any) -> _Kind:
    """The value itself, if it is of that kind: an entry may have a good digest and no sense."""
    if type(value) is not (get_origin(kind) or kind) or (kind is int and not 0 <= cast("int", value) < 1 << 32):
        raise TypeError(f"{value!r} is no {kind}")
    return value


def _make_room(folder: Path) -> None:
    """Removes the entries that were not used for longest, until few enough bytes are left."""
    with contextlib.suppress(OSError):
        with os.scandir(folder) as listed:
            found = [(about.st_mtime_ns, about.st_size, e.path) for e in listed if (about := e.stat())]
        total, count = sum(nbytes for _, nbytes, _ in found), len(found)
        for _, nbytes, path in sorted(found):
            if total <= MOST_BYTES and count <= MOST_ENTRIES:
                return
            Path(path).unlink(missing_ok=True)
            total, count = total - nbytes, count - 1
