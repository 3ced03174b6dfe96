"""What is measured of a flow on the device: spectra and totals, transfers, speeds; and fields that follow from it.

Energy is mean(u^2 + v^2) / 2, enstrophy mean(w^2) / 2 and palinstrophy mean(|grad w|^2) / 2 over the box. Shell s of a
spectrum holds the kept modes with s - 1/2 <= |k| L / (2 pi) < s + 1/2; shells add up to the total.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.operator import Loaded, advection, numbers_of
from dashi.kernels.segments import segments
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import Shape

DERIVED: Final = (
    "vorticity", "streamfunction", "velocity_x", "velocity_y", "strain_normal", "strain_shear", "pressure",
)  # fmt: skip
"""Fields that can be asked for. Strains are 2 u_x and u_y + v_x; pressure is over density, with mean 0."""
UNITS: Final = {
    "vorticity": "1/T", "streamfunction": "L^2/T", "velocity_x": "L/T", "velocity_y": "L/T", "strain_normal": "1/T",
    "strain_shear": "1/T", "pressure": "L^2/T^2",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Look:
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
        """Of every member."""
        return totals(self.energy_spectrum)

    @property
    def enstrophy(self) -> Floats:
        """Of every member."""
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


def shells(flow: Flow) -> Shells:
    """The shells of a grid, from 0 on."""
    number = grid.shell_numbers(grid.squares(flow.n))
    keep = grid.dealiased(flow.n)
    keep[0, 0] = False
    count = int(number[keep].max()) + 1
    order, offsets, longest = segments(np.where(keep, number, count).reshape(-1).astype(np.uint32), count)
    places = order[: int(offsets[-1])]
    half = 0.5 * grid.counted(flow.n).reshape(-1)[places]
    inverse = grid.waves(flow)[2].reshape(-1)[places]
    weights = [(half * factor).astype(flow.kind) for factor in (inverse, np.ones_like(half), 1.0 / inverse)]
    return Shells(places, offsets, longest, *weights)


class Observer:
    """Binds what is measured of states on one device."""

    def __init__(self, flow: Flow, device: Device, constants: Loaded, *, transfer: bool = False) -> None:
        self.flow, self.device, self.constants, self.transfer = flow, device, constants, transfer
        self._shells = shells(flow)
        self._places = device.array(self._shells.places)
        self._offsets = device.array(self._shells.offsets)
        named = {"energy": self._shells.energy, "enstrophy": self._shells.enstrophy}
        named |= {"palinstrophy": self._shells.palinstrophy, "transfer": 2 * self._shells.energy}
        self._weights = {name: device.array(values) for name, values in named.items()}
        self._velocity = device.array(numbers_of(("velocity_sum", "velocity_gap")))

    def slots(self, members: int) -> list[tuple[Shape, Any]]:
        """What a look leaves behind, in the order in which `steps` fills it and `look` reads it."""
        spectra = [((members, self._shells.count), self.flow.kind)] * (4 if self.transfer else 3)
        return [*spectra, ((4,), self.flow.kind)]

    def steps(self, state: Array, out: Sequence[Array]) -> list[Step]:
        """The steps that look at states."""
        made = [
            self._spectrum(state, state, name, slot)
            for name, slot in zip(("energy", "enstrophy", "palinstrophy"), out, strict=False)
        ]
        if self.transfer:
            tendency = self.constants.work("look_tendency", state.shape, self.flow.kind)
            made.append(advection(self.flow, self.device, self.constants, state, tendency, eddies=False))
            made.append(self._spectrum(state, tendency, "transfer", out[3]))
        return [*made, *self._speeds(state, out[-1])]

    def _spectrum(self, x: Array, y: Array, name: str, out: Array) -> Step:
        lists = (self._weights[name], self._places, self._offsets)
        count, longest = self._shells.count, self._shells.longest
        return self.device.bind("mode_shells", x, y, *lists, out=out, shells=count, longest=longest)

    def _speeds(self, state: Array, out: Array) -> list[Step]:
        values, steps = physical(self.flow, self.device, self.constants, state, self._velocity, "look")
        return [*steps, self.device.bind("reduce_statistics", values, out=out)]

    def look(self, step: int, values: Sequence[Floats]) -> Look:
        """A look from what came back."""
        energy, enstrophy, palinstrophy, *rest = (np.asarray(v, np.float64) for v in values)
        speeds = rest[-1]
        speed = float(max(abs(speeds[0]), abs(speeds[1]))) if np.isfinite(speeds[:2]).all() else math.nan
        return Look(step, energy, enstrophy, totals(palinstrophy), speed, rest[0] if self.transfer else None)


def physical(
    flow: Flow, device: Device, constants: Loaded, state: Array, kinds: Array, name: str
) -> tuple[Array, list[Step]]:
    """Fields (members, fields, n, n) of states, and the steps that make them."""
    members, n, modes, _ = state.shape
    fields = kinds.size
    spectra = constants.work(f"{name}_spectra", (members, fields, n, modes, 2), flow.kind)
    values = constants.work(f"{name}_values", (members, fields, n, n), flow.kind)
    tables = (constants["wave_x"], constants["wave_y"], constants["inverse"])
    turns = (constants["twiddles"], constants["twiddles_columns"])
    return values, [
        device.bind("spectral_fields", state, *tables, kinds, out=spectra),
        device.bind(
            "irfft2",
            device.part(spectra, 0, (members * fields, n, modes, 2)),
            *turns,
            out=device.part(values, 0, (members * fields, n, n)),
        ),
    ]


class Camera:
    """Makes fields of states on one device, and brings them to the host."""

    def __init__(self, flow: Flow, device: Device, constants: Loaded, fields: Sequence[str]) -> None:
        for name in fields:
            if name not in DERIVED:
                raise InputError(f"there is no field {name!r}.", f"ask for some of {', '.join(DERIVED)}.")
        self.flow, self.device, self.constants = flow, device, constants
        self.fields = tuple(fields)
        self._plain = tuple(name for name in self.fields if name != "pressure")

    def take(self, state: Array) -> Mapping[str, Floats]:
        """The fields, (members, n, n) each."""
        made: dict[str, Floats] = {}
        if self._plain:
            kinds = self.device.array(numbers_of(self._plain))
            values, steps = physical(self.flow, self.device, self.constants, state, kinds, "frame")
            taken = self._run(steps, values)
            made |= {name: np.ascontiguousarray(taken[:, f]) for f, name in enumerate(self._plain)}
        if "pressure" in self.fields:
            made["pressure"] = self._pressure(state)
        return {name: made[name] for name in self.fields}

    def _pressure(self, state: Array) -> Floats:
        """lap p = (w^2 - |S|^2) / 2, taken apart into modes and divided by -k^2."""
        device, flow, loaded = self.device, self.flow, self.constants
        members, n, modes, _ = state.shape
        parts: list[Array] = []
        steps: list[Step] = []
        for name in ("vorticity", "strain_normal", "strain_shear"):
            values, some = physical(flow, device, loaded, state, device.array(numbers_of((name,))), f"frame_{name}")
            parts.append(values)
            steps += some
        source = loaded.work("frame_source", (members, 1, n, n), flow.kind)
        turned = loaded.work("frame_turned", (members, n, modes, 2), flow.kind)
        turns = (loaded["twiddles"], loaded["twiddles_columns"])
        steps.append(device.bind("strain_source", *parts, out=source))
        flat = device.part(source, 0, (members, n, n))
        steps.append(device.bind("rfft2", flat, *turns, out=turned, modes=modes, scale=1.0 / (n * n)))
        kinds = device.array(numbers_of(("pressure",)))
        values, some = physical(flow, device, loaded, turned, kinds, "frame_pressure")
        return np.ascontiguousarray(self._run([*steps, *some], values)[:, 0])

    def _run(self, steps: Sequence[Step], values: Array) -> Floats:
        with self.device.program(steps, label="fields") as program:
            program.run()
        return values.numpy()
