"""Compiling a graph again: from the cache on disk, with the same pipeline, whatever lies there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import graph as dg
from dashi.graph import _compile_cache as cached
from dashi.graph.compiler import for_device
from dashi.graph.passes.cut import CutLargeValues
from dashi.graph.registry import all_ops
from dashi.runtime._vulkan_device import VulkanDevice
from dashi.runtime.device import Device
from dashi.types import HostArray

WEIGHTS = np.random.default_rng(3).standard_normal((6, 4)).astype(np.float32)
X = np.random.default_rng(4).standard_normal((3, 4)).astype(np.float32)


def model() -> dg.Graph:
    """A product with a tail, rows, a map and a step of the host."""
    b = dg.Builder("model")
    x = b.input("x", (3, 4))
    halves = dg.cast(dg.softmax(dg.relu(x @ b.param("w", WEIGHTS).transpose())), "f16")
    picked = dg.gather(halves, b.constant(np.array([1, 0], np.uint32)))
    return b.graph(y=dg.tanh(dg.cast(picked, "f32")) * 2.0, shown=x)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where entries lie: nowhere yet."""
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path))
    return tmp_path / "graphs"


def state(device: Device, **options: object) -> str:
    with dg.compile(model(), device, **options) as pipeline:  # pyright: ignore[reportArgumentType]
        return pipeline.report().cache


def bits(results: dict[str, HostArray]) -> dict[str, bytes]:
    return {title: array.tobytes() for title, array in results.items()}


def test_a_second_compile_is_served_from_the_cache_and_gives_the_same_pipeline(device: Device) -> None:
    with dg.compile(model(), device) as first, dg.compile(model(), device) as second:
        assert (first.report().cache, second.report().cache) == ("miss", "hit")
        assert replace(second.report(), cache="miss") == first.report()
        assert (first.id, first.program_id) == (second.id, second.program_id)
        expected = bits(dg.evaluate(model(), {"x": X}))
        assert bits(first.dispatch({"x": X})) == bits(second.dispatch({"x": X})) == expected


def test_cut_values_and_chosen_products_come_from_the_cache_too(device: Device) -> None:
    b = dg.Builder("classes")
    graph = b.graph(y=dg.max_(b.input("x", (3, 4)) @ b.param("w", WEIGHTS).transpose() + 1.0, 1))
    expected: dict[str, bytes] = {}
    for state in ("miss", "hit"):
        for class_ in ("portable", "device"):
            passes = (*dg.PASSES, CutLargeValues(64, 16))
            with dg.compile(graph, device, class_=class_, passes=passes) as pipeline:
                report = pipeline.report()
                assert (report.cache, len(report.matmul_choices) > 0) == (state, True)
                assert all(("any order" in why) == (class_ == "device") for why in report.matmul_choices.values())
                results = bits(pipeline.dispatch({"x": X}))
                assert expected.setdefault(class_, results["y"]) == results["y"]
    assert expected["portable"] == bits(dg.evaluate(graph, {"x": X}))["y"]


def test_the_name_of_an_entry_follows_from_how_products_are_chosen() -> None:
    with dashi.open("cpu") as device:
        chosen = [
            ("portable", for_device(dg.PASSES, device)),
            ("device", for_device(dg.PASSES, device, "device")),
            ("device", for_device(dg.PASSES, device, "device", "coop")),
        ]
        keys = {cached.entry_key(model(), class_, passes, device) for class_, passes in chosen}
    assert len(keys) == 3
    assert "" not in keys


def test_another_device_object_makes_its_pipelines_from_the_entry(bare_vulkan: VulkanDevice) -> None:
    with dg.compile(model(), bare_vulkan) as pipeline:
        sources = bare_vulkan.pipeline_sources(pipeline._recorded.program.steps)  # pyright: ignore[reportPrivateUsage]
    assert len(sources) >= 5
    with dashi.open("vulkan:0") as other, dg.compile(model(), other) as pipeline:
        assert pipeline.report().cache == "hit"
        again = other.pipeline_sources(pipeline._recorded.program.steps)  # pyright: ignore[reportPrivateUsage]
        assert again == sources
        assert bits(pipeline.dispatch({"x": X})) == bits(dg.evaluate(model(), {"x": X}))


