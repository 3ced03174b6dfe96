"""The spectral eddy viscosity that the modes beyond z exert on those that z holds, from data.

    nu_e(k) = -sum Re(tau_k conj(w_k)) / sum k^2 |w_k|^2,    tau = P N(w) - N(P w)

over frames and the modes of a shell; P leaves the held modes, N is the advection (with whatever else the flow has that
is not linear). It makes the mean drain of enstrophy of every shell right (R. H. Kraichnan, J. Atmos. Sci. 33, 1976,
doi 10.1175/1520-0469(1976)033<1521:EVITAT>2.0.CO;2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.flow import grid
from dashi.flow._host_fft import Transforms
from dashi.flow._operator import Vorticity
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.encode import BATCH
from dashi.flow.proxy.galerkin._host import FastGalerkin
from dashi.flow.proxy.galerkin._operator import Galerkin
from dashi.flow.proxy.schema import Schema
from dashi.flow.proxy.states import squares
from dashi.flow.windows import Windows
from dashi.kernels.fft._roots import real_table, table
from dashi.runtime.device import Device, Step

MOST: Final = 2048
"""Frames that are looked at, spread evenly over all; nu_e changes by less than its spread beyond."""


@dataclass(frozen=True, eq=False)
class Subgrid:
    """Modes of frames and what the truncation misses of their tendency: pairs, (frames, 2 K), in float64."""

    modes: Floats
    tau: Floats


def shells_of(schema: Schema) -> Floats:
    """The shell of each held mode."""
    return grid.shell_numbers((schema.modes**2).sum(axis=1))


def eddy_viscosity(schema: Schema, subgrid_data: Subgrid) -> Floats:
    """nu_e of every held mode, that of its shell."""
    shell, k2 = shells_of(schema), squares(schema)
    drained = (subgrid_data.tau * subgrid_data.modes).reshape(len(subgrid_data.modes), -1, 2).sum(axis=(0, 2))
    held = (subgrid_data.modes**2).reshape(len(subgrid_data.modes), -1, 2).sum(axis=(0, 2)) * k2
    count = int(shell.max()) + 1
    below = np.bincount(shell, held, count)
    return (-np.bincount(shell, drained, count) / np.where(below > 0, below, 1.0))[shell]


def subgrid(schema: Schema, windows: Windows, *, device: Device, most: int = MOST) -> Subgrid:
    """Modes and tau of frames of the windows, in batches: by kernels on a device, by SciPy's or NumPy's own
    transforms on the NumPy device (unless the flow has an eddy viscosity of its own)."""
    schema.require_flow(windows.flow)
    fields = windows.fields.reshape(-1, schema.n, schema.n)
    chosen = np.unique(np.linspace(0, len(fields) - 1, min(most, len(fields))).astype(np.int64))
    quick = device.info.type == "reference" and not windows.flow.smagorinsky
    batch = max(1, min(len(chosen), BATCH // schema.n**2 // 4))
    worker = _Fast(schema, windows.flow) if quick else _OnDevice(schema, windows.flow, device, batch)
    modes, tau = (np.empty((len(chosen), 2 * len(schema.modes))) for _ in range(2))
    try:
        for first in range(0, len(chosen), batch):
            some = slice(first, min(first + batch, len(chosen)))
            modes[some], tau[some] = worker.take(np.asarray(fields[chosen[some]], windows.flow.numpy_dtype))
    finally:
        worker.close()
    return Subgrid(modes, tau)


class _OnDevice:
    """Both tendencies by kernels, recorded once; modes and tendencies of the held modes come back."""

    def __init__(self, schema: Schema, flow: Flow, device: Device, batch: int) -> None:
        self._device, self._batch = device, batch
        n, kind = flow.n, flow.numpy_dtype
        full, small = Vorticity(flow), Galerkin(flow, schema)
        tables, few = full.load(device), small.load(device)
        shape = (batch, n, n // 2 + 1, 2)
        self._fields = device.empty((batch, n, n), kind)
        raw, states, moved = (device.empty(shape, kind) for _ in range(3))
        self._out = [device.empty((batch, 2 * len(schema.modes)), kind) for _ in range(3)]
        keep = grid.dealiased(n)
        keep[0, 0] = False
        mask, none = device.array(keep.astype(kind)), device.array(np.zeros(keep.shape, kind))
        twiddles = (device.array(real_table(n, kind)), device.array(table(n, kind)))
        places = device.array(schema.places.astype(np.uint32))
        nothing = device.empty((batch, 0), kind)
        size = 2 * len(schema.modes)
        steps: list[Step] = [
            device.bind("rfft2", self._fields, *twiddles, out=raw, modes=n // 2 + 1, scale=1.0 / (n * n)),
            device.bind("mode_sum2", raw, raw, mask, none, out=states),
            *full.tendency(device, tables, states, moved),
            device.bind("modes_to_proxy", states, places, nothing, out=self._out[0], size=size),
            device.bind("modes_to_proxy", moved, places, nothing, out=self._out[1], size=size),
            *small.tendency(device, few, self._out[0], self._out[2]),
        ]
        self._program = device.program(steps, label="subgrid", fetch=self._out)

    def take(self, fields: Any) -> tuple[Floats, Floats]:
        padded = fields[np.minimum(np.arange(self._batch), len(fields) - 1)]
        self._device.write(self._fields, np.ascontiguousarray(padded))
        self._program.run()
        modes, whole, own = (np.asarray(self._program.fetched(a), np.float64)[: len(fields)] for a in self._out)
        return modes, whole - own

    def close(self) -> None:
        self._program.close()


class _Fast:
    """Both tendencies in float64 by a library's transforms; the steady force is in both, and cancels."""

    def __init__(self, schema: Schema, flow: Flow) -> None:
        n = flow.n
        self._n, self._columns = n, flow.cut + 1
        self._transforms = Transforms(n)
        plain = Flow(n, length=flow.length, dtype="float64")
        self._small = FastGalerkin(Galerkin(plain, schema))
        wave_x, wave_y, inverse = grid.waves(plain)
        x, y, less = wave_x[None, : self._columns], wave_y[:, None], inverse[:, : self._columns]
        self._factors = np.stack([-1j * y * less, 1j * x * less, 1j * x + 0 * y, 1j * y + 0 * x])
        self._keep = grid.dealiased(n)[:, : self._columns].copy()
        self._keep[0, 0] = False
        self._rows, self._cols = np.divmod(schema.places, n // 2 + 1)

    def take(self, fields: Any) -> tuple[Floats, Floats]:
        taken = [self._tendency_of(np.asarray(field, np.float64)) for field in fields]
        modes = np.stack([pairs for pairs, _ in taken])
        own = self._small.leave(self._small.tendency(self._small.enter(modes)))
        return modes, np.stack([pairs for _, pairs in taken]) - own

    def _tendency_of(self, field: Any) -> tuple[Floats, Floats]:
        state = self._transforms.forward(field, self._columns) * self._keep
        u, v, w_x, w_y = self._transforms.back(self._factors * state)
        return self._held(state), self._held(self._transforms.forward(u * w_x + v * w_y, self._columns))

    def _held(self, state: Any) -> Floats:
        chosen = state[self._rows, self._cols] / self._n**2
        return np.stack([chosen.real, chosen.imag], axis=-1).reshape(-1)

    def close(self) -> None:
        """Nothing to free."""
