"""Kernels as ops: which fields feed which operands, constants for the others, and what results are called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dashi import kernels
from dashi.errors import DashiError, DTypeError, ShapeError, StreamConfigError, suggestion
from dashi.kernels._calls import resolve_call
from dashi.kernels._general import general_form
from dashi.kernels.abi import Call, Kernel, Limits, Number, plan_features
from dashi.runtime._operands import dtype_of_operand
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Step
from dashi.stream._draws import array_of
from dashi.stream._model import Feed, Field, FieldSource, OpSettings, OpSpec, PayloadSchema, Value
from dashi.types import DTYPES, Cost, DType, HostArray, Shape
from dashi.types import dtype as dtype_of

_WIDE: Final = Limits(features=frozenset({"subgroup"}))
"""Limits that plans are made with before a device is known."""


@dataclass(frozen=True, eq=False)
class KernelOp:
    """A kernel in a chain. `feeds` are the fields that operands come from, `constants` the others; `results` names the
    field that each output becomes."""

    spec: OpSpec
    kernel: Kernel
    feeds: Mapping[str, Feed]
    constants: Mapping[str, HostArray]
    scalars: Mapping[str, Number]
    results: Mapping[str, str]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(feed.field for feed in self.feeds.values()))

    def makes(self, schema: PayloadSchema) -> dict[str, Field]:
        kernel, call = self.resolved(schema)
        return {
            self.results[o.name]: Field(call.shapes[o.name], dtype_of_operand(o, call.dtype).name)
            for o in kernel.outputs
        }

    def cost(self, schema: PayloadSchema) -> Cost:
        kernel, call = self.resolved(schema)
        return kernel.cost(call)

    def features(self, schema: PayloadSchema) -> frozenset[str]:
        """The features without which no tuning of the kernel runs on such a payload."""
        kernel, call = self.resolved(schema)
        tunings = list(kernel.tunings.values()) or [call.tuning]
        needs = [plan_features(kernel, kernel.plan(replace(call, tuning=one)), call.dtype.name) for one in tunings]
        return frozenset[str](needs[0].intersection(*needs))

    def load(self, device: Device) -> dict[str, Array]:
        """The constants on a device."""
        return {name: device.array(values) for name, values in self.constants.items()}

    def bind(
        self, device: Device, constants: Mapping[str, Array], inputs: Mapping[str, Array], outputs: Mapping[str, Array]
    ) -> list[Step]:
        """The kernel on these arrays."""
        operands = [
            constants[o.name]
            if o.name in constants
            else _reshaped(inputs[self.feeds[o.name].field], self.feeds[o.name])
            for o in self.kernel.inputs
        ]
        results = [outputs[self.results[o.name]] for o in self.kernel.outputs]
        numbers: Mapping[str, Any] = self.scalars
        return [device.bind(self.kernel, *operands, out=results, **numbers)]

    def resolved(self, schema: PayloadSchema) -> tuple[Kernel, Call]:
        """The kernel that serves such a payload, and its call."""
        forms = [self._operand(schema, o.name) for o in self.kernel.inputs]
        kernel = _serving(self.kernel, forms)
        variant = _variant(self.spec.id, kernel, forms)
        tuning = next(iter(kernel.tunings.values()), None)
        try:
            call = resolve_call(kernel, variant, [one.shape for one in forms], self.scalars, _WIDE, tuning)
        except DashiError as error:
            raise type(error)(f"op {self.spec.id!r}: {error.what}", error.fix) from error
        return kernel, call

    def _operand(self, schema: PayloadSchema, operand: str) -> Field:
        if operand in self.constants:
            return Field.of(self.constants[operand])
        feed = self.feeds[operand]
        form = schema.require(feed.field, f"op {self.spec.id!r}")
        return form if feed.shape is None else replace(form, shape=operand_shape(self.spec.id, feed, form.shape))


def operand_shape(op: str, feed: Feed, shape: Shape) -> Shape:
    """The shape in which an operand sees a field."""
    assert feed.shape is not None
    known = math.prod(n for n in feed.shape if n >= 0)
    whole = math.prod(shape)
    free = feed.shape.count(-1)
    fits = (free == 0 and known == whole) or (free == 1 and known > 0 and whole % known == 0)
    if not fits or any(n < -1 for n in feed.shape):
        raise ShapeError(
            f"op {op!r}: the field {feed.field!r} of shape {shape} cannot be seen as {feed.shape}.",
            "name a shape of as many elements; one length may be -1.",
        )
    return tuple(whole // known if n == -1 else n for n in feed.shape)


def kernel_op(name: str, settings: OpSettings, schema: PayloadSchema) -> KernelOp:
    """The op of a configuration that is a kernel, for payloads of this schema."""
    kernel = kernels.get(settings.kernel or name)
    _require_known(name, kernel, settings)
    feeds = dict(settings.inputs)
    for operand in kernel.inputs:
        if operand.name not in feeds and operand.name not in settings.params:
            feeds[operand.name] = Feed(operand.name)
    fed = [o for o in kernel.inputs if o.name in feeds and o.dtype == "T"]
    variant = next((schema[feeds[o.name].field].element for o in fed if feeds[o.name].field in schema), None)
    constants = {
        o.name: _constant(name, o.name, settings.params[o.name], DTYPES.get(o.dtype) or variant)
        for o in kernel.inputs
        if o.name in settings.params
    }
    scalars = {
        s.name: _number(name, s.name, settings.params[s.name]) for s in kernel.scalars if s.name in settings.params
    }
    results = {
        o.name: settings.outputs.get(o.name, name if o.name == "result" else f"{name}.{o.name}") for o in kernel.outputs
    }
    declared = kernel.stream
    spec = OpSpec(
        name,
        declared.depth_in if settings.depth_in is None else settings.depth_in,
        declared.depth_out if settings.depth_out is None else settings.depth_out,
        latency_sensitive=_either(settings.latency_sensitive, declared.latency_sensitive),
        determinism_tier=kernel.tier,
        io_class=settings.io_class or declared.io_class,
        migratable=_either(settings.migratable, declared.migratable),
        portable=kernel.portable,
        seconds=settings.seconds,
    )
    op = KernelOp(spec, kernel, feeds, constants, scalars, results)
    return replace(op, spec=replace(spec, cost=op.cost(schema), required_features=op.features(schema)))


def _require_known(name: str, kernel: Kernel, settings: OpSettings) -> None:
    """Refuses inputs, parameters and outputs that the kernel does not have."""
    operands, numbers = [o.name for o in kernel.inputs], [s.name for s in kernel.scalars]
    asked = {
        "inputs": (settings.inputs, operands),
        "params": (settings.params, [*operands, *numbers]),
        "outputs": (settings.outputs, [o.name for o in kernel.outputs]),
    }
    for section, (names, known) in asked.items():
        for odd in [unknown for unknown in names if unknown not in known]:
            raise StreamConfigError(
                f"op {name!r}: the kernel {kernel.name!r} has no {odd!r} among its {section}.",
                f"{suggestion(odd, known)}it has {', '.join(known) or 'none'}.",
            )
    if twice := sorted(set(settings.inputs) & set(settings.params)):
        raise StreamConfigError(
            f"op {name!r}: {', '.join(twice)} stands among `inputs` and among `params`.", "choose one of them."
        )
    names = list(settings.outputs.values())
    if len(set(names)) < len(names):
        raise StreamConfigError(f"op {name!r}: two outputs have one name.", "give each a name of its own.")


def _serving(kernel: Kernel, forms: Sequence[Field]) -> Kernel:
    """The kernel, or the one that stands in for it where operands differ in shape or type, as binding chooses it."""
    dtypes = [form.dtype for form in forms]
    same = len({(form.shape, form.dtype) for form in forms}) == 1
    if not forms or kernel.broadcasts or (same and dtypes[0] in kernel.dtypes):
        return kernel
    return general_form(kernel, dtypes) or kernel


def _variant(op: str, kernel: Kernel, forms: Sequence[Field]) -> DType:
    chosen: DType | None = None
    for operand, form in zip(kernel.inputs, forms, strict=True):
        expected = chosen if operand.dtype == "T" else DTYPES[operand.dtype]
        if expected is not None and form.element != expected:
            raise DTypeError(
                f"op {op!r}: the operand {operand.name!r} of kernel {kernel.name!r} is {expected.name}, "
                f"what feeds it is {form.text}.",
                f"feed it a field of {expected.name}.",
            )
        chosen = form.element if operand.dtype == "T" else chosen
    return chosen or DTYPES[kernel.dtypes[0]]


def _constant(op: str, name: str, value: Value, element: DType | None) -> HostArray:
    """A constant operand, in the type that the operand has."""
    if isinstance(value, FieldSource):
        # A description without a type of its own takes the operand's.
        typed = (
            value
            if value.form.dtype or element is None
            else replace(value, form=replace(value.form, dtype=element.name))
        )
        return array_of(f"{op}.{name}", typed)
    if isinstance(value, str):
        raise StreamConfigError(f"op {op!r}: {name}={value!r} is no array.", "give numbers, or describe an array.")
    values = np.asarray(value)
    target = element or dtype_of(values.dtype if values.dtype != np.float64 else np.float32)
    return np.ascontiguousarray(values.astype(target.numpy))


def _number(op: str, name: str, value: Value) -> Number:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise StreamConfigError(f"op {op!r}: {name}={value!r:.60} is no number.", "give a number.")
    return value


def _either(chosen: bool | None, declared: bool) -> bool:
    return declared if chosen is None else chosen


def _reshaped(array: Array, feed: Feed) -> Array:
    return array if feed.shape is None else array.reshape(*feed.shape)
