"""The truncated step on SciPy's (or NumPy's) own transforms, for a processor without Vulkan: much faster than the
portable references, the same to rounding, with bits that hold for one machine and one version of the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashi.flow import grid
from dashi.flow._host_fft import Transforms
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.galerkin import _terms as terms
from dashi.flow.proxy.galerkin._operator import Galerkin
from dashi.flow.proxy.lowpass import codes
from dashi.flow.proxy.schema import places_of

Complex = Any


class FastGalerkin:
    """A Galerkin step of many states at once, on complex arrays."""

    def __init__(self, operator: Galerkin) -> None:
        n, modes = operator.small, operator.schema.modes
        self._n, self._half = n, n // 2 + 1
        self._columns = int(modes[:, 1].max()) + 1
        self._transforms = Transforms(n)
        self._kind = operator.dtype
        self._complex = np.result_type(self._kind, np.complex64)
        self._code = codes(n, modes).astype(np.int64)[:, : self._columns]
        self._places = places_of(n, modes)
        self._stages = operator.tableau.stages
        tables = terms.grid_tables(n, modes, operator.tableau.tables)
        self._tables = {name: np.ascontiguousarray(t[:, : self._columns]) for name, t in tables.items()}
        self._held = self._code >= 2
        self._factors = self._multipliers(Flow(n, length=operator.schema.length))
        force = terms.force_of(operator.flow, modes).reshape(1, -1)
        self._force = self.enter(force)[0] if force.any() else None

    def _multipliers(self, small: Flow) -> Complex:
        """What makes -u, -v, w_x and w_y of vorticity."""
        wave_x, wave_y, inverse = grid.waves(small)
        x, y, less = wave_x[None, : self._columns], wave_y[:, None], inverse[:, : self._columns]
        made = [-1j * y * less, 1j * x * less, 1j * x + 0 * y, 1j * y + 0 * x]
        return np.stack(made).astype(self._complex)[:, None]

    def enter(self, z: Floats) -> Complex:
        """Half spectra (m, n, columns), times n^2, of modes (m, 2 K)."""
        values = np.asarray(z, self._kind)
        pairs = values[:, 0::2] + 1j * values[:, 1::2]
        chosen = pairs[:, np.maximum(self._code // 2 - 1, 0)]
        chosen = np.where(self._code % 2 == 1, np.conj(chosen), chosen)
        return (np.where(self._held, chosen, 0) * float(self._n**2)).astype(self._complex)

    def leave(self, states: Complex) -> Floats:
        """The modes (m, 2 K) of half spectra."""
        rows, columns = np.divmod(self._places, self._half)
        chosen = states[:, rows, columns] / float(self._n**2)
        return np.stack([chosen.real, chosen.imag], axis=-1).reshape(len(states), -1).astype(self._kind)

    def tendency(self, states: Complex) -> Complex:
        """N of half spectra: advection and force; modes that are not held come along and mean nothing."""
        u, v, w_x, w_y = self._transforms.back(self._factors * states)
        u *= w_x
        v *= w_y
        u += v
        made = self._transforms.forward(u, self._columns)
        return made if self._force is None else made + self._force

    def step(self, states: Complex) -> Complex:
        """One step of dt."""
        known, now = [states], states
        for stage in self._stages:
            known.append(self.tendency(now))
            (first, name), *rest = stage.terms
            now = known[first] * self._tables[name]
            for j, other in rest:
                now = now + known[j] * self._tables[other]
        return now.astype(self._complex, copy=False)

    def roll(self, z0: Floats, frames: int, steps: int) -> Floats:
        """Modes (m, frames + 1, 2 K), so many steps between frames. What overflows goes on as infinities and NaN."""
        states = self.enter(z0)
        modes = np.empty((len(z0), frames + 1, z0.shape[1]), self._kind)
        modes[:, 0] = z0
        with np.errstate(all="ignore"):
            for frame in range(1, frames + 1):
                for _ in range(steps):
                    states = self.step(states)
                modes[:, frame] = self.leave(states)
        return modes
