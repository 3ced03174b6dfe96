"""The normal form Pi: prune, merge, split, budget, in this order, until nothing changes; every change an event in whole
quanta.

Where several changes are possible the larger circulation goes first, then the smaller id. All arithmetic is additions,
products, quotients and square roots of doubles on the host, so the result has the same bits on every machine.

- *prune*: atoms of fewer than `weakest` quanta end; the account `pruned` receives them.
- *merge*: atoms nearer to each other than `merge` times the root of the mean of their d^2 become one. Of one sign,
  quanta add; centroid and second moment (so linear and angular impulse) stay, and the merged core must not be wider
  than `widest`. Of opposite signs the net remains, at the place and with the core of the larger; twice the smaller is
  annihilated.
- *split*: cores wider than `widest` become four of `NARROWER` times the radius, on a cross, with the same circulation,
  centroid and second moment (splitting of spreading cores: L. F. Rossi 1996, doi 10.1137/0917025). Atoms whose children
  would be pruned stay whole.
- *budget*: beyond `budget` atoms the weakest end; of equals that with the larger id.

Merging shortens the list and never widens a core beyond `widest`, and splitting ends with cores below it, so the passes
end; the result is its own normal form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.errors import FeatureError, InputError
from dashi.filament.atoms import Atoms
from dashi.filament.events import Account, AtomEvent, Transfer

NARROWER: Final = 0.8
"""Radius of a split atom's children, of its own."""
LARGEST_MERGE: Final = 0.9
"""Beyond it the children of a split, sqrt(2 (1 - 0.8^2)) / 0.8 = 1.06 of their radius apart, would nearly merge."""
_CROSS: Final = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))
_ROWS: Final = 512
_MANY: Final = 1 << 16


@dataclass(frozen=True, kw_only=True)
class AtomRules:
    """What the normal form asks of atoms; 0 switches a rule off."""

    weakest: int = 0
    """Quanta that an atom has at least."""
    merge: float = 0.0
    """Distance at which atoms merge, in units of their mean core radius; at most `LARGEST_MERGE`."""
    widest: float = 0.0
    """Core radius beyond which atoms split."""
    budget: int = 0
    """Atoms at most."""

    def __post_init__(self) -> None:
        for name in ("weakest", "budget"):
            value: object = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
                raise InputError(f"`{name}=` is {value!r:.40}.", "use a whole number, or 0 for no such rule.")
        if not 0 <= self.merge <= LARGEST_MERGE:
            raise InputError(f"`merge=` is {self.merge}.", f"use up to {LARGEST_MERGE}, or 0 for no merging.")
        if not 0 <= self.widest < math.inf:
            raise InputError(f"`widest=` is {self.widest}.", "use a core radius, or 0 for no splitting.")

    @property
    def any(self) -> bool:
        """Whether there is a rule at all."""
        return bool(self.weakest or self.merge or self.widest or self.budget)


@dataclass
class _Atom:
    """An atom under the rules."""

    number: int
    quanta: int
    """Signed."""
    x: float
    y: float
    square: float

    @property
    def rank(self) -> tuple[int, int]:
        return -abs(self.quanta), self.number


def normal_form(atoms: Atoms, rules: AtomRules, step: int = 0) -> tuple[Atoms, tuple[AtomEvent, ...]]:
    """The normal form of blobs, and the events that led there, each of this step."""
    if atoms.dimensions != 2 or atoms.vertices is not None or (atoms.jet is not None and np.any(atoms.jet)):
        raise FeatureError("the normal form is of circular blobs in two dimensions.", "leave jets and vertices away.")
    work = _Settling(atoms, rules, step)
    work.settle()
    return work.atoms(atoms), tuple(work.events)


