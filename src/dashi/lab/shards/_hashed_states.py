"""The states of a shard where the whole run is hashed: a hash of all members is of all their bytes, so whoever merges
shards needs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dashi.core.rollouts.observer import Bound, Context, Observer, Values, require_stride
from dashi.core.rollouts.run import Run
from dashi.errors import FileError
from dashi.flow._fields import FieldStore, StoredFields, Variable, series_variable
from dashi.flow.equations import Flow
from dashi.runtime.array import Array
from dashi.runtime.device import Step
from dashi.types import Shape

_STATES = "states"


class HashedStates(Observer[None]):
    """Keeps the states on a stride in a store, before a checkpoint can count their step (`make_durable`)."""

    name = "hashed_states"
    certified = False

    def __init__(self, path: Path, flow: Flow, members: int, every: int, resumed: Run | None) -> None:
        self.every = require_stride("hash", every)
        self._store = FieldStore(path, variables_of(flow, members), {}, resume=resumed is not None)
        if resumed is not None:
            self._require_states(path, resumed)

    def _require_states(self, path: Path, resumed: Run) -> None:
        lacking = self._store.missing(_STATES, resumed.steps // self.every)
        if lacking is not None:
            raise FileError(
                f"{path} has no whole states of step {(lacking + 1) * self.every}, written before {resumed.steps}.",
                "start this shard anew: remove its folder, or use `overwrite=True`.",
            )

    def bind(self, context: Context) -> Bound:
        def steps(_: Array, after: Array, slots: Sequence[Array]) -> Sequence[Step]:
            return [context.device.bind("copy", after, out=slots[0])]

        def take(step: int, values: Values) -> None:
            self._store.frame(_STATES, step // self.every - 1, values[0])

        return Bound([(context.shape, context.operator.dtype)], steps, take)

    def measure(self, stepper: Any) -> Values:
        return [stepper.states()]

    def make_durable(self) -> None:
        """Waits until the states so far are on the disk, as a checkpoint that counts them must."""
        self._store.make_durable()

    def finish(self, steps: int) -> None:
        """Makes the states up to the last step part of the store."""
        count = steps // self.every
        self._store.count(_STATES, count)
        self._store.series("step", np.arange(1, count + 1) * self.every)
        self._store.commit()


def variables_of(flow: Flow, members: int) -> Mapping[str, Variable]:
    """The arrays of the store."""
    shape: Shape = (members, flow.n, flow.modes, 2)
    return {
        _STATES: Variable(("member", "ky", "kx", "part"), flow.dtype, shape, {"long_name": "half spectra"}, "time"),
        "step": series_variable("time", (), (), "int64", units="1", long_name="steps done"),
    }


class StoredStates:
    """The states that a shard kept, read without trust."""

    def __init__(self, path: Path, flow: Flow, members: int, every: int, steps: int) -> None:
        self.every = every
        self._store = StoredFields(path, variables_of(flow, members), {"time": steps // every})

    def pieces(self, step: int) -> Iterator[bytes]:
        """The bytes of the states after a step on the stride."""
        return self._store.frame(_STATES, step // self.every - 1)
