"""Flows with terms of your own: in a few lines, on every device with the same bits, with certificates.

    operator = FlowWithTerms(Flow(n=64), formulas={"w": "-0.1 * w * abs(w)"}, scalars={"dye": 1e-3})
    run = dashi.core.rollout(operator, operator.start(vorticity, dye=dye), 100, device="auto", hash_every=50)

Terms are data, so that a certificate holds all of them: complex factors of modes (what is linear), fields that are
added (a steady force), formulas of fields at the points of the grid (anything else), and passive scalars that the flow
carries along:

    w_t   = what the flow has + factor w + force + formula(u, v, w, ...)
    s_t   = -(u s_x + v s_y) + kappa lap s + formula(u, v, w, s, ...)

Products of two fields are free of aliasing, as in the solver; formulas of more are not. The mean of vorticity is 0 in a
periodic box whatever a term adds to it; that of a scalar follows its terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import Constants, Operator, Parameter, require_finite
from dashi.errors import InputError, ShapeError
from dashi.flow import grid
from dashi.flow._operator import DeviceTables, Vorticity, beta_factors, numbers_of, steady_force
from dashi.flow._schemes import Sum, coefficients, tableau
from dashi.flow._term_formulas import FUNCTIONS, expression_of, names_in, require_names
from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.kernels import fuse
from dashi.kernels.abi import Kernel, View
from dashi.kernels.expressions import arguments, where
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray, Shape

__all__ = ["FlowWithTerms", "beta_plane"]
Floats = grid.Floats
VORTICITY: Final = "w"
MOST: Final = 8
"""Scalars, formulas, or fields of a flow, of each."""
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
_SEEN: Final = ("u", "v", "w", "w_x", "w_y", "x", "y")
"""What a formula may read in every flow: velocity, vorticity and its slopes, places."""


def beta_plane(flow: Flow, beta: float) -> HostArray:
    """The factors of -beta v: i beta k_x / k^2, complex, (n, n/2 + 1). Waves move west with beta / k^2."""
    pairs = beta_factors(flow, beta)
    return pairs[..., 0] + 1j * pairs[..., 1]


class FlowWithTerms(Vorticity):
    """One step of dt of a flow with more terms. States are (1 + scalars, n, n/2 + 1, 2): modes of vorticity, then of
    each scalar in the order of `scalars`.

    `factors` are complex (n, n/2 + 1) each, times the modes of vorticity. `forces` are fields (n, n), added. `scalars`
    are diffusivities by name. `formulas` are texts by what they are added to, "w" or a scalar; they may read u, v, w,
    w_x, w_y, the places x and y, each scalar by its name with its slopes NAME_x and NAME_y, and `fields`, arrays (n, n)
    by names of your own.
    """

    kind = "vorticity-terms"
    version = 1

    def __init__(
        self, flow: Flow, *, factors: Mapping[str, Any] = _NONE, forces: Mapping[str, Any] = _NONE,
        formulas: Mapping[str, str] = _NONE, scalars: Mapping[str, float] = _NONE, fields: Mapping[str, Any] = _NONE,
    ) -> None:  # fmt: skip
        super().__init__(flow)
        if flow.smagorinsky:
            raise InputError("terms of your own go without an eddy viscosity.", "leave `smagorinsky` away.")
        if isinstance(flow.forcing, Stochastic):
            raise InputError("terms of your own go without random kicks.", "use a steady force.")
        self.scalars = dict(scalars)
        self.formulas = dict(formulas)
        self._names = (VORTICITY, *self.scalars)
        self._check_names(fields)
        shape = (flow.n, flow.modes)
        self._arrays: dict[str, HostArray] = {}
        for name, values in factors.items():
            table = _shaped(f"the factor {name!r}", values, shape, np.complex128)
            self._arrays[f"factor:{name}"] = np.stack([table.real, table.imag], axis=-1).astype(self.dtype)
        for group, given in (("force", forces), ("field", fields)):
            for name, values in given.items():
                field = _shaped(f"the {group} {name!r}", values, (flow.n, flow.n), np.float64)
                self._arrays[f"{group}:{name}"] = field.astype(self.dtype)
        for name, values in self._arrays.items():
            require_finite(name, values)
            values.setflags(write=False)
        self.require_formulas()

    def _check_names(self, fields: Mapping[str, Any]) -> None:
        for what, group in (("scalars", self.scalars), ("formulas", self.formulas), ("fields", fields)):
            if len(group) > MOST:
                raise InputError(f"there are {len(group)} {what}.", f"use {MOST} at most.")
        for name in (*self.scalars, *fields):
            if not name.isidentifier() or name in _SEEN or name in FUNCTIONS or not name.isascii():
                raise InputError(
                    f"no scalar or field can be called {name!r}.", f"use another name than {', '.join(_SEEN)}."
                )
        readable = self.readable(fields)
        for name in readable:
            if readable.count(name) > 1:
                raise InputError(f"two things are called {name!r}.", "give each scalar and field a name of its own.")
        for name, kappa in self.scalars.items():
            number: Any = kappa
            if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < math.inf:
                raise InputError(f"the diffusivity of {name} is {kappa!r}.", "pass a finite number, 0 or more.")
        for name in self.formulas:
            if name not in self._names:
                raise InputError(f"a formula is added to {name!r}, which is nothing.", f"use {', '.join(self._names)}.")

    def readable(self, fields: Mapping[str, Any]) -> list[str]:
        """The names that formulas may read."""
        slopes = [part for name in self.scalars for part in (name, f"{name}_x", f"{name}_y")]
        return [*_SEEN, *slopes, *fields]

    @property
    def _fields(self) -> dict[str, HostArray]:
        return {name.partition(":")[2]: a for name, a in self._arrays.items() if name.startswith("field:")}

    def require_formulas(self) -> None:
        """Refuses formulas that cannot be computed, before anything runs."""
        for name in self._names:
            self._values_read(name)
        self._kernel(1)

    @property
    def shape(self) -> Shape:
        return (len(self._names), self.flow.n, self.flow.modes, 2)

    @property
    def arrays(self) -> Mapping[str, HostArray]:
        return self._arrays

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        scalars = {f"scalar:{place}:{name}": float(k) for place, (name, k) in enumerate(self.scalars.items())}
        return {**self.flow.parameters, **scalars, **{f"formula:{name}": text for name, text in self.formulas.items()}}

    @classmethod
    def restore(cls, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
        groups: dict[str, dict[str, Any]] = {"factor": {}, "force": {}, "field": {}, "scalar": {}, "formula": {}}
        plain: dict[str, Any] = {}
        for name, value in {**parameters, **arrays}.items():
            group, separator, rest = name.partition(":")
            if separator and group not in groups:
                raise InputError(f"a flow with terms has no {name!r}.", "leave it away.")
            (groups[group] if separator else plain)[rest if separator else name] = value
        order = sorted(groups["scalar"].items(), key=lambda one: int(one[0].partition(":")[0]))
        factors = {name: pairs[..., 0] + 1j * pairs[..., 1] for name, pairs in groups["factor"].items()}
        return FlowWithTerms(
            Flow.restore(plain), factors=factors, forces=groups["force"], fields=groups["field"],
            scalars={name.partition(":")[2]: kappa for name, kappa in order}, formulas=groups["formula"],
        )  # fmt: skip

    def start(self, vorticity: Any, **scalars: Any) -> HostArray:
        """States of fields (n, n), or (members, n, n): the vorticity, and every scalar by its name."""
        for name in scalars:
            if name not in self.scalars:
                raise InputError(f"the flow has no scalar {name!r}.", f"it has {', '.join(self.scalars) or 'none'}.")
        n, states = self.flow.n, list[Floats]()
        for name in self._names:
            values = vorticity if name == VORTICITY else scalars.get(name)
            if values is None:
                raise InputError(f"the scalar {name!r} has no start.", f"pass {name}=, a field (n, n).")
            field = np.asarray(values, np.float64)
            if field.ndim not in (2, 3) or field.shape[-2:] != (n, n):
                raise ShapeError(f"{name} has shape {field.shape}.", f"pass a field ({n}, {n}).")
            modes = grid.to_modes(field).reshape(-1, n, self.flow.modes, 2)
            if name != VORTICITY:
                modes[:, 0, 0, 0] = field.reshape(-1, n * n).mean(axis=1)
            states.append(modes)
        result = np.stack(states, axis=1).astype(self.dtype)
        require_finite("states", result)
        return result if np.asarray(vorticity).ndim == 3 else result[0]

    def load(self, device: Device) -> Constants:
        loaded = super().load(device)
        assert isinstance(loaded, DeviceTables)
        for name, values in self._host_tables().items():
            loaded[name] = device.array(values)
        return loaded

    def _host_tables(self) -> dict[str, HostArray]:
        """Tables of all fields, one below the other, and what terms consist of."""
        n, kind = self.flow.n, self.dtype
        flows = [self.flow, *(self._scalar_flow(kappa) for kappa in self.scalars.values())]
        each = [dict(tableau(flow).tables) for flow in flows]
        still = coefficients(self.flow.scheme, np.zeros(1), self.flow.dt)
        for scalar in each[1:]:
            for name, table in scalar.items():
                table[0, 0] = still[name][0]
        tables: dict[str, HostArray] = {name: np.concatenate([t[name] for t in each]) for name in each[0]}
        factors = [values for name, values in self._arrays.items() if name.startswith("factor:")]
        factors += [beta_factors(self.flow, self.flow.beta).astype(kind)] if self.flow.beta else []
        forces = [grid.to_modes(values) for name, values in self._arrays.items() if name.startswith("force:")]
        forces += [steady_force(self.flow, self.flow.forcing)] if isinstance(self.flow.forcing, Kolmogorov) else []
        for name, terms in (("own_factor", factors), ("own_force", forces)):
            if terms:
                table = np.zeros((len(flows) * n, self.flow.modes, 2), kind)
                table[:n] = sum(terms[1:], terms[0])
                tables[name] = table
        tables |= {f"read:{name}": values for name, values in self._fields.items()}
        for place, name in enumerate(self._names):
            tables[f"read:in_{name}"] = (np.arange(len(flows)) == place).astype(kind)
        line = np.arange(n) * self.flow.dx
        tables["read:x"] = np.ascontiguousarray(np.broadcast_to(line[None, :], (n, n)).astype(kind))
        tables["read:y"] = np.ascontiguousarray(np.broadcast_to(line[:, None], (n, n)).astype(kind))
        tables["seen"] = numbers_of(("velocity_x", "velocity_y", "vorticity_x", "vorticity_y", "vorticity"))
        return tables

    def _scalar_flow(self, kappa: float) -> Flow:
        return replace(self.flow, nu=float(kappa), drag=0.0, hyperviscosity=0.0, forcing=None, beta=0.0)

    def _values_read(self, name: str) -> list[str]:
        """What the formula of a field reads, as a check that it can."""
        text = self.formulas.get(name, "")
        if text:
            require_names(text, self.readable(self._fields))
        return names_in(text) if text else []

    def _kernel(self, members: int) -> tuple[Kernel, tuple[str, ...]]:
        """What changes all fields at all points, (members, fields, n, n), as a kernel, and what it reads, in order."""
        used = ["u", "v", "slope_x", "slope_y"]
        for name in self.formulas:
            used += [read for read in self._values_read(name) if read not in used]
        chosen = [f"in_{name}" for name in self.formulas] if self.scalars else []
        values = dict(zip([*used, *chosen], arguments(" ".join(f"a_{name}" for name in [*used, *chosen])), strict=True))
        change = -(values["u"] * values["slope_x"] + values["v"] * values["slope_y"])
        for name, text in self.formulas.items():
            term = expression_of(text, values)
            change = change + (where(values[f"in_{name}"], term, 0.0) if chosen else term)
        shape = (members, len(self._names), self.flow.n, self.flow.n)
        views = {f"a_{one}": View(shape, *self._strides(one)) for one in values}
        return fuse(change, inputs=" ".join(views), views=views), tuple(values)

    def _strides(self, name: str) -> tuple[tuple[int, ...], int]:
        """Where the values of what is read lie: strides for members, fields, rows and columns, and the offset."""
        n = self.flow.n
        plane, count = n * n, len(self._names)
        if name.startswith("in_"):
            return (0, 1, 0, 0), 0
        if name in ("x", "y") or name in self._fields:
            return (0, 0, n, 1), 0
        if name.startswith("slope_"):
            return (count * 5 * plane, 5 * plane, n, 1), (2 + "xy".index(name[-1])) * plane
        if name in ("u", "v"):
            field, part = 0, "uv".index(name)
        else:
            owner, slope = (name, "") if name in self._names else (name[:-2], name[-1])
            field, part = self._names.index(owner), 2 + "xy".index(slope) if slope else 4
        return (count * 5 * plane, 0, n, 1), (field * 5 + part) * plane

    def tendency(self, device: Device, constants: Constants, state: Array, out: Array) -> list[Step]:
        """The steps that make N of the states: every field is carried along, and its terms are added."""
        assert isinstance(constants, DeviceTables)
        n, modes, kind, count = self.flow.n, self.flow.modes, self.dtype, len(self._names)
        members = state.shape[0]
        folded = device.part(state, 0, (members * count, n, modes, 2))
        spectra = constants.work("term_spectra", (members * count, 5, n, modes, 2), kind)
        values = constants.work("term_values", (members * count * 5, n, n), kind)
        changes = constants.work("term_changes", (members, count, n, n), kind)
        waves = (constants["wave_x"], constants["wave_y"], constants["inverse"])
        factors = (constants["twiddles"], constants["twiddles_columns"])
        kernel, used = self._kernel(members)
        arrays = [constants.get(_stored(name), values) for name in used]
        return [
            device.bind("spectral_fields", folded, *waves, constants["seen"], out=spectra),
            device.bind("irfft2", device.part(spectra, 0, (members * count * 5, n, modes, 2)), *factors, out=values),
            device.bind(kernel, *arrays, out=changes),
            device.bind(
                "rfft2", device.part(changes, 0, (members * count, n, n)), *factors,
                out=device.part(out, 0, (members * count, n, modes, 2)), modes=modes, scale=1.0 / (n * n),
            ),
            *self._linear(device, constants, state, out),
        ]  # fmt: skip

    def _linear(self, device: Device, constants: DeviceTables, state: Array, out: Array) -> list[Step]:
        """Factors and forces."""
        shape = (state.shape[0], len(self._names) * self.flow.n, self.flow.modes, 2)
        source, target = device.part(state, 0, shape), device.part(out, 0, shape)
        steps = list[Step]()
        if "own_factor" in constants:
            steps.append(device.bind("mode_linear", target, source, constants["own_factor"], out=target))
        if "own_force" in constants:
            steps.append(device.bind("mode_force", target, constants["own_force"], out=target))
        return steps

    def _stage(
        self, device: Device, constants: DeviceTables, state: Array, known: Sequence[Array], stage: Sum, out: Array
    ) -> list[Step]:
        count, n, modes, _ = self.shape
        folded = (state.shape[0], count * n, modes, 2)
        operands = [device.part(known[j], 0, folded) for j, _ in stage.terms]
        tables = [constants[name] for _, name in stage.terms]
        total = device.bind(f"mode_step{len(tables)}", *operands, *tables, out=device.part(out, 0, folded))
        return [*self.tendency(device, constants, state, known[-1]), total]

    def reference_us(self, states: int) -> float:
        return len(self._names) * super().reference_us(states)


def _stored(name: str) -> str:
    """The name of the table that holds what is read; values of fields lie together in no table."""
    return f"read:{name}"


def _shaped(what: str, values: Any, shape: Shape, dtype: Any) -> HostArray:
    array = np.asarray(values)
    if array.dtype.kind not in ("fiubc" if dtype is np.complex128 else "fiub"):
        raise InputError(f"{what} holds {array.dtype}.", "pass numbers.")
    if array.shape != shape:
        raise ShapeError(f"{what} has shape {array.shape}, the flow takes {shape}.", f"pass an array of shape {shape}.")
    return array.astype(dtype)
