"""The filament engine: flows as a sparse set of vortex atoms that can be followed, counted and continued.

The state is structure, not a grid. An atom has a sign, a circulation of so many whole quanta, a place and a core; the
grid appears only where somebody asks to look.
"""

from __future__ import annotations

from dashi.filament._invariants import Invariants, InvariantsOf, invariants
from dashi.filament._normal_form import AtomRules, normal_form
from dashi.filament.atoms import CORES, DOMAINS, Atoms, read_atoms, write_atoms
from dashi.filament.code import Packed, Unpacked, pack, unpack
from dashi.filament.events import ACCOUNTS, KINDS, AtomEvent, Ledger, Transfer
from dashi.filament.free import FreeAtoms
from dashi.filament.full import FullMesh
from dashi.filament.mesh import render
from dashi.filament.normal import NormalAtoms
from dashi.filament.state import atoms_of, rows_of
from dashi.filament.threads import Genealogy, TrackSettings, keep_books, track

__all__ = [
    "ACCOUNTS",
    "CORES",
    "DOMAINS",
    "KINDS",
    "AtomEvent",
    "AtomRules",
    "Atoms",
    "FreeAtoms",
    "FullMesh",
    "Genealogy",
    "Invariants",
    "InvariantsOf",
    "Ledger",
    "NormalAtoms",
    "Packed",
    "TrackSettings",
    "Transfer",
    "Unpacked",
    "atoms_of",
    "invariants",
    "keep_books",
    "normal_form",
    "pack",
    "read_atoms",
    "render",
    "rows_of",
    "track",
    "unpack",
    "write_atoms",
]
