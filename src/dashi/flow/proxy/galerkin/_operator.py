"""The Galerkin truncation as an operator of CORE: one step of the modes that z holds, in the flow's time scheme.

A state is the parts of z that are modes: re, im, re, im, ... Two forms make the same step, to rounding: `grid` works on
the smallest grid that is free of aliasing, with the solver's own kernels; `triads` adds up every triad. Which one is
faster depends on the size and the device (`dashi.flow.proxy.galerkin._strategies`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np

from dashi.core.operators.operator import Constants, Operator, Parameter, Strategy, float_array, require_finite
from dashi.errors import FeatureError, InputError, ShapeError
from dashi.flow._operator import DeviceTables, Vorticity, tables
from dashi.flow._schemes import Tableau
from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.flow.grid import Floats
from dashi.flow.proxy.galerkin import _terms as terms
from dashi.flow.proxy.galerkin._strategies import estimated_us
from dashi.flow.proxy.galerkin._triads import ByTriads
from dashi.flow.proxy.lowpass import codes
from dashi.flow.proxy.schema import Schema, places_of
from dashi.kernels.abi import Limits
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape

Form = Literal["grid", "triads"]
FORMS: Final[tuple[Form, ...]] = get_args(Form)


def form_named(name: str) -> Form:
    """A form by its name."""
    for form in FORMS:
        if form == name:
            return form
    raise InputError(f"there is no form {name!r} of a Galerkin step.", f"use one of {', '.join(FORMS)}.")


class Galerkin(Operator):
    """One step of dt of the truncated flow: L = -((nu + nu_e) k^2 + mu), N the exact advection of the held modes by
    themselves plus the steady force. `eddy` is nu_e of every held mode; random kicks are left away (their mean is 0).
    """

    kind = "galerkin"
    version = 2  # with the transforms of `Vorticity`

    def __init__(self, flow: Flow, schema: Schema, eddy: Any = None, form: Form = "grid") -> None:
        schema.require_flow(flow)
        if flow.beta:
            raise InputError(
                "a Galerkin model knows no beta plane.", "fit another model, such as persistence, ridge or dmd."
            )
        self.flow = replace(flow, forcing=None) if isinstance(flow.forcing, Stochastic) else flow
        self.schema = schema
        self.form: Form = form_named(form)
        count = len(schema.modes)
        given = np.zeros(count, flow.numpy_dtype) if eddy is None else np.asarray(eddy).astype(flow.numpy_dtype)
        self.eddy = float_array("eddy", given)
        if self.eddy.shape != (count,):
            raise ShapeError(f"eddy has shape {self.eddy.shape}.", f"pass one viscosity for each of {count} modes.")
        require_finite("eddy", self.eddy)
        self.tableau: Tableau = terms.mode_tables(self.flow, schema.modes, self.eddy)
        self.small = terms.smallest_grid(schema.modes)

    @property
    def shape(self) -> Shape:
        return (2 * len(self.schema.modes),)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return {"eddy": self.eddy}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        flow = {f"flow_{name}": value for name, value in self.flow.parameters.items()}
        return {
            **flow,
            **{f"schema_{name}": value for name, value in self.schema.parameters.items()},
            "form": self.form,
        }

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.flow.numpy_dtype

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        values = dict(parameters)
        form = str(values.pop("form", "grid"))
        flow = {k.removeprefix("flow_"): values.pop(k) for k in [*values] if k.startswith("flow_")}
        schema = {k.removeprefix("schema_"): values.pop(k) for k in [*values] if k.startswith("schema_")}
        if values or set(arrays) != {"eddy"}:
            raise InputError("a Galerkin operator has parameters or arrays too many or too few.", "write it again.")
        return Galerkin(Flow.restore(flow), Schema.restore(schema), arrays["eddy"], form_named(form))

    def load(self, device: Device) -> Constants:
        if self.form == "grid":
            return OnGrid(self).load(device)
        return self._by_triads.load(device)

    def step(self, device: Device, constants: Constants, source: Array, target: Array) -> Sequence[Step]:
        assert isinstance(constants, DeviceTables)
        if self.form == "triads":
            return self._by_triads.step(device, constants, source, target)
        stepper = OnGrid(self)
        shape = (source.shape[0], *stepper.shape)
        before, after = (constants.work(f"half_spectrum_{j}", shape, self.dtype) for j in (0, 1))
        steps = [*stepper.enter(device, constants, source, before), *stepper.step(device, constants, before, after)]
        return [*steps, *stepper.leave(device, constants, after, target)]

    def tendency(self, device: Device, constants: Constants, source: Array, target: Array) -> list[Step]:
        """The steps that make N of the states, both (m, 2 K)."""
        assert isinstance(constants, DeviceTables)
        if self.form == "triads":
            return self._by_triads.tendency(device, constants, source, target)
        stepper = OnGrid(self)
        shape = (source.shape[0], *stepper.shape)
        before, after = (constants.work(f"half_spectrum_{j}", shape, self.dtype) for j in (0, 1))
        steps = [*stepper.enter(device, constants, source, before), *stepper.tendency(device, constants, before, after)]
        return [*steps, *stepper.leave(device, constants, after, target)]

    @cached_property
    def _by_triads(self) -> ByTriads:
        """Listed once, and only where it is needed."""
        modes = self.schema.modes
        return ByTriads(self.flow, modes, self.tableau, terms.triads_of(modes))

    def step_many(
        self,
        device: Device,
        constants: Constants,
        source: Array,
        target: Array,
        flag: Array,
        count: int,
        strategy: Strategy,
    ) -> Step:
        unsupported = self.unsupported_reason(strategy, device.limits, source.shape[0])
        if strategy != "workgroup" or unsupported:
            raise FeatureError(
                f"a Galerkin step cannot run by the strategy {strategy!r}: {unsupported}.", "use the strategy stepwise."
            )
        return self._by_triads.step_many(device, constants, source, target, count)

    def unsupported_reason(self, strategy: Strategy, limits: Limits, states: int) -> str:
        if strategy == "stepwise":
            return ""
        if strategy == "tagged" or self.form == "grid":
            return f"the form {self.form} has no kernel for it"
        return self._by_triads.unsupported_reason(limits)

    def estimated_us(self, strategy: Strategy, limits: Limits, states: int) -> float:
        return estimated_us(self.form, len(self.schema.modes), states, software=limits.software, way=strategy)


class OnGrid(Vorticity):
    """The truncated step on the smallest grid: the solver's step, with tables that are 0 for modes that are not held.
    Its states are half spectra; `enter` and `leave` change between them and the modes of z."""

    def __init__(self, operator: Galerkin) -> None:
        full, self._modes = operator.flow, operator.schema.modes
        forcing = full.forcing
        # A force that no held mode feels is none.
        felt = isinstance(forcing, Kolmogorov) and forcing.wavenumber <= (operator.small - 1) // 3
        super().__init__(replace(full, n=operator.small, smagorinsky=0.0, forcing=forcing if felt else None))
        made: Tableau = operator.tableau
        self._tableau = Tableau(made.stages, terms.grid_tables(operator.small, self._modes, made.tables))

    def load(self, device: Device) -> Constants:
        n = self.flow.n
        places = places_of(n, self._modes).astype(np.uint32)
        more = {"codes": codes(n, self._modes), "places": places, "nothing": np.zeros((1, 0), self.dtype)}
        return DeviceTables(device, {**tables(self.flow), **self._tableau.tables, **more})

    def enter(self, device: Device, constants: Constants, z: Array, out: Array) -> list[Step]:
        """Half spectra of modes (m, 2 K or more)."""
        return [device.bind("proxy_to_modes", z, constants["codes"], out=out)]

    def leave(self, device: Device, constants: Constants, states: Array, out: Array) -> list[Step]:
        """Modes (m, 2 K) of half spectra."""
        nothing = device.empty((states.shape[0], 0), self.dtype)
        return [device.bind("modes_to_proxy", states, constants["places"], nothing, out=out, size=out.shape[1])]


def modes_of(schema: Schema, z: Floats) -> Floats:
    """The parts of z that are modes, (..., 2 K), in one piece."""
    return np.ascontiguousarray(z[..., schema.parts["modes"]])
