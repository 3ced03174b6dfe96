"""Steps that are no kernels: copies, fills, and functions of the host between the parts of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from dashi.errors import DTypeError, HostStepError, InputError, ShapeError
from dashi.runtime._binding import Step
from dashi.runtime._host_values import assignable
from dashi.runtime._operands import require_on
from dashi.runtime.array import Array
from dashi.types import Cost, HostArray

if TYPE_CHECKING:
    from dashi.runtime.device import Device

HostFunction = Callable[..., Any]
"""Takes the values of the inputs, read-only NumPy arrays, and returns those of the output, or a tuple of them."""


@dataclass(frozen=True, eq=False, repr=False)
class CopyStep:
    """A copy from one array to another."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    lowered: Any
    name: ClassVar[str] = "copy"

    @property
    def cost(self) -> Cost:
        return Cost(bytes=2 * self.outputs[0].nbytes)

    def __repr__(self) -> str:
        return f"<CopyStep: {self.inputs[0].description} -> {self.outputs[0].description}>"


@dataclass(frozen=True, eq=False, repr=False)
class FillStep:
    """One number for all elements of an array."""

    value: HostArray
    outputs: tuple[Array, ...]
    lowered: Any
    inputs: tuple[Array, ...] = ()
    name: ClassVar[str] = "fill"

    @property
    def cost(self) -> Cost:
        return Cost(bytes=self.outputs[0].nbytes)

    def __repr__(self) -> str:
        return f"<FillStep: {self.value} -> {self.outputs[0].description}>"


@dataclass(frozen=True, eq=False, repr=False)
class HostStep:
    """A function of the host, called between the parts of a program before and after it."""

    function: HostFunction
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    name: str
    lowered: Any

    @property
    def cost(self) -> Cost:
        return Cost()

    def __repr__(self) -> str:
        shapes, results = (", ".join(str(a.shape) for a in arrays) for arrays in (self.inputs, self.outputs))
        return f"<HostStep {self.name}: {shapes} -> {results}>"

    def call(self, inputs: Sequence[HostArray], outputs: Sequence[HostArray]) -> None:
        """Calls the function on values, and writes what it returns into `outputs`."""
        try:
            returned = self.function(*inputs)
        except Exception as error:
            raise HostStepError(
                f"the host step {self.name!r} failed: {type(error).__name__}: {error}.",
                "mend the function; steps before it have run, those after it have not.",
            ) from error
        results = cast("tuple[Any, ...]", returned) if isinstance(returned, tuple) else (returned,)
        if not self.outputs and returned is None:
            return
        if len(results) != len(self.outputs):
            raise HostStepError(
                f"the host step {self.name!r} returned {len(results)} values for {len(self.outputs)} outputs.",
                "return an array for each output, in a tuple where there are several; None where there is none.",
            )
        for array, target, result in zip(self.outputs, outputs, results, strict=True):
            target[...] = _result(self.name, array, result)


def _result(name: str, array: Array, result: Any) -> HostArray:
    values = np.asarray(result)
    if values.shape != array.shape:
        raise ShapeError(
            f"the host step {name!r} returned values of shape {values.shape} for {array.description}.",
            "return an array of the output's shape.",
        )
    values = array.dtype.to_stored(values) if values.dtype == array.dtype.numpy else values
    if values.dtype != array.dtype.stored:
        raise DTypeError(
            f"the host step {name!r} returned values of {values.dtype} for {array.description}.",
            f"convert them: values.astype(np.{array.dtype}).",
        )
    return values


AnyStep = Step | CopyStep | FillStep | HostStep
"""What programs are recorded from."""


def require_copyable(device: Device, source: Any, target: Any) -> None:
    """Copies go between two arrays of a device, of one shape and type, that share no memory."""
    for array in (source, target):
        require_on(device, "copy", "an array", array)
    if (source.shape, source.dtype) != (target.shape, target.dtype) or source is target:
        raise ShapeError(
            f"cannot copy {source.description} to {target.description}.",
            "copy between two arrays of one shape and element type.",
        )
    if source.overlaps(target):
        raise InputError(
            f"{source.description} and {target.description} share memory, so that a copy would overwrite "
            "what it reads.",
            "copy between parts that do not overlap, or by way of another array.",
        )


def copy_step(device: Device, source: Array, target: Array) -> CopyStep:
    """See `Device.copy_step`."""
    require_copyable(device, source, target)
    return CopyStep((source,), (target,), device.lower_copy(source, target))


def fill_step(device: Device, array: Array, value: complex) -> FillStep:
    """See `Device.fill_step`."""
    require_on(device, "fill", "an array", array)
    element = array.dtype.to_stored(assignable(value, array.dtype, ()))
    return FillStep(element, (array,), device.lower_fill(array, element))


def host_step(
    device: Device, function: HostFunction, inputs: Iterable[Array], outputs: Iterable[Array], name: str
) -> HostStep:
    """See `Device.host_step`."""
    if not callable(function):
        raise InputError(f"{function!r} is no function.", "pass a function of NumPy arrays.")
    sources, targets = _listed(device, "inputs", inputs), _listed(device, "outputs", outputs)
    for i, array in enumerate(targets):
        if any(array.overlaps(other) for other in targets[:i]):
            raise InputError(
                f"two outputs of the host step {name!r} share memory: {array.description} is written twice.",
                "pass arrays that do not overlap.",
            )
    called = name or getattr(function, "__name__", "host")
    return HostStep(function, sources, targets, called, device.lower_host(sources, targets))


def _listed(device: Device, what: str, arrays: Any) -> tuple[Array, ...]:
    if isinstance(arrays, Array) or not isinstance(arrays, Iterable):
        raise InputError(f"`{what}` of a host step is a list of arrays, not {type(arrays).__name__}.", "pass [array].")
    listed = tuple(cast("Iterable[Any]", arrays))
    for array in listed:
        require_on(device, "a host step", f"one of its {what}", array)
    return listed
