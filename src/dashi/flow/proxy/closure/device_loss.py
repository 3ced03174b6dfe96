"""The loss of training and its slope by kernels: rollouts forward, then the way back, each recorded once for all
iterations. The same as `dashi.flow.proxy.closure.training.Loss` to rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dashi.flow import grid
from dashi.flow.grid import Floats
from dashi.flow.operator import ADVECTED, numbers_of, tables
from dashi.flow.proxy.closure.operator import on_device
from dashi.flow.proxy.closure.record import Record, Rolls
from dashi.flow.proxy.closure.tables import Closure
from dashi.flow.proxy.closure.training import Course, apart
from dashi.flow.proxy.galerkin import terms
from dashi.flow.proxy.lowpass import codes
from dashi.flow.proxy.schema import places_of
from dashi.kernels.portable import canon
from dashi.runtime.device import Device

MEMBERS: Final = 32
"""A batch is a multiple of it: parts of arrays start where every device allows."""


def rolls_of(course: Course, depth: int, frames: int, members: int) -> Rolls:
    """The rollouts of an iteration."""
    n, held = terms.smallest_grid(course.band.modes), 2 * len(course.band.schema.modes)
    many = -(-members // MEMBERS) * MEMBERS
    return Rolls(many, frames, course.steps, depth, held, n, len(course.tableau.stages))


def fits(device: Device, course: Course, rolls: Rolls) -> bool:
    """Whether training is worth it by kernels: a GPU with room for what a rollout leaves behind, in half of its memory.
    On a processor a library's own transforms are faster."""
    if device.info.type in ("reference", "null") or device.limits.software:
        return False
    stack = rolls.count * math.prod(rolls.shape) * course.flow.kind.itemsize
    room = max((heap.size for heap in device.info.heaps if heap.device_local), default=0)
    return stack <= device.limits.storage_range and 2 * rolls.stacks * stack <= room


class DeviceLoss:
    """1 - correlation of rollouts of a closure with the frames that followed, and its slope, on a device."""

    def __init__(self, device: Device, course: Course, rolls: Rolls) -> None:
        self._device, self._course, self._depth, self._frames = device, course, rolls.depth, rolls.frames
        self._members, self._n, self._kind = rolls.members, rolls.n, course.flow.kind
        self._record = Record(device, rolls, course.tableau.stages, self._host_tables(rolls), self._kind)
        self._forward = device.program(self._record.forward(), label="closure rollouts", fetch=[self._record.seen])
        self._back = device.program(self._record.back(), label="closure slopes", fetch=[*self._record.dots.values()])

    def __call__(self, closure: Closure, z: Floats) -> tuple[float, Closure]:
        """Of modes (members, frames + 1, 2 K), as many members as it was made for or fewer."""
        record, many = self._record, len(z)
        chosen = np.asarray(z, self._kind)[np.minimum(np.arange(self._members), many - 1)]
        self._write(closure)
        self._device.write(record.start, np.ascontiguousarray(canon(chosen[:, 0])))
        self._forward.run()
        states = np.moveaxis(self._forward.fetched(record.seen).reshape(self._frames, self._members, -1), 0, 1)
        found, slopes = apart(states[:many], chosen[:many, 1:])
        late = np.zeros(states.shape, self._kind)
        late[:many] = slopes
        self._device.write(record.late, canon(np.ascontiguousarray(np.moveaxis(late, 1, 0)).reshape(record.late.shape)))
        self._back.run()
        return found, self._found()

    def close(self) -> None:
        """Frees the programs."""
        self._forward.close()
        self._back.close()

    def _host_tables(self, rolls: Rolls) -> dict[str, Any]:
        course, n, kind = self._course, self._n, self._kind
        band, held = course.band, course.band.schema.modes
        plain = replace(course.flow, n=n, forcing=None, smagorinsky=0.0)
        made = tables(plain) | terms.grid_tables(n, held, course.tableau.tables)
        made |= terms.grid_tables(n, held, {"held": np.ones(len(held), kind)})
        made |= terms.grid_tables(n, band.modes, {"reach": np.ones(len(band.modes), kind)})
        flat = (n, n // 2 + 1)
        made |= {"less": (made["reach"] * grid.waves(plain)[2]).astype(kind), "one": np.ones(flat, kind)}
        made |= {"undrained": np.zeros(flat, kind), "force": _spread(n, held, terms.force_of(course.flow, held), kind)}
        made |= {"codes": codes(n, held), "places": places_of(n, held).astype(np.uint32)}
        made |= {"fields": numbers_of(ADVECTED), "derivatives": numbers_of(ADVECTED[2:])}
        made["ones"] = np.ones((1, rolls.count * rolls.members), kind)
        few, many, depth = len(held), len(band.modes), self._depth
        shapes = ((depth, few), (depth, depth, many), (depth + 1, few), (few,))
        return made | on_device(Closure(*(np.zeros(shape, kind) for shape in shapes)), band, n)

    def _write(self, closure: Closure) -> None:
        band, n = self._course.band, self._n
        made = on_device(closure, band, n)
        made |= terms.grid_tables(n, band.schema.modes, {"undrained": -closure.drain})
        for name, values in made.items():
            self._device.write(self._record.tables[name], canon(np.ascontiguousarray(values)))

    def _found(self) -> Closure:
        """The slopes in the tables, of each mode and its conjugate together."""
        band, depth = self._course.band, self._depth
        sums = {name: np.asarray(self._back.fetched(a), np.float64) for name, a in self._record.dots.items()}
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
        return Closure(keep, lift, gain, -taken("undrained", held))


def _spread(n: int, modes: Any, pairs: Floats, kind: Any) -> Floats:
    """Pairs (K, 2) of modes on the half spectrum."""
    made = np.zeros((n, n // 2 + 1, 2), kind)
    made[modes[:, 0] % n, modes[:, 1]] = pairs
    mirrored = modes[:, 1] == 0
    made[-modes[mirrored, 0] % n, 0] = pairs[mirrored] * [1, -1]
    return made
