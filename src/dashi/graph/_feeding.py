"""Outputs that become inputs of the next run: all of them, or the rows in use, whose number may change with every run.

A recording copies the most rows that there may be: each element is the output's, where its row is in use, and else
stays what it was. How many are in use is one number, fed with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from dashi import kernels
from dashi.errors import BoundsError, GraphError
from dashi.graph.handles import Resident
from dashi.graph.ir import TensorType
from dashi.kernels.abi import Kernel
from dashi.kernels.expressions import arguments, where
from dashi.runtime._shapes import whole_number
from dashi.types import HostArray
from dashi.types import dtype as dtype_of

if TYPE_CHECKING:
    from dashi.runtime.array import Array
    from dashi.runtime.device import AnyStep, Device

_UNITS: Final = {4: "u32", 2: "u16", 1: "u8"}


@dataclass(frozen=True, eq=False)
class Feeding:
    """An output that feeds an input: whole, or `rows` of its rows (an array of one number), of at most `upper`."""

    output: str
    upper: int | None = None
    rows: HostArray | None = None


def feeding(output: str, kind: TensorType, handle: Resident, extent: tuple[int, int] | None) -> Feeding:
    """How an output of this type feeds a bound input."""
    target = handle.type
    if extent is None:
        if kind != target:
            raise GraphError(
                f"the output {output!r} is {kind}, the input {handle.name!r} {target}.",
                "feed an output of the input's shape and type, or single rows: feed_rows.",
            )
        return Feeding(output)
    if not kind.shape or not target.shape or (kind.shape[1:], kind.dtype) != (target.shape[1:], target.dtype):
        raise GraphError(
            f"rows of the output {output!r} ({kind}) are none of {handle.name!r} ({target}).",
            "feed rows of one shape and type.",
        )
    if not isinstance(extent, Sequence) or len(extent) != 2:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError(f"the active extent is {extent!r:.80}.", "give (rows in use, the most that may be).")
    rows, upper = (whole_number(number, "an active extent") for number in extent)
    most = min(kind.shape[0], target.shape[0])
    if not 0 <= rows <= upper <= most:
        raise BoundsError(
            f"the active extent ({rows}, {upper}) is none of {most} rows.",
            f"give the rows in use, and the most that may be: 0 <= rows <= upper <= {most}.",
        )
    return Feeding(output, upper, np.full((1, 1), rows, np.uint32))


def copy_rows(device: Device, source: Array, target: Array, upper: int) -> tuple[list[AnyStep], Array]:
    """Steps that copy the rows in use of at most `upper`, and the array that says how many these are."""
    extent = device.empty((1, 1), np.uint32)
    width = source.nbytes // max(1, source.shape[0])
    if not upper or not width:
        return [], extent
    unit = next(nbytes for nbytes in _UNITS if width % nbytes == 0)
    shape, kind = (upper, width // unit), dtype_of(_UNITS[unit])
    new, old = (device.view(array, 0, shape, kind) for array in (source, target))
    rows = device.array(np.arange(upper, dtype=np.uint32).reshape(upper, 1))
    kernel = _selection(_UNITS[unit])
    result = old if kernel.in_place else device.empty(shape, kind)
    steps: list[AnyStep] = [device.bind(kernel, rows, extent, new, old, out=result)]
    return steps + ([] if kernel.in_place else [device.copy_step(result, old)]), extent


@cache
def _selection(unit: str) -> Kernel:
    """The new words of rows in use, and the old of the others, bit for bit."""
    row, extent, new, old = arguments("row extent new old")
    types = {"row": "u32", "extent": "u32", "new": unit, "old": unit, "result": unit}
    return kernels.fuse(where(row < extent, new, old), inputs="row extent new old", types=types, compute="u32")
