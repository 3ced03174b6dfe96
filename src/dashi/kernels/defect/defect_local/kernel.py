"""defect_local: result = |b - a|, how far two states are apart at each place."""

import numpy as np

from dashi.kernels.abi import StreamDefaults
from dashi.kernels.patterns import elementwise
from dashi.kernels.portable import canon
from dashi.types import HostArray


def reference(a: HostArray, b: HostArray) -> HostArray:
    return canon(np.abs(canon(b) - canon(a)))


KERNEL = elementwise(
    summary="|b - a|",
    inputs=("a", "b"),
    flops=2,
    wide=True,
    stream=StreamDefaults(io_class="OBSERVER"),
    takes="index",
    reference=reference,
)
