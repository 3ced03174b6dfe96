"""The NumPy reference device: every kernel's reference, behind the same interface."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dashi.kernels.abi import Call, Kernel, Limits, Plan
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Recording, Room, Step, Waitable
from dashi.runtime.info import DeviceInfo
from dashi.types import Array as HostArray

EVERY_FEATURE = frozenset(
    """
    fp16 fp64 int8 int16 int64 atomics_float atomics_int64 subgroup subgroup_size_control timeline memory_model
    coop_matrix subgroup_quad rendezvous
    """.split()
)
UNLIMITED = Limits(
    groups=1 << 31,
    invocations=1024,
    shared_bytes=1 << 20,
    storage_range=1 << 62,
    push_bytes=256,
    offset_alignment=1,
    loop_trips=1 << 62,
    resident=1 << 31,
)


def cpu_info() -> DeviceInfo:
    """What the NumPy device says of itself."""
    return DeviceInfo(
        spec="cpu",
        name=f"NumPy {np.__version__} on {platform.machine()}",
        type="reference",
        driver="numpy",
        driver_version=np.__version__,
        features=EVERY_FEATURE,
        limits=UNLIMITED,
        subgroup_size=32,
    )


class Done:
    """Work that was finished when it was submitted."""

    done = True

    def wait(self, timeout: float | None = None) -> None:
        """Returns at once."""


class CpuProgram(Program):
    """Steps run in order, each by its reference."""

    def __init__(self, device: Device, steps: Sequence[Step], label: str, options: Recording | None = None) -> None:
        super().__init__(device, steps, label, options or Recording())
        self._landed: dict[int, HostArray] = {}

    def submit(self, after: Iterable[Waitable] = ()) -> Waitable:
        self.device.require_open()
        for ticket in after:
            ticket.wait()
        for step in self.steps:
            _compute(step)
        self._landed = {id(array): array.numpy() for array in self.fetches}
        return Done()

    def fetched(self, array: Array) -> HostArray:
        return self._landed[id(array)].copy()

    def close(self) -> None:
        """Nothing to free."""


def _compute(step: Step) -> None:
    inputs = [_values(a) for a in step.inputs]
    made = step.kernel.reference(*inputs, **step.call.scalars)
    results = made if isinstance(made, tuple) else (made,)
    for array, result in zip(step.outputs, results, strict=True):
        _values(array)[...] = np.asarray(result).reshape(array.shape)


def _values(array: Array) -> HostArray:
    return array.storage.view(array.dtype.numpy).reshape(array.shape)


class CpuDevice(Device):
    """Runs the NumPy reference of each kernel."""

    def __init__(self) -> None:
        super().__init__(cpu_info())

    def _allocate(self, nbytes: int) -> Any:
        return np.zeros(nbytes, np.uint8)

    def _part(self, storage: Any, offset: int, nbytes: int) -> Any:
        return storage[offset : offset + nbytes]

    def shared(self, one: Any, other: Any) -> bool:
        return np.may_share_memory(one, other)

    def write(self, array: Array, values: HostArray) -> None:
        _values(array)[...] = values

    def read(self, array: Array) -> HostArray:
        return array.storage.copy()

    def lower(self, kernel: Kernel, call: Call, plan: Plan, arrays: Mapping[str, Array], room: Room) -> Any:
        return None

    def _program(self, steps: Sequence[Step], label: str, options: Recording) -> Program:
        return CpuProgram(self, steps, label, options)

    def _copy(self, source: Array, target: Array, after: Iterable[Waitable]) -> Waitable:
        for ticket in after:
            ticket.wait()
        target.storage[...] = source.storage
        return Done()

    def _close(self) -> None:
        """Nothing to free."""
