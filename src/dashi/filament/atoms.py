"""`Atoms`: the state of the engine as a struct of arrays, checked whenever it is made.

Support, sign and magnitude are separate fields: an atom is there or not, turns one way or the other (`sign`), and has a
circulation of `quanta` whole quanta. The quantum is part of the state, so sums of circulation are sums of integers:
they close exactly. Two-dimensional atoms are blobs, or curves where they have vertices; those of three dimensions are
closed curves. Ids come from a counter in the state and are never used again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError, ShapeError
from dashi.filament._atoms_json import atoms_document, atoms_of_document, read_document, write_document

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CORES: Final = ("gaussian", "algebraic")
"""gaussian: vorticity Gamma exp(-r^2/delta^2) / (pi delta^2). algebraic: Gamma delta^2 / (pi (r^2 + delta^2)^2)."""
DOMAINS: Final = ("free", "periodic")
MOST: Final = 1 << 22
"""Atoms of a state, and vertices of all its curves, at most."""
MOST_QUANTA: Final = 1 << 62
"""Quanta of all atoms together stay below this, so that no sum of them overflows 64 bits."""
_FINEST: Final = 50
"""A chosen quantum is 2^-50 of the largest circulation at the finest: doubles hold the products exactly."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Atoms:
    """n atoms in 2 or 3 dimensions."""

    place: Floats
    """Centres, (n, 2) or (n, 3); of a curve the mean of its vertices."""
    sign: npt.NDArray[np.int8]
    """1 (counterclockwise) or -1, (n,)."""
    quanta: Ints
    """Magnitude of the circulation in quanta, 1 or more, (n,)."""
    radius: Floats
    """Core radii delta, above 0, (n,)."""
    quantum: float
    """Circulation of one quantum."""
    ids: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Ids, (n,); 0, 1, 2, ... where none are passed."""
    next_id: int = -1
    """The id of the next atom that is born; above all ids. -1: the first that is free."""
    jet: Floats | None = None
    """Elliptic jets, (n, 2), or None for circular cores: (a, b) with second moments of the vorticity about its centre
    delta^2 / 2 [[1 + a, b], [b, 1 - a]]; a^2 + b^2 below 1."""
    vertices: Floats | None = None
    """Vertices of all curves one after another, (v, d), or None where all atoms are blobs."""
    offsets: Ints | None = None
    """Curve i has the vertices offsets[i] up to offsets[i + 1], (n + 1,)."""
    closed: bool = True
    """Whether curves are closed; those of three dimensions are."""
    domain: str = "free"
    box: float = 2 * math.pi
    """Side of the periodic box."""
    core: str = "gaussian"

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        place = _floats("place", self.place)
        if place.ndim != 2 or place.shape[1] not in (2, 3):
            raise ShapeError(f"`place=` has shape {place.shape}.", "pass (n, 2), or (n, 3) for filaments in space.")
        if len(place) > MOST:
            raise InputError(f"{len(place)} atoms are more than {MOST}.", "use fewer atoms.")
        ids = np.arange(len(place)) if not np.size(self.ids) else self.ids
        arrays = {
            "place": place, "sign": _whole("sign", self.sign, np.int8), "quanta": _whole("quanta", self.quanta),
            "radius": _floats("radius", self.radius), "ids": _whole("ids", ids),
        }  # fmt: skip
        for name, values in arrays.items():
            if len(values) != len(place) or (name != "place" and values.ndim != 1):
                raise ShapeError(f"`{name}=` has shape {values.shape}, for {len(place)} atoms.", "pass one for each.")
            set_field(self, name, _frozen(values))
        if self.next_id == -1:
            set_field(self, "next_id", int(self.ids.max(initial=-1)) + 1)
        self._check_values()
        self._check_jet()
        self._check_curves()

    def _check_values(self) -> None:
        _refuse(~np.isin(self.sign, (-1, 1)), "sign", self.sign, "use 1 or -1.")
        _refuse(self.quanta < 1, "quanta", self.quanta, "leave atoms without circulation away.")
        _refuse(~(self.radius > 0), "radius", self.radius, "use core radii above 0.")
        _refuse(self.ids < 0, "ids", self.ids, "use ids of 0 or more.")
        if len(np.unique(self.ids)) != len(self.ids):
            raise InputError("two atoms have one id.", "use each id once.")
        if self.next_id <= self.ids.max(initial=-1):
            raise InputError(f"`next_id=` is {self.next_id}, and there is such an id.", "pass one above all ids.")
        if not (math.isfinite(self.quantum) and self.quantum > 0):
            raise InputError(f"`quantum=` is {self.quantum}.", "use a finite circulation above 0.")
        if sum(self.quanta.tolist()) >= MOST_QUANTA:
            raise InputError("these atoms have 2^62 quanta or more in all.", "use a coarser quantum.")
        if self.domain not in DOMAINS:
            raise InputError(f"`domain=` is {self.domain!r:.80}.", f"use one of {', '.join(DOMAINS)}.")
        if self.core not in CORES:
            raise InputError(f"`core=` is {self.core!r:.80}.", f"use one of {', '.join(CORES)}.")
        if not (math.isfinite(self.box) and self.box > 0):
            raise InputError(f"`box=` is {self.box}.", "use a side above 0.")
        if self.domain == "periodic" and self.dimensions == 3:
            raise InputError("filaments in space live in free space alone.", "use `domain='free'`.")

    def _check_jet(self) -> None:
        if self.jet is None:
            return
        jet = _floats("jet", self.jet)
        if jet.shape != (len(self), 2) or self.dimensions != 2:
            raise ShapeError(f"`jet=` has shape {jet.shape}.", f"pass ({len(self)}, 2), in two dimensions.")
        size = jet[:, 0] * jet[:, 0] + jet[:, 1] * jet[:, 1]
        _refuse(~(size < 1), "jet", size, "a^2 + b^2 is below 1: beyond it second moments are not positive.")
        object.__setattr__(self, "jet", _frozen(jet))

    def _check_curves(self) -> None:
        if (self.vertices is None) != (self.offsets is None):
            raise InputError("`vertices=` and `offsets=` go together.", "pass both, or none.")
        if self.vertices is None or self.offsets is None:
            if self.dimensions == 3 and len(self):
                raise InputError("atoms in space are curves.", "pass `vertices=` and `offsets=`.")
            return
        vertices, offsets = _floats("vertices", self.vertices), _whole("offsets", self.offsets)
        if vertices.ndim != 2 or vertices.shape[1] != self.dimensions or len(vertices) > MOST:
            raise ShapeError(
                f"`vertices=` has shape {vertices.shape}.", f"pass (v, {self.dimensions}), v up to {MOST}."
            )
        if offsets.shape != (len(self) + 1,) or offsets[0] != 0 or offsets[-1] != len(vertices):
            raise ShapeError(
                f"`offsets=` of shape {offsets.shape} do not divide {len(vertices)} vertices among {len(self)} atoms.",
                "begin with 0, end with the number of vertices.",
            )
        least = 3 if self.closed else 2
        _refuse(np.diff(offsets) < least, "offsets", np.diff(offsets), f"a curve has {least} vertices or more.")
        object.__setattr__(self, "vertices", _frozen(vertices))
        object.__setattr__(self, "offsets", _frozen(offsets))

    def __len__(self) -> int:
        return len(self.place)

    @property
    def dimensions(self) -> int:
        return int(self.place.shape[1])

    @property
    def circulation(self) -> Floats:
        """Signed circulations, (n,): sign times quanta times the quantum."""
        return self.sign * self.quanta.astype(np.float64) * self.quantum

    @property
    def signed_quanta(self) -> int:
        """The circulation of all atoms together, in quanta, exactly."""
        return int((self.sign.astype(np.int64) * self.quanta).sum())

    @property
    def total_quanta(self) -> int:
        """The magnitudes of all circulations together, in quanta, exactly."""
        return int(self.quanta.sum())

    @property
    def is_periodic(self) -> bool:
        return self.domain == "periodic"

    def wrapped(self) -> Atoms:
        """These atoms with centres in [0, box) where the domain is periodic."""
        if not self.is_periodic:
            return self
        inside = np.mod(self.place, self.box)
        return replace(self, place=np.where(inside < self.box, inside, 0.0))

    def taken(self, which: Any) -> Atoms:
        """Some of the atoms, by an index array or a mask; ids stay, and so does the counter."""
        rows = np.arange(len(self))[which]
        curves: dict[str, Any] = {}
        if self.vertices is not None and self.offsets is not None:
            parts = [self.vertices[self.offsets[i] : self.offsets[i + 1]] for i in rows]
            lengths = [len(part) for part in parts]
            curves["vertices"] = np.concatenate([*parts, np.zeros((0, self.dimensions))])
            curves["offsets"] = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
        return replace(
            self, place=self.place[rows], sign=self.sign[rows], quanta=self.quanta[rows], radius=self.radius[rows],
            ids=self.ids[rows], jet=None if self.jet is None else self.jet[rows], **curves,
        )  # fmt: skip

    @classmethod
    def of(cls, place: Any, circulation: Any, radius: Any, *, quantum: float | None = None, **named: Any) -> Atoms:
        """Atoms of signed circulations. Where no quantum is passed it is a power of two, 2^-50 of the largest
        circulation at the finest; each circulation is rounded to whole quanta, and none may round to 0."""
        values = _floats("circulation", circulation)
        radii = _floats("radius", radius)
        step = chosen_quantum(values) if quantum is None else quantum
        if not (math.isfinite(step) and step > 0):
            raise InputError(f"`quantum=` is {step}.", "use a finite circulation above 0.")
        quanta = np.rint(np.abs(values) / step)
        if (quanta >= MOST_QUANTA).any():
            raise InputError(f"a quantum of {step:g} is too fine for a circulation of {abs(values).max():g}.", _COARSER)
        _refuse((quanta < 1) & (values != 0), "circulation", values, f"a quantum of {step:g} is too coarse for it.")
        _refuse(values == 0, "circulation", values, "leave atoms without circulation away.")
        spread = np.broadcast_to(radii, values.shape) if radii.ndim == 0 else radii
        signs = np.where(values > 0, 1, -1).astype(np.int8)
        return cls(place=place, sign=signs, quanta=quanta.astype(np.int64), radius=spread, quantum=step, **named)

    @classmethod
    def empty(cls, dimensions: int = 2, *, quantum: float = 1.0, **named: Any) -> Atoms:
        """A state without atoms."""
        none = np.zeros(0)
        return cls(
            place=np.zeros((0, dimensions)), sign=none.astype(np.int8), quanta=none.astype(np.int64), radius=none,
            quantum=quantum, **named,
        )  # fmt: skip

    def document(self) -> dict[str, Any]:
        """The state as plain lists and numbers, for JSON; `from_document` is the inverse, bit for bit."""
        return atoms_document(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, domain: str | None = None, core: str | None = None) -> Atoms:
        """The state of a document, checked: `{"atoms": [{"x":, "y":, "gamma":, "radius":}, ...]}` at the least."""
        return atoms_of_document(cls, document, domain, core)


_COARSER: Final = "use a coarser one, or leave `quantum=` away."


def chosen_quantum(circulation: Floats) -> float:
    """A power of two, so fine that few atoms are held to 2^-50 of the largest, and so coarse that doubles hold the sum
    of all quanta exactly; 1 where there is no circulation."""
    largest = float(np.abs(circulation).max(initial=0.0))
    if largest == 0.0:
        return 1.0
    bits = min(_FINEST, 52 - int(np.size(circulation)).bit_length())
    return math.ldexp(1.0, max(math.frexp(largest)[1] - bits, -1000))


def read_atoms(path: Path | str, *, domain: str | None = None, core: str | None = None) -> Atoms:
    """The atoms that a JSON file holds. `domain` and `core` must be those of the file, where it names them."""
    return Atoms.from_document(read_document(Path(path)), domain=domain, core=core)


def write_atoms(path: Path | str, atoms: Atoms) -> None:
    """Keeps atoms as a JSON file, all or nothing."""
    write_document(Path(path), atoms.document())


def _floats(name: str, values: Any) -> Floats:
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"`{name}=` is not an array of numbers.", "pass finite numbers.") from error
    _refuse(~np.isfinite(array), name, array, "pass finite numbers.")
    return array


def _whole(name: str, values: Any, dtype: Any = np.int64) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise InputError(f"`{name}=` is an array of {array.dtype}.", "pass whole numbers.")
    return array.astype(dtype)


def _frozen(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copy = np.array(values, order="C")
    copy.setflags(write=False)
    return copy


def _refuse(faulty: Any, name: str, values: Any, fix: str) -> None:
    rows: Sequence[int] = np.flatnonzero(faulty).tolist()
    if rows:
        raise InputError(f"`{name}=` of atom {rows[0]} is {np.ravel(values)[rows[0]]} ({len(rows)} such).", fix)
