"""The slaved closure as an operator of CORE: one step of the modes that z holds, by the solver's kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import Constants, Operator, Parameter, Strategy
from dashi.errors import InputError
from dashi.flow._operator import DeviceTables
from dashi.flow._schemes import Sum
from dashi.flow.equations import Flow, Kolmogorov
from dashi.flow.proxy.closure._energy import THETA, counted_modes, require_theta
from dashi.flow.proxy.closure._tables import Band, Closure, fitting
from dashi.flow.proxy.galerkin import _terms as terms
from dashi.flow.proxy.galerkin._operator import Galerkin, OnGrid
from dashi.flow.proxy.schema import Schema
from dashi.kernels.abi import Limits
from dashi.kernels.spectral._stages import TABLES
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray

SUMS: Final = (2, 3, 5)
"""Terms of the kernels that complete a sum with a tendency; one with more terms takes fewer too."""


class SlavedGalerkin(Galerkin):
    """One step of dt of the truncated flow with the band beyond it slaved (`dashi.flow.proxy.closure._tables`), which
    feeds no more than `theta` of what viscosity takes (`dashi.flow.proxy.closure._energy`)."""

    kind = "galerkin-slaved"
    version = 3  # 2: no limit to what it feeds, and the drain in the linear part of the step

    def __init__(self, flow: Flow, schema: Schema, closure: Closure, reach: float, theta: float = THETA) -> None:
        fitting(flow, schema)
        self.theta = require_theta(theta)
        self.band = Band.of(schema, reach)
        self.closure = Closure.restore(self.band, closure.arrays, flow.numpy_dtype)
        super().__init__(flow, schema)
        self.small = terms.smallest_grid(self.band.modes)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return self.closure.arrays

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        given = {name: value for name, value in super().parameters.items() if name != "form"}
        return {**given, "reach": self.band.reach, "theta": self.theta}

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        values = dict(parameters)
        reach, theta = float(values.pop("reach")), float(values.pop("theta"))
        flow = {k.removeprefix("flow_"): values.pop(k) for k in [*values] if k.startswith("flow_")}
        schema = Schema.restore({k.removeprefix("schema_"): v for k, v in values.items() if k.startswith("schema_")})
        if any(not name.startswith("schema_") for name in values):
            raise InputError("a slaved closure has parameters too many.", "write it again.")
        restored_flow = Flow.restore(flow)
        return SlavedGalerkin(
            restored_flow, schema, Closure.restore(Band.of(schema, reach), arrays, restored_flow.numpy_dtype), reach,
            theta,
        )  # fmt: skip

    def load(self, device: Device) -> Constants:
        return OnWideGrid(self).load(device)

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        assert isinstance(constants, DeviceTables)
        stepper = OnWideGrid(self)
        shape = (source.shape[0], *stepper.shape)
        before, after = (constants.work(f"half_spectrum_{j}", shape, self.dtype) for j in (0, 1))
        steps = [*stepper.enter(device, constants, source, before), *stepper.step(device, constants, before, after)]
        return [*steps, *stepper.leave(device, constants, after, target)]

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        own = super().estimated_us(strategy, limits, states)
        return own * (1 + self.closure.depth) * (self.small / terms.smallest_grid(self.schema.modes)) ** 2


class OnWideGrid(OnGrid):
    """The step on the smallest grid that has room for the band: in every stage of the time scheme one tendency after
    another, each of which completes the sum that the next one starts from."""

    def __init__(self, operator: SlavedGalerkin) -> None:
        super().__init__(operator)
        self._closure, self._band = operator.closure, operator.band
        self._allowance = operator.theta * operator.flow.nu

    def load(self, device: Device) -> Constants:
        loaded = super().load(device)
        assert isinstance(loaded, DeviceTables)
        for name, values in on_device(self._closure, self._band, self.flow.n).items():
            loaded[name] = device.array(values)
        return loaded

    def _stage(
        self, device: Device, constants: DeviceTables, state: Array, known: Sequence[Array], stage: Sum, out: Array
    ) -> list[Step]:
        steps = self._slaved(device, constants, state, known[-1])
        operands = [known[j] for j, _ in stage.terms]
        tables = [constants[name] for _, name in stage.terms]
        return [*steps, device.bind(f"mode_sum{len(tables)}", *operands, *tables, out=out)]

    def _slaved(self, device: Device, constants: DeviceTables, state: Array, out: Array) -> list[Step]:
        """N of the states with its closure, within its limit, and the force."""
        depth = self._closure.depth
        advected = [constants.work(f"advected_{j}", state.shape, self.dtype) for j in range(depth + 1)]
        lifted = [constants.work(f"lifted_{i % 2}", state.shape, self.dtype) for i in range(depth)]
        raw = constants.work("unlimited", state.shape, self.dtype)
        steps = chained(device, constants, state, advected, lifted, raw)
        steps.append(limited(device, constants, state, raw, self._allowance, out))
        if isinstance(self.flow.forcing, Kolmogorov):
            steps.append(device.bind("mode_force", out, constants["force"], out=out))
        return steps


def on_device(closure: Closure, band: Band, n: int) -> dict[str, HostArray]:
    """The tables of a closure on the half spectrum of an n x n grid, as `chained` names them."""
    held: dict[str, Any] = {f"keep_{i}": row for i, row in enumerate(closure.keep)}
    held |= {f"gain_{j}": row for j, row in enumerate(closure.gain)}
    every = {f"lift_{i}{j}": closure.lift[i, j] for i in range(closure.depth) for j in range(i + 1)}
    held["drain"] = closure.drain
    tables = terms.grid_tables(n, band.schema.modes, held) | terms.grid_tables(n, band.modes, every)
    kind = closure.keep.dtype
    tables["count"] = counted_modes(n)
    tables |= {"zero": np.zeros((n, n // 2 + 1), kind), "still": np.zeros((1, 2), kind)}
    return {name: np.ascontiguousarray(values, kind) for name, values in tables.items()}


def chained(
    device: Device,
    constants: DeviceTables,
    state: Array,
    advected: Sequence[Array],
    lifted: Sequence[Array],
    out: Array,
) -> list[Step]:
    """The steps that make r_0 .. r_depth, the fields a_1 .. a_depth between them, and sum of gain_j r_j."""
    steps: list[Step] = []
    a = state
    for i, lift in enumerate(lifted):
        weights = [constants[f"keep_{i}"], *(constants[f"lift_{i}{j}"] for j in range(i + 1))]
        steps.append(_summed(device, constants, a, [state, *advected[:i]], weights, (advected[i], lift)))
        a = lift
    gains = [constants[f"gain_{j}"] for j in range(len(advected))]
    return [*steps, _summed(device, constants, a, advected[:-1], gains, (advected[-1], out))]


def limited(
    device: Device, constants: DeviceTables, state: Array, raw: Array, allowance: float, out: Array
) -> Step:  # fmt: skip
    """The tendency of a closure less its drain, within its limit."""
    grid_tables = (constants[name] for name in ("drain", "inverse", "count"))
    return device.bind("energy_limit", state, raw, *grid_tables, out=out, allowance=allowance)


def _summed(
    device: Device, constants: DeviceTables, a: Array, known: Sequence[Array], tables: Sequence[Array],
    out: tuple[Array, Array],
) -> Step:  # fmt: skip
    """N of a, and the known arrays and it, each with its table, added."""
    room = next(count for count in SUMS if count >= len(tables))
    # A term with a table of zeros fills a sum that has too many.
    empty = room - len(tables)
    xs = [*known, *[known[0]] * empty]
    ts = [*tables[:-1], *([constants["zero"]] * empty), tables[-1]]
    grid_tables = (constants[name] for name in TABLES)
    kernel = f"vorticity_stage{room}"
    return device.bind(kernel, a, *grid_tables, *xs, *ts, constants["still"], scratch=constants.room, out=out)
