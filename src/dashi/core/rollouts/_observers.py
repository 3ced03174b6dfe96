"""The observers that every run can have: hashes, metrics of the states, the sheet; and copies of the states to keep."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from dashi.core.observations.observation import Hash, Observation, SheetRow
from dashi.core.operators.operator import HostStepper, Operator
from dashi.core.rollouts._record import METRICS, digest_text, flat, observation
from dashi.core.rollouts.observer import Bound, Context, Observer, Slot, Values, require_stride
from dashi.core.rollouts.run import Run
from dashi.errors import InputError
from dashi.io._array_digest import array_digest
from dashi.runtime.array import Array
from dashi.runtime.device import Step
from dashi.types import HostArray, Shape

Keep = Callable[[Run], None]
"""Is given the run so far, with its states."""
Pause = Callable[[], float]
"""Tells how many seconds lie at least between two of them."""
_I64: Final = np.dtype(np.int64)
_F64: Final = np.dtype(np.float64)


class Hashes(Observer[Hash]):
    """The digest of all states, of the last step too."""

    name = "hashes"
    at_end = True
    columns_of: ClassVar[Mapping[str, Slot]] = {"digest": ((16,), np.dtype(np.uint8))}

    def __init__(self, every: int) -> None:
        self.every = require_stride("hash", every)

    def bind(self, context: Context) -> Bound:
        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            return [context.device.bind("hash_state", after, out=slots[0])]

        return Bound([((4,), np.uint32)], steps, lambda step, values: Hash(step, digest_text(values[0])))

    def measure(self, stepper: HostStepper) -> Values:
        return [np.frombuffer(bytes.fromhex(array_digest(stepper.states())), "<u4")]

    def pack(self, record: Hash) -> Mapping[str, Any]:
        return {"digest": np.frombuffer(bytes.fromhex(record.digest), np.uint8)}

    def unpack(self, step: int, values: Mapping[str, Any]) -> Hash:
        return Hash(step, bytes(values["digest"]).hex())


class StateMetrics(Observer[Observation]):
    """Norms, ratio and defect of a step, and how many values are not finite; of the last step too."""

    name = "observations"
    at_end = True
    compares = True
    columns_of: ClassVar[Mapping[str, Slot]] = {"numbers": ((4,), _F64), "nonfinite": ((2,), _I64)}

    def __init__(self, every: int) -> None:
        self.every = require_stride("observe", every)

    def bind(self, context: Context) -> Bound:
        def steps(before: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            rows = (flat(context.device, states) for states in (before, after))
            return [context.device.bind("state_metrics", *rows, out=(slots[0], slots[1]))]

        slots: list[Slot] = [((METRICS,), context.operator.dtype), ((4,), np.uint32)]
        return Bound(slots, steps, lambda step, values: observation(step, values[0], values[1]))

    def pack(self, record: Observation) -> Mapping[str, Any]:
        # An index is at least 0, so -1 can stand for none.
        first = -1 if record.first_nonfinite is None else record.first_nonfinite
        numbers = (record.norm_before, record.norm, record.ratio, record.defect)
        return {"numbers": numbers, "nonfinite": (record.nonfinite, first)}

    def unpack(self, step: int, values: Mapping[str, Any]) -> Observation:
        count, first = (int(value) for value in values["nonfinite"])
        before, norm, ratio, defect = (float(value) for value in values["numbers"])
        return Observation(step, before, norm, ratio, defect, count, None if first < 0 else first)


class BandSheet(Observer[SheetRow]):
    """Band energies of the states. `bands` are a number of equal slices of the state, or band edges."""

    name = "sheet"

    def __init__(self, every: int, bands: int | Sequence[int] = 16) -> None:
        self.every = require_stride("sheet", every)
        self.bands = bands

    def bind(self, context: Context) -> Bound:
        edges = band_edges(context.operator, self.bands)
        return self._energies(context) if edges is None else self._bands(context, edges)

    def _energies(self, context: Context) -> Bound:
        """States of E-space are band energies already: they are added up over nodes and states."""
        device, dtype = context.device, context.operator.dtype
        rows, width = math.prod(context.shape[:-1]), context.shape[-1]
        ones = device.array(np.ones(rows, dtype))

        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            return [device.bind("gemv", ones, device.part(after, 0, (rows, width)), out=slots[0])]

        return Bound([((width,), dtype)], steps, _row_of(context.shape[0]))

    def _bands(self, context: Context, edges: HostArray) -> Bound:
        device, dtype = context.device, context.operator.dtype
        states, bands = context.shape[0], len(edges) - 1
        on_device = device.array(edges.astype(np.uint32))

        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            out = (slots[0], slots[1])
            return [device.bind("qfeat", flat(device, after), on_device, out=out, bands=bands)]

        # Norms and entropy come with them, which the sheet has no use for.
        return Bound([((states, bands), dtype), ((states, 4), dtype)], steps, _row_of(states))

    @property
    def settings(self) -> Mapping[str, int]:
        return {"every": self.every, "bands": self.bands if isinstance(self.bands, int) else len(self.bands) - 1}

    def columns(self, shape: Shape) -> Mapping[str, Slot]:
        width = shape[-1] if len(shape) > 2 else self.settings["bands"]
        return {"energies": ((width,), _F64)}

    def pack(self, record: SheetRow) -> Mapping[str, Any]:
        return {"energies": record.energies}

    def unpack(self, step: int, values: Mapping[str, Any]) -> SheetRow:
        return SheetRow(step, values["energies"])


def _row_of(states: int) -> Callable[[int, Values], SheetRow]:
    def take(step: int, values: Values) -> SheetRow:
        row = values[0]
        return SheetRow(step, row.astype(np.float64).reshape(-1, row.shape[-1]).sum(axis=0) / states)

    return take


class StateCopies(Observer[HostArray]):
    """The states themselves, for checkpoints: `keep` is given the run so far, while the device goes on. With `pause` it
    is given at most one in so many seconds."""

    name = "states"
    certified = False

    def __init__(self, every: int, keep: Keep, *, pause: Pause | None = None, at_start: bool = False) -> None:
        self.every, self.keep, self.at_start = require_stride("keep", every), keep, at_start
        self._pause, self._last = pause or (lambda: 0.0), time.monotonic()

    def due(self, step: int, end: int) -> bool:
        if not super().due(step, end) or time.monotonic() - self._last < self._pause():
            return False
        self._last = time.monotonic()
        return True

    def bind(self, context: Context) -> Bound:
        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            return [context.device.bind("copy", after, out=slots[0])]

        return Bound([(context.shape, context.operator.dtype)], steps, lambda _, values: values[0].copy())

    def measure(self, stepper: HostStepper) -> Values:
        return [stepper.states()]


def band_edges(operator: Operator, bands: int | Sequence[int]) -> HostArray | None:
    """Edges of the bands of a state in z-space, equal slices unless given; None where states are energies already."""
    if len(operator.shape) > 1:
        return None
    d = math.prod(operator.shape)
    if isinstance(bands, int):
        if not 1 <= bands <= d:
            raise InputError(f"a state of {d} values has no {bands} bands.", f"ask for 1 to {d}.")
        return np.array([d * i // bands for i in range(bands + 1)], np.uint32)
    edges = np.array(bands, np.int64)
    if edges.ndim != 1 or len(edges) < 2 or edges[0] < 0 or edges[-1] > d or (np.diff(edges) < 0).any():
        raise InputError(f"band edges {list(bands)} do not rise within 0..{d}.", "pass rising indices, 0 to D.")
    return edges.astype(np.uint32)
