"""A genealogy as files: arrays that read back to the same one, and a graph that other programs draw."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import quoteattr

import numpy as np

from dashi.errors import FileError
from dashi.filament.threads.genealogy import Genealogy, Vertices
from dashi.filament.threads.linking import EdgeKind
from dashi.io._files import write_text
from dashi.io.arrays import read_arrays, write_arrays

VERSION: Final = 1
_WHOLE: Final = ("step", "thread", "gamma", "points")
_REAL: Final = ("x", "y", "radius")
_MOST: Final = 1 << 24
"""Vertices, and edges, of a file at most."""
_KEYS: Final = (
    ("node", "step", "long"), ("node", "thread", "long"), ("node", "time", "double"), ("node", "x", "double"),
    ("node", "y", "double"), ("node", "circulation", "double"), ("node", "radius", "double"),
    ("edge", "kind", "string"),
)  # fmt: skip


def write_genealogy(path: Path, genealogy: Genealogy) -> None:
    """An .npz file of all vertices and edges; the same genealogy gives the same bytes."""
    vertices = genealogy.vertices
    write_arrays(
        path,
        {
            "version": np.array(VERSION),
            **{name: getattr(vertices, name) for name in (*_WHOLE, *_REAL)},
            "parent": genealogy.parent, "child": genealogy.child, "kind": genealogy.kind,
            "around": genealogy.around, "times": genealogy.times,
            "scales": np.array([genealogy.length, genealogy.quantum, genealogy.threshold]),
            "n": np.array(genealogy.n),
        },
    )  # fmt: skip


def read_genealogy(path: Path) -> Genealogy:
    """The genealogy of a file that `write_genealogy` wrote. Raises FileError for anything else."""
    arrays = read_arrays(path, most=_MOST * 8)
    try:
        return _genealogy(path, arrays)
    except (KeyError, ValueError, IndexError, TypeError, OverflowError) as error:
        if isinstance(error, FileError):
            raise
        raise _damaged(path, "what it holds does not belong together") from error


def _genealogy(path: Path, arrays: dict[str, Any]) -> Genealogy:
    if int(arrays["version"]) != VERSION:
        raise FileError(f"{path} is of version {int(arrays['version'])}.", "track the frames again with this version.")
    count = len(arrays["step"])
    columns = {name: _column(path, arrays, name, count, "i") for name in _WHOLE}
    columns |= {name: _column(path, arrays, name, count, "f") for name in _REAL}
    edges = len(arrays["parent"])
    parent, child = (_column(path, arrays, name, edges, "i") for name in ("parent", "child"))
    kind = _column(path, arrays, "kind", edges, "u").astype(np.uint8)
    steps = len(arrays["times"])
    times, around = _column(path, arrays, "times", steps, "f"), _column(path, arrays, "around", steps, "i")
    length, quantum, threshold = (float(value) for value in _column(path, arrays, "scales", 3, "f"))
    step, thread = columns["step"], columns["thread"]
    sound = (
        steps > 0
        and (np.diff(times) > 0).all()
        and (not count or (step.min() >= 0 and step.max() < steps and thread.min() >= 0 and thread.max() < count))
        and (np.diff(step) >= 0).all()
        and (not edges or (min(parent.min(), child.min()) >= 0 and max(parent.max(), child.max()) < count))
        and (step[child] == step[parent] + 1).all()
        and (kind <= max(EdgeKind)).all()
        and length > 0
        and quantum > 0
    )
    if not sound:
        raise _damaged(path, "its edges or steps cannot be")
    places = (columns[name] for name in ("gamma", "x", "y", "radius", "points"))
    return Genealogy(
        vertices=Vertices(step, thread, *places),
        parent=parent, child=child, kind=kind, around=around, times=times, length=length, n=int(arrays["n"]),
        quantum=quantum, threshold=threshold,
    )  # fmt: skip


def _column(path: Path, arrays: dict[str, Any], name: str, count: int, kind: str) -> Any:
    values = arrays[name]
    if values.shape != (count,) or values.dtype.kind != kind or not np.isfinite(values).all():
        raise _damaged(path, f"its {name} are not numbers of one length")
    return values.astype({"i": np.int64, "f": np.float64, "u": np.uint8}[kind])


def _damaged(path: Path, why: str) -> FileError:
    return FileError(f"{path} is no genealogy: {why}.", "get the file again, or track the frames again.")


def write_graphml(path: Path, genealogy: Genealogy) -> None:
    """GraphML (http://graphml.graphdrawing.org): a node for every vertex, an edge for every edge."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    lines += [
        f'<key id="{name}" for="{holder}" attr.name="{name}" attr.type="{kind}"/>' for holder, name, kind in _KEYS
    ]
    lines.append('<graph edgedefault="directed">')
    v = genealogy.vertices
    for index in range(len(v)):
        values = {
            "step": int(v.step[index]), "thread": int(v.thread[index]), "time": float(genealogy.times[v.step[index]]),
            "x": float(v.x[index]), "y": float(v.y[index]), "circulation": int(v.gamma[index]) * genealogy.quantum,
            "radius": float(v.radius[index]),
        }  # fmt: skip
        data = "".join(f"<data key={quoteattr(name)}>{value!r}</data>" for name, value in values.items())
        lines.append(f'<node id="v{index}">{data}</node>')
    for parent, child, kind in zip(
        genealogy.parent.tolist(), genealogy.child.tolist(), genealogy.kind.tolist(), strict=True
    ):
        word = EdgeKind(kind).name.lower()
        lines.append(f'<edge source="v{parent}" target="v{child}"><data key="kind">{word}</data></edge>')
    write_text(path, "\n".join([*lines, "</graph>", "</graphml>", ""]))


def thread_table(genealogy: Genealogy) -> list[dict[str, Any]]:
    """A row for every thread: when it begins and ends and how, its largest circulation and mean radius."""
    v = genealogy.vertices
    rows: list[dict[str, Any]] = []
    order = np.lexsort((v.step, v.thread))
    starts = np.flatnonzero(np.diff(v.thread[order], prepend=-1))
    parts = np.split(order, starts[1:])
    for life, vertices in zip(genealogy.lifetimes, parts, strict=False):
        gamma = v.gamma[vertices]
        largest = int(gamma[np.argmax(np.abs(gamma))])
        rows.append(
            {
                "thread": life.thread, "begins": float(genealogy.times[life.first]),
                "ends": float(genealogy.times[life.last]), "beginning": life.beginning, "ending": life.ending,
                "circulation": largest * genealogy.quantum,
                "radius": math.fsum(v.radius[vertices].tolist()) / len(vertices),
            }
        )  # fmt: skip
    return rows
