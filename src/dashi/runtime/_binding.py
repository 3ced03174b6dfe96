"""A kernel bound to arrays of a device: everything that is settled before anything is recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dashi import kernels
from dashi.errors import FeatureError, InputError
from dashi.kernels._arguments import require_arrays
from dashi.kernels._calls import resolve_call
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
from dashi.runtime._proof import check_on_first_use
from dashi.runtime.array import Array
from dashi.types import Cost, DType

if TYPE_CHECKING:
    from dashi.runtime.device import Device

ScratchPool = dict[tuple[str, str, int], Array]
"""Scratch memory that steps share, by its name, element type and size."""


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


def bind(
    device: Device,
    scratch: ScratchPool,
    kernel: str | Kernel,
    inputs: tuple[Array, ...],
    *,
    out: Array | Sequence[Array] | None,
    tuning: str | None,
    scalars: Mapping[str, Number],
) -> Step:
    """The step of a kernel on arrays of an open device, with its scratch memory from the pool: see `Device.bind`."""
    called = as_kernel(kernel)
    require_arrays(called, inputs)
    for operand, array in zip(called.inputs, inputs, strict=False):
        require_on(device, f"kernel {called.name!r}", operand.name, array)
        require_bindable(device, called, operand, array, written=False)
    variant = variant_of(called, inputs)
    if called.evidence == "first use":
        check_on_first_use(device, called, variant.name)
    chosen = device.tuning_for(called, variant.name, tuning)
    numbers = None if chosen is None else called.tunings[chosen]
    call = resolve_call(called, variant, [a.shape for a in inputs], scalars, device.limits_for(called), numbers)
    plan = check_plan(called, call, called.plan(call))
    _require_features(device, called, plan, variant)
    outputs = _outputs(device, called, call, out)
    require_apart(called, inputs, outputs)
    names = [o.name for o in (*called.inputs, *called.outputs)]
    arrays = dict(zip(names, (*inputs, *outputs), strict=True))
    return Step(called, call, inputs, outputs, device.lower(called, call, plan, arrays, scratch), chosen)


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


def _outputs(device: Device, kernel: Kernel, call: Call, out: Array | Sequence[Array] | None) -> tuple[Array, ...]:
    """The arrays given, if they fit; else new ones."""
    if out is None:
        return tuple(device.empty(call.shapes[o.name], dtype_of_operand(o, call.dtype).numpy) for o in kernel.outputs)
    outputs = tuple(out) if isinstance(out, Sequence) else (out,)
    if len(outputs) != len(kernel.outputs):
        raise InputError(
            f"kernel {kernel.name!r} has {len(kernel.outputs)} outputs, {len(outputs)} given.",
            f"pass out=({', '.join(o.name for o in kernel.outputs)}).",
        )
    for operand, array in zip(kernel.outputs, outputs, strict=True):
        require_on(device, f"kernel {kernel.name!r}", operand.name, array)
        require_fit(kernel, operand, array, call.shapes[operand.name], dtype_of_operand(operand, call.dtype))
        require_bindable(device, kernel, operand, array, written=True)
    return outputs
