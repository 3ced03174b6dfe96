"""Free atoms that are brought to their normal form after every step: they merge, split, are pruned, within a budget.

A state is a table of places, (places + 1, 6). Row 0 is the counter: its id is that of the next atom that is born, its
last column the number of steps done. The other rows are atoms (`dashi.filament.state`), or empty. The step is that of
`FreeAtoms`, by kernels, and then the normal form, by a function of the host whose bits are those of every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from dashi.core.operators.operator import Constants, Operator, Parameter, Strategy
from dashi.errors import InputError
from dashi.filament._normal_form import AtomRules, normal_form
from dashi.filament.atoms import Atoms
from dashi.filament.events import AtomEvent
from dashi.filament.free import FreeAtoms
from dashi.filament.state import COLUMNS, atoms_of, rows_of
from dashi.flow._operator import DeviceTables
from dashi.kernels.abi import Limits
from dashi.runtime.array import Array
from dashi.runtime.device import AnyStep, Device
from dashi.types import HostArray, Shape

Journal = dict[int, tuple[AtomEvent, ...]]
"""Events by the step after which they came."""


class NormalAtoms(Operator):
    """One step of dt of blobs in at most so many places, and their normal form. `journal` is where events are entered;
    it is no part of what the operator computes."""

    kind = "filament-normal"

    def __init__(
        self, places: int, rules: AtomRules, *, dt: float, quantum: float, nu: float = 0.0, box: float = 0.0,
        core: str = "gaussian", journal: Journal | None = None,
    ) -> None:  # fmt: skip
        self._free = FreeAtoms(places + 1, dt=dt, quantum=quantum, nu=nu, box=box, core=core, mixed=True)
        if rules.widest and not rules.budget:
            raise InputError("cores that split need a budget.", "set the `budget=` of the rules.")
        self._rules, self._places = rules, places
        named: dict[str, Any] = {"domain": "periodic", "box": box} if box else {"domain": "free"}
        self._empty = Atoms.empty(quantum=quantum, core=core, **named)
        self._journal: Journal = {} if journal is None else journal

    @classmethod
    def of(
        cls, atoms: Atoms, rules: AtomRules, *, dt: float, nu: float = 0.0, journal: Journal | None = None
    ) -> NormalAtoms:
        """The operator that advances these atoms (`table_of`)."""
        FreeAtoms.of(atoms, dt=dt, nu=nu)
        box = atoms.box if atoms.is_periodic else 0.0
        places = max(len(atoms), rules.budget)
        return cls(places, rules, dt=dt, quantum=atoms.quantum, nu=nu, box=box, core=atoms.core, journal=journal)

    @property
    def shape(self) -> Shape:
        return (self._places + 1, len(COLUMNS) + 1)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        free = {name: value for name, value in self._free.parameters.items() if name not in ("n", "mixed", "dtype")}
        return {"places": self._places, **free, **asdict(self._rules)}

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        if arrays:
            raise InputError(f"atoms in normal form have no array {next(iter(arrays))!r}.", "leave it away.")
        values: dict[str, Any] = dict(parameters)
        rules = {name: values.pop(name) for name in asdict(AtomRules()) if name in values}
        try:
            return NormalAtoms(int(values.pop("places", 0)), AtomRules(**rules), **values)
        except TypeError as error:
            raise InputError(
                f"no parameters of atoms in normal form: {error}.", "use those of a NormalAtoms."
            ) from error

    @property
    def time_step(self) -> float:
        return self._free.time_step

    def load(self, device: Device) -> Constants:
        return self._free.load(device)

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Any]:
        assert isinstance(constants, DeviceTables)
        moved = constants.work("moved", source.shape, self.dtype)
        steps: list[AnyStep] = [*self._free.step(device, constants, source, moved)]
        return [*steps, device.host_step(self._normal, [moved], [target], name="normal form")]

    def _normal(self, tables: HostArray) -> HostArray:
        """The normal form of every table."""
        return np.stack([self._normal_table(table, enters=len(tables) == 1) for table in tables])

    def _normal_table(self, table: HostArray, *, enters: bool) -> HostArray:
        result = np.array(table)
        result[0, -1] += 1
        step = int(result[0, -1])
        if not np.isfinite(table).all():
            return result
        atoms = table_atoms(table, self._empty)
        after, events = normal_form(atoms, self._rules, step)
        if enters:
            self._journal[step] = events
        if events:
            result[1:] = table_of(after, self._places)[1:]
            result[0, 4] = after.next_id
        return result

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        return "" if strategy == "stepwise" else "the normal form is a function of the host"

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        return self._free.estimated_us(strategy, limits, states) + 300 + states * self._places**2 / 100

    def reference_us(self, states: int) -> float:
        return self._free.reference_us(states) + 300 + states * self._places**2 / 100


def table_of(atoms: Atoms, places: int) -> HostArray:
    """The state of atoms in so many places, (places + 1, 6), before the first step."""
    table = np.zeros((places + 1, len(COLUMNS) + 1))
    table[1:, :-1] = rows_of(atoms, capacity=places)
    table[0, 2], table[0, 4] = 1.0, atoms.next_id
    return table


def table_atoms(table: HostArray, like: Atoms) -> Atoms:
    """The atoms of a state, with the setting of other atoms."""
    return atoms_of(table[1:, :-1], like, next_id=int(table[0, 4]))
