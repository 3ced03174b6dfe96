"""The filament engine: flows as a sparse set of vortex atoms that can be followed, counted and continued.

The state is structure, not a grid. An atom has a sign, a circulation of so many whole quanta, a place and a core; the
grid appears only where somebody asks to look.
"""

from __future__ import annotations

from dashi.filament.atoms import CORES, DOMAINS, Atoms, read_atoms, write_atoms
from dashi.filament.code import Packed, Unpacked, pack, unpack
from dashi.filament.events import ACCOUNTS, KINDS, AtomEvent, Ledger, Transfer
from dashi.filament.threads import Genealogy, TrackSettings, keep_books, track

__all__ = [
    "ACCOUNTS",
    "CORES",
    "DOMAINS",
    "KINDS",
    "AtomEvent",
    "Atoms",
    "Genealogy",
    "Ledger",
    "Packed",
    "TrackSettings",
    "Transfer",
    "Unpacked",
    "keep_books",
    "pack",
    "read_atoms",
    "track",
    "unpack",
    "write_atoms",
]
