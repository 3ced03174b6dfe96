"""The tables of the slaved closure: what makes the modes just beyond z from those that z holds.

With N the advection, P the held modes and R all modes up to `reach`, and r_0 = N(w):

    a_i = keep_i w + sum over j < i of lift_ij R r_j,   r_i = N(a_i),   i = 1 .. depth
    dw/dt = L w + f - drain w + P sum over j of gain_j r_j

Every table is real, one number for each mode. The last a is the field that z is lifted to: w and its slaved band.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import float_array, require_finite
from dashi.errors import InputError, ShapeError
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.proxy.schema import Ints, Schema, half_plane
from dashi.flow.proxy.states import squares

DEEPEST: Final = 4
"""Lifts that the kernels of a stage have room for."""
NAMES: Final = ("keep", "lift", "gain", "drain")


@dataclass(frozen=True, eq=False)
class Band:
    """The modes that a closure works with: `modes` (R, 2) up to `reach`, of which `held` (K,) are those of z, in the
    order of z."""

    schema: Schema
    reach: float
    modes: Ints
    held: Ints

    @classmethod
    def of(cls, schema: Schema, reach: float) -> Band:
        """The band up to the wave number `reach`, or to the last that the grid holds; all modes of z are in it."""
        most = float((schema.n - 1) // 3)
        least = (1 + 1e-12) * float(np.sqrt((schema.modes**2).sum(axis=1).max()))
        if not reach >= schema.k_cut:
            raise InputError(f"the lift reaches to {reach:g}, below k_cut.", f"use {schema.k_cut:g} or more.")
        modes = half_plane(schema.n, 0.0, max(least, min(reach, most)))
        where = {(int(y), int(x)): j for j, (y, x) in enumerate(modes)}
        return cls(schema, float(reach), modes, np.array([where[int(y), int(x)] for y, x in schema.modes]))

    @property
    def beyond(self) -> Any:
        """Which modes z does not hold."""
        made = np.ones(len(self.modes), np.bool_)
        made[self.held] = False
        return made


@dataclass(frozen=True, eq=False)
class Closure:
    """keep (depth, K), lift (depth, depth, R), gain (depth + 1, K) and drain (K,)."""

    keep: Floats
    lift: Floats
    gain: Floats
    drain: Floats

    @property
    def depth(self) -> int:
        """How often the field is lifted."""
        return len(self.keep)

    @property
    def arrays(self) -> dict[str, Floats]:
        """The tables by name."""
        return {name: getattr(self, name) for name in NAMES}

    @classmethod
    def restore(cls, band: Band, arrays: Mapping[str, Any], kind: Any) -> Closure:
        """The closure of arrays that fit a band. Raises InputError."""
        if set(arrays) != set(NAMES):
            raise InputError("a closure has tables too many or too few.", f"give exactly {', '.join(NAMES)}.")
        tables = {name: float_array(name, np.asarray(arrays[name]).astype(kind)) for name in NAMES}
        depth, held, modes = len(np.atleast_1d(tables["keep"])), len(band.held), len(band.modes)
        shapes = {"keep": (depth, held), "lift": (depth, depth, modes), "gain": (depth + 1, held), "drain": (held,)}
        for name, shape in shapes.items():
            if tables[name].shape != shape:
                raise ShapeError(f"{name} has shape {tables[name].shape}.", f"a closure of this z has {shape}.")
            require_finite(name, tables[name])
        if not 1 <= depth <= DEEPEST:
            raise InputError(f"the depth is {depth}.", f"use 1 to {DEEPEST}.")
        return cls(**tables)

    def of_type(self, kind: Any) -> Closure:
        """The closure with its tables in another element type."""
        return replace(self, **{name: values.astype(kind) for name, values in self.arrays.items()})

    def eddy(self, schema: Schema) -> Floats:
        """The drain as an eddy viscosity of each held mode."""
        return self.drain / squares(schema).astype(self.drain.dtype)


class Parameters:
    """A closure as one vector of numbers near 1, for a search. Modes that differ in the signs of kx or ky share their
    numbers: the statistics of an isotropic flow, and of a Kolmogorov flow (turned by pi, or shifted by half a wave of
    the force and mirrored), do not change when both are swapped; hence tables are real, too."""

    def __init__(self, band: Band, depth: int, time: float) -> None:
        if type(depth) is not int or not 1 <= depth <= DEEPEST:
            raise InputError(f"the depth is {depth!r}.", f"use a whole number from 1 to {DEEPEST}.")
        self.band, self.depth = band, depth
        all_modes = np.abs(band.modes)
        self._all = np.unique(all_modes, axis=0, return_inverse=True)[1].reshape(-1)
        self._held = np.unique(all_modes[band.held], axis=0, return_inverse=True)[1].reshape(-1)
        many, few = int(self._all.max()) + 1, int(self._held.max()) + 1
        self._lifts = [(i, j) for i in range(depth) for j in range(i + 1)]
        sizes = {"keep": depth * few, "lift": len(self._lifts) * many, "gain": (depth + 1) * few, "drain": few}
        ends = np.cumsum([0, *sizes.values()])
        self._parts = {name: slice(int(a), int(b)) for name, a, b in zip(sizes, ends[:-1], ends[1:], strict=True)}
        self._shapes = {"keep": (depth, few), "lift": (len(self._lifts), many), "gain": (depth + 1, few)}
        self._scale = {"keep": 1.0, "lift": 4 * time, "gain": 1.0, "drain": 0.25 / time}
        self.size = int(ends[-1])

    def start(self, lift_time: float) -> Floats:
        """w itself, lifted for so long (in units of the scale of time, 1 / rms vorticity), and its advection alone."""
        lift = np.zeros((self.depth, self.depth, len(self.band.modes)))
        lift[np.arange(self.depth), np.arange(self.depth)] = np.where(
            self.band.beyond, 0.25 * lift_time * self._scale["lift"], 0.0
        )
        held = len(self.band.held)
        gain = np.zeros((self.depth + 1, held))
        gain[-1] = 1.0
        return self.pack(Closure(np.ones((self.depth, held)), lift, gain, np.zeros(held)))

    def pack(self, closure: Closure) -> Floats:
        """The numbers of a closure: means over modes that share them."""
        packed = np.zeros(self.size)
        for name, (values, place) in self._rows(closure).items():
            counts = np.bincount(place)
            means = [np.bincount(place, row, len(counts)) / counts for row in np.asarray(values, np.float64)]
            packed[self._parts[name]] = np.concatenate(means) / self._scale[name]
        return packed

    def unpack(self, numbers: Floats, kind: Any = np.float32) -> Closure:
        """The closure of such a vector."""
        parts = {name: numbers[part] * self._scale[name] for name, part in self._parts.items()}
        lift = np.zeros((self.depth, self.depth, len(self.band.modes)), kind)
        for (i, j), row in zip(self._lifts, parts["lift"].reshape(self._shapes["lift"]), strict=True):
            lift[i, j] = row[self._all]
        keep, gain = (parts[name].reshape(self._shapes[name])[:, self._held] for name in ("keep", "gain"))
        return Closure(keep.astype(kind), lift, gain.astype(kind), parts["drain"][self._held].astype(kind))

    def gradient(self, table_gradients: Closure) -> Floats:
        """Gradient in the vector, from the gradients in every table."""
        gradient = np.zeros(self.size)
        for name, (values, place) in self._rows(table_gradients).items():
            count = int(place.max()) + 1
            sums = [np.bincount(place, row, count) for row in np.asarray(values, np.float64)]
            gradient[self._parts[name]] = np.concatenate(sums) * self._scale[name]
        return gradient

    def _rows(self, closure: Closure) -> dict[str, tuple[Floats, Ints]]:
        lifts = np.stack([closure.lift[i, j] for i, j in self._lifts])
        return {
            "keep": (closure.keep, self._held),
            "lift": (lifts, self._all),
            "gain": (closure.gain, self._held),
            "drain": (closure.drain[None], self._held),
        }


def clock(enstrophy: float) -> float:
    """The scale of time of a flow: 1 / rms vorticity."""
    return 1.0 / float(np.sqrt(max(2 * enstrophy, np.finfo(np.float64).tiny)))


def fitting(flow: Flow, schema: Schema) -> None:
    """Refuses what the closure is not made for."""
    schema.require_flow(flow)
    if flow.smagorinsky:
        raise InputError(
            "the flow has an eddy viscosity of its own, which is no advection.",
            "use the model galerkin for it, or smagorinsky = 0.",
        )
