"""The solver as an operator: one step of a flow, recorded from kernels on any device.

A state is the half spectrum of vorticity, (n, n/2 + 1, 2), divided by n^2 (Fourier coefficients). As with any operator,
rollouts, hashes, checkpoints and certificates follow. The imaginary part of mode (0, 0), which means nothing in a real
field, counts the steps where a flow is kicked at random, and, as a number of about 1e-18, in fp32
(`dashi.kernels.spectral._increments`): so a state knows all that its future depends on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import Constants, Operator, Parameter, Strategy
from dashi.errors import InputError
from dashi.flow import grid
from dashi.flow._schemes import Sum, Tableau, stages_of, tableau
from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.kernels.abi import Limits
from dashi.kernels.fft._roots import real_table, table
from dashi.kernels.spectral._modes import FIELDS
from dashi.kernels.spectral._stages import TABLES
from dashi.runtime.array import Array
from dashi.runtime.device import Device, ScratchPool, Step
from dashi.types import HostArray, Shape

ADVECTED: Final = ("velocity_x", "velocity_y", "vorticity_x", "vorticity_y")
STRAINS: Final = ("strain_normal", "strain_shear")


class DeviceTables(dict[str, Array]):
    """The tables of a flow on a device, and the arrays that its steps work in, made once for each size of ensemble."""

    def __init__(self, device: Device, tables: Mapping[str, HostArray]) -> None:
        super().__init__({name: device.array(values) for name, values in tables.items()})
        self._device = device
        self._work: dict[tuple[str, Shape], Array] = {}
        self.room: ScratchPool = {}
        """What lies between the dispatches of its steps, shared by all of them."""

    def work(self, name: str, shape: Shape, kind: Any) -> Array:
        """An array to work in, the same whenever it is asked for."""
        key = (name, shape)
        if key not in self._work:
            self._work[key] = self._device.empty(shape, kind)
        return self._work[key]


class Vorticity(Operator):
    """One step of dt of a flow (`Flow` says of which equation). With `portable=False` nothing is flushed and the bits
    are the device's: the device class, for comparison."""

    kind = "vorticity"
    version = 3  # 1: other radices of powers of two from 32 to 512; 2: float32 of exp(L dt), which quantises viscosity

    def __init__(self, flow: Flow, *, portable: bool = True) -> None:
        if not portable and (flow.scheme != "rk4" or flow.smagorinsky or flow.beta or flow.dtype != "float32"):
            raise InputError(
                "the device class has float32 and rk4 without eddy viscosity and beta only.",
                "use portable=True: the portable solver knows them all.",
            )
        self.flow = flow
        self.portable = portable

    @cached_property
    def _tableau(self) -> Tableau:
        return tableau(self.flow)

    @property
    def shape(self) -> Shape:
        return (self.flow.n, self.flow.modes, 2)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        return self.flow.parameters

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.flow.numpy_dtype

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        if arrays:
            raise InputError(f"a flow has no array {next(iter(arrays))!r}.", "leave it away.")
        return Vorticity(Flow.restore(parameters))

    @property
    def time_step(self) -> float:
        return self.flow.dt

    def load(self, device: Device) -> Constants:
        return DeviceTables(device, {**tables(self.flow), **self._tableau.tables})

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        assert isinstance(constants, DeviceTables)
        kicked = isinstance(self.flow.forcing, Stochastic)
        between = [constants.work(f"stage_{j}", source.shape, self.dtype) for j in (0, 1)]
        known, steps, now = [source], list[Step](), source
        for number, stage in enumerate(self._tableau.stages, start=1):
            known.append(constants.work(f"tendency_{number}", source.shape, self.dtype))
            last = number == len(self._tableau.stages)
            after = target if last and not kicked else between[number % 2]
            steps += self._stage(device, constants, now, known, stage, after)
            now = after
        if isinstance(self.flow.forcing, Stochastic):
            seed = self.flow.forcing.seed
            steps.append(device.bind("random_kick", now, constants["amplitude"], out=target, seed=seed))
        return steps

    def _stage(
        self, device: Device, constants: DeviceTables, state: Array, known: Sequence[Array], stage: Sum, out: Array
    ) -> list[Step]:
        """The tendency of a state, which is the last of those known, and the sum that it completes."""
        operands = [known[j] for j, _ in stage.terms]
        tables = [constants[name] for _, name in stage.terms]
        if self.flow.smagorinsky or self.flow.beta:
            kind = "mode_step" if self._tableau.increments else "mode_sum"
            total = device.bind(f"{kind}{len(tables)}", *operands, *tables, out=out)
            return [*self.tendency(device, constants, state, known[-1]), total]
        grid_tables = (constants[name] for name in TABLES)
        kernel = f"vorticity_{'stage' if self.portable else 'fast'}{len(tables)}"
        force = constants["force"]
        pairs = device.part(force, 0, (force.size // 2, 2))
        inputs = (state, *grid_tables, *operands[:-1], *tables, pairs)
        change = int(self._tableau.increments)
        return [device.bind(kernel, *inputs, scratch=constants.room, out=(known[-1], out), increment=change)]

    def tendency(self, device: Device, constants: Constants, state: Array, out: Array) -> list[Step]:
        """The steps that make N of the states: advection, eddy viscosity, the beta term and steady force."""
        steps = [advection(self.flow, device, constants, state, out)]
        if self.flow.beta:
            steps.append(device.bind("mode_linear", out, state, constants["rossby"], out=out))
        if isinstance(self.flow.forcing, Kolmogorov):
            steps.append(device.bind("mode_force", out, constants["force"], out=out))
        return steps

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        return "" if strategy == "stepwise" else "a step is a few dispatches"

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        points = states * self.flow.n**2 * self.dtype.itemsize / 4
        stages = len(stages_of(self.flow.scheme))
        return stages * (200 + points / 20) if limits.software else stages * (20 + points / 16_000)

    def reference_us(self, states: int) -> float:
        return states * self.flow.n**2 / 8


def advection(
    flow: Flow, device: Device, constants: Constants, state: Array, out: Array, *, eddies: bool = True
) -> Step:
    """The step that makes -(u w_x + v w_y), with the divergence of the eddy flux where there is one, unless told
    otherwise."""
    assert isinstance(constants, DeviceTables)
    inputs = (state, *(constants[name] for name in TABLES))
    size = flow.smagorinsky * flow.dx
    if size and eddies:
        return device.bind("vorticity_eddy", *inputs, scratch=constants.room, out=out, eddy=size * size)
    return device.bind("vorticity_tendency", *inputs, scratch=constants.room, out=out)


def numbers_of(fields: Sequence[str]) -> HostArray:
    """Fields by the numbers that the kernel `spectral_fields` knows them by."""
    return np.array([FIELDS.index(name) for name in fields], np.uint32)


def tables(flow: Flow) -> dict[str, HostArray]:
    """What a device needs to know of the grid and the forcing, besides the tables of the time scheme."""
    wave_x, wave_y, inverse = grid.waves(flow)
    kind = flow.numpy_dtype
    arrays: dict[str, HostArray] = {
        "wave_x": wave_x.astype(kind),
        "wave_y": wave_y.astype(kind),
        "inverse": inverse.astype(kind),
        "twiddles": real_table(flow.n, kind),
        "twiddles_columns": table(flow.n, kind),
    }
    steady = steady_force(flow, flow.forcing) if isinstance(flow.forcing, Kolmogorov) else np.zeros((1, 2))
    arrays["force"] = steady.astype(kind)
    if flow.beta:
        arrays["rossby"] = beta_factors(flow, flow.beta).astype(kind)
    if isinstance(flow.forcing, Stochastic):
        arrays["amplitude"] = kicks(flow, flow.forcing).astype(kind)
    return arrays


def steady_force(flow: Flow, forcing: Kolmogorov) -> grid.Floats:
    """The modes of the curl of a sin(k y) along x: -a k cos(k y)."""
    modes = np.zeros((flow.n, flow.modes, 2))
    k = forcing.wavenumber
    modes[k, 0, 0] = modes[-k, 0, 0] = -0.5 * forcing.amplitude * (k * grid.unit(flow))
    return modes


def beta_factors(flow: Flow, beta: float) -> grid.Floats:
    """What makes -beta v of vorticity, mode by mode: i beta k_x / k^2, as pairs."""
    wave_x, _, inverse = grid.waves(flow)
    along = grid.dealiased(flow.n) * (beta * wave_x[None, :] * inverse)
    return np.stack([np.zeros_like(along), along], axis=-1)


def kicks(flow: Flow, forcing: Stochastic) -> grid.Floats:
    """The size of a step's kick of every mode, sqrt(2 rate dt / modes) k: each mode gets the same energy."""
    square = grid.squares(flow.n)
    inside = (square >= forcing.low * forcing.low) & (square <= forcing.high * forcing.high) & grid.dealiased(flow.n)
    many = float((grid.counted(flow.n) * inside).sum())
    if not many:
        raise InputError(
            f"no mode lies in the band {forcing.low} to {forcing.high}.", "widen the band, to 3 to 5 for instance."
        )
    size = np.sqrt(2 * forcing.rate * flow.dt / many) * (np.sqrt(square) * grid.unit(flow))
    return np.where(inside, size, 0.0)
