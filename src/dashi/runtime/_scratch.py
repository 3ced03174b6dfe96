"""Memory between the dispatches of a step: how much one needs, and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from dashi.errors import InputError, ShapeError
from dashi.kernels.abi import Call, Kernel, Plan
from dashi.runtime._operands import require_on
from dashi.runtime.array import Array
from dashi.types import DTYPES, DType

if TYPE_CHECKING:
    from dashi.runtime.device import Device

ScratchPool = dict[tuple[str, str, int], Array]
"""Scratch memory that steps share, by its name, element type and size; what is missing is put there."""
Scratch = ScratchPool | Array
"""A pool, or an array of the caller's that is large enough (`Device.scratch_bytes`)."""


@dataclass(frozen=True)
class _Need:
    name: str
    dtype: DType
    count: int
    offset: int


def _needs(device: Device, call: Call, plan: Plan) -> tuple[list[_Need], int]:
    """Scratch buffers one after another, and the bytes of all."""
    needs: list[_Need] = []
    end = 0
    for name, (kind, count) in plan.scratch.items():
        element = call.dtype if kind == "T" else DTYPES[kind]
        start = math.ceil(end / device.part_alignment) * device.part_alignment
        needs.append(_Need(name, element, count, start))
        end = start + -(-count * element.size // 16) * 16
    return needs, end


def scratch_size(device: Device, call: Call, plan: Plan) -> int:
    """Bytes of scratch memory that a plan needs on a device."""
    return _needs(device, call, plan)[1] if device.needs_scratch else 0


def scratch_arrays(
    device: Device, kernel: Kernel, call: Call, plan: Plan, scratch: Any, operands: Iterable[Array] = ()
) -> dict[str, Array]:
    """The scratch arrays of a plan by name: out of the pool, which keeps what is new, or parts of the caller's array,
    which must have no bytes in common with the operands."""
    if not plan.scratch and isinstance(scratch, dict):
        return {}
    if isinstance(scratch, dict):
        return _pooled(device, call, plan, cast("ScratchPool", scratch)) if device.needs_scratch else {}
    require_on(device, f"kernel {kernel.name!r}", "scratch", scratch)
    needs, total = _needs(device, call, plan)
    if not device.needs_scratch or not needs:
        return {}
    if scratch.nbytes < total:
        raise ShapeError(
            f"kernel {kernel.name!r} needs {total} bytes of scratch memory here; {scratch.description} has "
            f"{scratch.nbytes}.",
            "ask beforehand: device.scratch_bytes(kernel, ...), and pass an array of so many bytes.",
        )
    if any(scratch.overlaps(operand) for operand in operands):
        raise InputError(
            f"kernel {kernel.name!r}: its scratch memory overlaps an operand.", "pass memory of its own as `scratch`."
        )
    return {need.name: device.part(scratch, need.offset, need.count, need.dtype) for need in needs}


def _pooled(device: Device, call: Call, plan: Plan, pool: ScratchPool) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name, (kind, count) in plan.scratch.items():
        element = call.dtype if kind == "T" else DTYPES[kind]
        key = (name, element.name, count)
        if key not in pool:
            pool[key] = device.empty(count, element)
        arrays[name] = pool[key]
    return arrays
