"""Arrays in words: their values in brief, read only where that is quick, waits for nothing and cannot fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dashi.errors import DashiError

if TYPE_CHECKING:
    from dashi.runtime.array import Array

_ALL: Final = 64
_ENDS: Final = 3


def array_repr(array: Array) -> str:
    """`Array([1., 2.], shape=(2,), dtype=float32, device='cpu')`, with `closed` or `...` in the place of the values
    where there are none to be shown."""
    return f"Array({values_text(array)}, {facts_text(array)})"


def facts_text(array: Array) -> str:
    """Shape, element type and device."""
    return f"shape={array.shape}, dtype={array.dtype}, device={array.device.info.spec!r}"


def values_text(array: Array) -> str:
    """The values of an array of up to 64 elements; of a larger one those at the beginning and the end. `...` where the
    device is at work, so that nobody has to wait for a repr, or has none to give."""
    if array.closed:
        return "closed"
    try:
        if array.device.at_work():
            return "..."
        if array.size <= _ALL:
            return np.array2string(array.numpy(), separator=", ", max_line_width=100, prefix="Array(", threshold=_ALL)
        flat = array.reshape(-1)
        ends = np.concatenate([flat[:_ENDS].numpy(), flat[-_ENDS:].numpy()])
    except DashiError:
        return "..."
    words = [np.array2string(value) for value in ends]
    left, right = ("[" * max(1, array.ndim), "]" * max(1, array.ndim))
    return f"{left}{', '.join(words[:_ENDS])}, ..., {', '.join(words[_ENDS:])}{right}"
