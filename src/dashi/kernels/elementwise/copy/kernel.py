"""copy: result = x, bit for bit: NaN payloads, -0 and subnormals stay what they are."""

import numpy as np

from dashi.kernels import patterns
from dashi.kernels._words import word_moves
from dashi.types import HostArray


def reference(x: HostArray) -> HostArray:
    return np.array(x)


KERNEL = word_moves(
    summary="x, bit for bit",
    inputs=("x",),
    cases=patterns.cases(("x",)),
    reference=reference,
)
