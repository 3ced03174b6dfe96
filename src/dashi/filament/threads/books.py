"""Books: where the circulation and the impulse of every vertex of a genealogy came from, and where they went.

Edges carry circulation: a child that split off takes its own, the rest goes on. What a vertex has is what its edges
brought and what entries of named accounts added; what it gives is all it has. Everything is a whole number, so that the
books close exactly or not at all:

    first, last   the first and the last step of the record
    birth, death  threads that begin or end by themselves
    exchange      circulation that a blob took from its surroundings, or lost to them, between two frames: viscosity,
                  the edge of the blob, and whatever else data of others do not explain
    motion        impulse that moving atoms change; border: that of leaving the box on one side and entering on another

The impulse of an atom is (Gamma y, -Gamma x), with places in 2^16 parts of the box.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from dashi.errors import BooksError, BoundsError
from dashi.filament.threads.genealogy import Genealogy
from dashi.filament.threads.linking import EdgeKind

QUANTITIES: Final = ("signed", "magnitude", "impulse_x", "impulse_y")
"""Signed circulation and its magnitude, in quanta; impulse in quanta times 2^-16 of the box."""
ACCOUNTS: Final = ("first", "birth", "exchange", "motion", "border", "death", "last")
PARTS: Final = 1 << 16
Amounts = tuple[int, int, int, int]
_NOTHING: Amounts = (0, 0, 0, 0)


@dataclass(frozen=True)
class Entry:
    """What an account gave to a vertex as it came to be, or took from it as it ended."""

    vertex: int
    account: str
    amounts: Amounts
    arriving: bool


@dataclass(frozen=True)
class BooksDefect:
    """A vertex whose books do not close: what is missing of one quantity, as it arrives or as it leaves."""

    step: int
    thread: int
    vertex: int
    quantity: str
    missing: int
    arriving: bool

    def __str__(self) -> str:
        side = "inflow" if self.arriving else "outflow"
        return f"step {self.step}, thread {self.thread}: the {side} of {self.quantity} is off by {self.missing}"


@dataclass(frozen=True, eq=False)
class Books:
    """What every vertex has, what every edge carries, and the entries of all accounts."""

    genealogy: Genealogy
    amounts: tuple[Amounts, ...]
    flows: tuple[Amounts, ...]
    entries: tuple[Entry, ...]

    def defects(self) -> list[BooksDefect]:
        """All vertices that do not balance, by step."""
        arriving: list[list[int]] = [[0] * len(QUANTITIES) for _ in self.amounts]
        leaving: list[list[int]] = [[0] * len(QUANTITIES) for _ in self.amounts]
        parents: list[int] = self.genealogy.parent.tolist()
        children: list[int] = self.genealogy.child.tolist()
        for parent, child, flow in zip(parents, children, self.flows, strict=True):
            _add(leaving[parent], flow)
            _add(arriving[child], flow)
        for entry in self.entries:
            _add((arriving if entry.arriving else leaving)[entry.vertex], entry.amounts)
        return [*self._differences(arriving, arriving=True), *self._differences(leaving, arriving=False)]

    def _differences(self, sums: list[list[int]], *, arriving: bool) -> Iterator[BooksDefect]:
        vertices = self.genealogy.vertices
        for index, (has, flow) in enumerate(zip(self.amounts, sums, strict=True)):
            for name, amount, total in zip(QUANTITIES, has, flow, strict=True):
                if amount != total:
                    step, thread = int(vertices.step[index]), int(vertices.thread[index])
                    yield BooksDefect(step, thread, index, name, amount - total, arriving)

    def require_closed(self) -> None:
        """Raises BooksError where anything is unattributed."""
        defects = self.defects()
        if defects:
            raise BooksError(
                f"the books do not close in {len(defects)} places: {'; '.join(map(str, defects[:3]))}.",
                "name the account of what is missing; it is a defect of what wrote these books.",
            )

    def totals(self) -> dict[str, dict[str, int]]:
        """What every account gave, less what it took, of every quantity."""
        sums: dict[str, list[int]] = {name: [0] * len(QUANTITIES) for name in ACCOUNTS}
        for entry in self.entries:
            _add(sums[entry.account], entry.amounts if entry.arriving else _negative(entry.amounts))
        return {name: dict(zip(QUANTITIES, amounts, strict=True)) for name, amounts in sums.items()}

    @property
    def unexplained(self) -> float:
        """Circulation that blobs exchanged with their surroundings, over all that arrived: the part of data of others
        that no edge explains."""
        moved = sum(abs(entry.amounts[0]) for entry in self.entries if entry.account == "exchange")
        steps = self.genealogy.vertices.step
        all_of_it = sum(amounts[1] for amounts, step in zip(self.amounts, steps.tolist(), strict=True) if step > 0)
        return moved / all_of_it if all_of_it else 0.0

    def with_leak(self, edge: int, amount: int = 1) -> Books:
        """Books from which so many quanta of what an edge carries were lost: an audit must find them."""
        if not 0 <= edge < len(self.flows):
            raise BoundsError(f"there is no edge {edge}.", f"there are {len(self.flows)}.")
        flow = self.flows[edge]
        flows = [*self.flows]
        flows[edge] = (flow[0] - amount, *flow[1:])
        return replace(self, flows=tuple(flows))


def keep_books(genealogy: Genealogy) -> Books:
    """The books of a genealogy."""
    vertices = genealogy.vertices
    places = [_place(float(x), float(y), genealogy.length) for x, y in zip(vertices.x, vertices.y, strict=True)]
    gammas = [int(gamma) for gamma in vertices.gamma]
    amounts = tuple(_amounts(gamma, place) for gamma, place in zip(gammas, places, strict=True))
    carried, rest = _carried(genealogy, gammas)
    parents: list[int] = genealogy.parent.tolist()
    children: list[int] = genealogy.child.tolist()
    flows = tuple(_amounts(gamma, places[parent], abs(gamma)) for gamma, parent in zip(carried, parents, strict=True))
    entries: list[Entry] = []
    brought = [0] * len(gammas)
    for parent, child, gamma in zip(parents, children, carried, strict=True):
        brought[child] += gamma
        entries += _moved(child, gamma, places[parent], places[child])
    magnitudes = [0] * len(gammas)
    for child, flow in zip(children, flows, strict=True):
        magnitudes[child] += flow[1]
    with_parents = set(children)
    outgoing: dict[int, int] = {}
    for parent, gamma in zip(parents, carried, strict=True):
        outgoing[parent] = outgoing.get(parent, 0) + abs(gamma)
    last = len(genealogy.times) - 1
    for index, (gamma, step) in enumerate(zip(gammas, vertices.step.tolist(), strict=True)):
        if index not in with_parents:
            entries.append(Entry(index, "first" if step == 0 else "birth", amounts[index], arriving=True))
        else:
            missing = _amounts(gamma - brought[index], places[index], abs(gamma) - magnitudes[index])
            entries.append(Entry(index, "exchange", missing, arriving=True))
        if rest[index] is not None:
            left = _amounts(rest[index] or 0, places[index], abs(rest[index] or 0))
            entries.append(Entry(index, "last" if step == last else "death", left, arriving=False))
        # Parts may have more magnitude than the whole, where what split off has more than there was.
        surplus = amounts[index][1] - outgoing.get(index, 0) - abs(rest[index] or 0)
        entries.append(Entry(index, "exchange", (0, surplus, 0, 0), arriving=False))
    return Books(genealogy, amounts, flows, tuple(entry for entry in entries if entry.amounts != _NOTHING))


def _place(x: float, y: float, length: float) -> tuple[int, int]:
    """A place in parts of the box."""
    return round(x / length * PARTS), round(y / length * PARTS)


def _carried(genealogy: Genealogy, gammas: list[int]) -> tuple[list[int], list[int | None]]:
    """The signed circulation that every edge carries, and what is left of a vertex that nothing goes on from."""
    carried = [0] * len(genealogy.parent)
    left: list[int | None] = [*gammas]
    main: dict[int, int] = {}
    kinds = genealogy.kind.tolist()
    for edge, (parent, child) in enumerate(zip(genealogy.parent.tolist(), genealogy.child.tolist(), strict=True)):
        if kinds[edge] == EdgeKind.SPLIT:
            carried[edge] = gammas[child]
            left[parent] = (left[parent] or 0) - gammas[child]
        else:
            main[parent] = edge
    for parent, edge in main.items():
        carried[edge] = left[parent] or 0
        left[parent] = None
    return carried, left


def _moved(child: int, gamma: int, start: tuple[int, int], end: tuple[int, int]) -> list[Entry]:
    """The impulse that circulation gains on its way, by moving and by crossing the border."""
    way = [b - a for a, b in zip(start, end, strict=True)]
    jump = [PARTS * round(d / PARTS) for d in way]
    moved = (way[0] - jump[0], way[1] - jump[1])
    return [
        Entry(child, "motion", (0, 0, gamma * moved[1], -gamma * moved[0]), arriving=True),
        Entry(child, "border", (0, 0, gamma * jump[1], -gamma * jump[0]), arriving=True),
    ]


def _amounts(gamma: int, place: tuple[int, int], magnitude: int | None = None) -> Amounts:
    return gamma, abs(gamma) if magnitude is None else magnitude, gamma * place[1], -gamma * place[0]


def _add(sums: list[int], amounts: Amounts) -> None:
    for index, amount in enumerate(amounts):
        sums[index] += amount


def _negative(amounts: Amounts) -> Amounts:
    a, b, c, d = amounts
    return -a, -b, -c, -d
