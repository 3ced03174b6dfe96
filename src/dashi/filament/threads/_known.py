"""Genealogies that are known, and frames of them, to hold trackers against: Gaussian vortices in a periodic box that
wander, merge, split, are born and die."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dashi.filament.threads.genealogy import Genealogy
from dashi.filament.threads.linking import EdgeKind

LENGTH = 2 * math.pi
THRESHOLD = 0.3
_APART = 4.6
"""Vortices that have nothing to do with each other keep so many widths between them."""
_TOUCHING = 2.75
"""Two that merge are one from so many widths on."""


@dataclass
class KnownVortex:
    """A Gaussian vortex: amplitude exp(-r^2 / (2 width^2))."""

    name: int
    x: float
    y: float
    amplitude: float
    width: float
    sign: int
    heading: float
    partner: int | None = None
    """The vortex that it merges with."""
    receding: int = 0
    """Frames for which it moves straight away from where it split off."""


@dataclass
class KnownGenealogy:
    """What was in every frame, and what became of it."""

    frames: list[list[KnownVortex]] = field(default_factory=list[list[KnownVortex]])
    edges: set[tuple[int, int, int, int]] = field(default_factory=set[tuple[int, int, int, int]])
    """Frame, parent, child, kind."""


def shift(a: float, b: float) -> float:
    """From one coordinate to another, the shorter way round."""
    d = b - a
    return d - LENGTH * round(d / LENGTH)


def distance(a: KnownVortex, b: KnownVortex) -> float:
    """Between two centres, the shorter way round."""
    return math.hypot(shift(a.x, b.x), shift(a.y, b.y))


def free(place: KnownVortex, others: list[KnownVortex]) -> bool:
    """Whether a vortex keeps its distance from others."""
    return all(distance(place, o) > _APART * 0.5 * (place.width + o.width) for o in others)


def radius(vortex: KnownVortex) -> float:
    """The root of the mean squared distance from the centre, by vorticity."""
    return math.sqrt(2) * vortex.width


class _World:
    """Vortices that move by `speed` radii a frame at most."""

    def __init__(self, seed: int, speed: float, count: int = 5) -> None:
        self.random = np.random.default_rng(seed)
        self.speed = speed
        self.next = 0
        self.vortices: list[KnownVortex] = []
        for _ in range(count):
            self.appear()

    def name(self) -> int:
        """The name of the next vortex."""
        self.next += 1
        return self.next - 1

    def appear(self) -> KnownVortex | None:
        """A new vortex, where there is room for one."""
        r = self.random
        for _ in range(30):
            new = KnownVortex(
                -1, r.uniform(0, LENGTH), r.uniform(0, LENGTH), r.uniform(1, 1.5), r.uniform(0.24, 0.34),
                int(r.choice([-1, 1])), r.uniform(0, 2 * math.pi),
            )  # fmt: skip
            if free(new, self.vortices):
                new.name = self.name()
                self.vortices.append(new)
                return new
        return None

    def move(self, vortex: KnownVortex) -> None:
        """Moves a vortex by a step: towards its partner, away from its parent, or as it likes."""
        r = self.random
        step = self.speed * radius(vortex) * r.uniform(0.6, 1.0)
        partner = next((o for o in self.vortices if o.name == vortex.partner), None)
        if partner is not None:
            vortex.heading = math.atan2(shift(vortex.y, partner.y), shift(vortex.x, partner.x))
            step = min(step, 0.25 * distance(vortex, partner))
        elif vortex.receding:
            vortex.receding -= 1
        else:
            vortex.heading += r.normal(0, 0.4)
        old = vortex.x, vortex.y
        vortex.x = (vortex.x + step * math.cos(vortex.heading)) % LENGTH
        vortex.y = (vortex.y + step * math.sin(vortex.heading)) % LENGTH
        others = [o for o in self.vortices if o is not vortex and o.name != vortex.partner and not o.receding]
        if not free(vortex, others) and not vortex.receding:
            vortex.x, vortex.y = old
            vortex.heading += math.pi / 2

    def step(self) -> list[tuple[int, int, int]]:
        """The next frame, and the edges that lead to it."""
        r = self.random
        names = [v.name for v in self.vortices]
        edges: dict[int, list[tuple[int, int]]] = {name: [(name, EdgeKind.CONTINUATION)] for name in names}
        for vortex in self.vortices:
            self.move(vortex)
        for vortex in list(self.vortices):
            partner = next((o for o in self.vortices if o.name == vortex.partner), None)
            if partner is None or partner.name < vortex.name:
                continue
            if distance(vortex, partner) < _TOUCHING * 0.5 * (vortex.width + partner.width):
                self.merge(vortex, partner, edges)
        merged = {child for parts in edges.values() for child, kind in parts if kind is EdgeKind.MERGE}
        settled = [v for v in self.vortices if v.partner is None and not v.receding and v.name not in merged]
        match int(r.integers(0, 8)):
            case 0 if len(settled) > 1:
                self.pair(settled)
            case 1 if settled:
                self.split(settled[int(r.integers(len(settled)))], edges)
            case 2:
                self.appear()
            case 3 if len(settled) > 2:
                dying = settled[int(r.integers(len(settled)))]
                self.vortices.remove(dying)
                edges[dying.name] = []
            case _:
                pass
        return [(name, child, kind) for name, parts in edges.items() for child, kind in parts]

    def pair(self, settled: list[KnownVortex]) -> None:
        """Chooses two that will merge: the nearest of one sign."""
        pairs = [(a, b) for a in settled for b in settled if a.name < b.name and a.sign == b.sign]
        if pairs:
            a, b = min(pairs, key=lambda pair: distance(*pair))
            a.partner, b.partner = b.name, a.name

    def merge(self, a: KnownVortex, b: KnownVortex, edges: dict[int, list[tuple[int, int]]]) -> None:
        """Two become one: circulation adds, at the common centre."""
        strength = {v.name: v.amplitude * v.width**2 for v in (a, b)}
        large, small = (a, b) if strength[a.name] >= strength[b.name] else (b, a)
        share = strength[small.name] / (strength[a.name] + strength[b.name])
        large.x = (large.x + share * shift(large.x, small.x)) % LENGTH
        large.y = (large.y + share * shift(large.y, small.y)) % LENGTH
        large.amplitude = max(large.amplitude, small.amplitude)
        large.width = math.sqrt(sum(strength.values()) / large.amplitude)
        large.partner = None
        self.vortices.remove(small)
        edges[small.name] = [(large.name, EdgeKind.MERGE)]

    def split(self, vortex: KnownVortex, edges: dict[int, list[tuple[int, int]]]) -> None:
        """One becomes two, where there is room; circulation and centre stay."""
        share = self.random.uniform(0.3, 0.48)
        width = vortex.width
        angle = self.random.uniform(0, 2 * math.pi)
        small_width, large_width = width * math.sqrt(share), width * math.sqrt(1 - share)
        if small_width < 0.17:
            return
        apart = 3.3 * 0.5 * (small_width + large_width)
        parts = [
            KnownVortex(
                vortex.name, (vortex.x - share * apart * math.cos(angle)) % LENGTH,
                (vortex.y - share * apart * math.sin(angle)) % LENGTH, vortex.amplitude, large_width, vortex.sign,
                angle + math.pi, None, 3,
            ),
            KnownVortex(
                -1, (vortex.x + (1 - share) * apart * math.cos(angle)) % LENGTH,
                (vortex.y + (1 - share) * apart * math.sin(angle)) % LENGTH, vortex.amplitude, small_width, vortex.sign,
                angle, None, 3,
            ),
        ]  # fmt: skip
        if not all(free(part, [o for o in self.vortices if o is not vortex]) for part in parts):
            return
        parts[1].name = self.name()
        self.vortices.remove(vortex)
        self.vortices += parts
        edges[vortex.name] = [(vortex.name, EdgeKind.CONTINUATION), (parts[1].name, EdgeKind.SPLIT)]


def snapshot(vortices: list[KnownVortex]) -> list[KnownVortex]:
    """Copies of the vortices as they are now."""
    return [KnownVortex(**vars(v)) for v in vortices]


def make_genealogy(seed: int, frames: int = 8, speed: float = 0.5) -> KnownGenealogy:
    """A genealogy of vortices that move by up to `speed` radii a frame."""
    world = _World(seed, speed)
    truth = KnownGenealogy([snapshot(world.vortices)])
    for number in range(frames - 1):
        truth.edges |= {(number, parent, child, int(kind)) for parent, child, kind in world.step()}
        truth.frames.append(snapshot(world.vortices))
    return truth


def render(vortices: list[KnownVortex], n: int) -> Any:
    """Vorticity of the vortices on the grid, with their nearest images."""
    points = np.arange(n) * (LENGTH / n)
    field_values = np.zeros((n, n))
    for v in vortices:
        dx, dy = points - v.x, points - v.y
        dx -= LENGTH * np.rint(dx / LENGTH)
        dy -= LENGTH * np.rint(dy / LENGTH)
        along_x, along_y = np.exp(-0.5 * (dx / v.width) ** 2), np.exp(-0.5 * (dy / v.width) ** 2)
        field_values += v.sign * v.amplitude * np.outer(along_y, along_x)
    return field_values


def scores(truth: KnownGenealogy, tracked: Genealogy) -> Any:
    """By kind (rows: continuation, split, merge): edges that are right, edges of the tracking, edges of the truth."""
    vertices = tracked.vertices
    names: dict[int, int] = {}
    for index in range(len(vertices)):
        step = int(vertices.step[index])
        near = [
            (math.hypot(shift(v.x, vertices.x[index]), shift(v.y, vertices.y[index])), v.name)
            for v in truth.frames[step]
            if v.sign * vertices.gamma[index] > 0
        ]
        if near and min(near)[0] < 0.3:
            names[index] = min(near)[1]
    edges = [
        (int(vertices.step[a]), names.get(a, -1), names.get(b, -1), int(kind))
        for a, b, kind in zip(tracked.parent.tolist(), tracked.child.tolist(), tracked.kind.tolist(), strict=True)
    ]
    return np.array(
        [
            [sum(e[3] == kind for e in some) for some in ({*edges} & truth.edges, edges, truth.edges)]
            for kind in EdgeKind
        ]
    )
