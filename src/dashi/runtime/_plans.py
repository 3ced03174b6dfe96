"""Plans that were made and checked before: binding a kernel to other arrays of the same shapes makes none again."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dashi.kernels.abi import Call, Kernel, Limits, Number, Plan
from dashi.runtime.array import Array
from dashi.types import DType

_MOST: Final = 4096


@dataclass(frozen=True, eq=False)
class Planned:
    """A call of a kernel, its checked plan, and the names of its operands, inputs first."""

    kernel: Kernel
    call: Call
    plan: Plan
    tuning: str | None
    names: tuple[str, ...]
    output_dtypes: tuple[DType, ...]


class PlanCache:
    """The plans of a device. Whoever finds one need not look at shapes, types and scalars again; limits and tunings may
    have changed since."""

    def __init__(self) -> None:
        self._planned: dict[Hashable, Planned] = {}

    def key(
        self, kernel: Kernel, inputs: Sequence[Array], tuning: str | None, scalars: Mapping[str, Number], limits: Limits
    ) -> Hashable:
        """What a plan follows from; None where that cannot be told cheaply. Numbers are equal that plans tell apart:
        1 and 1.0, 0.0 and -0.0."""
        if not all(type(array) is Array for array in inputs):
            return None
        try:
            numbers = [(name, type(v), v, math.copysign(1, v) if not v else 1) for name, v in scalars.items()]
            key = (id(kernel), tuple([(a.shape, a.dtype.name) for a in inputs]), tuning, tuple(numbers), limits)
            hash(key)
        except (TypeError, ValueError):  # an array is no number: binding says so
            return None
        return key

    def get(self, key: Hashable) -> Planned | None:
        return None if key is None else self._planned.get(key)

    def put(self, key: Hashable, planned: Planned) -> None:
        """Keeps a plan, and with it its kernel, whose identity is a part of the key."""
        if key is None:
            return
        if len(self._planned) >= _MOST:
            self._planned.clear()
        self._planned[key] = planned
