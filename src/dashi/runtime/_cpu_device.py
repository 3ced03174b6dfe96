"""The NumPy reference device: every kernel's reference, behind the same interface."""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashi.errors import OutOfMemoryError
from dashi.kernels.abi import Call, Kernel, Limits, Plan
from dashi.runtime._gate import inside, watch_forks
from dashi.runtime._hazards import Batch, Range, Touched, place_barriers
from dashi.runtime._program import require_tickets
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Recording, Step, Waitable
from dashi.runtime.info import DeviceInfo
from dashi.runtime.landing import Landing, Ticket
from dashi.types import HostArray

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


class CpuProgram(Program):
    """Steps run in order, each by its reference."""

    device: CpuDevice

    def __init__(self, device: CpuDevice, steps: Sequence[Step], label: str, options: Recording | None = None) -> None:
        options = options or Recording()
        super().__init__(device, steps, label, options)
        self._sources: list[HostArray] = [array.storage for array in self.fetches]
        if self.fetches:
            self._landing = Landing(label, self.fetches, options.slots, self._slot(), _reader(self.fetches))

    def _slot(self) -> list[HostArray]:
        return [np.empty_like(source) for source in self._sources]

    @inside
    def submit(self, after: Iterable[Waitable] = ()) -> Waitable:
        self.require_open()
        for other in require_tickets(after) if after else ():
            other.wait()
        ticket = Ticket(self.device)
        landing: list[HostArray] = [] if self._landing is None else self._landing.take(ticket, self._slot)
        try:
            with self.device.order:
                for step in self.steps:
                    _compute(step)
                for source, target in zip(self._sources, landing, strict=False):
                    target[...] = source
        except BaseException as error:
            if self._landing is not None:
                self._landing.give_back(ticket)
            if isinstance(error, MemoryError):
                raise no_memory(str(error)) from error
            raise
        return ticket

    def schedule(self) -> list[Batch]:
        # Each step begins when the one before it has ended.
        touched = [step.lowered.touched for step in self.steps]
        return [Batch(touched, place_barriers(touched, "all"), [step.name for step in self.steps])]

    def close(self) -> None:
        self._closed = True


def _reader(arrays: Sequence[Array]) -> Callable[[list[HostArray], int], HostArray]:
    """Copies of arrays out of a slot."""
    forms = [(array.dtype, array.shape) for array in arrays]

    def read(slot: list[HostArray], index: int) -> HostArray:
        dtype, shape = forms[index]
        return dtype.from_bytes(slot[index].copy()).reshape(shape)

    return read


def no_memory(why: str) -> OutOfMemoryError:
    """The error for memory of the host that NumPy did not get."""
    return OutOfMemoryError(
        f"the host has not enough memory for this: {why.rstrip('.')}.",
        "close arrays that are no longer needed, or use smaller ones.",
    )


@dataclass(frozen=True, eq=False)
class Lowered:
    """The memory that a step reads and writes, which lives as long as the step, whoever closes its arrays."""

    inputs: tuple[HostArray, ...]
    outputs: tuple[HostArray, ...]

    @property
    def touched(self) -> Touched:
        """What it reads and writes, in hazard tracking."""
        return Touched(tuple(map(_byte_range, self.inputs)), tuple(map(_byte_range, self.outputs)))


def _byte_range(values: HostArray) -> Range:
    start = values.ctypes.data
    return (0, start, start + values.nbytes)


def _compute(step: Step) -> None:
    lowered: Lowered = step.lowered
    returned = step.kernel.reference(*lowered.inputs, **step.call.scalars)
    results = returned if isinstance(returned, tuple) else (returned,)
    for target, result in zip(lowered.outputs, results, strict=True):
        target[...] = np.asarray(result).reshape(target.shape)


def _values(array: Array) -> HostArray:
    return array.storage.view(array.dtype.numpy).reshape(array.shape)


class CpuDevice(Device):
    """Runs the NumPy reference of each kernel; what several threads submit, one after another, as a queue does."""

    needs_scratch = False

    def __init__(self) -> None:
        super().__init__(cpu_info())
        self.order = threading.RLock()
        watch_forks(self)

    def after_fork(self) -> None:
        """A child process may go on with it: it holds nothing but memory. Those who were inside are gone there."""
        self.order, self._closing = threading.RLock(), threading.RLock()
        self.gate.entered.clear()

    def _allocate(self, nbytes: int) -> Any:
        try:
            return np.zeros(nbytes, np.uint8)
        except (MemoryError, ValueError) as error:
            raise no_memory(str(error)) from error

    def _part(self, storage: Any, offset: int, nbytes: int) -> Any:
        return storage[offset : offset + nbytes]

    def shared(self, first: Any, other: Any) -> bool:
        return np.may_share_memory(first, other)

    def byte_range(self, storage: Any) -> Range:
        return _byte_range(storage)

    def ends_memory(self, storage: Any) -> bool:
        whole = storage if storage.base is None else storage.base
        return storage.ctypes.data + storage.nbytes == whole.ctypes.data + whole.nbytes

    def write(self, array: Array, values: HostArray) -> None:
        with self.order:
            _values(array)[...] = values

    def read(self, array: Array) -> HostArray:
        with self.order:
            return array.storage.copy()

    def lower(self, kernel: Kernel, call: Call, plan: Plan, arrays: Mapping[str, Array]) -> Any:
        return Lowered(
            tuple(_values(arrays[operand.name]) for operand in kernel.inputs),
            tuple(_values(arrays[operand.name]) for operand in kernel.outputs),
        )

    def _program(self, steps: Sequence[Step], label: str, options: Recording) -> Program:
        return CpuProgram(self, steps, label, options)

    def _copy(self, source: Array, target: Array, after: Iterable[Waitable]) -> Waitable:
        for ticket in after:
            ticket.wait()
        with self.order:
            target.storage[...] = source.storage
        return Ticket(self)

    def at_work(self) -> bool:
        if not self.order.acquire(blocking=False):
            return True
        self.order.release()
        return False

    def _close(self) -> None:
        """Nothing to free."""
