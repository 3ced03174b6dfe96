"""What watches that states stay finite: how they are checked on the device, and what is said where they are not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import numpy as np

from dashi.core.rollouts.observer import Slot
from dashi.core.rollouts.run import Run
from dashi.errors import NonFiniteError
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.types import HostArray


class FiniteCheck(Protocol):
    """A kernel that tells whether states are finite."""

    def slot(self, dtype: np.dtype[Any]) -> Slot:
        """What it leaves."""
        ...

    def step(self, device: Device, states: Array, slot: Array) -> Step:
        """Fills the slot."""
        ...

    def passes(self, values: HostArray) -> bool:
        """Whether the states are finite; a check may err to the side of doubt."""
        ...


class SumCheck:
    """The sum of the states: it costs least, and is not finite either where they are close to the largest there is."""

    def slot(self, dtype: np.dtype[Any]) -> Slot:
        return (1,), dtype

    def step(self, device: Device, states: Array, slot: Array) -> Step:
        return device.bind("reduce_sum", states, out=slot)

    def passes(self, values: HostArray) -> bool:
        return bool(np.isfinite(values).all())


class RangeCheck:
    """The least and the largest value, which are NaN where any value is: exact."""

    def slot(self, dtype: np.dtype[Any]) -> Slot:
        return (4,), dtype

    def step(self, device: Device, states: Array, slot: Array) -> Step:
        return device.bind("reduce_statistics", states, out=slot)

    def passes(self, values: HostArray) -> bool:
        return bool(np.isfinite(values[:2]).all())


class Guard(Protocol):
    """Ends a run where its states are not finite, without a search for the step: for operators that know better what to
    say of it."""

    @property
    def check(self) -> FiniteCheck:
        """Exact: a state that does not pass it is not finite."""
        ...

    def checks(self, *, last: bool, seen: Collection[str]) -> bool:
        """Whether the states after a segment are checked, which is the last of a block or not; `seen` are the names of
        the observers that look at them."""
        ...

    def error(self, what: str, run: Run) -> NonFiniteError:
        """The error for what was seen, and for the run until then."""
        ...
