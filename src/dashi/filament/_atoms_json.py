"""Atoms as JSON: what people write by hand at the least, and all of a state at the most. Files are hostile until they
are checked: their size is bounded before they are read, unknown keys and other versions are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from dashi.errors import FileError, InputError, suggestion
from dashi.io._files import read_plain, write_text

if TYPE_CHECKING:
    from dashi.filament.atoms import Atoms

VERSION: Final = 1
LARGEST: Final = 1 << 28
"""Bytes of a file, at most."""
_HEAD: Final = ("version", "dimensions", "domain", "box", "core", "quantum", "next_id", "closed", "atoms")
_ATOM: Final = ("id", "x", "y", "z", "gamma", "sign", "quanta", "radius", "jet", "vertices")
_FIX: Final = 'pass {"atoms": [{"x": 0.0, "y": 0.0, "gamma": 1.0, "radius": 0.1}, ...]}.'


def atoms_document(atoms: Atoms) -> dict[str, Any]:
    """A state as a document."""
    axes = "xyz"[: atoms.dimensions]
    rows: list[dict[str, Any]] = []
    circulation = atoms.circulation.tolist()
    for i in range(len(atoms)):
        row: dict[str, Any] = {"id": int(atoms.ids[i])}
        row |= dict(zip(axes, atoms.place[i].tolist(), strict=True))
        row |= {"gamma": circulation[i], "sign": int(atoms.sign[i]), "quanta": int(atoms.quanta[i])}
        row["radius"] = float(atoms.radius[i])
        if atoms.jet is not None:
            row["jet"] = atoms.jet[i].tolist()
        if atoms.vertices is not None and atoms.offsets is not None:
            row["vertices"] = atoms.vertices[atoms.offsets[i] : atoms.offsets[i + 1]].tolist()
        rows.append(row)
    return {
        "version": VERSION, "dimensions": atoms.dimensions, "domain": atoms.domain, "box": atoms.box,
        "core": atoms.core, "quantum": atoms.quantum, "next_id": atoms.next_id, "closed": atoms.closed, "atoms": rows,
    }  # fmt: skip


def atoms_of_document(kind: type[Atoms], document: Mapping[str, Any], domain: str | None, core: str | None) -> Atoms:
    """The state of a document."""
    head, rows = _checked(document)
    dimensions = int(head.get("dimensions", 2))
    named: dict[str, Any] = {"domain": _agreed("domain", head, domain), "core": _agreed("core", head, core)}
    named = {name: value for name, value in named.items() if value is not None}
    named |= {name: head[name] for name in ("box", "next_id", "closed") if name in head}
    if not rows:
        return kind.empty(dimensions, quantum=float(head.get("quantum", 1.0)), **named)
    axes = "xyz"[:dimensions]
    named |= _columns_of(rows, dimensions)
    vertices = named.get("vertices")
    if vertices is not None and not any(axis in rows[0] for axis in axes):
        ends = named["offsets"]
        place = np.array([vertices[a:b].mean(axis=0) for a, b in pairwise(ends)])
    else:
        place = np.stack([_column(rows, axis) for axis in axes], axis=1)
    radius = _column(rows, "radius")
    if any("quanta" in row or "sign" in row for row in rows):
        if "quantum" not in head:
            raise InputError("atoms have `quanta`, and the document has no `quantum`.", "add it, or leave them away.")
        return kind(
            place=place, sign=_whole_column(rows, "sign"), quanta=_whole_column(rows, "quanta"), radius=radius,
            quantum=float(head["quantum"]), **named,
        )  # fmt: skip
    quantum = float(head["quantum"]) if "quantum" in head else None
    return kind.of(place, _column(rows, "gamma"), radius, quantum=quantum, **named)


def read_document(path: Path) -> Mapping[str, Any]:
    """The document of a JSON file."""
    try:
        document: Any = json.loads(read_plain(path, LARGEST))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is no JSON: {error}.", _FIX) from error
    if not isinstance(document, dict):
        raise FileError(f"{path} holds no object.", _FIX)
    return cast("Mapping[str, Any]", document)


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a document, all or nothing."""
    write_text(path, json.dumps(document, allow_nan=False) + "\n")


def _checked(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    if not isinstance(document, Mapping) or not isinstance(document.get("atoms"), list):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("the document has no list `atoms`.", _FIX)
    version = document.get("version", VERSION)
    if version != VERSION:
        raise InputError(
            f"the state is of version {version!r:.40}.", f"use the dashi that wrote it; this one reads {VERSION}."
        )
    _require_known(document, _HEAD)
    for name, kinds in (("quantum", (int, float)), ("box", (int, float)), ("next_id", (int,)), ("dimensions", (int,))):
        if name in document and (not isinstance(document[name], kinds) or isinstance(document[name], bool)):
            raise InputError(f"`{name}` of the state is {document[name]!r:.40}.", "use a number.")
    if document.get("dimensions", 2) not in (2, 3) or not isinstance(document.get("closed", True), bool):
        raise InputError("`dimensions` is 2 or 3, and `closed` true or false.", "correct the state.")
    rows: list[Any] = document["atoms"]
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"atom {number} is {row!r:.40}.", _FIX)
        _require_known(cast("Mapping[str, Any]", row), _ATOM)
    return document, rows


def _require_known(names: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"there is no key {name!r:.80}.", f"{suggestion(str(name), known)}use {', '.join(known)}.")


def _agreed(name: str, head: Mapping[str, Any], asked: str | None) -> str | None:
    stored = head.get(name)
    if stored is not None and asked is not None and stored != asked:
        raise InputError(f"the state has `{name}` {stored!r:.40}, not {asked!r}.", f"leave `{name}=` away.")
    return asked if stored is None else stored


def _columns_of(rows: list[Mapping[str, Any]], dimensions: int) -> dict[str, Any]:
    """What some states have and others have not: ids, jets, curves; all atoms have it, or none."""
    columns: dict[str, Any] = {}
    for name in ("id", "jet", "vertices"):
        present = sum(name in row for row in rows)
        if not present:
            continue
        if present != len(rows):
            raise InputError(f"some atoms have `{name}`, and others have not.", "say it of all, or of none.")
        if name == "id":
            columns["ids"] = _whole_column(rows, name)
        elif name == "jet":
            columns["jet"] = _numbers(name, [row[name] for row in rows])
        else:
            curves = [_numbers(name, row[name]).reshape(-1, dimensions) for row in rows]
            columns["vertices"] = np.concatenate(curves)
            columns["offsets"] = np.concatenate([[0], np.cumsum([len(curve) for curve in curves])]).astype(np.int64)
    return columns


def _column(rows: list[Mapping[str, Any]], name: str) -> np.ndarray[Any, Any]:
    for number, row in enumerate(rows):
        value = row.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(f"`{name}` of atom {number} is {value!r:.40}.", "use a finite number.")
    return _numbers(name, [row[name] for row in rows])


def _whole_column(rows: list[Mapping[str, Any]], name: str) -> np.ndarray[Any, Any]:
    for number, row in enumerate(rows):
        value = row.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 63:
            raise InputError(f"`{name}` of atom {number} is {value!r:.40}.", "use a whole number of 64 bits.")
    return np.array([row[name] for row in rows], np.int64)


def _numbers(name: str, values: Any) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"`{name}` of the atoms are no numbers.", "use finite numbers.") from error
    if not np.isfinite(array).all():
        raise InputError(f"`{name}` of the atoms has values that are not finite.", "use finite numbers.")
    return array
