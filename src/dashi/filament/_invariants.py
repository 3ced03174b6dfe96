"""Invariants of atoms, and how far they drift: what an inviscid flow keeps, measured in float64 on the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from dashi.core.rollouts.observer import Bound, Context, Observer, Slot, Values, require_stride
from dashi.filament.atoms import Atoms
from dashi.kernels.vortex._induction import LATTICE_TERMS, lattice_sums
from dashi.runtime.array import Array
from dashi.types import HostArray

Floats = npt.NDArray[np.float64]
_EULER: Final = 0.57721566490153286060651209
_BLOCK: Final = 1 << 20


@dataclass(frozen=True)
class Invariants:
    """What a state of atoms has after a step. Without viscosity all but the enstrophy stay in free space; in a periodic
    box angular impulse means nothing, and linear impulse is that of places as they went, not wrapped."""

    step: int
    circulation: float
    """Sum of Gamma, exact: it is counted in quanta."""
    quanta: int
    """Signed circulation, in quanta."""
    impulse_x: float
    """Sum of Gamma y."""
    impulse_y: float
    """-Sum of Gamma x."""
    angular_impulse: float | None
    """Sum of Gamma (x^2 + y^2); None in a periodic box."""
    hamiltonian: float
    """Interaction energy: minus the sum over pairs of Gamma_i Gamma_j G(r_ij)."""
    enstrophy: float
    """A proxy: the sum of the atoms' own, half the integral of the square of each atom's vorticity."""

    def document(self) -> dict[str, Any]:
        return asdict(self)


def invariants(atoms: Atoms, step: int = 0) -> Invariants:
    """The invariants of blobs."""
    with np.errstate(all="ignore"):
        return _invariants(atoms, step)


def _invariants(atoms: Atoms, step: int) -> Invariants:
    x, y = atoms.place[:, 0], atoms.place[:, 1]
    circulation, square = atoms.circulation, atoms.radius**2
    own = circulation**2 / ((4 if atoms.core == "gaussian" else 6) * math.pi * square)
    angular = None if atoms.is_periodic else _sum(circulation * (x * x + y * y))
    return Invariants(
        step=step, circulation=atoms.signed_quanta * atoms.quantum, quanta=atoms.signed_quanta,
        impulse_x=_sum(circulation * y), impulse_y=-_sum(circulation * x), angular_impulse=angular,
        hamiltonian=_hamiltonian(atoms), enstrophy=_sum(own),
    )  # fmt: skip


def _sum(values: Floats) -> float:
    """The sum, correctly rounded where all of it is finite."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return float(np.sum(values))


def _hamiltonian(atoms: Atoms) -> float:
    n, total = len(atoms), 0.0
    circulation, square = atoms.circulation, atoms.radius**2
    rows = max(1, _BLOCK // max(1, n))
    for first in range(0, n, rows):
        part = slice(first, first + rows)
        away = atoms.place[part, None] - atoms.place[None]
        if atoms.is_periodic:
            away = away - atoms.box * np.rint(away / atoms.box)
        mean = (square[part, None] + square[None]) / 2
        potential = _potential(away, mean, atoms)
        weights = circulation[part, None] * circulation[None]
        weights[np.arange(len(weights)), np.arange(first, first + len(weights))] = 0.0
        total -= _sum((weights * potential).ravel())
    return total / 2


def _potential(away: Floats, mean: Floats, atoms: Atoms) -> Floats:
    """G(r), the streamfunction of a unit atom: ln(r)/(2 pi) far from a core."""
    square = (away**2).sum(axis=-1)
    if atoms.core == "algebraic":
        return np.log(square + mean) / (4 * math.pi)
    ratio = square / mean
    near = (np.log(mean) + regular_logarithm(ratio)) / (4 * math.pi)
    if not atoms.is_periodic:
        return near
    z = (away[..., 0] + 1j * away[..., 1]) / atoms.box
    fourth, images = z**4, np.zeros_like(z)
    for k, value in reversed(list(enumerate(lattice_sums(LATTICE_TERMS["f64"]), start=1))):
        images = (images + value / (4 * k)) * fourth
    return near + (-images.real - math.pi * np.abs(z) ** 2 / 2) / (2 * math.pi)


def regular_logarithm(t: Floats) -> Floats:
    """ln t + E1(t), which is -Euler's constant + t - t^2/4 + ... at 0 (DLMF 6.6.2), to about 1e-15."""
    small = np.minimum(t, 2.0)
    series, term = np.zeros_like(small), np.ones_like(small)
    for k in range(1, 30):
        term = term * (-small / k)
        series -= term / k
    large = np.maximum(t, 2.0)
    fraction = np.zeros_like(large)
    for k in range(60, 0, -1):  # the continued fraction of E1, DLMF 6.9.1
        fraction = k / (1 + k / (large + fraction))
    return np.where(t < 2.0, series - _EULER, np.log(large) + np.exp(-large) / (large + fraction))


class InvariantsOf(Observer[Invariants]):
    """Looks at the invariants of the first state of a run of atoms, after every so many steps and at both ends."""

    name = "invariants"
    at_start = True
    at_end = True
    certified = False

    def __init__(self, every: int, measured: Callable[[HostArray, int], Invariants]) -> None:
        self.every = require_stride("every", every)
        self._measured = measured

    columns_of: ClassVar[Mapping[str, Slot]] = {
        **{field.name: ((), np.float64) for field in fields(Invariants) if field.name != "step"},
        "quanta": ((), np.int64),
    }

    def bind(self, context: Context) -> Bound:
        def steps(_before: Array, after: Array, slots: Any) -> list[Any]:
            return [context.device.copy_step(after, slots[0])]

        def take(step: int, values: Values) -> Invariants:
            return self._measured(values[0][0], step)

        return Bound([(context.shape, context.operator.dtype)], steps, take)

    def pack(self, record: Invariants) -> Mapping[str, Any]:
        return {name: np.nan if value is None else value for name, value in record.document().items()}

    def unpack(self, step: int, values: Mapping[str, Any]) -> Invariants:
        numbers: dict[str, Any] = {name: value.item() for name, value in values.items()}
        if math.isnan(numbers["angular_impulse"]):
            numbers["angular_impulse"] = None
        return Invariants(step=step, **numbers)
