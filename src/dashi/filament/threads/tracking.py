"""Tracking: from frames of vorticity on a periodic square to the genealogy of its blobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dashi.errors import InputError
from dashi.filament.threads.assignment import MatchWeights
from dashi.filament.threads.blobs import Blobs, Floats, Integers, find_blobs, quantum_of, require_field
from dashi.filament.threads.genealogy import Genealogy, Vertices
from dashi.filament.threads.linking import Edge, EdgeKind, link


@dataclass(frozen=True, kw_only=True)
class TrackSettings:
    """What counts as a blob, and what as the same blob a frame later."""

    threshold: float | None = None
    """The weakest vorticity of a blob; None: `level` times the root mean square of the record."""
    level: float = 1.0
    depth: float = 0.15
    """Two peaks are one blob where the dip between them is at most this share of the lower one."""
    min_points: int = 4
    """Smaller regions are no blobs."""
    quantum: float | None = None
    """Circulation is counted in wholes of it; None: a power of two that the strongest point has 2^23 to 2^24 of."""
    motion: bool = True
    """Whether a blob is expected to move on as it moved last."""
    weights: MatchWeights = field(default_factory=MatchWeights)

    def __post_init__(self) -> None:
        if not 0 <= self.depth < 1:
            raise InputError(f"`depth=` is {self.depth!r:.40}.", "pass a share from 0 to below 1.")
        if not 1 <= self.min_points <= 1 << 24:
            raise InputError(f"`min_points=` is {self.min_points!r:.40}.", "use 1 or more.")
        for name in ("threshold", "level", "quantum"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"`{name}=` is {value!r:.40}.", "pass a positive number, or leave it away.")


def track(
    frames: Any,
    length: float,
    times: Any = None,
    settings: TrackSettings | None = None,
    advance: Callable[[int], None] | None = None,
) -> Genealogy:
    """The genealogy of the blobs of frames (time, n, n) of vorticity in a periodic square with sides of `length`.
    `advance` is called after every frame. Raises InputError."""
    chosen = settings or TrackSettings()
    if not 0 < length < float("inf"):
        raise InputError(f"`length=` is {length!r:.40}.", "pass the side of the box, such as 2 * numpy.pi.")
    values = np.asarray(frames)
    if values.ndim != 3 or not len(values):
        raise InputError(f"the frames have the shape {values.shape}.", "pass (time, n, n) with one frame or more.")
    moments = np.arange(len(values), dtype=np.float64) if times is None else np.asarray(times, np.float64)
    if moments.shape != (len(values),) or not np.isfinite(moments).all() or (np.diff(moments) <= 0).any():
        raise InputError(
            "the times of the frames do not rise, or are not as many.", "sort frames by time, and drop repeated ones."
        )
    threshold, quantum = _scales(values, float(length), chosen)
    blobs = (_blobs(frame, float(length), quantum, threshold, chosen, advance) for frame in values)
    return _genealogy(blobs, moments, float(length), values.shape[-1], quantum, threshold, chosen)


def _scales(values: Any, length: float, settings: TrackSettings) -> tuple[float, float]:
    """The threshold and the quantum of a record."""
    largest, squares = 0.0, 0.0
    for frame in values:
        floats = require_field(frame)
        largest = max(largest, float(np.abs(floats).max()))
        # Row by row, so that the order of summation is the same everywhere.
        squares += float(np.cumsum(np.cumsum(floats * floats, axis=0)[-1])[-1])
    if largest == 0.0:
        return settings.threshold or 1.0, settings.quantum or 1.0
    rms = (squares / values.size) ** 0.5
    threshold = settings.threshold if settings.threshold is not None else settings.level * rms
    return threshold, settings.quantum or quantum_of(largest, values.shape[-1], length)


def _blobs(
    frame: Any, length: float, quantum: float, threshold: float, settings: TrackSettings,
    advance: Callable[[int], None] | None,
) -> Blobs:  # fmt: skip
    blobs = find_blobs(
        require_field(frame), length, quantum, threshold, depth=settings.depth, min_points=settings.min_points
    )
    if advance is not None:
        advance(1)
    return blobs


@dataclass
class _Growing:
    """A genealogy while frames come in."""

    thread: list[Integers] = field(default_factory=list[Integers])
    parents: list[int] = field(default_factory=list[int])
    children: list[int] = field(default_factory=list[int])
    kinds: list[int] = field(default_factory=list[int])
    threads: int = 0
    vertices: int = 0

    def add(self, count: int, edges: list[Edge]) -> None:
        """A frame of so many blobs, and the edges that lead to it."""
        before = self.thread[-1] if self.thread else np.zeros(0, np.int64)
        threads = np.full(count, -1, np.int64)
        first_parent = self.vertices - len(before)
        for edge in edges:
            if edge.kind is EdgeKind.CONTINUATION:
                threads[edge.child] = before[edge.parent]
            self.parents.append(first_parent + edge.parent)
            self.children.append(self.vertices + edge.child)
            self.kinds.append(int(edge.kind))
        fresh = np.flatnonzero(threads < 0)
        threads[fresh] = self.threads + np.arange(len(fresh))
        self.threads += len(fresh)
        self.vertices += count
        self.thread.append(threads)


def _genealogy(
    frames: Iterable[Blobs], times: Floats, length: float, n: int, quantum: float, threshold: float,
    settings: TrackSettings,
) -> Genealogy:  # fmt: skip
    growing = _Growing()
    kept_columns: list[tuple[Integers, Floats, Floats, Floats, Integers]] = []
    around: list[int] = []
    previous: Blobs | None = None
    motion: tuple[Floats, Floats] | None = None
    for blobs in frames:
        edges = [] if previous is None else link(previous, blobs, length, settings.weights, motion)
        growing.add(len(blobs), edges)
        kept_columns.append((blobs.gamma, blobs.x, blobs.y, blobs.radius, blobs.points))
        around.append(blobs.around)
        motion = _motion(previous, blobs, edges, length) if settings.motion and previous is not None else None
        previous = blobs
    gamma, x, y, radius, points = (np.concatenate(column) for column in zip(*kept_columns, strict=True))
    step = np.repeat(np.arange(len(around)), [len(threads) for threads in growing.thread])
    vertices = Vertices(step, np.concatenate(growing.thread), gamma, x, y, radius, points)
    return Genealogy(
        vertices=vertices,
        parent=np.array(growing.parents, np.int64),
        child=np.array(growing.children, np.int64),
        kind=np.array(growing.kinds, np.uint8),
        around=np.array(around, np.int64),
        times=times, length=length, n=n, quantum=quantum, threshold=threshold,
    )  # fmt: skip


def _motion(a: Blobs, b: Blobs, edges: list[Edge], length: float) -> tuple[Floats, Floats]:
    """How far every blob of the second frame has moved since the first; 0 where it did not simply go on."""
    dx, dy = np.zeros(len(b)), np.zeros(len(b))
    events = {edge.child for edge in edges if edge.kind is not EdgeKind.CONTINUATION}
    parents = {edge.parent for edge in edges if edge.kind is EdgeKind.SPLIT}
    for edge in edges:
        if edge.child not in events and edge.parent not in parents:
            for moved, there, here in ((dx, b.x, a.x), (dy, b.y, a.y)):
                way = there[edge.child] - here[edge.parent]
                moved[edge.child] = way - length * np.rint(way / length)
    return dx, dy
