"""Windows: what proxies are fitted to and scored on. Stretches of trajectories with frames at even times."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats

UNKNOWN: Final = -1
"""The seed of windows that no seed made, such as measured ones."""


@dataclass(frozen=True)
class Origin:
    """How simulated windows came about, besides their seeds: the name and options of the initial condition, and the
    steps from it that nobody saw."""

    initial: str
    options: Mapping[str, Any]
    spin_up: int


@dataclass(frozen=True, eq=False)
class Windows:
    """Vorticity (windows, frames, n, n) of one flow; frame 0 of a window is its start, `interval` steps of dt lie
    between frames. `seeds` and `starts` (step of frame 0 since the seed's initial condition) say where each came from,
    so that data which overlap can be told."""

    flow: Flow
    interval: int
    fields: Floats
    seeds: tuple[int, ...]
    starts: tuple[int, ...]
    origin: Origin | None = None
    """None of windows that were recorded, or whose start was given as fields."""

    def __post_init__(self) -> None:
        shape, n = np.shape(self.fields), self.flow.n
        if len(shape) != 4 or shape[2:] != (n, n) or not shape[0] or not shape[1]:
            raise ShapeError(
                f"the fields have shape {shape}, the flow has {n} x {n} points.",
                f"pass vorticity of shape (windows, frames, {n}, {n}).",
            )
        if not len(self.seeds) == len(self.starts) == shape[0]:
            raise ShapeError(
                f"there are {shape[0]} windows, {len(self.seeds)} seeds and {len(self.starts)} starts.",
                "pass one seed and one start for each window.",
            )
        if self.interval < 1:
            raise InputError(f"{self.interval} steps lie between frames.", "use 1 or more.")
        if not np.isfinite(self.fields).all():
            raise InputError("the fields hold values that are not finite.", "remove NaN and infinities.")

    def __len__(self) -> int:
        return int(self.fields.shape[0])

    @property
    def frames(self) -> int:
        """Frames of a window, its start included."""
        return int(self.fields.shape[1])

    @property
    def times(self) -> Floats:
        """Flow time of the frames since the start of a window."""
        return np.arange(self.frames) * (self.interval * self.flow.dt)

    @property
    def lasts(self) -> tuple[int, ...]:
        """The step of the last frame of each window, counted as `starts` are."""
        return tuple(start + self.interval * (self.frames - 1) for start in self.starts)

    @cached_property
    def digests(self) -> frozenset[str]:
        """Digests of all frames, rounded to float32: a field that is kept in another type is still known."""
        frames = self.fields.reshape(-1, self.flow.n, self.flow.n)
        return frozenset(hashlib.blake2b(_octets(frame), digest_size=16).hexdigest() for frame in frames)

    @cached_property
    def _notes(self) -> dict[str, Any]:
        return {}

    def remembered(self, name: str, measure: Callable[[Windows], Any]) -> Any:
        """What is measured of all fields, once: they do not change."""
        if name not in self._notes:
            self._notes[name] = measure(self)
        return self._notes[name]

    def take(self, chosen: Any) -> Windows:
        """Some of the windows, by index."""
        index: list[int] = np.atleast_1d(np.arange(len(self))[chosen]).tolist()
        return Windows(
            self.flow,
            self.interval,
            self.fields[index],
            tuple(self.seeds[i] for i in index),
            tuple(self.starts[i] for i in index),
            self.origin,
        )


def _octets(frame: Floats) -> bytes:
    # 0 + x turns -0, which compares equal to 0, into it.
    return (np.float32(0) + np.ascontiguousarray(frame, np.dtype("<f4"))).tobytes()


def frames_in(steps: int, interval: int) -> int:
    """Frames of a window of so many steps, its start included."""
    if steps < interval or steps % interval:
        least = max(interval, steps - steps % interval)
        raise InputError(
            f"a window of {steps} steps has no frame at its end: one lies every {interval} steps.",
            f"use {least} or {least + interval} steps.",
        )
    return steps // interval + 1


def cut(flow: Flow, interval: int, record: Floats, seeds: tuple[int, ...], start: int, frames: int) -> Windows:
    """Windows of so many frames from a record (members, all frames, n, n), one after another without a shared frame;
    frames that are left over at the end are left away. `start` is the step of the record's first frame."""
    count = int(record.shape[1]) // frames
    if not count:
        raise InputError(
            f"a window has {frames} frames, and the record {record.shape[1]}.",
            "ask for shorter windows, or record more frames.",
        )
    parts = record[:, : count * frames].reshape(-1, frames, *record.shape[2:])
    starts = [start + j * frames * interval for j in range(count)]
    return Windows(flow, interval, parts, tuple(s for s in seeds for _ in starts), tuple(starts) * len(seeds))
