"""The solver on SciPy's (or NumPy's) own transforms: much faster than the portable references on a processor, with bits
that hold for one machine and one version of the library."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import HostOperator
from dashi.core.rollouts.observer import Values
from dashi.flow import grid
from dashi.flow._diagnostics import Shells
from dashi.flow._operator import ADVECTED, STRAINS, Vorticity, beta_factors, kicks, steady_force
from dashi.flow._schemes import Sum, tableau
from dashi.flow.equations import Flow, Kolmogorov, Stochastic
from dashi.flow.grid import Floats
from dashi.kernels._philox import philox, unit
from dashi.kernels.spectral._increments import last_digits, spread_change, steps_counted, ticked
from dashi.types import HostArray

Complex = Any
_SHARED: Final = 512
"""Points along a side from which starting threads pays."""
_SMALL: Final = 64
"""Points along a side up to which calls cost more than what they do: as few as can be."""
_quiet = np.errstate(over="ignore", invalid="ignore")
"""What overflows is told by whoever checks that states are finite."""


class Transforms:
    """Transforms between real fields and their first columns of modes, by SciPy where it is installed, which keeps
    float32 and uses all cores for large fields. Columns that were cut off are neither computed nor stored."""

    def __init__(self, n: int) -> None:
        self._n = n
        self.more: dict[str, Any] = {}
        try:
            self.fft: Any = importlib.import_module("scipy.fft")
            self.name = f"scipy {importlib.import_module('scipy').__version__}"
            self.more = {"workers": -1 if n >= _SHARED else 1}
        except ImportError:
            self.fft = np.fft
            self.name = f"numpy {np.__version__}"

    def forward(self, x: Any, columns: int) -> Any:
        """Modes (..., n, columns) of fields (..., n, n), not divided."""
        if self._n <= _SMALL:
            return self.fft.rfft2(x, **self.more)[..., :columns]
        rows = self.fft.rfft(x, axis=-1, **self.more)[..., :columns]
        return self.fft.fft(rows, axis=-2, **self.more)

    def back(self, modes: Any) -> Any:
        """Fields from modes, divided by n^2; columns that are not given are 0."""
        if self._n <= _SMALL:
            return self.fft.irfft2(modes, s=(self._n, self._n), **self.more)
        rows = self.fft.ifft(modes, axis=-2, **self.more)
        return self.fft.irfft(rows, n=self._n, axis=-1, **self.more)


class HostVorticity(Vorticity, HostOperator):
    """One step of dt of a flow on SciPy's (or NumPy's) own transforms."""

    portable = False

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.portable = False

    @property
    def host_reason(self) -> str:
        return "SciPy's or NumPy's own transforms, without kernels"

    def stepper(self, states: HostArray) -> HostSolver:
        return HostSolver(self.flow, states)

    def reference_us(self, states: int) -> float:
        return states * self.flow.n**2 / 80


class HostSolver:
    """States of a flow as NumPy's complex arrays, times n^2, of the columns that are kept."""

    def __init__(self, flow: Flow, states: Floats) -> None:
        self.flow = flow
        self._turns = Transforms(flow.n)
        self._complex = np.result_type(flow.numpy_dtype, np.complex64)
        self._scale = float(flow.n * flow.n)
        self._columns = flow.cut + 1
        self._state: Complex = self._scaled(states)
        self._clock = float(np.asarray(states)[0, 0, 0, 1])
        self._state[:, 0, 0] = 0
        made = tableau(flow)
        self._stages = made.stages
        self._tables = {name: np.ascontiguousarray(t[:, : self._columns]) for name, t in made.tables.items()}
        self._multipliers = self._factors()
        # The velocity is turned round, so that its products are the tendency itself.
        signs = {"velocity_x": -1, "velocity_y": -1}
        self._advected = [signs.get(n, 1) * self._multipliers[n] for n in ADVECTED]
        self._together = np.stack(self._advected)
        along = [self._multipliers[n] for n in ("velocity_x", "velocity_y")]
        self._diagonal = (along[0] + along[1], along[0] - along[1])
        self._small = flow.n <= _SMALL
        self._room = np.empty(self._state.shape[1:], self._complex)
        self._strained = np.stack([self._multipliers[n] for n in STRAINS]).astype(self._complex)
        self._eddy = (flow.smagorinsky * flow.dx) ** 2
        forcing = flow.forcing
        self._force = self._scaled(steady_force(flow, forcing)) if isinstance(forcing, Kolmogorov) else None
        beta = beta_factors(flow, flow.beta)[:, : self._columns, 1] if flow.beta else None
        self._rossby = (1j * beta).astype(self._complex) if beta is not None else None
        self._kick = kicks(flow, forcing)[:, : self._columns] * self._scale if isinstance(forcing, Stochastic) else None

    def _scaled(self, pairs: Floats) -> Complex:
        given = np.asarray(pairs)[..., : self._columns, :]
        return np.ascontiguousarray((given[..., 0] + 1j * given[..., 1]).astype(self._complex) * self._scale)

    def _factors(self) -> dict[str, Any]:
        """What makes the modes of a field of those of vorticity."""
        wave_x, wave_y, inverse = (table.astype(self.flow.numpy_dtype) for table in grid.waves(self.flow))
        x, y, less = wave_x[None, : self._columns], wave_y[:, None], inverse[:, : self._columns]
        turned = self._complex.type(1j)
        return {
            "velocity_x": turned * y * less,
            "velocity_y": -turned * x * less,
            "vorticity_x": turned * x + 0 * y,
            "vorticity_y": turned * y + 0 * x,
            "vorticity": np.ones_like(less),
            "streamfunction": less,
            "strain_normal": -2 * x * y * less,
            "strain_shear": (x * x - y * y) * less,
        }

    def _physical(self, modes: Complex) -> Any:
        """-u, -v, w_x and w_y of a member."""
        if self._small:
            return self._turns.back(self._together * modes)
        # One field at a time: what they need then stays in the processor's cache.
        return (self._turns.back(np.multiply(m, modes, out=self._room)) for m in self._advected)

    def _advection(self, state: Complex, eddy: float) -> Complex:
        advected = np.empty_like(state)
        for member, modes in enumerate(state):
            u, v, slope_x, slope_y = self._physical(modes)
            u *= slope_x
            v *= slope_y
            u += v
            advected[member] = self._turns.forward(u, self._columns)
            if eddy:
                normal, shear = self._turns.back(self._strained * modes)
                viscosity = eddy * np.sqrt(normal * normal + shear * shear)
                fluxes = self._turns.forward(np.stack([viscosity * slope_x, viscosity * slope_y]), self._columns)
                advected[member] += self._multipliers["vorticity_x"] * fluxes[0]
                advected[member] += self._multipliers["vorticity_y"] * fluxes[1]
        return advected

    def _step(self) -> None:
        known = [self._state]
        now = self._state
        for stage in self._stages:
            tendency = self._advection(now, self._eddy)
            if self._rossby is not None:
                tendency += self._rossby * now
            if self._force is not None:
                tendency += self._force
            known.append(tendency)
            change = _weighted(known, self._tables, stage)
            now = self._state + self._spread(change)
        if self._kick is not None:
            now = now + self._kicks(self._kick)
        self._state = now.astype(self._complex, copy=False)
        if self._kick is not None:
            self._clock += 1
        elif self._complex == np.complex64:
            self._clock = float(ticked(np.asarray(self._clock)))

    def _spread(self, change: Complex) -> Complex:
        """The change with a part of the state's last digit, in complex64: see `dashi.kernels.spectral._increments`."""
        if self._complex != np.complex64:
            return change
        single = np.float32
        part = last_digits(steps_counted(np.asarray(self._clock)))
        return spread_change(self._state.view(single), change.view(single), part).view(np.complex64)

    def _kicks(self, size: Floats) -> Complex:
        forcing = self.flow.forcing
        assert isinstance(forcing, Stochastic)
        rows, columns = grid.rows(self.flow.n)[:, None], np.arange(self._columns)[None, :]
        mirrored = (columns == 0) & (rows < 0)
        keys = forcing.seed + np.arange(len(self._state))[:, None, None]
        words = philox((columns, np.where(mirrored, -rows, rows), int(self._clock), 0), (keys, 0))[0]
        angle = 2 * np.pi * unit(words, np.float64)
        return np.asarray(size) * np.exp(np.where(mirrored, -1j, 1j) * angle)

    @_quiet
    def advance(self, steps: int) -> int:
        """Does so many steps."""
        for _ in range(steps):
            self._step()
        return steps

    @property
    def dispatches(self) -> int:
        """None: NumPy or SciPy does it all."""
        return 0

    def finite(self) -> bool:
        """Whether all modes are."""
        return bool(np.isfinite(self._state).all())

    @_quiet
    def diagnostics(self, shells: Shells, *, transfer: bool) -> Values:
        """Spectra of energy, enstrophy and palinstrophy, where asked for of the transfer, (members, shells) each; and
        the least and the largest speed."""
        state = self._whole(self._state / self._scale)
        squares = (state.real**2 + state.imag**2).astype(np.float64)
        weights = (shells.energy, shells.enstrophy, shells.palinstrophy)
        spectra = [_summed(shells, squares, w) for w in weights]
        if transfer:
            moved = self._whole(self._advection(self._state, 0.0) / self._scale)
            spectra.append(_summed(shells, (np.conj(state) * moved).real.astype(np.float64), 2 * shells.energy))
        speed = float(max(np.abs(self._turns.back(self._state * m)).max() for m in self._diagonal))
        return [*spectra, np.array([-speed, speed])]

    def _whole(self, modes: Complex) -> Complex:
        """The half spectrum, with columns that were cut off."""
        return np.pad(modes, [(0, 0), (0, 0), (0, self.flow.modes - self._columns)])

    @_quiet
    def fields(self, names: Sequence[str]) -> Mapping[str, Floats]:
        """Fields by their names, (members, n, n) each."""
        fields: dict[str, Floats] = {}
        for name in names:
            if name != "pressure":
                fields[name] = self._turns.back(self._state * self._multipliers[name])
                continue
            named = ("vorticity", "strain_normal", "strain_shear")
            w, normal, shear = (self._turns.back(self._state * self._multipliers[n]) for n in named)
            source = self._turns.forward(0.5 * (w * w - normal * normal - shear * shear), self.flow.modes)
            fields[name] = self._turns.back(-source * grid.waves(self.flow)[2])
        return {name: field.astype(self.flow.numpy_dtype) for name, field in fields.items()}

    def states(self) -> Floats:
        """The states as every device has them, (members, n, n/2 + 1, 2)."""
        modes = self._whole(self._state / self._scale)
        pairs = np.stack([modes.real, modes.imag], axis=-1).astype(self.flow.numpy_dtype)
        pairs[:, 0, 0, 1] = self._clock
        return pairs


def _weighted(known: Sequence[Complex], tables: Mapping[str, Floats], stage: Sum) -> Complex:
    """The sum of a stage."""
    (first, name), *others = stage.terms
    total = known[first] * tables[name]
    for j, other in others:
        total += known[j] * tables[other]
    return total


def _summed(shells: Shells, values: Any, weights: Any) -> Any:
    chosen = values.reshape(len(values), -1)[:, shells.places] * weights
    owner = np.repeat(np.arange(shells.count), np.diff(shells.offsets.astype(np.int64)))
    return np.stack([np.bincount(owner, row, shells.count) for row in chosen])
