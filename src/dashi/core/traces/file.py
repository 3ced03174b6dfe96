"""Reads traces that `dashi.core.traces.trace` wrote, trusting nothing: whatever does not fit is a FileError."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dashi.core.traces import trace as t
from dashi.core.traces.trace import Fact, Span
from dashi.errors import FileError
from dashi.io._files import read_plain
from dashi.io._memory import out_of_memory

_LARGEST: Final = 1 << 28
_Value = int | bytes


def read_trace(path: Path) -> tuple[Span, ...]:
    """The spans of a trace file, by their begin."""
    data = read_plain(path, _LARGEST)
    try:
        return decode(data)
    except MemoryError as error:
        raise out_of_memory(path) from error
    except (ValueError, IndexError, KeyError, struct.error) as error:
        raise FileError(f"{path} is no trace that dashi wrote: {error}.", "make it again, or remove it.") from error


def decode(data: bytes) -> tuple[Span, ...]:
    """The spans in the bytes of a trace file. Raises ValueError, KeyError or IndexError where they are none."""
    names: dict[int, tuple[str, int]] = {}
    waiting: dict[int, list[tuple[str, int, dict[str, Fact]]]] = {}
    spans: list[Span] = []
    for tag, packet in fields(data):
        if tag != t.PACKET:
            continue
        parts = _last_of_each(packet)
        if t.TRACK_DESCRIPTOR in parts:
            track = _last_of_each(parts[t.TRACK_DESCRIPTOR])
            names[_whole(track[t.UUID])] = (_text(track[t.NAME]), _whole(track.get(t.PARENT, 0)))
        elif t.TRACK_EVENT in parts:
            _take(spans, waiting, names, _whole(parts[t.TIMESTAMP]), parts[t.TRACK_EVENT])
    if any(waiting.values()):
        raise ValueError("a span has no end")
    return tuple(sorted(spans, key=lambda span: (span.begin, -span.end)))


def _take(
    spans: list[Span],
    waiting: dict[int, list[tuple[str, int, dict[str, Fact]]]],
    names: dict[int, tuple[str, int]],
    at: int,
    event: _Value,
) -> None:
    parts = _last_of_each(event)
    uuid, kind = _whole(parts[t.TRACK]), _whole(parts[t.KIND])
    track, parent = names[uuid]
    group = names[parent][0]
    if kind == t.END:
        name, begin, facts = waiting[uuid].pop()
        spans.append(Span(group, track, name, begin, at, facts))
        return
    name, facts = _text(parts[t.EVENT_NAME]), dict(_fact(v) for tag, v in fields(event) if tag == t.FACTS)
    if kind == t.BEGIN:
        waiting.setdefault(uuid, []).append((name, at, facts))
    else:
        spans.append(Span(group, track, name, at, at, facts))


def _fact(message: _Value) -> tuple[str, Fact]:
    parts = _last_of_each(message)
    name = _text(parts[t.FACT_NAME])
    if t.FACT_BOOL in parts:
        return name, bool(parts[t.FACT_BOOL])
    if t.FACT_INT in parts:
        value = _whole(parts[t.FACT_INT])
        return name, value - (1 << 64) if value >= 1 << 63 else value
    if t.FACT_DOUBLE in parts:
        return name, float(struct.unpack("<d", struct.pack("<Q", _whole(parts[t.FACT_DOUBLE])))[0])
    return name, _text(parts[t.FACT_TEXT])


def fields(message: _Value) -> Iterator[tuple[int, _Value]]:
    """Tags and values of a message of the wire format, in order."""
    data = message if isinstance(message, bytes) else b""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif wire == 1:
            yield key >> 3, struct.unpack_from("<Q", data, at)[0]
            at += 8
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise ValueError("it is cut short")
            yield key >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"there is no wire type {wire} in it")


def _last_of_each(message: _Value) -> dict[int, _Value]:
    return dict(fields(message))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _whole(value: _Value) -> int:
    if not isinstance(value, int):
        raise ValueError("a text stands where a number should")
    return value


def _text(value: _Value) -> str:
    if not isinstance(value, bytes):
        raise ValueError("a number stands where a text should")
    return value.decode()
