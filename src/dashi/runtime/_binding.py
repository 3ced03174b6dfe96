"""A kernel bound to arrays of a device: everything that is settled before anything is recorded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dashi import kernels
from dashi.errors import FeatureError, InputError
from dashi.kernels._arguments import require_arrays
from dashi.kernels._calls import resolve_call
from dashi.kernels._general import general_form
from dashi.kernels._text_types import variable_kernel
from dashi.kernels._validate import check_plan
from dashi.kernels.abi import Call, Kernel, Number, Plan, plan_features
from dashi.runtime._operands import (
    dtype_of_operand,
    require_apart,
    require_bindable,
    require_fit,
    require_on,
    variant_of,
)
from dashi.runtime._plans import Planned
from dashi.runtime._proof import check_on_first_use
from dashi.runtime._scratch import Scratch, scratch_arrays
from dashi.runtime.array import Array
from dashi.types import Cost, DType

if TYPE_CHECKING:
    from dashi.runtime.device import Device


@dataclass(frozen=True, eq=False, repr=False)
class Step:
    """A kernel bound to arrays: an operator ready to be recorded, as often as wanted."""

    kernel: Kernel
    call: Call
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    lowered: Any
    tuning: str | None = None
    """The name of the tuning among `Kernel.tunings` that it was planned with."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.name

    @property
    def cost(self) -> Cost:
        return self.kernel.cost(self.call)

    def __repr__(self) -> str:
        shapes, results = (", ".join(str(a.shape) for a in arrays) for arrays in (self.inputs, self.outputs))
        scalars = "".join(f", {name}={value}" for name, value in self.call.scalars.items())
        return f"<Step {self.kernel.name} {self.call.dtype.name}: {shapes} -> {results}{scalars}>"


def as_kernel(kernel: str | Kernel) -> Kernel:
    """A kernel itself, or the one of that name or alias. Raises InputError for anything else."""
    if isinstance(kernel, str):
        return kernels.get(kernel)
    if not isinstance(kernel, Kernel):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{kernel!r} is no kernel.", "pass its name; `dashi kernels list` names them all.")
    return kernel


def _serving(kernel: Kernel, inputs: Sequence[Any]) -> Kernel:
    """The kernel itself; or the one that stands in for it where arrays have several shapes, or element types that it
    has no variant for, or that its type variables stand for."""
    if kernel.variables is not None and all(type(array) is Array for array in inputs):
        return variable_kernel(kernel, [array.dtype.name for array in inputs])
    if kernel.broadcasts or not inputs or not all(type(array) is Array for array in inputs):
        return kernel
    first = inputs[0]
    if first.dtype.name in kernel.dtypes and all(a.shape == first.shape and a.dtype == first.dtype for a in inputs):
        return kernel
    return general_form(kernel, [array.dtype.name for array in inputs]) or kernel


def bind(
    device: Device,
    scratch: Scratch,
    kernel: str | Kernel,
    inputs: tuple[Array, ...],
    *,
    out: Array | Sequence[Array] | None,
    tuning: str | None,
    scalars: Mapping[str, Number],
) -> Step:
    """The step of a kernel on arrays of an open device, with its scratch memory: see `Device.bind`."""
    called = _serving(as_kernel(kernel), inputs)
    planned, key = _known_plan(device, called, inputs, tuning, scalars)
    if planned is None:
        require_arrays(called, inputs)
    for operand, array in zip(called.inputs, inputs, strict=False):
        require_on(device, f"kernel {called.name!r}", operand.name, array)
        require_bindable(device, called, operand, array, written=False)
    if planned is None:
        planned = _plan(device, called, inputs, tuning, scalars)
        device.plans.put(key, planned)
    call, plan = planned.call, planned.plan
    outputs = _outputs(device, called, planned, out)
    require_apart(called, inputs, outputs)
    operands = (*inputs, *outputs)
    arrays = dict(zip(planned.names, operands, strict=True))
    if plan.scratch or not isinstance(scratch, dict):
        arrays |= scratch_arrays(device, called, call, plan, scratch, operands)
    return Step(called, call, inputs, outputs, device.lower(called, call, plan, arrays), planned.tuning)


def _known_plan(
    device: Device, kernel: Kernel, inputs: tuple[Array, ...], tuning: str | None, scalars: Mapping[str, Number]
) -> tuple[Planned | None, Hashable]:
    """A plan that was made before, if the tuning is still the device's choice; and what it is kept under."""
    key = device.plans.key(kernel, inputs, tuning, scalars, device.limits)
    planned = device.plans.get(key)
    if planned is not None and planned.tuning != device.tuning_for(kernel, planned.call.dtype.name, tuning):
        return None, key
    return planned, key


def plan_call(
    device: Device, kernel: Kernel, inputs: tuple[Array, ...], tuning: str | None, scalars: Mapping[str, Number]
) -> Planned:
    """The checked plan of a call with arrays of a device."""
    serving = _serving(kernel, inputs)
    require_arrays(serving, inputs)
    for operand, array in zip(serving.inputs, inputs, strict=False):
        require_on(device, f"kernel {kernel.name!r}", operand.name, array)
    return _plan(device, serving, inputs, tuning, scalars)


def _plan(
    device: Device, kernel: Kernel, inputs: tuple[Array, ...], tuning: str | None, scalars: Mapping[str, Number]
) -> Planned:
    variant = variant_of(kernel, inputs)
    if kernel.evidence == "first use":
        check_on_first_use(device, kernel, variant.name)
    chosen = device.tuning_for(kernel, variant.name, tuning)
    numbers = None if chosen is None else kernel.tunings[chosen]
    call = resolve_call(kernel, variant, [a.shape for a in inputs], scalars, device.limits_for(kernel), numbers)
    plan = check_plan(kernel, call, kernel.plan(call))
    _require_features(device, kernel, plan, variant)
    names = tuple([o.name for o in (*kernel.inputs, *kernel.outputs)])
    return Planned(kernel, call, plan, chosen, names, tuple([dtype_of_operand(o, variant) for o in kernel.outputs]))


def _require_features(device: Device, kernel: Kernel, plan: Plan, variant: DType) -> None:
    missing = plan_features(kernel, plan, variant.name) - device.info.features
    if missing:
        # Some features must be tried, which is done only where the answer matters.
        missing -= device.probe()
    if missing:
        named = ", ".join(sorted(missing))
        raise FeatureError(
            f"kernel {kernel.name!r} ({variant.name}) needs {named}, which {device.info.name!r} lacks.",
            "use another element type, or another device (`dashi devices list` shows features; cpu has them all).",
        )


def _outputs(
    device: Device, kernel: Kernel, planned: Planned, out: Array | Sequence[Array] | None
) -> tuple[Array, ...]:
    """The arrays given, if they fit; else new ones."""
    shapes = planned.call.shapes
    if out is None:
        outs = zip(kernel.outputs, planned.output_dtypes, strict=True)
        return tuple([device.empty(shapes[o.name], dtype) for o, dtype in outs])
    outputs = tuple(out) if isinstance(out, Sequence) else (out,)
    if len(outputs) != len(kernel.outputs):
        raise InputError(
            f"kernel {kernel.name!r} has {len(kernel.outputs)} outputs, {len(outputs)} given.",
            f"pass out=({', '.join(o.name for o in kernel.outputs)}).",
        )
    for operand, array, dtype in zip(kernel.outputs, outputs, planned.output_dtypes, strict=True):
        require_on(device, f"kernel {kernel.name!r}", operand.name, array)
        require_fit(kernel, operand, array, shapes[operand.name], dtype)
        require_bindable(device, kernel, operand, array, written=True)
    return outputs
