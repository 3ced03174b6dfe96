"""Traces are Perfetto's format to the letter, and hold what happened."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from dashi.core.metrics._dispatch_count import counted
from dashi.core.traces.file import decode, read_trace
from dashi.core.traces.queue import watch
from dashi.core.traces.trace import Span, Trace, encode, write_trace
from dashi.errors import FileError
from dashi.runtime import Device, open_device

# Field numbers of Perfetto's own .proto files (trace.proto, trace_packet.proto, track_descriptor.proto,
# track_event.proto, debug_annotation.proto), written down a second time: the writer must not mark its own work.
TRACE = {1: "packet"}
PACKET = {8: "timestamp", 10: "trusted_packet_sequence_id", 11: "track_event", 13: "sequence_flags"}
PACKET |= {60: "track_descriptor"}
DESCRIPTOR = {1: "uuid", 2: "name", 3: "process", 5: "parent_uuid"}
EVENT = {4: "debug_annotations", 9: "type", 11: "track_uuid", 23: "name"}
ANNOTATION = {2: "bool_value", 4: "int_value", 5: "double_value", 6: "string_value", 10: "name"}


def wire(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while data[at] & 0x80:
            value |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
        value |= data[at] << shift
        at += 1
        return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 1:
            yield key >> 3, struct.unpack_from("<d", data, at)[0]
            at += 8
        else:
            assert key & 7 == 2
            size = varint()
            yield key >> 3, data[at : at + size]
            at += size


def named(data: bytes, names: dict[int, str]) -> dict[str, Any]:
    return {names[tag]: value for tag, value in wire(data)}


def packets(data: bytes) -> list[dict[str, Any]]:
    assert all(tag in TRACE for tag, _ in wire(data))
    return [named(packet, PACKET) for _, packet in wire(data)]


def steady(*times: int) -> Trace:
    clock = iter((0, *times))
    return Trace(lambda: next(clock))


def test_packets_have_the_fields_that_perfetto_documents() -> None:
    trace = steady(10, 20, 30)
    with trace.stage("fit", seeds=2, skill=0.5, name="galerkin", whole=True, below=-3):
        trace.instant("GPU", "queue 0", "first")
    first, *rest = packets(encode(trace.spans))
    assert first["sequence_flags"] == 1  # readers drop everything before a cleared state
    assert {packet["trusted_packet_sequence_id"] for packet in (first, *rest)} == {1}
    tracks = [named(p["track_descriptor"], DESCRIPTOR) for p in (first, *rest) if "track_descriptor" in p]
    assert [track["name"] for track in tracks] == [b"dashi", b"stages", b"fit", b"GPU", b"queue 0"]
    parents = {track["uuid"]: track.get("parent_uuid") for track in tracks}
    assert [*parents.values()] == [None, *(tracks[i]["uuid"] for i in (0, 1, 0, 3))]
    assert dict(wire(tracks[0]["process"])) == {1: 1, 6: b"dashi"}

    events = [(p["timestamp"], p["track_event"]) for p in rest if "track_event" in p]
    kinds = [(at, named(e, EVENT)["type"], named(e, EVENT)["track_uuid"]) for at, e in events]
    assert kinds == [(10, 1, tracks[2]["uuid"]), (20, 3, tracks[4]["uuid"]), (30, 2, tracks[2]["uuid"])]
    notes = [named(value, ANNOTATION) for tag, value in wire(events[0][1]) if tag == 4]
    assert notes == [
        {"name": b"seeds", "int_value": 2},
        {"name": b"skill", "double_value": 0.5},
        {"name": b"name", "string_value": b"galerkin"},
        {"name": b"whole", "bool_value": 1},
        {"name": b"below", "int_value": (1 << 64) - 3},
    ]


def test_time_never_goes_back_on_a_track() -> None:
    spans = [Span("g", "t", "outer", 0, 100), Span("g", "t", "inner", 10, 40), Span("g", "t", "next", 40, 90)]
    times = [p["timestamp"] for p in packets(encode(spans)) if "timestamp" in p]
    assert times == [0, 10, 40, 40, 90, 100]


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
facts = st.dictionaries(
    texts, st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | texts, max_size=3
)


@hypothesis.given(st.lists(st.tuples(texts, texts, facts, st.integers(1, 1 << 40)), max_size=20))
def test_what_was_written_is_read_again(rows: list[tuple[str, str, dict[str, Any], int]]) -> None:
    spans, at = [], 0
    for track, name, more, length in rows:
        spans.append(Span("stages", track, name, at, at + length, more))
        at += length
    assert list(decode(encode(spans))) == spans


@pytest.mark.parametrize("cut", [1, 5, 30, -1])
def test_a_damaged_trace_is_refused(tmp_path: Path, cut: int) -> None:
    whole = encode([Span("stages", "fit", "fit", 0, 5)])
    (tmp_path / "t").write_bytes(whole[:cut])
    with pytest.raises(FileError, match="is no trace that dashi wrote"):
        read_trace(tmp_path / "t")


@hypothesis.given(st.binary(max_size=200))
def test_arbitrary_bytes_never_crash_the_reader(data: bytes) -> None:
    try:
        decode(data)
    except (ValueError, KeyError, IndexError, struct.error):
        return


def test_a_span_that_ends_in_an_error_is_kept() -> None:
    trace = steady(1, 5)
    with pytest.raises(RuntimeError), trace.stage("fit"):
        raise RuntimeError
    assert [(s.name, s.begin, s.end) for s in trace.spans] == [("fit", 1, 5)]


def test_every_submission_of_a_watched_device_is_on_its_queue(device: Device, tmp_path: Path) -> None:
    trace = Trace()
    x = device.array(np.arange(4, dtype=np.float32))
    step = device.bind("axpy", x, x, a=2)
    with watch(device, trace), device.program([step], label="twice", fetch=[step.outputs[0]]) as program:
        program.run()
        ticket = program.submit()
        ticket.wait()
        assert program.fetched(step.outputs[0]).tolist() == [0, 3, 6, 9]
    device.run("axpy", x, x, a=2)  # nobody watches any more
    assert [(s.group, s.track, s.name) for s in trace.spans] == [(device.info.name, "queue 0", "twice")] * 2
    assert all(s.facts == {"dispatches": program.dispatches} for s in trace.spans)
    first, second = trace.spans
    assert 0 <= first.begin <= first.end <= second.begin <= second.end
    write_trace(tmp_path / "t.perfetto-trace", trace.spans)
    assert read_trace(tmp_path / "t.perfetto-trace") == trace.spans


def test_a_count_and_a_trace_of_the_same_device_both_see_every_submission(device: Device) -> None:
    trace = Trace()
    x = device.array(np.ones(64, np.float32))
    step = device.bind("scale", x, a=0.5)
    with (
        counted(device) as outer,
        watch(device, trace),
        counted(device) as inner,
        device.program([step, step], label="both", fetch=step.outputs) as program,
    ):
        program.run()
        program.run()
        assert program.fetched(step.outputs[0]).tolist() == [0.5] * 64
    assert device.watcher is None
    assert outer.dispatches == inner.dispatches == 2 * program.dispatches
    assert [span.name for span in trace.spans] == ["both", "both"]


def test_watching_costs_little(device: Device) -> None:
    """A trace of a run must not change what it shows: less than a millisecond for a submission."""
    step = device.bind("axpy", device.array(np.ones(4, np.float32)), device.array(np.ones(4, np.float32)), a=2)
    trace = Trace()
    with watch(device, trace), device.program([step]) as program:
        begin = time.perf_counter()
        for _ in range(20):
            program.submit()
        assert time.perf_counter() - begin < 0.5
    assert len(trace.spans) == 20


@pytest.mark.parametrize("kind", ["cpu", "vulkan:0"])
@pytest.mark.usefixtures("vulkan_session")
def test_every_queue_of_every_device_has_a_track(kind: str) -> None:
    trace = Trace()
    with open_device(kind, queues=2) as device, open_device("null") as null:
        x = device.array(np.ones(4, np.float32))
        programs = [device.program([device.bind("add", x, x)], label=f"p{i}", queue=i) for i in range(2)]
        event = device.event()
        with watch(device, trace), watch(null, trace):
            late = programs[1].submit(after=[event])
            programs[0].submit().wait()
            null.program([], label="nothing").run()
            event.signal()
            late.wait()
            device.download(x).result()
        name = device.info.name
    assert {(span.group, span.track, span.name) for span in trace.spans} == {
        (name, "queue 0", "p0"),
        (name, "queue 1", "p1"),
        (name, "download", "download"),
        ("null", "queue 0", "nothing"),
    }
    ends = {span.name: span.end for span in trace.spans}
    assert ends["p1"] <= ends["download"]
