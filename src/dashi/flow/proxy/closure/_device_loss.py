"""The loss of training and its gradient by kernels: rollouts forward, then their adjoint, each recorded once for all
iterations. Agrees with `dashi.flow.proxy.closure._training.Loss` to rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dashi.flow import grid
from dashi.flow._operator import ADVECTED, numbers_of, tables
from dashi.flow.grid import Floats
from dashi.flow.proxy.closure._operator import on_device
from dashi.flow.proxy.closure._record import AdjointProgram, RolloutBatch
from dashi.flow.proxy.closure._tables import Closure
from dashi.flow.proxy.closure._training import TrainingSetup, correlation_loss
from dashi.flow.proxy.galerkin import _terms as terms
from dashi.flow.proxy.lowpass import codes
from dashi.flow.proxy.schema import places_of
from dashi.kernels.portable import canon
from dashi.runtime.device import Device

MEMBERS: Final = 32
"""A batch is a multiple of it: parts of arrays start where every device allows."""


def rollout_batch(setup: TrainingSetup, depth: int, frames: int, members: int) -> RolloutBatch:
    """The rollouts of an iteration, their number rounded up to a multiple of MEMBERS."""
    n, held = terms.smallest_grid(setup.band.modes), 2 * len(setup.band.schema.modes)
    many = -(-members // MEMBERS) * MEMBERS
    return RolloutBatch(many, frames, setup.steps, depth, held, n, len(setup.tableau.stages))


def fits(device: Device, setup: TrainingSetup, batch: RolloutBatch) -> bool:
    """Whether training is worth it by kernels: a GPU with room for what a rollout leaves behind, in half of its memory.
    On a processor a library's own transforms are faster."""
    if device.info.type in ("reference", "null") or device.limits.software:
        return False
    stack = batch.count * math.prod(batch.shape) * setup.flow.numpy_dtype.itemsize
    room = max((heap.size for heap in device.info.heaps if heap.device_local), default=0)
    return stack <= device.limits.storage_range and 2 * batch.stacks * stack <= room


class DeviceLoss:
    """1 - correlation of rollouts of a closure with the frames that followed, and its gradient, on a device."""

    def __init__(self, device: Device, setup: TrainingSetup, batch: RolloutBatch) -> None:
        self._device, self._setup, self._depth, self._frames = device, setup, batch.depth, batch.frames
        self._members, self._n, self._kind = batch.members, batch.n, setup.flow.numpy_dtype
        self._record = AdjointProgram(
            device, batch, setup.tableau.stages, self._host_tables(batch), self._kind, setup.allowance or 0.0
        )
        self._forward = device.program(self._record.forward(), label="closure rollouts", fetch=[self._record.output])
        self._back = device.program(
            self._record.back(), label="closure gradients", fetch=[*self._record.table_gradients.values()]
        )

    def __call__(self, closure: Closure, z: Floats) -> tuple[float, Closure]:
        """Loss of modes (members, frames + 1, 2 K), at most as many members as the batch has, and its gradient in every
        table."""
        record, many = self._record, len(z)
        chosen = np.asarray(z, self._kind)[np.minimum(np.arange(self._members), many - 1)]
        self._write(closure)
        self._device.write(record.start, np.ascontiguousarray(canon(chosen[:, 0])))
        self._forward.run()
        states = np.moveaxis(self._forward.fetched(record.output).reshape(self._frames, self._members, -1), 0, 1)
        loss, state_gradient = correlation_loss(states[:many], chosen[:many, 1:])
        adjoint = np.zeros(states.shape, self._kind)
        adjoint[:many] = state_gradient
        self._device.write(
            record.output_adjoint,
            canon(np.ascontiguousarray(np.moveaxis(adjoint, 1, 0)).reshape(record.output_adjoint.shape)),
        )
        self._back.run()
        return loss, self._fetch_gradients()

    def close(self) -> None:
        """Frees the programs."""
        self._forward.close()
        self._back.close()

    def _host_tables(self, batch: RolloutBatch) -> dict[str, Any]:
        setup, n, kind = self._setup, self._n, self._kind
        band, held = setup.band, setup.band.schema.modes
        plain = replace(setup.flow, n=n, forcing=None, smagorinsky=0.0)
        constants = tables(plain) | terms.grid_tables(n, held, setup.tableau.tables)
        constants |= terms.grid_tables(n, held, {"held": np.ones(len(held), kind)})
        constants |= terms.grid_tables(n, band.modes, {"reach": np.ones(len(band.modes), kind)})
        flat = (n, n // 2 + 1)
        constants |= {"less": (constants["reach"] * grid.waves(plain)[2]).astype(kind), "one": np.ones(flat, kind)}
        constants |= {
            "force": _spread(n, held, terms.force_of(setup.flow, held), kind),
        }
        constants |= {"codes": codes(n, held), "places": places_of(n, held).astype(np.uint32)}
        constants |= {"fields": numbers_of(ADVECTED), "derivatives": numbers_of(ADVECTED[2:])}
        constants["ones"] = np.ones((1, batch.count * batch.members), kind)
        few, many, depth = len(held), len(band.modes), self._depth
        shapes = ((depth, few), (depth, depth, many), (depth + 1, few), (few,))
        return constants | on_device(Closure(*(np.zeros(shape, kind) for shape in shapes)), band, n)

    def _write(self, closure: Closure) -> None:
        band, n = self._setup.band, self._n
        for name, values in on_device(closure, band, n).items():
            self._device.write(self._record.tables[name], canon(np.ascontiguousarray(values)))

    def _fetch_gradients(self) -> Closure:
        """Gradients in the tables, each mode and its conjugate together."""
        band, depth = self._setup.band, self._depth
        sums = {name: np.asarray(self._back.fetched(a), np.float64) for name, a in self._record.table_gradients.items()}
        on_grid = {name: 2 * values.reshape(self._n, -1, 2).sum(axis=-1) for name, values in sums.items()}

        def taken(name: str, modes: Any) -> Floats:
            return on_grid[name][modes[:, 0] % self._n, modes[:, 1]]

        held, every = band.schema.modes, band.modes
        lift = np.zeros((depth, depth, len(every)))
        for i in range(depth):
            for j in range(i + 1):
                lift[i, j] = taken(f"lift_{i}{j}", every)
        keep = np.stack([taken(f"keep_{i}", held) for i in range(depth)])
        gain = np.stack([taken(f"gain_{j}", held) for j in range(depth + 1)])
        return Closure(keep, lift, gain, -taken("drain", held))


def _spread(n: int, modes: Any, pairs: Floats, kind: Any) -> Floats:
    """Pairs (K, 2) of modes on the half spectrum."""
    spectrum = np.zeros((n, n // 2 + 1, 2), kind)
    spectrum[modes[:, 0] % n, modes[:, 1]] = pairs
    mirrored = modes[:, 1] == 0
    spectrum[-modes[mirrored, 0] % n, 0] = pairs[mirrored] * [1, -1]
    return spectrum
