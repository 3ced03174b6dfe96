"""The way `full`: particles that start at the points of a mesh in every step, move, and are spread to its points again.

It is the vortex-in-cell method, remeshed each step (P. Koumoutsakos 1997, doi 10.1006/jcph.1997.5749), and converges to
the spectral solver; its cost follows the mesh. A step of dt:

    half of the viscosity, exactly, mode by mode
    u from the vorticity w; particles go half a step with it; w of the half step; its velocity v
    particles go dt with v where they are at half time, from where they began, and carry w to the points again, by M6'
    half of the viscosity

so it is of order 2 in time. M4' is there too. A state is the half spectrum of vorticity, as that of
the solver of `dashi.flow`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import Constants, Operator, Parameter, Strategy
from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow._derived_fields import FieldReader
from dashi.flow._operator import DeviceTables, tables
from dashi.flow.equations import Flow
from dashi.kernels.abi import Limits
from dashi.kernels.vortex._mesh import REACH
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape

_NAMES: Final = ("n", "nu", "dt", "length", "dtype")
_FIELDS: Final = ("vorticity", "velocity_x", "velocity_y")


class FullMesh(Operator):
    """One step of dt of particles on a mesh of n x n points in a periodic box. Of the flow, n, nu, dt, length and dtype
    count; others are refused."""

    kind = "filament-full"

    def __init__(self, flow: Flow, order: int = 6) -> None:
        plain = Flow(flow.n, nu=flow.nu, dt=flow.dt, length=flow.length, dtype=flow.dtype)
        if flow != plain:
            raise InputError("particles know no drag, forcing, eddies or time scheme.", "pass Flow(n, nu=, dt=) alone.")
        if order not in REACH:
            raise InputError(f"`order=` is {order}.", "use 4 for the kernel M4', 6 for M6'.")
        self.flow, self.order = flow, order

    @property
    def shape(self) -> Shape:
        return (self.flow.n, self.flow.modes, 2)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        numbers: dict[str, Parameter] = {name: getattr(self.flow, name) for name in _NAMES}
        return {**numbers, "order": self.order}

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.flow.numpy_dtype

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        if arrays:
            raise InputError(f"particles on a mesh have no array {next(iter(arrays))!r}.", "leave it away.")
        values: dict[str, Any] = dict(parameters)
        try:
            return FullMesh(order=int(values.pop("order", 6)), flow=Flow(**values))
        except TypeError as error:
            raise InputError(f"no parameters of particles: {error}.", "use those of a FullMesh.") from error

    @property
    def time_step(self) -> float:
        return self.flow.dt

    def load(self, device: Device) -> Constants:
        known = tables(self.flow)
        square = grid.squares(self.flow.n) * (grid.unit(self.flow) ** 2)
        decay = np.array([math.exp(-value) for value in (self.flow.nu * self.flow.dt / 2 * square).ravel().tolist()])
        decay = decay.reshape(square.shape)
        # Modes at half the sampling rate have no sign: what is spread leaves nothing there.
        decay[self.flow.n // 2], decay[:, -1] = 0.0, 0.0
        table = np.stack([decay, decay], axis=-1)[None].astype(self.dtype)
        return DeviceTables(device, {**known, "decay": table})

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        assert isinstance(constants, DeviceTables)
        members, n, modes, _ = source.shape
        work, kind = constants.work, self.dtype
        reach = self.flow.dt / self.flow.dx
        decayed, spread = (work(name, source.shape, kind) for name in ("full_decayed", "full_spread"))
        start, half = (work(f"full_{name}", (members, c, n, n), kind) for name, c in (("start", 3), ("half", 2)))
        vorticity, velocity = work("full_vorticity", (members, n, n), kind), work("full_at", (members, 2, n, n), kind)

        def transform(out: Array) -> Step:
            tables_of = (constants["twiddles"], constants["twiddles_columns"])
            return device.bind("rfft2", vorticity, *tables_of, out=out, modes=modes, scale=1.0 / (n * n))

        return [
            device.bind("mul", source, constants["decay"], out=decayed),
            *FieldReader(self.flow, device, constants, _FIELDS, "full").steps(decayed, start),
            device.bind("vortex_remesh", start, start, out=vorticity, first=1, reach=reach / 2, order=self.order),
            transform(spread),
            *FieldReader(self.flow, device, constants, _FIELDS[1:], "full_half").steps(spread, half),
            device.bind("vortex_sample", half, start, out=velocity, first=1, reach=reach / 2, order=self.order),
            device.bind("vortex_remesh", start, velocity, out=vorticity, first=0, reach=reach, order=self.order),
            transform(spread),
            device.bind("mul", spread, constants["decay"], out=target),
        ]

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        return "" if strategy == "stepwise" else "a step is a few dispatches"

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        points = states * self.flow.n**2
        return 500 + points / 2 if limits.software else 60 + points / 4000

    def reference_us(self, states: int) -> float:
        return 3000 + states * self.flow.n**2 * 2.0
