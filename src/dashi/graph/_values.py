"""Canonical values: what every number of a graph is (docs/portability.md, section 1)."""

from __future__ import annotations

import numpy as np

from dashi.kernels.portable import canon
from dashi.types import HostArray


def canonical(values: HostArray) -> HostArray:
    """Floats without -0, tiny magnitudes and payloads of NaN; everything else as it is. Halves keep subnormals."""
    if values.dtype == np.float16:
        bits = values.view(np.uint16)
        bits = np.where(bits == 0x8000, np.uint16(0), bits)
        return np.where((bits & 0x7FFF) > 0x7C00, np.uint16(0x7E00), bits).view(np.float16)
    return canon(values) if values.dtype.kind == "f" else values