def test_another_process_is_served_too() -> None:
    code = (
        "import dashi, sys; from dashi import graph as dg; sys.path.insert(0, sys.argv[1]);"
        "from test_compile_cache import model; d = dashi.open('cpu');"
        "p = dg.compile(model(), d); print(p.report().cache, p.program_id, p.id)"
    )
    words = [sys.executable, "-c", code, str(Path(__file__).parent)]
    printed = [subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert [states[0] for states in printed] == ["miss", "hit"]
    assert printed[0][1:] == printed[1][1:]


def test_a_damaged_entry_is_seen_and_built_anew(device: Device, folder: Path) -> None:
    assert state(device) == "miss"
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    for damage in (whole[:-1], whole[:40], b"", whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        entry.write_bytes(damage)
        assert state(device) == "damaged"
        assert (state(device), entry.read_bytes()) == ("hit", whole)


@pytest.mark.parametrize("body", [b"x", bytes(8), b"\x02" + bytes(7) + b"{}", b"\xff" * 64, b"\x02" + bytes(7) + b"[]"])
def test_an_entry_with_a_good_digest_and_no_sense_is_built_anew(body: bytes, folder: Path) -> None:
    with dashi.open("null") as null:
        assert state(null) == "miss"
        (entry,) = folder.iterdir()
        assert cached.write_cache(entry, body) == ""
        assert [state(null), state(null)] == ["damaged", "hit"]


def test_an_entry_with_a_good_digest_and_an_odd_field_is_built_anew(folder: Path, bare_vulkan: VulkanDevice) -> None:
    assert state(bare_vulkan) == "miss"
    (entry,) = folder.iterdir()
    body = cached.read_cache(entry)
    end = 8 + int.from_bytes(body[:8], "little")
    header, words = json.loads(body[8:end]), body[end:]

    def read(changed: dict[str, Any], binaries: bytes = words) -> str:
        first = json.dumps(changed).encode("utf-8", "surrogatepass")
        assert cached.write_cache(entry, len(first).to_bytes(8, "little") + first + binaries) == ""
        return cached.read_entry(entry.stem, model())[1]

    assert read(header) == "hit"
    assert read(header, words[:20] + bytes([words[20] ^ 1]) + words[21:]) == "damaged"
    for odd in (None, -1, {}, [[]], [None], 1 << 70, "\ud800", {"a": "b"}):
        for field in ("program_id", "graph", "notes", "binaries", "pipelines"):
            assert read({**header, field: odd}) == "damaged", (field, odd)
        for place in range(9):
            first, *others = header["pipelines"]
            turned = [*first[:place], odd, *first[place + 1 :]]
            expected = "hit" if place < 4 and isinstance(odd, str) else "damaged"  # names are any text
            assert read({**header, "pipelines": [turned, *others]}) == expected, (place, odd)


def test_an_entry_under_the_name_of_another_is_not_believed(folder: Path) -> None:
    with dashi.open("null") as null:
        assert [state(null), state(null, class_="device")] == ["miss", "miss"]
        first, second = folder.iterdir()
        first.write_bytes(second.read_bytes())
        assert {state(null), state(null, class_="device")} == {"damaged", "hit"}


def test_entries_are_found_by_all_that_they_follow_from(monkeypatch: pytest.MonkeyPatch) -> None:
    with dashi.open("null") as null:
        assert [state(null), state(null)] == ["miss", "hit"]
        assert state(null, class_="device") == "miss"
        assert state(null, passes=dg.UNFUSED) == "miss"
        with dashi.open("cpu") as cpu:
            assert state(cpu) == "miss"
        monkeypatch.setenv("DASHI_TUNINGS", "matmul=wide")
        assert cached.entry_key(model(), "portable", dg.PASSES, null) != _key(null, monkeypatch)
        assert state(null) == "hit"  # _key removed the variable
        monkeypatch.setitem(all_ops(), "tanh", replace(all_ops()["tanh"], version=99))
        assert state(null) == "miss"
        monkeypatch.setattr(cached, "_FORMAT", 0)  # another version of dashi
        assert state(null) == "miss"
        monkeypatch.setattr(cached, "_code", lambda: "other files")
        assert state(null) == "miss"


def _key(device: Device, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("DASHI_TUNINGS")
    return cached.entry_key(model(), "portable", dg.PASSES, device)


def test_code_is_told_apart_by_places_sizes_and_times(tmp_path: Path) -> None:
    file = tmp_path / "op.py"
    file.write_text("1")
    (tmp_path / "kernel.spv").write_bytes(b"")
    before = list(cached._files(tmp_path))  # pyright: ignore[reportPrivateUsage]
    assert [line.split()[0] for line in before] == [str(file)]
    os.utime(file, (1, 1))
    assert list(cached._files(tmp_path)) != before  # pyright: ignore[reportPrivateUsage]


def test_the_cache_can_be_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(dg.Rewrite):
        """A pass whose code nobody knows."""

    with dashi.open("null") as null:
        assert state(null, cache=False) == "off"
        assert state(null, passes=(Own(), *dg.PASSES[1:])) == "off"
        with monkeypatch.context() as tiny:
            tiny.setattr(cached, "_LARGEST", 4)
            assert state(null) == "off"  # for its constant of 8 bytes
        monkeypatch.setenv("DASHI_GRAPH_CACHE", "off")
        assert state(null) == "off"
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_a_remark(
    tmp_path: Path, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DASHI_CACHE_DIR", str(tmp_path / "file"))
    assert state(device) == "miss, not kept: Not a directory"


def test_a_full_disk_is_a_remark_and_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dashi._atomic_file.os.replace", full)
    with dashi.open("null") as null:
        assert state(null) == "miss, not kept: No space left on device"
    assert list(folder.iterdir()) == []


def test_the_cache_is_bounded_and_keeps_what_was_used_last(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def tiny(length: int) -> dg.Graph:
        b = dg.Builder("tiny")
        return b.graph(y=dg.tanh(b.input("x", (length,))))

    monkeypatch.setattr(cached, "MOST_ENTRIES", 3)
    with dashi.open("null") as null:

        def compiled(length: int) -> str:
            with dg.compile(tiny(length), null) as pipeline:
                return pipeline.report().cache

        assert [compiled(length) for length in (1, 2, 3)] == ["miss"] * 3
        for number, entry in enumerate(sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)):
            os.utime(entry, (number, number))  # clocks of file systems are coarse
        assert compiled(1) == "hit"
        assert compiled(4) == "miss"
        assert len(list(folder.iterdir())) == 3
        assert [compiled(length) for length in (1, 3, 4)] == ["hit"] * 3
        monkeypatch.setattr(cached, "MOST_BYTES", 0)
        compiled(2)
        assert list(folder.iterdir()) == []
        monkeypatch.setattr(cached, "_LARGEST", 10)
        with dg.compile(tiny(5), null) as pipeline:
            assert "more than 10" in pipeline.report().cache


def test_a_pipeline_that_could_not_be_made_ahead_is_made_when_it_is_needed(
    bare_vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = bare_vulkan.raw
    create = raw.create_pipeline

    def failing(code: bytes, *args: object, **options: object) -> object:
        if threading.current_thread() is not threading.main_thread():
            raise dashi.errors.VulkanError("no.", "try again.")
        return create(code, *args, **options)  # pyright: ignore[reportArgumentType]

    with dg.compile(model(), bare_vulkan):
        pass
    bare_vulkan.pipelines.clear()
    monkeypatch.setattr(raw, "create_pipeline", failing)
    with dg.compile(model(), bare_vulkan) as pipeline:
        assert pipeline.report().cache == "hit"
        assert bits(pipeline.dispatch({"x": X})) == bits(dg.evaluate(model(), {"x": X}))
