"""Initial states from a file that holds vorticity: `.npy`, `.npz` with the key `vorticity`, or the last frame of a
Zarr store that a run left."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dashi.flow._fields import read_frame
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.initial import from_field
from dashi.io.arrays import read_array

SUFFIXES: Final = (".npy", ".npz", ".zarr")


def is_field_file(initial: str | Path) -> bool:
    """Whether an initial condition is the name of a file, and not that of a condition."""
    return Path(initial).suffix in SUFFIXES


def states_from_file(path: Path, flow: Flow) -> Floats:
    """The initial states (members, n, n/2 + 1, 2) of vorticity (n, n) or (members, n, n) in a file."""
    field = read_frame(path) if path.suffix == ".zarr" else read_array(path, "vorticity")
    return from_field(flow, field)
