"""Kernels that take values to the places that a list of indices names: their operands, cases and loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dashi.kernels._work import groups_for
from dashi.kernels.abi import Call, Case, Dispatch, Number, Operand, Scalar
from dashi.types import HostArray, Shape

LOCAL: Final = 256
INPUTS: Final = (Operand("base", shape=("m",)), Operand("index", "u32", ("n",)), Operand("values", shape=("n",)))
OUTPUTS: Final = (Operand("result", shape=("m",)),)
PLACES: Final = (Scalar("m", "u32"), Scalar("stride", "u32"))
"""Push constants of a loop over places, and of one over values."""
ITEMS: Final = (Scalar("m", "u32"), Scalar("n", "u32"), Scalar("stride", "u32"))


def sweep(call: Call, shader: str, buffers: tuple[str, ...], count: int, numbers: Mapping[str, Number]) -> Dispatch:
    """A dispatch whose invocations share `count` items in a loop."""
    groups, trips = groups_for(count, LOCAL, call.limits)
    return Dispatch(shader, buffers, {**numbers, "stride": groups * LOCAL}, (groups, 1, 1), trips)


def case(m: int, n: int, reach: int | None = None) -> Case:
    """Targets below `reach` (m by default): a small reach has many duplicates, a large one indices out of range."""

    def index(rng: np.random.Generator, shape: Shape) -> HostArray:
        return rng.integers(0, m if reach is None else reach, shape, dtype=np.uint64).astype(np.uint32)

    return Case({"base": (m,), "index": (n,), "values": (n,)}, fill={"index": index})


CASES: Final = (
    case(1, 1), case(63, 65), case(1, 1000), case(257, 4097), case(5000, 100), case(4097, 5000, reach=3),
    case(64, 4099, reach=100), case(1000, 257, reach=1 << 32), case(65, 0), case(0, 65, reach=8), case(70000, 70000),
)  # fmt: skip
