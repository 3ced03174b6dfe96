"""The part of a device that makes steps which are no kernels, and says what those of kernels need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from dashi.kernels.abi import Kernel, Number
from dashi.runtime._binding import as_kernel, plan_call
from dashi.runtime._gate import Gate, inside
from dashi.runtime._scratch import scratch_size
from dashi.runtime._steps import CopyStep, FillStep, HostFunction, HostStep, copy_step, fill_step, host_step
from dashi.runtime.array import Array
from dashi.types import HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device


class StepMaker(ABC):
    """Copies, fills and functions of the host as steps, to be recorded among those of kernels."""

    gate: Gate
    needs_scratch = True
    """Whether steps need memory between their dispatches: references of NumPy do not."""

    @abstractmethod
    def lower_copy(self, source: Array, target: Array) -> Any:
        """What the backend needs to record a copy."""

    @abstractmethod
    def lower_fill(self, array: Array, element: HostArray) -> Any:
        """What the backend needs to record a fill with one element."""

    @abstractmethod
    def lower_host(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Any:
        """What the backend needs to call a function of the host: the memory of its arrays."""

    @inside
    def copy_step(self, source: Array, target: Array) -> CopyStep:
        """A copy between two arrays of one shape and type, to be recorded among other steps."""
        return copy_step(cast("Device", self), source, target)

    @inside
    def fill_step(self, array: Array, value: complex) -> FillStep:
        """One number for all elements of an array, to be recorded among other steps."""
        return fill_step(cast("Device", self), array, value)

    @inside
    def host_step(
        self, function: HostFunction, inputs: Sequence[Array], outputs: Sequence[Array] = (), *, name: str = ""
    ) -> HostStep:
        """A function of the host, to be recorded among other steps: it takes the values of `inputs` as read-only NumPy
        arrays, which are its own until it returns, and returns those of `outputs` (a tuple of several). The steps
        before it are submitted and waited for, those after it follow; an error of the function ends the run."""
        return host_step(cast("Device", self), function, inputs, outputs, name)

    @inside
    def scratch_bytes(self, kernel: str | Kernel, *inputs: Array, tuning: str | None = None, **scalars: Number) -> int:
        """Bytes of memory between its dispatches that a kernel needs on these arrays here; 0 where it needs none."""
        device = cast("Device", self)
        planned = plan_call(device, as_kernel(kernel), inputs, tuning, scalars)
        return scratch_size(device, planned.call, planned.plan)