class _Settling:
    """A list of atoms on its way to the normal form."""

    def __init__(self, atoms: Atoms, rules: AtomRules, step: int) -> None:
        signed = (atoms.sign.astype(np.int64) * atoms.quanta).tolist()
        columns = (atoms.ids.tolist(), signed, *atoms.place.T.tolist(), (atoms.radius**2).tolist())
        self._list: list[_Atom] = [_Atom(*row) for row in zip(*columns, strict=True)]
        self._rules, self._step, self._next = rules, step, atoms.next_id
        self._box = atoms.box if atoms.is_periodic else 0.0
        self.events: list[AtomEvent] = []

    def settle(self) -> None:
        """Applies the rules in order until none changes anything."""
        while True:
            before = len(self.events)
            self._prune()
            self._merge()
            self._split()
            self._keep_within_budget()
            if len(self.events) == before:
                return

    def atoms(self, like: Atoms) -> Atoms:
        rows = sorted(self._list, key=lambda atom: atom.number)
        if not rows:
            return replace(like.taken([]), next_id=self._next)
        quanta = np.array([atom.quanta for atom in rows], np.int64)
        return replace(
            like, place=np.array([(atom.x, atom.y) for atom in rows]), quanta=np.abs(quanta),
            sign=np.where(quanta > 0, 1, -1).astype(np.int8), radius=np.array([math.sqrt(a.square) for a in rows]),
            ids=np.array([atom.number for atom in rows], np.int64), next_id=self._next, jet=None,
        )  # fmt: skip

    def _prune(self) -> None:
        weak = [atom for atom in self._list if abs(atom.quanta) < self._rules.weakest]
        self._drop(sorted(weak, key=lambda atom: atom.rank), "prune", "pruned")

    def _keep_within_budget(self) -> None:
        budget = self._rules.budget
        if budget and len(self._list) > budget:
            self._drop(sorted(self._list, key=lambda atom: atom.rank)[budget:], "budget", "budget")

    def _drop(self, gone: Sequence[_Atom], kind: str, account: Account) -> None:
        for atom in gone:
            transfer = Transfer(account, atom.quanta, abs(atom.quanta))
            self._record(kind, [atom], [], [transfer])
        names = {atom.number for atom in gone}
        self._list = [atom for atom in self._list if atom.number not in names]

    def _merge(self) -> None:
        while self._rules.merge and len(self._list) > 1:
            pair = self._nearest_pair()
            if pair is None:
                return
            larger, smaller = sorted(pair, key=lambda atom: atom.rank)
            child = self._joined(larger, smaller)
            self._list = [atom for atom in self._list if atom is not larger and atom is not smaller]
            children: list[_Atom] = [child] if child.quanta else []
            self._list += children
            lost = abs(larger.quanta) + abs(smaller.quanta) - abs(child.quanta)
            transfers = [Transfer("annihilated", 0, lost)] if lost else []
            self._record("annihilate" if lost else "merge", [larger, smaller], children, transfers)

    def _nearest_pair(self) -> tuple[_Atom, _Atom] | None:
        """The pair that merges first: that of the largest atom that has a partner, with its largest partner."""
        ranked = sorted(self._list, key=lambda atom: atom.rank)
        x, y, square, quanta = (
            np.array([getattr(atom, name) for atom in ranked], np.float64) for name in ("x", "y", "square", "quanta")
        )
        limit = self._rules.merge * self._rules.merge
        for first in range(0, len(ranked), _ROWS):
            part = slice(first, first + _ROWS)
            dx, dy = (self._nearest_image(c[part, None] - c[None]) for c in (x, y))
            away = dx * dx + dy * dy
            close = away < limit * ((square[part, None] + square[None]) / 2)
            close &= np.arange(len(ranked)) > np.arange(first, first + len(close))[:, None]
            if self._rules.widest:
                both = quanta[part, None] + quanta[None]
                spread = np.abs(quanta[part, None] * quanta[None] / np.where(both, both, 1)) * away
                total = np.abs(quanta[part, None] * square[part, None] + quanta[None] * square[None]) + spread
                fits = total <= np.abs(both) * (self._rules.widest * self._rules.widest)
                close &= fits | (quanta[part, None] * quanta[None] < 0)
            rows, columns = np.nonzero(close)
            if len(rows):
                return ranked[first + int(rows[0])], ranked[int(columns[0])]
        return None

    def _nearest_image(self, away: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return away - self._box * np.rint(away / self._box) if self._box else away

    def _joined(self, larger: _Atom, smaller: _Atom) -> _Atom:
        quanta = larger.quanta + smaller.quanta
        if larger.quanta * smaller.quanta < 0:
            return replace(larger, number=self._born(1) if quanta else -1, quanta=quanta)
        away = self._nearest_image(np.array([smaller.x - larger.x, smaller.y - larger.y]))
        dx, dy = (float(along) for along in away)
        part = smaller.quanta / quanta
        square = (larger.quanta * larger.square + smaller.quanta * smaller.square) / quanta
        square += part * (larger.quanta / quanta) * (dx * dx + dy * dy)
        return _Atom(self._born(1), quanta, larger.x + part * dx, larger.y + part * dy, square)

    def _split(self) -> None:
        widest = self._rules.widest * self._rules.widest
        if not widest:
            return
        many = sum(min(abs(atom.quanta), 4.0 ** self._generations(atom, widest)) for atom in self._list)
        if many > _MANY:
            raise InputError(
                f"splitting cores wider than {self._rules.widest:g} makes about {many:.0f} atoms; the most is {_MANY}.",
                "use a larger `widest=`.",
            )
        while True:
            wide = [a for a in self._list if a.square > widest and abs(a.quanta) // 4 >= max(1, self._rules.weakest)]
            if not wide:
                return
            names = {atom.number for atom in wide}
            self._list = [atom for atom in self._list if atom.number not in names]
            for atom in sorted(wide, key=lambda atom: atom.rank):
                children = self._children(atom)
                self._list += children
                self._record("split", [atom], children, [])

    @staticmethod
    def _generations(atom: _Atom, widest: float) -> float:
        """How often an atom splits until its cores are narrow enough."""
        return max(0.0, math.ceil(min(400.0, math.log(atom.square / widest) / -math.log(NARROWER * NARROWER))))

    def _children(self, atom: _Atom) -> list[_Atom]:
        square = NARROWER * NARROWER * atom.square
        reach = math.sqrt(atom.square - square)
        size, sign = abs(atom.quanta), 1 if atom.quanta > 0 else -1
        number = self._born(4)
        # Whole quanta do not always divide by four: opposite children are as equal as they can be.
        parts = [sign * ((size + k) // 4) for k in (3, 1, 2, 0)]
        return [
            _Atom(number + k, parts[k], atom.x + reach * ex, atom.y + reach * ey, square)
            for k, (ex, ey) in enumerate(_CROSS)
        ]

    def _born(self, count: int) -> int:
        self._next += count
        return self._next - count

    def _record(
        self, kind: str, parents: Sequence[_Atom], children: Sequence[_Atom], transfers: Sequence[Transfer]
    ) -> None:
        before, after = (tuple((atom.number, atom.quanta) for atom in atoms) for atoms in (parents, children))
        self.events.append(AtomEvent(self._step, kind, before, after, tuple(transfers)))  # pyright: ignore[reportArgumentType]
