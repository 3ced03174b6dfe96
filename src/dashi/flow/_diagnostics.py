"""What is measured of a flow on the device: spectra and totals, transfers, speeds.

Energy is mean(u^2 + v^2) / 2, enstrophy mean(w^2) / 2 and palinstrophy mean(|grad w|^2) / 2 over the box. Shell s of a
spectrum holds the kept modes with s - 1/2 <= |k| L / (2 pi) < s + 1/2; shells add up to the total.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.core.rollouts.observer import Bound, Context, Fault, Observer, Slot, Values, require_stride
from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow._derived_fields import FieldReader, flow_tables, require_states_of
from dashi.flow._operator import DeviceTables, advection
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.kernels._segments import segments
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import Shape

_F64: Final = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class DiagnosticsRecord:
    """What was measured after so many steps, of every member."""

    step: int
    energy_spectrum: Floats
    """(members, shells)"""
    enstrophy_spectrum: Floats
    palinstrophy: Floats
    """(members,)"""
    speed: float
    """The largest |u| + |v| of any member."""
    transfer: Any = None
    """Energy that advection brings into each shell per unit of time, (members, shells); its shells add up to 0."""

    @property
    def energy(self) -> Floats:
        """Kinetic energy mean(u^2 + v^2)/2 of every member."""
        return totals(self.energy_spectrum)

    @property
    def enstrophy(self) -> Floats:
        """Enstrophy mean(w^2)/2 of every member."""
        return totals(self.enstrophy_spectrum)

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.energy_spectrum).all() and math.isfinite(self.speed))


def totals(spectrum: Floats) -> Floats:
    """Sums over shells, in float64 and exact, so that every machine has the same."""
    return np.array([_exact_sum(row) if np.isfinite(row).all() else math.nan for row in spectrum.tolist()])


def _exact_sum(row: list[float]) -> float:
    try:
        return math.fsum(row)
    except OverflowError:  # beyond the largest float, where sum() would give infinity
        return math.inf


@dataclass(frozen=True, eq=False)
class Shells:
    """The kept modes sorted by shell, and the weights that make spectra of |w|^2."""

    places: Floats
    offsets: Floats
    longest: int
    energy: Floats
    enstrophy: Floats
    palinstrophy: Floats

    @property
    def count(self) -> int:
        return len(self.offsets) - 1


def shell_count(flow: Flow) -> int:
    """Shells of a grid, that of the mean counted: up to that of the largest wave number along both axes."""
    return int(grid.shell_numbers(2 * flow.cut * flow.cut)) + 1


def shells(flow: Flow) -> Shells:
    """The shells of a grid, from 0 on."""
    number = grid.shell_numbers(grid.squares(flow.n))
    keep = grid.dealiased(flow.n)
    keep[0, 0] = False
    count = shell_count(flow)
    order, offsets, longest = segments(np.where(keep, number, count).reshape(-1).astype(np.uint32), count)
    places = order[: int(offsets[-1])]
    half = 0.5 * grid.counted(flow.n).reshape(-1)[places]
    inverse = grid.waves(flow)[2].reshape(-1)[places]
    weights = [(half * factor).astype(flow.numpy_dtype) for factor in (inverse, np.ones_like(half), 1.0 / inverse)]
    return Shells(places, offsets, longest, *weights)


TakeLook = Callable[[DiagnosticsRecord], None]


class Diagnostics(Observer[DiagnosticsRecord]):
    """Spectra, totals and speeds on a stride, of the first and the last step too; with `transfer` also where advection
    moves energy. A time step that is too long for the speeds is an InputError, values that are not finite end the run.
    Without a stride only the initial states are looked at, for their time step."""

    name = "diagnostics"
    at_start = True
    at_end = True

    def __init__(self, flow: Flow, every: int = 0, *, transfer: bool = False, look: TakeLook | None = None) -> None:
        self.flow, self.every, self.transfer = flow, require_stride("look", every), transfer
        self._look = look
        """Is given each record too, as it comes."""
        self._shells = shells(flow)

    def bind(self, context: Context) -> Bound:
        require_states_of(self.flow, context)
        kernels = _Kernels(self.flow, self._shells, context, transfer=self.transfer)

        def take(step: int, values: Values) -> DiagnosticsRecord | None:
            record = self._record(step, values)
            if context.stop and not record.finite:
                raise Fault(f"after step {step} its energy is not finite")
            if record.finite:
                require_courant(self.flow, record)
            if self._look is not None:
                self._look(record)
            return record if self.every else None

        return Bound(kernels.slots(), kernels.steps, take)

    def measure(self, stepper: Any) -> Values | None:
        return stepper.diagnostics(self._shells, transfer=self.transfer) if hasattr(stepper, "diagnostics") else None

    def _record(self, step: int, values: Values) -> DiagnosticsRecord:
        energy, enstrophy, palinstrophy, *rest = (np.asarray(v, np.float64) for v in values)
        speeds = rest[-1]
        speed = float(max(abs(speeds[0]), abs(speeds[1]))) if np.isfinite(speeds[:2]).all() else math.nan
        return DiagnosticsRecord(
            step, energy, enstrophy, totals(palinstrophy), speed, rest[0] if self.transfer else None
        )

    def columns(self, shape: Shape) -> Mapping[str, Slot]:
        spectrum = ((shape[0], self._shells.count), _F64)
        names = ("energy_spectrum", "enstrophy_spectrum", *(("transfer",) if self.transfer else ()))
        return {**dict.fromkeys(names, spectrum), "palinstrophy": ((shape[0],), _F64), "speed": ((), _F64)}

    def pack(self, record: DiagnosticsRecord) -> Mapping[str, Any]:
        names = ("energy_spectrum", "enstrophy_spectrum", "palinstrophy", "speed")
        return {name: getattr(record, name) for name in (*names, *(("transfer",) if self.transfer else ()))}

    def unpack(self, step: int, values: Mapping[str, Any]) -> DiagnosticsRecord:
        spectra = values["energy_spectrum"], values["enstrophy_spectrum"]
        return DiagnosticsRecord(step, *spectra, values["palinstrophy"], float(values["speed"]), values.get("transfer"))


class _Kernels:
    """Binds what is measured of states on one device."""

    def __init__(self, flow: Flow, shells: Shells, context: Context, *, transfer: bool) -> None:
        self._flow, self._shells, self._transfer = flow, shells, transfer
        self._device: Device = context.device
        self._members = context.shape[0]
        self._context = context
        self._loaded: DeviceTables | None = None

    def slots(self) -> list[Slot]:
        """What a look leaves behind, in the order in which `steps` fills it."""
        spectra = [((self._members, self._shells.count), self._flow.numpy_dtype)] * (4 if self._transfer else 3)
        return [*spectra, ((4,), self._flow.numpy_dtype)]

    def _load(self) -> DeviceTables:
        if self._loaded is None:
            self._loaded, device = flow_tables(self._flow, self._context), self._device
            self._places, self._offsets = device.array(self._shells.places), device.array(self._shells.offsets)
            named = {"energy": self._shells.energy, "enstrophy": self._shells.enstrophy}
            named |= {"palinstrophy": self._shells.palinstrophy, "transfer": 2 * self._shells.energy}
            self._weights = {name: device.array(values) for name, values in named.items()}
            self._velocity = FieldReader(self._flow, device, self._loaded, ("velocity_sum", "velocity_gap"), "look")
        return self._loaded

    def steps(self, _: Array, state: Array, out: Sequence[Array]) -> list[Step]:
        """The steps that look at states."""
        loaded = self._load()
        steps = [
            self._spectrum(state, state, name, slot)
            for name, slot in zip(("energy", "enstrophy", "palinstrophy"), out, strict=False)
        ]
        if self._transfer:
            tendency = loaded.work("look_tendency", state.shape, self._flow.numpy_dtype)
            steps.append(advection(self._flow, self._device, loaded, state, tendency, eddies=False))
            steps.append(self._spectrum(state, tendency, "transfer", out[3]))
        members, n = state.shape[0], self._flow.n
        values = loaded.work("look_values", (members, 2, n, n), self._flow.numpy_dtype)
        steps += self._velocity.steps(state, values)
        return [*steps, self._device.bind("reduce_statistics", values, out=out[-1])]

    def _spectrum(self, x: Array, y: Array, name: str, out: Array) -> Step:
        lists = (self._weights[name], self._places, self._offsets)
        count, longest = self._shells.count, self._shells.longest
        return self._device.bind("mode_shells", x, y, *lists, out=out, shells=count, longest=longest)


def courant(flow: Flow, record: DiagnosticsRecord) -> float:
    """dt max(|u| + |v|) / dx."""
    return flow.dt * record.speed / flow.dx


def require_courant(flow: Flow, record: DiagnosticsRecord) -> None:
    """Refuses a time step that is too long for the speeds of a flow."""
    number = courant(flow, record)
    if number > flow.courant_limit:
        most = flow.dt * flow.courant_limit / number
        raise InputError(
            f"dt = {flow.dt:g} is too long after step {record.step}: the Courant number dt max(|u| + |v|) / dx is "
            f"{number:.3g}, and {flow.scheme} goes up to {flow.courant_limit:g}.",
            f"use dt = {_rounded(most):g} or less.",
        )


def _rounded(value: float) -> float:
    """Down to two digits."""
    size = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / size) * size
