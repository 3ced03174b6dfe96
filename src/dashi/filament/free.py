"""The way `free`: every atom moves with the velocity of all, by direct summation; its cost follows the atoms.

    dx_i/dt = sum over j of Gamma_j/(2 pi) h(r_ij, d_ij) J r_ij,    d(d_i^2)/dt = 4 nu

with the classical scheme of Runge and Kutta of order 4. d_ij^2 is the mean of d_i^2 and d_j^2, so that the sum is
symmetric and conserves impulse; where all cores are equal it is the blob method (Chorin 1973,
doi 10.1017/S0022112073002016). Cores that spread by 4 nu solve the heat equation exactly (Leonard 1980,
doi 10.1016/0021-9991(80)90040-6): what they leave out is that a wide core is moved as a whole, so split it in time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import Constants, Operator, Parameter, Strategy
from dashi.errors import InputError
from dashi.filament.atoms import CORES, Atoms
from dashi.filament.state import COLUMNS, rows_of
from dashi.flow._operator import DeviceTables
from dashi.kernels.abi import Limits
from dashi.kernels.vortex._induction import terms
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape

WIDEST: Final = 8.0
"""Cores in a periodic box are at most a part of 8 of its side: their images count to exp(-16), 1e-7, of a point's."""


class FreeAtoms(Operator):
    """One step of dt of n blobs in the plane, or in a periodic square box."""

    kind = "filament-free"

    def __init__(
        self, n: int, *, dt: float, quantum: float, nu: float = 0.0, box: float = 0.0, core: str = "gaussian",
        mixed: bool = False, dtype: str = "float64",
    ) -> None:  # fmt: skip
        for name, value in (("dt", dt), ("nu", nu), ("box", box), ("quantum", quantum)):
            if not math.isfinite(value):
                raise InputError(f"`{name}=` is {value}.", "use a finite number.")
        if nu < 0 or box < 0 or quantum <= 0 or n < 0:
            raise InputError(
                f"nu is {nu:g}, box {box:g}, quantum {quantum:g}, n {n}.", "use 0 or more, quantum above 0."
            )
        if dtype not in ("float32", "float64") or core not in CORES:
            raise InputError(f"dtype is {dtype!r:.40}, core {core!r:.40}.", f"use float64, and {' or '.join(CORES)}.")
        if core == "algebraic" and box:
            raise InputError("algebraic cores have no images in a periodic box here.", "use gaussian cores.")
        self._numbers: dict[str, Parameter] = {
            "n": int(n), "dt": float(dt), "quantum": float(quantum), "nu": float(nu), "box": float(box), "core": core,
            "mixed": int(bool(mixed)), "dtype": dtype,
        }  # fmt: skip

    @classmethod
    def of(cls, atoms: Atoms, *, dt: float, nu: float = 0.0, dtype: str = "float64") -> FreeAtoms:
        """The operator that advances these atoms (`rows_of`)."""
        rows_of(atoms)
        widest = float(atoms.radius.max(initial=0.0))
        if atoms.is_periodic and widest * WIDEST > atoms.box:
            raise InputError(
                f"a core of radius {widest:g} is too wide for direct sums in a box of {atoms.box:g}.",
                f"use radii up to {atoms.box / WIDEST:g}, or a larger box.",
            )
        mixed = bool((atoms.radius != atoms.radius[:1]).any())
        return cls(
            len(atoms), dt=dt, quantum=atoms.quantum, nu=nu, box=atoms.box if atoms.is_periodic else 0.0,
            core=atoms.core, mixed=mixed, dtype=dtype,
        )  # fmt: skip

    @property
    def shape(self) -> Shape:
        return (int(self._numbers["n"]), len(COLUMNS))

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return dict(self._numbers)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(str(self._numbers["dtype"]))

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        if arrays:
            raise InputError(f"free atoms have no array {next(iter(arrays))!r}.", "leave it away.")
        values: dict[str, Any] = dict(parameters)
        try:
            return FreeAtoms(**values)
        except TypeError as error:
            raise InputError(f"no parameters of free atoms: {error}.", "use those of a FreeAtoms.") from error

    @property
    def time_step(self) -> float:
        return float(self._numbers["dt"])

    def load(self, device: Device) -> Constants:
        return DeviceTables(device, {"terms": terms(self.dtype)})

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        assert isinstance(constants, DeviceTables)
        dt = self.time_step
        between, rate, total = (constants.work(name, source.shape, self.dtype) for name in ("between", "rate", "total"))
        steps = [self.rate(device, constants, source, total)]
        for length, weight in ((dt / 2, 2.0), (dt / 2, 2.0), (dt, 1.0)):
            previous = total if len(steps) == 1 else rate
            steps.append(device.bind("axpy", previous, source, a=length, out=between))
            steps.append(self.rate(device, constants, between, rate))
            steps.append(device.bind("axpy", rate, total, a=weight, out=total))
        return [*steps, device.bind("axpy", total, source, a=dt / 6, out=target)]

    def rate(self, device: Device, constants: Constants, rows: Array, out: Array) -> Step:
        """The step that makes the rates of rows (m, n, 5)."""
        assert isinstance(constants, DeviceTables)
        numbers: dict[str, Any] = {**self._numbers}
        return device.bind(
            "vortex_velocity", rows, rows, constants["terms"], out=out, scratch=constants.room, box=numbers["box"],
            algebraic=int(numbers["core"] == "algebraic"), mixed=numbers["mixed"], quantum=numbers["quantum"],
            growth=4 * numbers["nu"],
        )  # fmt: skip

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        return "" if strategy == "stepwise" else "a step is a few dispatches"

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        pairs = states * float(self.shape[0]) ** 2
        return 4 * (150 + pairs / 30) if limits.software else 4 * (30 + pairs / 100_000)

    def reference_us(self, states: int) -> float:
        return 4 * (600 + states * float(self.shape[0]) ** 2)
