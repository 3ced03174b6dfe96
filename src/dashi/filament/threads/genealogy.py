"""The genealogy of blobs or atoms: a graph whose vertices are (step, atom) and whose edges say what became of them.

A thread is a chain of continuations: one atom through time. It begins in the first frame, by birth, or by splitting off
another; it ends with the last frame, by death, or by merging into another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.errors import BoundsError
from dashi.filament.threads.blobs import Floats, Integers
from dashi.filament.threads.linking import EdgeKind


@dataclass(frozen=True, eq=False)
class Vertices:
    """Atoms at steps, as arrays of one length, by step; within one by the order of the frame."""

    step: Integers
    thread: Integers
    gamma: Integers
    """Signed circulation in quanta."""
    x: Floats
    y: Floats
    radius: Floats
    points: Integers

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True, eq=False, kw_only=True)
class Genealogy:
    """Vertices, and edges from parents to children by index."""

    vertices: Vertices
    parent: Integers
    child: Integers
    kind: npt.NDArray[np.uint8]
    """`EdgeKind` of every edge."""
    around: Integers
    """Signed circulation outside of all blobs, in quanta, at every step."""
    times: Floats
    length: float
    """The side of the periodic box."""
    n: int
    """Points along a side of the frames."""
    quantum: float
    threshold: float

    @cached_property
    def thread_count(self) -> int:
        """Threads, of all steps."""
        return int(self.vertices.thread.max(initial=-1)) + 1

    def edges_of(self, kind: EdgeKind) -> Integers:
        """The edges of a kind, by index."""
        return np.flatnonzero(self.kind == kind)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Threads; of them those that begin with the first step, by birth and by splitting, and those that end with
        the last step, by death and by merging. Beginnings and ends are as many as threads."""
        steps = self.vertices.step
        last = len(self.times) - 1
        goes_on, comes_from = np.zeros(len(steps), np.bool_), np.zeros(len(steps), np.bool_)
        goes_on[self.parent[self.kind != EdgeKind.SPLIT]] = True
        comes_from[self.child[self.kind != EdgeKind.MERGE]] = True
        return {
            "threads": self.thread_count,
            "first": int((steps == 0).sum()),
            "births": int((~comes_from & (steps > 0)).sum()),
            "splits": len(self.edges_of(EdgeKind.SPLIT)),
            "last": int((steps == last).sum()),
            "deaths": int((~goes_on & (steps < last)).sum()),
            "merges": len(self.edges_of(EdgeKind.MERGE)),
        }

    def thread(self, number: int) -> Integers:
        """The vertices of a thread, in time."""
        vertices = np.flatnonzero(self.vertices.thread == number)
        if not len(vertices):
            raise BoundsError(
                f"there is no thread {number}.", f"threads have the numbers 0 to {self.thread_count - 1}."
            )
        return vertices

    def ancestors(self, thread: int) -> list[int]:
        """Threads that a thread came from, by splits, or took in by merges, and theirs in turn."""
        return self._related([int(self.thread(thread)[-1])], self.child, self.parent, thread)

    def descendants(self, thread: int) -> list[int]:
        """Threads that split off a thread, or that it merged into, and theirs in turn."""
        return self._related([int(self.thread(thread)[0])], self.parent, self.child, thread)

    def _related(self, start: Iterable[int], here: Integers, there: Integers, own: int) -> list[int]:
        by_vertex: dict[int, list[int]] = {}
        for a, b in zip(here.tolist(), there.tolist(), strict=True):
            by_vertex.setdefault(a, []).append(b)
        stack, visited = [*start], set(start)
        while stack:
            for other in by_vertex.get(stack.pop(), ()):
                if other not in visited:
                    visited.add(other)
                    stack.append(other)
        return sorted({int(self.vertices.thread[v]) for v in visited} - {own})

    @cached_property
    def lifetimes(self) -> list[Lifetime]:
        """When every thread begins and ends, and how."""
        order = np.lexsort((self.vertices.step, self.vertices.thread))
        threads, starts = np.unique(self.vertices.thread[order], return_index=True)
        ends = np.append(starts[1:], len(order)) - 1
        begun = {int(self.child[e]) for e in self.edges_of(EdgeKind.SPLIT)}
        merged = {int(self.parent[e]) for e in self.edges_of(EdgeKind.MERGE)}
        last = len(self.times) - 1
        lives: list[Lifetime] = []
        for number, start, end in zip(threads.tolist(), order[starts].tolist(), order[ends].tolist(), strict=True):
            a, b = int(self.vertices.step[start]), int(self.vertices.step[end])
            beginning = "first" if a == 0 else "split" if start in begun else "birth"
            ending = "merge" if end in merged else "last" if b == last else "death"
            lives.append(Lifetime(number, a, b, beginning, ending))
        return lives

    def survival(self) -> tuple[Floats, Floats]:
        """Ages, and the share of threads that live longer (Kaplan and Meier 1958, doi:10.1080/01621459.1958.10501452):
        threads of the last step are censored there, and those of the first are left out, since their age is unknown."""
        lives = [life for life in self.lifetimes if life.beginning != "first"]
        ages = np.array([float(self.times[life.last] - self.times[life.first]) for life in lives])
        ended = np.array([life.ending != "last" for life in lives], np.bool_)
        if not ended.any():
            return np.zeros(1), np.ones(1)
        moments = np.unique(ages[ended])
        at_risk = np.array([(ages >= moment).sum() for moment in moments])
        ending = np.array([(ages[ended] == moment).sum() for moment in moments])
        share = np.cumprod(1.0 - ending / at_risk)
        return _after(0.0, moments), _after(1.0, share)

    def circulation(self, thread: int) -> tuple[Floats, Floats]:
        """Times of a thread, and its signed circulation at them."""
        vertices = self.thread(thread)
        return self.times[self.vertices.step[vertices]], self.vertices.gamma[vertices].astype(np.float64) * self.quantum

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all vertices and edges: two genealogies with one digest are the same."""
        digest = sha256(b"dashi genealogy 1")
        parts: tuple[tuple[Any, str], ...] = (
            (self.vertices.step, "<i8"), (self.vertices.thread, "<i8"), (self.vertices.gamma, "<i8"),
            (self.vertices.x, "<f8"), (self.vertices.y, "<f8"), (self.vertices.radius, "<f8"),
            (self.vertices.points, "<i8"), (self.parent, "<i8"), (self.child, "<i8"), (self.kind, "<u1"),
            (self.around, "<i8"), (self.times, "<f8"),
        )  # fmt: skip
        for values, dtype in parts:
            digest.update(len(values).to_bytes(8, "little") + np.ascontiguousarray(values, dtype).tobytes())
        return digest.hexdigest()


def _after(first: float, values: Any) -> Floats:
    """The values, and one in front of them."""
    return np.array([first, *values.tolist()])


@dataclass(frozen=True)
class Lifetime:
    """The life of a thread: its first and last step, and what it begins and ends with."""

    thread: int
    first: int
    last: int
    beginning: str
    """`first`, `birth` or `split`."""
    ending: str
    """`last`, `death` or `merge`."""
