"""Between atoms and meshes: atoms rendered at any resolution, particles of a mesh as atoms, what a mesh keeps.

Rendering is arithmetic with the portable exponential on the host, one line along each axis for every atom, so a field
has the same bits on every machine. Point (i, j) of a field [y, x] lies at (j, i) box / n.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import FeatureError, InputError
from dashi.filament._invariants import Invariants
from dashi.filament.atoms import Atoms
from dashi.filament.events import AtomEvent, Transfer
from dashi.flow import grid
from dashi.flow.equations import Flow
from dashi.kernels.portable import divide, exp, mul
from dashi.types import HostArray

Floats = npt.NDArray[np.float64]
SIZES: Final = (64, 128, 256, 512, 1024)
"""Meshes that `mesh_size` chooses from."""
PER_CORE: Final = 2.0
"""Points that the radius of the smallest core spans at least."""
FAINTEST: Final = 2.0**-24
"""Particles weaker than this part of the strongest are not listed as atoms."""
_IMAGES: Final = (-2, -1, 0, 1, 2)
_LARGEST: Final = 4096


def mesh_size(atoms: Atoms, asked: int | None = None) -> int:
    """Points along a side: those asked for, or the fewest of `SIZES` that resolve the smallest core."""
    if asked is not None:
        return asked
    smallest = float(atoms.radius.min(initial=atoms.box))
    for n in SIZES:
        if atoms.box / n * PER_CORE <= smallest:
            return n
    raise InputError(
        f"a core of radius {smallest:g} needs a mesh finer than {SIZES[-1]} points in a box of {atoms.box:g}.",
        "use wider cores, a smaller box, or say `n=` yourself.",
    )


def render(atoms: Atoms, n: int) -> Floats:
    """Vorticity of Gaussian blobs in a periodic box on n x n points, [y, x]."""
    if not atoms.is_periodic or atoms.core != "gaussian" or atoms.dimensions != 2 or atoms.vertices is not None:
        raise FeatureError("only gaussian blobs in a periodic box are rendered.", "use `domain='periodic'`.")
    if atoms.jet is not None and np.any(atoms.jet):
        raise FeatureError("elliptic jets are not rendered.", "leave `jet=` away.")
    if not 1 <= n <= _LARGEST:
        raise InputError(f"`n=` is {n}.", f"use 1 to {_LARGEST}.")
    field = np.zeros((n, n))
    points = np.arange(n) * (atoms.box / n)
    for (x, y), circulation, radius in zip(atoms.place.tolist(), atoms.circulation, atoms.radius.tolist(), strict=True):
        along, across = (_line(points - centre, radius, atoms.box) for centre in (x, y))
        peak = float(circulation) / (math.pi * radius * radius)
        field += mul(mul(np.float64(peak), across)[:, None], along[None])
    return field


def _line(away: Floats, radius: float, box: float) -> Floats:
    nearest = away - box * np.rint(away / box)
    total = np.zeros_like(nearest)
    for image in _IMAGES:
        ratio = divide(nearest + image * box, np.float64(radius))
        total += exp(-mul(ratio, ratio))
    return total


def modes_of(atoms: Atoms, n: int, dtype: Any = np.float64) -> HostArray:
    """The state of the solver, and of `FullMesh`, for atoms: (n, n/2 + 1, 2).

    Its mean is 0, as in every periodic box: a net circulation turns against an even background.
    """
    return grid.to_modes(render(atoms, n)).astype(dtype)


def particles(state: HostArray, like: Atoms, step: int) -> tuple[Atoms, tuple[AtomEvent, ...]]:
    """The particles of a mesh as atoms of whole quanta, and the event that they came by: the account `refit` receives
    what rounding, and leaving out the faintest, take from the atoms of the start."""
    field = grid.to_field(np.asarray(state, np.float64)) + _background(like)
    n = field.shape[-1]
    width = like.box / n
    strength = (field * (width * width)).ravel()
    quanta = np.rint(strength / like.quantum)
    listed = (quanta != 0) & (np.abs(strength) >= FAINTEST * np.abs(strength).max(initial=0.0))
    rows, columns = np.divmod(np.flatnonzero(listed), n)
    numbers = like.next_id + np.arange(len(rows))
    atoms = Atoms(
        place=np.stack([columns, rows], axis=1) * width, sign=np.sign(quanta[listed]).astype(np.int8),
        quanta=np.abs(quanta[listed]).astype(np.int64), radius=np.full(len(rows), width), quantum=like.quantum,
        ids=numbers, next_id=like.next_id + len(rows), domain=like.domain, box=like.box, core=like.core,
    )  # fmt: skip
    before, after = (_signed(one) for one in (like, atoms))
    rest = Transfer("refit", like.signed_quanta - atoms.signed_quanta, like.total_quanta - atoms.total_quanta)
    return atoms, (AtomEvent(step, "refit", before, after, (rest,)),)


def _background(atoms: Atoms) -> float:
    """Vorticity of the even background, with its sign turned."""
    return atoms.signed_quanta * atoms.quantum / (atoms.box * atoms.box)


def _signed(atoms: Atoms) -> tuple[tuple[int, int], ...]:
    signed = atoms.sign.astype(np.int64) * atoms.quanta
    return tuple(zip(atoms.ids.tolist(), signed.tolist(), strict=True))


def mesh_invariants(state: HostArray, flow: Flow, like: Atoms, step: int) -> Invariants:
    """What a state of the mesh has, which atoms began; places of impulse are those of the points, in [0, box)."""
    modes = np.asarray(state, np.float64)
    square = (modes**2).sum(axis=-1) * grid.counted(flow.n)
    area = flow.length**2
    field = (grid.to_field(modes) + _background(like)) * flow.dx**2
    points = np.arange(flow.n) * flow.dx
    circulation = like.signed_quanta * like.quantum + float(modes[0, 0, 0]) * area
    return Invariants(
        step=step, circulation=circulation, quanta=round(circulation / like.quantum),
        impulse_x=float((field * points[:, None]).sum()), impulse_y=-float((field * points[None]).sum()),
        angular_impulse=None, hamiltonian=float((square * grid.waves(flow)[2]).sum()) * area / 2,
        enstrophy=float(square.sum()) * area / 2,
    )  # fmt: skip
