"""Traces of a run, for https://ui.perfetto.dev and for the report's timeline: spans on tracks, one for each device
queue and for each stage, so that overlap can be seen.

The file is Perfetto's own format: protocol buffers, of which a trace needs so few that they are written here by hand
(protos/perfetto/trace/trace_packet.proto and track_event/*.proto of Perfetto; the field numbers are the constants
below). `dashi.core.traces.file` reads it again.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from dashi.io._files import write_atomic

Fact = str | int | float | bool
_VARINT, _FIXED64, _BYTES = 0, 1, 2

PACKET: Final = 1
TIMESTAMP, SEQUENCE, TRACK_EVENT, FLAGS, TRACK_DESCRIPTOR = 8, 10, 11, 13, 60
UUID, NAME, PARENT, PROCESS = 1, 2, 5, 3
PROCESS_ID, PROCESS_NAME = 1, 6
FACTS, KIND, TRACK, EVENT_NAME = 4, 9, 11, 23
FACT_BOOL, FACT_INT, FACT_DOUBLE, FACT_TEXT, FACT_NAME = 2, 4, 5, 6, 10
BEGIN, END, INSTANT = 1, 2, 3

_ONE_SEQUENCE: Final = 1
_FRESH: Final = 1
"""SEQ_INCREMENTAL_STATE_CLEARED: without it readers take the first packets for lost ones."""
_ROOT: Final = 1


@dataclass(frozen=True)
class Span:
    """Something that took time on a track; times in nanoseconds since the trace began. An instant has begin = end."""

    group: str
    """What the track belongs to: `stages`, or the name of a device."""
    track: str
    name: str
    begin: int
    end: int
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    """Plain numbers and names, shown where the span is clicked."""

    @property
    def seconds(self) -> float:
        return (self.end - self.begin) * 1e-9


class Trace:
    """Collects spans as they happen; thread-safe. Spans of one track must not overlap unless one holds the other."""

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._start = clock()
        self._spans: list[Span] = []
        self._lock = threading.Lock()

    def now(self) -> int:
        """Nanoseconds since the trace began."""
        return self._clock() - self._start

    @property
    def spans(self) -> tuple[Span, ...]:
        """Spans that have ended, by their begin; one that holds others comes before them."""
        with self._lock:
            return tuple(sorted(self._spans, key=lambda span: (span.begin, -span.end)))

    def add(self, span: Span) -> None:
        """A span that was measured elsewhere."""
        with self._lock:
            self._spans.append(span)

    @contextmanager
    def span(self, group: str, track: str, name: str, /, **facts: Fact) -> Generator[None]:
        """What happens within becomes a span, also where it ends with an error."""
        begin = self.now()
        try:
            yield
        finally:
            self.add(Span(group, track, name, begin, self.now(), facts))

    def stage(self, name: str, /, **facts: Fact) -> AbstractContextManager[None]:
        """A span of a stage of the run, on the stage's own track."""
        return self.span("stages", name, name, **facts)

    def instant(self, group: str, track: str, name: str, /, **facts: Fact) -> None:
        """A moment worth a mark."""
        now = self.now()
        self.add(Span(group, track, name, now, now, facts))


def write_trace(path: Path, spans: Iterable[Span]) -> None:
    """Writes the file, all or nothing."""
    data = encode(spans)

    def fill(file: IO[bytes]) -> None:
        file.write(data)

    write_atomic(path, fill)


def encode(spans: Iterable[Span]) -> bytes:
    """The bytes of a trace file."""
    ordered = sorted(spans, key=lambda span: (span.begin, -span.end))
    packets = [_packet(_descriptor(_ROOT, "dashi", None), fresh=True)]
    groups: dict[str, int] = {}
    tracks: dict[tuple[str, str], int] = {}
    for span in ordered:
        if span.group not in groups:
            groups[span.group] = len(groups) + len(tracks) + _ROOT + 1
            packets.append(_packet(_descriptor(groups[span.group], span.group, _ROOT)))
        key = (span.group, span.track)
        if key not in tracks:
            tracks[key] = len(groups) + len(tracks) + _ROOT + 1
            packets.append(_packet(_descriptor(tracks[key], span.track, groups[span.group])))
    packets += _events(ordered, tracks)
    return b"".join(packets)


def _events(ordered: Iterable[Span], tracks: Mapping[tuple[str, str], int]) -> list[bytes]:
    """Begins and ends by track, so that what is nested closes in order."""
    open_until: dict[int, list[Span]] = {uuid: [] for uuid in tracks.values()}
    packets: list[bytes] = []

    def close(uuid: int, until: float) -> None:
        while open_until[uuid] and open_until[uuid][-1].end <= until:
            packets.append(_event(END, uuid, open_until[uuid].pop().end))

    for span in ordered:
        uuid = tracks[span.group, span.track]
        close(uuid, span.begin)
        if span.begin == span.end:
            packets.append(_event(INSTANT, uuid, span.begin, span))
        else:
            packets.append(_event(BEGIN, uuid, span.begin, span))
            open_until[uuid].append(span)
    for uuid in open_until:
        close(uuid, float("inf"))
    return packets


def _packet(body: bytes, *, at: int | None = None, fresh: bool = False) -> bytes:
    stamp = b"" if at is None else number(TIMESTAMP, at)
    flags = number(FLAGS, _FRESH) if fresh else b""
    return text(PACKET, stamp + number(SEQUENCE, _ONE_SEQUENCE) + flags + body)


def _descriptor(uuid: int, name: str, parent: int | None) -> bytes:
    body = number(UUID, uuid) + text(NAME, name)
    if parent is None:
        body += text(PROCESS, number(PROCESS_ID, 1) + text(PROCESS_NAME, name))
    else:
        body += number(PARENT, parent)
    return text(TRACK_DESCRIPTOR, body)


def _event(kind: int, uuid: int, at: int, span: Span | None = None) -> bytes:
    body = number(KIND, kind) + number(TRACK, uuid)
    if span is not None:
        body += text(EVENT_NAME, span.name) + b"".join(_fact(k, v) for k, v in span.facts.items())
    return _packet(text(TRACK_EVENT, body), at=at)


def _fact(name: str, value: Fact) -> bytes:
    body = text(FACT_NAME, name)
    if isinstance(value, bool):
        body += number(FACT_BOOL, int(value))
    elif isinstance(value, int):
        body += number(FACT_INT, value)
    elif isinstance(value, float):
        body += _key(FACT_DOUBLE, _FIXED64) + struct.pack("<d", value)
    else:
        body += text(FACT_TEXT, value)
    return text(FACTS, body)


def number(tag: int, value: int) -> bytes:
    """A whole number of the wire format; negative ones as their 64 bits."""
    return _key(tag, _VARINT) + _varint(value & (1 << 64) - 1)


def text(tag: int, value: str | bytes) -> bytes:
    """A text or a message of the wire format."""
    data = value.encode() if isinstance(value, str) else value
    return _key(tag, _BYTES) + _varint(len(data)) + data


def _key(tag: int, wire: int) -> bytes:
    return _varint(tag << 3 | wire)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
