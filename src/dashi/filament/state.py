"""Atoms as rows of numbers, which operators advance: (x, y, d^2, signed quanta, id) of each.

Doubles hold whole numbers below 2^53 exactly, so quanta and ids are as exact there as in `Atoms`. A row without quanta
is an empty place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import FeatureError, InputError
from dashi.filament.atoms import Atoms
from dashi.types import HostArray

COLUMNS: Final = ("x", "y", "square", "quanta", "id")
EXACT: Final = 1 << 53
"""Whole numbers below it are doubles."""


def rows_of(atoms: Atoms, dtype: Any = np.float64, capacity: int | None = None) -> HostArray:
    """The rows of blobs, (n, 5), or of so many places."""
    if atoms.dimensions != 2 or atoms.vertices is not None:
        raise FeatureError("only blobs of two dimensions move by this operator.", "leave vertices away.")
    if atoms.jet is not None and np.any(atoms.jet):
        raise FeatureError("atoms with elliptic jets do not move by this operator.", "leave `jet=` away.")
    if atoms.total_quanta >= EXACT or atoms.next_id >= EXACT:
        raise InputError(
            f"{atoms.total_quanta} quanta are more than doubles hold exactly.",
            f"use a quantum of {float(atoms.total_quanta) * atoms.quantum / 2**52:g} or more.",
        )
    places = len(atoms) if capacity is None else capacity
    if places < len(atoms):
        raise InputError(f"{len(atoms)} atoms have no room in {places} places.", "use a larger budget.")
    rows = np.zeros((places, len(COLUMNS)))
    rows[:, 2] = 1.0
    columns = (*atoms.place.T, atoms.radius**2, atoms.sign * atoms.quanta.astype(np.float64), atoms.ids)
    rows[: len(atoms)] = np.stack(columns, axis=1)
    return rows.astype(dtype)


def atoms_of(rows: npt.NDArray[Any], like: Atoms, *, next_id: int | None = None) -> Atoms:
    """The atoms of rows, with the setting of other atoms. Rows of float32 hold places alone exactly: their quanta and
    ids are those of `like`, which they must have been made of."""
    if rows.dtype == np.float64:
        held = rows[rows[:, 3] != 0]
        quanta, ids = np.abs(held[:, 3]).astype(np.int64), held[:, 4].astype(np.int64)
        sign = np.where(held[:, 3] > 0, 1, -1).astype(np.int8)
    else:
        held, quanta, ids, sign = rows.astype(np.float64), like.quanta, like.ids, like.sign
    return replace(
        like, place=held[:, :2], radius=np.sqrt(held[:, 2]), quanta=quanta, ids=ids, sign=sign, jet=None,
        next_id=like.next_id if next_id is None else next_id,
    )  # fmt: skip
