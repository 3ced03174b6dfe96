"""Operators of the core, by their shape alone, and plain functions as ops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from dashi.errors import DTypeError, InputError, ShapeError
from dashi.runtime._steps import AnyStep
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.stream._model import Field, IoClass, OpSpec, Payload, PayloadSchema
from dashi.types import Cost, HostArray, Shape
from dashi.types import dtype as dtype_of

Makes = Mapping[str, Field] | Callable[[PayloadSchema], Mapping[str, Field]]


class StateOperator(Protocol):
    """Whatever advances states as the operators of `dashi.core` do; they need not know of streams."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def load(self, device: Device) -> Mapping[str, Array]: ...
    def step(
        self, device: Device, constants: Mapping[str, Array], source: Array, target: Array
    ) -> Sequence[AnyStep]: ...


@dataclass(frozen=True, eq=False)
class OperatorOp:
    """An operator in a chain: one step of the states in a field, (m, *shape) or one of them, into a field."""

    spec: OpSpec
    operator: StateOperator
    source: str
    target: str

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.source,)

    def makes(self, schema: PayloadSchema) -> dict[str, Field]:
        form = schema.require(self.source, f"op {self.spec.id!r}")
        shape, element = self.operator.shape, dtype_of(self.operator.dtype)
        if form.shape[-len(shape) :] != shape or len(form.shape) > len(shape) + 1:
            raise ShapeError(
                f"op {self.spec.id!r} advances states of shape {shape}; the field {self.source!r} is {form.text}.",
                f"give it a field of shape {shape} or (m, {', '.join(map(str, shape))}).",
            )
        if form.element != element:
            raise DTypeError(
                f"op {self.spec.id!r} advances states of {element.name}; the field {self.source!r} is {form.text}.",
                f"give it a field of {element.name}.",
            )
        return {self.target: form}

    def cost(self, schema: PayloadSchema) -> Cost:
        """Counted as a dense product would be: an operator says no more of itself."""
        form = schema.require(self.source, f"op {self.spec.id!r}")
        width, size = math.prod(self.operator.shape), math.prod(form.shape)
        return Cost(2 * size * width, 2 * form.nbytes + width * width * form.element.size, 1)

    def load(self, device: Device) -> Mapping[str, Array]:
        return self.operator.load(device)

    def bind(
        self, device: Device, constants: Mapping[str, Array], inputs: Mapping[str, Array], outputs: Mapping[str, Array]
    ) -> Sequence[AnyStep]:
        source, target = (
            array.reshape(-1, *self.operator.shape) for array in (inputs[self.source], outputs[self.target])
        )
        return self.operator.step(device, constants, source, target)


@dataclass(frozen=True, eq=False)
class CallableOp:
    """A function of the host in a chain: it takes the fields of `reads` as read-only arrays, and returns those it makes
    in order: an array, or a tuple of them."""

    spec: OpSpec
    function: Callable[..., Any]
    reads: tuple[str, ...]
    made_fields: Makes

    def makes(self, schema: PayloadSchema) -> Mapping[str, Field]:
        for name in self.reads:
            schema.require(name, f"op {self.spec.id!r}")
        return self.made_fields(schema) if callable(self.made_fields) else self.made_fields

    def cost(self, schema: PayloadSchema) -> Cost:
        return self.spec.cost

    def call(self, payload: Payload) -> dict[str, HostArray]:
        """What the function makes of a payload of host arrays, held to what it said."""
        inputs = [_read_only(payload[name]) for name in self.reads]
        expected = self.makes(PayloadSchema.of(payload))
        returned = self.function(*inputs)
        results = cast("tuple[Any, ...]", returned) if isinstance(returned, tuple) else (returned,)
        if len(results) != len(expected):
            raise InputError(
                f"op {self.spec.id!r} returned {len(results)} arrays for the fields {', '.join(expected)}.",
                "return an array for each, in a tuple where there are several.",
            )
        fields = {name: np.asarray(values) for name, values in zip(expected, results, strict=True)}
        for name, form in expected.items():
            if Field.of(fields[name]) != Field(form.shape, form.dtype):
                raise InputError(
                    f"op {self.spec.id!r} returned {Field.of(fields[name]).text} as {name!r}, and had said "
                    f"{form.text}.",
                    "return what `makes` says.",
                )
        return fields


def host_op(
    name: str,
    function: Callable[..., Any],
    reads: str | Iterable[str],
    makes: Makes,
    *,
    depth_in: int = 0,
    depth_out: int = 0,
    io_class: IoClass = "CORE",
    seconds: float | None = None,
    migratable: bool = True,
    portable: bool = True,
    determinism_tier: int = 0,
) -> CallableOp:
    """A function of NumPy arrays as an op: an encoder, a decoder, anything. `reads` are the fields that it takes, in
    order (a string has several, with blanks between); `makes` those that it returns, or a function from the schema of
    the payload to them. `seconds` is what a call takes, for plans."""
    spec = OpSpec(
        name,
        depth_in,
        depth_out,
        determinism_tier=determinism_tier,
        io_class=io_class,
        migratable=migratable,
        host_only=True,
        portable=portable,
        seconds={} if seconds is None else {"*": seconds},
    )
    return CallableOp(spec, function, tuple(reads.split() if isinstance(reads, str) else reads), makes)


def operator_op(
    name: str, operator: StateOperator, reads: str, makes: str = "", *, depth_in: int = 0, depth_out: int = 0
) -> OperatorOp:
    """An operator of `dashi.core`, or whatever steps like one, as an op: from the states in a field to those in another
    (the same name, unless `makes` has one)."""
    portable = bool(getattr(operator, "portable", True))
    features = dtype_of(operator.dtype).features
    spec = OpSpec(name, depth_in, depth_out, required_features=features, portable=portable)
    return OperatorOp(spec, operator, reads, makes or reads)


def _read_only(values: Any) -> HostArray:
    if isinstance(values, Array):
        raise InputError("a function of the host was given an array on a device.", "download it: array.numpy().")
    view = np.asarray(values).view()
    view.setflags(write=False)
    return view
