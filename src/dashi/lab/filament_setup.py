"""What a run of vortex atoms is asked for: the request checked, atoms read, strides chosen."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Final

from dashi.core.operators.operator import Operator
from dashi.core.rollouts._checkpoint import identity
from dashi.core.rollouts._observers import Hashes
from dashi.core.rollouts.observer import Observer
from dashi.errors import InputError, UnknownNameError, suggestion
from dashi.filament._invariants import Invariants, InvariantsOf, invariants
from dashi.filament._normal_form import AtomRules
from dashi.filament.atoms import Atoms, read_atoms
from dashi.filament.events import Ledger
from dashi.filament.free import FreeAtoms
from dashi.filament.full import FullMesh
from dashi.filament.mesh import mesh_invariants, mesh_size, modes_of, particles
from dashi.filament.normal import Journal, NormalAtoms, table_atoms, table_of
from dashi.filament.state import atoms_of, rows_of
from dashi.flow.equations import Flow
from dashi.lab._job import AnyPath, Request
from dashi.types import HostArray

WAYS: Final = ("free", "full")
DTYPES: Final = ("float64", "float32")
_LOOKS: Final = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class FilamentRequest(Request):
    """Vortex atoms, moved for `steps` steps of `dt`."""

    atoms: Atoms | AnyPath
    """The atoms, or a JSON file of them."""
    steps: int
    dt: float
    nu: float = 0.0
    """Kinematic viscosity."""
    domain: str | None = None
    """free or periodic, which atoms of a file may leave open."""
    core: str | None = None
    """gaussian or algebraic, which atoms of a file may leave open."""
    way: str = "free"
    """free: atoms move each other, by direct sums; full: particles on a mesh, remeshed every step."""
    n: int | None = None
    """Points along a side of the mesh of the way full; so many that they resolve the smallest core where None."""
    dtype: str = "float64"
    rules: AtomRules = field(default_factory=AtomRules)
    """What the normal form asks of atoms after every step; no rules where nothing is set."""
    hash_every: int | None = None
    """Steps between hashes of the state; a tenth of the run where None."""
    look_every: int | None = None
    """Steps between looks at the invariants; a hundredth of the run where None."""
    checkpoint_every: int | None = None
    """Steps between checkpoints in the run folder; none where None."""


@dataclass(frozen=True)
class FilamentStrides:
    """After how many steps what is looked at."""

    hash: int
    look: int


@dataclass(frozen=True, eq=False)
class FilamentSetup:
    """What is run: atoms, the operator that advances them, and its initial state."""

    atoms: Atoms
    operator: Operator
    state: HostArray
    """(1, n, columns)."""
    strides: FilamentStrides
    journal: Journal
    """Events by step, as the run goes on."""

    @cached_property
    def identity(self) -> str:
        """What a checkpoint must belong to."""
        return identity(self.operator, self.state, strides=[self.strides.hash, self.strides.look])

    @property
    def observers(self) -> list[Observer[Any]]:
        return [InvariantsOf(self.strides.look, self.measured)]

    def measured(self, state: HostArray, step: int) -> Invariants:
        """The invariants of one state."""
        if isinstance(self.operator, FullMesh):
            return mesh_invariants(state, self.operator.flow, self.atoms, step)
        return invariants(self.atoms_of(state, step), step)

    def atoms_of(self, state: HostArray, step: int) -> Atoms:
        """The atoms of one state; particles of a mesh are entered into the journal as they become atoms."""
        if isinstance(self.operator, FullMesh):
            atoms, self.journal[step] = particles(state, self.atoms, step)
            return atoms
        if isinstance(self.operator, NormalAtoms):
            return table_atoms(state, self.atoms)
        return atoms_of(state, self.atoms)

    def ledger(self, last: int) -> Ledger:
        """The events of all steps up to this one."""
        return Ledger(event for step in sorted(self.journal) if step <= last for event in self.journal[step])

    @property
    def resumable(self) -> list[Observer[Any]]:
        """The observers whose records a checkpoint holds."""
        return [*self.observers, Hashes(self.strides.hash)]

    def settings(self, request: FilamentRequest) -> dict[str, object]:
        """All that decides the results of a run: where it runs does not."""
        return {
            "way": request.way, "n": request.n, "inputs": self.identity, "dtype": request.dtype, "steps": request.steps,
            "dt": request.dt, "nu": request.nu, **asdict(request.rules),
            "hash-every": self.strides.hash, "look-every": self.strides.look,
        }  # fmt: skip


def check_filament_request(request: FilamentRequest, out: object) -> None:
    """Refuses what cannot be meant, before a file is read or a device opened."""
    for name in ("steps", "hash_every", "look_every", "checkpoint_every"):
        value: int | None = getattr(request, name)
        if value is not None and value < 1:
            raise InputError(f"`{name}=` is {value}.", "use 1 or more.")
    if not 0 < request.dt < float("inf"):
        raise InputError(f"`dt=` is {request.dt}.", "use a time step above 0.")
    if not 0 <= request.nu < float("inf"):
        raise InputError(f"`nu=` is {request.nu}.", "use a viscosity of 0 or more.")
    for name, known in (("way", WAYS), ("dtype", DTYPES)):
        value = getattr(request, name)
        if value not in known:
            raise UnknownNameError(
                f"`{name}=` is {value!r:.40}.", f"{suggestion(str(value), known)}use one of {', '.join(known)}."
            )
    if request.way != "free" and request.rules.any:
        raise InputError(f"the way {request.way} has no rules for atoms.", "leave `rules=` away.")
    if request.way != "full" and request.n is not None:
        raise InputError(f"the way {request.way} has no mesh.", "leave `n=` away.")
    if request.rules.any and request.dtype != "float64":
        raise InputError("quanta are counted in float64 alone.", "use `dtype='float64'`, or no rules.")
    if request.checkpoint_every and out is None:
        raise InputError("checkpoints are kept in a run folder.", "name one with `out=`.")


def filament_setup(request: FilamentRequest) -> FilamentSetup:
    """Reads and checks the atoms."""
    atoms = request.atoms
    if isinstance(atoms, str | os.PathLike):
        atoms = read_atoms(os.fspath(atoms), domain=request.domain, core=request.core)
    else:
        for name in ("domain", "core"):
            if getattr(request, name) not in (None, getattr(atoms, name)):
                raise InputError(f"`{name}=` is not that of the atoms.", f"leave `{name}=` away.")
    if not len(atoms):
        raise InputError("there are no atoms.", "name at least one.")
    journal: Journal = {}
    if request.way == "full":
        if not atoms.is_periodic:
            raise InputError("particles on a mesh live in a periodic box here.", "use `domain='periodic'`.")
        flow = Flow(mesh_size(atoms, request.n), nu=request.nu, dt=request.dt, length=atoms.box, dtype=request.dtype)
        operator: Operator = FullMesh(flow)
        state = modes_of(atoms, flow.n, request.dtype)
    elif request.rules.any:
        operator = NormalAtoms.of(atoms, request.rules, dt=request.dt, nu=request.nu, journal=journal)
        state = table_of(atoms, operator.shape[0] - 1)
    else:
        operator = FreeAtoms.of(atoms, dt=request.dt, nu=request.nu, dtype=request.dtype)
        state = rows_of(atoms, request.dtype)
    tenth, hundredth = (max(1, request.steps // parts) for parts in (10, _LOOKS))
    strides = FilamentStrides(request.hash_every or tenth, request.look_every or hundredth)
    return FilamentSetup(atoms, operator, state[None], strides, journal)
