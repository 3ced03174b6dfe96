"""Genealogies as files read back to the same ones; damaged files are refused."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.errors import FileError
from dashi.filament.threads import Genealogy, TrackSettings, track
from dashi.filament.threads import _known as known
from dashi.filament.threads.files import read_genealogy, thread_table, write_genealogy, write_graphml
from dashi.io.arrays import read_arrays, write_arrays


@pytest.fixture(scope="module")
def graph() -> Genealogy:
    frames = np.stack([known.render(vortices, 48) for vortices in known.make_genealogy(4).frames])
    return track(frames, known.LENGTH, settings=TrackSettings(threshold=known.THRESHOLD))


def test_a_genealogy_reads_back_to_the_same_one(graph: Genealogy, tmp_path: Path) -> None:
    write_genealogy(tmp_path / "a.npz", graph)
    back = read_genealogy(tmp_path / "a.npz")
    assert (back.digest, back.counts) == (graph.digest, graph.counts)
    write_genealogy(tmp_path / "b.npz", back)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"parent": lambda v: v + 10_000},
        {"step": lambda v: v[::-1]},
        {"kind": lambda v: v + 3},
        {"gamma": lambda v: v[:-1]},
        {"x": lambda v: v * np.nan},
        {"times": lambda v: v[::-1]},
        {"scales": lambda v: -v},
        {"version": lambda v: v + 1},
        {"thread": lambda v: v.astype("f8")},
        {"child": None},
    ],
)
def test_damaged_files_are_refused(graph: Genealogy, tmp_path: Path, change: dict[str, Any]) -> None:
    write_genealogy(tmp_path / "a.npz", graph)
    arrays = read_arrays(tmp_path / "a.npz")
    ((name, edit),) = change.items()
    if edit is None:
        del arrays[name]
    else:
        arrays[name] = edit(arrays[name])
    write_arrays(tmp_path / "a.npz", arrays)
    with pytest.raises(FileError, match=r"is no genealogy|is of version"):
        read_genealogy(tmp_path / "a.npz")


def test_graphml_has_every_vertex_and_edge(graph: Genealogy, tmp_path: Path) -> None:
    write_graphml(tmp_path / "a.graphml", graph)
    space = "{http://graphml.graphdrawing.org/xmlns}"
    root = ET.parse(tmp_path / "a.graphml").getroot()
    nodes, edges = ([*root.iter(f"{space}{name}")] for name in ("node", "edge"))
    assert (len(nodes), len(edges)) == (len(graph.vertices), len(graph.parent))
    names = {node.get("id") for node in nodes}
    assert all({edge.get("source"), edge.get("target")} <= names for edge in edges)


def test_the_table_has_a_row_for_every_thread(graph: Genealogy) -> None:
    rows = thread_table(graph)
    assert [row["thread"] for row in rows] == list(range(graph.thread_count))
    assert {row["beginning"] for row in rows} <= {"first", "birth", "split"}
