"""What `dashi bench kernels` measures: a kernel's benchmark cases, made smaller where the device could not hold them
or would take too long, and the inputs for them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from dashi.errors import DashiError, DTypeError, InputError
from dashi.kernels import _cases as cases
from dashi.kernels._calls import resolve_call
from dashi.kernels.abi import Call, Case, Kernel, Limits, part_of
from dashi.runtime.conformance import shape_text
from dashi.runtime.device import Device
from dashi.types import DTYPES, HostArray, Shape

Size = Literal["small", "full"]

_BLOCK: Final = 1 << 20
"""Larger random inputs repeat a block of this many elements: they are made at the speed of memory."""


@dataclass(frozen=True)
class WorkLimit:
    """The most that one call may take: bytes of all operands together, and counted operations."""

    bytes: int
    flops: int


SOFTWARE: Final = WorkLimit(32 << 20, 1 << 27)
"""Runs in about 0.2 s on two cores."""
CHECKED: Final = WorkLimit(16 << 20, 1 << 26)
"""What a NumPy reference computes in a second or so."""


@dataclass(frozen=True)
class Workload:
    """One measurement to make: a kernel variant on a case. `number` counts the kernel's benchmark cases (None for an
    ordinary one), `note` says how the case differs from what was asked for."""

    kernel: Kernel
    variant: str
    case: Case
    number: int | None
    note: str = ""

    @property
    def shapes(self) -> str:
        return shape_text(self.case)

    def call(self, limits: Limits, tuning: Mapping[str, int] | None = None) -> Call:
        shapes = [self.case.shapes[o.name] for o in self.kernel.inputs]
        return resolve_call(self.kernel, self.variant, shapes, self.case.scalars, limits, tuning)


def work_limit_of(device: Device) -> WorkLimit:
    """What one call may take on this device: little on a processor, half of the memory on hardware."""
    if not device.info.is_hardware:
        return SOFTWARE
    local = max((heap.size for heap in device.info.heaps if heap.device_local), default=1 << 30)
    return WorkLimit(local // 2, 1 << 62)


def workloads(kernel: Kernel, variant: str, device: Device, size: Size, number: int | None = None) -> list[Workload]:
    """The cases to measure: `full` those of `Kernel.bench` (or only the one of that number), `small`, and a kernel
    that has none, its largest ordinary case."""
    if number is not None and not 0 <= number < len(kernel.bench):
        known = f"it has {len(kernel.bench)}, counted from 0" if kernel.bench else "it has none"
        raise InputError(f"kernel {kernel.name!r} has no benchmark case {number}; {known}.", "leave `case=` away.")
    room = work_limit_of(device)
    if number is None and (size == "small" or not kernel.bench):
        return [_ordinary(kernel, variant, device.limits, room)]
    numbers = range(len(kernel.bench)) if number is None else (number,)
    found = [smaller(Workload(kernel, variant, kernel.bench[n], n), device.limits, room) for n in numbers]
    # Cases that differ only in size may be one once they are scaled down.
    return [w for i, w in enumerate(found) if not w.note or w.shapes not in {other.shapes for other in found[:i]}]


def workloads_of(
    kernels: Sequence[Kernel],
    device: Device,
    size: Size,
    *,
    dtypes: Sequence[str] | None = None,
    number: int | None = None,
    tuning: str | None = None,
    named: bool = True,
) -> Iterator[tuple[Workload, tuple[str | None, ...]]]:
    """What to measure of these kernels, each with the tunings to measure it with (None: the device's choice; "all":
    every one). Kernels that were not `named` are left out where they have no such variant or tuning; for those that
    were it is an error."""
    for kernel in kernels:
        for variant in dtypes or kernel.dtypes[:1]:
            if variant not in kernel.dtypes:
                if named:
                    raise DTypeError(
                        f"kernel {kernel.name!r} has no variant {variant}.", f"use {', '.join(kernel.dtypes)}."
                    )
                continue
            if tuning is None or (tuning == "all" and not kernel.tunings):
                tunings: tuple[str | None, ...] = (None,)
            elif tuning == "all":
                tunings = tuple(kernel.tunings)
            elif not named and tuning not in kernel.tunings:
                continue
            else:
                tunings = (device.tuning_for(kernel, variant, tuning),)
            for workload in workloads(kernel, variant, device, size, number):
                yield workload, tunings


def smaller(asked: Workload, limits: Limits, room: WorkLimit) -> Workload:
    """The workload itself if it fits; else one like it that does; else an ordinary case of the kernel."""
    if fits(asked, limits, room):
        return asked
    like = shrink(asked, limits, room)
    if like is not None:
        return replace(like, note=f"scaled down from {asked.shapes}")
    return replace(_ordinary(asked.kernel, asked.variant, limits, room), note=f"instead of {asked.shapes}")


def _ordinary(kernel: Kernel, variant: str, limits: Limits, room: WorkLimit) -> Workload:
    """The largest ordinary case that fits, else the smallest there is."""
    ranked = sorted(kernel.cases, key=lambda case: sum(math.prod(shape) for shape in case.shapes.values()))
    every = [Workload(kernel, variant, case, None) for case in ranked]
    return next((w for w in reversed(every) if fits(w, limits, room)), every[0])


def fits(workload: Workload, limits: Limits, room: WorkLimit) -> bool:
    """Whether every operand can be bound and the whole stays within the room. False too for a call that is refused."""
    try:
        call = workload.call(limits)
        plan, cost = workload.kernel.plan(call), workload.kernel.cost(call)
    except DashiError:
        return False
    kinds = {o.name: o.dtype for o in (*workload.kernel.inputs, *workload.kernel.outputs)}
    sizes = [(kinds[name], math.prod(shape)) for name, shape in call.shapes.items()] + list(plan.scratch.values())
    held = [count * (call.dtype if kind == "T" else DTYPES[kind]).size for kind, count in sizes]
    return max(held, default=0) <= limits.storage_range and sum(held) <= room.bytes and cost.flops <= room.flops


def shrink(asked: Workload, limits: Limits, room: WorkLimit) -> Workload | None:
    """The workload with its longest dimension halved until it fits; None where dimensions depend on the contents
    (index lists, offsets) or on scalars, so that they cannot be chosen freely."""
    workload: Workload | None = asked
    while workload is not None and not fits(workload, limits, room):
        workload = _halved(workload)
    return workload


def _halved(workload: Workload) -> Workload | None:
    kernel, case = workload.kernel, workload.case
    lengths = _lengths(kernel, case)
    tied = {s.name for s in kernel.scalars}
    longest = max(lengths, key=lambda name: (lengths[name], name), default="")
    if case.fill or tied & set(lengths) or lengths.get(longest, 0) <= 1:
        return None
    lengths[longest] = -(-lengths[longest] // 2)
    shapes = {o.name: _shape(_names(o.shape, case.shapes[o.name]), lengths) for o in kernel.inputs}
    return replace(workload, case=replace(case, shapes=shapes))


def _names(declared: tuple[str | int, ...] | None, shape: Shape) -> tuple[str | int, ...]:
    """The dimensions of an operand; those of any shape are numbered."""
    return declared if declared is not None else tuple(f"#{axis}" for axis in range(len(shape)))


def _lengths(kernel: Kernel, case: Case) -> dict[str, int]:
    shapes = [(_names(o.shape, case.shapes[o.name]), case.shapes[o.name]) for o in kernel.inputs]
    pairs = [pair for names, shape in shapes for pair in zip(names, shape, strict=True)]
    return {name: length for name, length in pairs if isinstance(name, str) and part_of(name)[1] == 1}


def _shape(names: tuple[str | int, ...], lengths: Mapping[str, int]) -> Shape:
    sizes: list[int] = []
    for name in names:
        whole, parts = part_of(name) if isinstance(name, str) else ("", 1)
        sizes.append(name if isinstance(name, int) else -(-lengths[whole] // parts))
    return tuple(sizes)


def host_inputs(workload: Workload, seed: int = 0) -> list[HostArray]:
    """Inputs in the order of the kernel's operands: normal numbers, or what the case makes itself."""
    kernel, case = workload.kernel, workload.case
    large = {n for n, shape in case.shapes.items() if math.prod(shape) > _BLOCK and n not in case.fill}
    blocks = replace(case, shapes={n: (_BLOCK,) if n in large else shape for n, shape in case.shapes.items()})
    made = cases.inputs(kernel, blocks, workload.variant, "normal", seed)
    return [np.resize(made[n], case.shapes[n]) if n in large else made[n] for n in (o.name for o in kernel.inputs)]
