"""Placement patterns for one operation over several devices, each with the bits of one device.

`DataParallel` cuts the states, `BlockColumns` and `BlockRows` cut a matrix, `Consensus` reduces what is cut and tells
all devices. Sums are never added in another order than on one device: of rows, the sums of runs of 64 are exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Literal, Self, get_args

import numpy as np

from dashi.errors import InputError, ShapeError
from dashi.kernels._work import RUN, ceil_div
from dashi.runtime._program import Program
from dashi.runtime._steps import AnyStep
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.landing import Ticket
from dashi.stream._blocks import Gathering, Part, parts_of, require_floats, require_values
from dashi.stream._model import Field, PayloadSchema
from dashi.stream._op import StreamOp
from dashi.stream._recordings import OpBinder, schema_of
from dashi.stream.links import Link
from dashi.types import HostArray

Reduction = Literal["reduce_max", "reduce_min", "reduce_sum", "reduce_sumsq"]
_REDUCTIONS: Final = get_args(Reduction)


class _Pattern:
    """What all patterns share: what they hold is let go in the end."""

    def __init__(self) -> None:
        self._held = ExitStack()

    def close(self) -> None:
        """Lets go of programs and links; what is under way is finished first. Closing twice is harmless."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _program(
        self, device: Device, steps: Sequence[AnyStep], *, feed: Sequence[Array] = (), fetch: Sequence[Array] = ()
    ) -> Program:
        return self._held.enter_context(device.program(steps, label=type(self).__name__, feed=feed, fetch=fetch))


class DataParallel(_Pattern):
    """Pattern A: the same ops on each device, on its part of the rows (the first axis) of the fields in `split`; other
    fields are the same everywhere. `apply` gives the fields in `joined`, of all parts in order. The bits are those of
    one device where no op mixes rows."""

    def __init__(
        self,
        devices: Sequence[Device],
        ops: Sequence[StreamOp],
        schema: Mapping[str, Field],
        *,
        split: Sequence[str],
        joined: Sequence[str],
    ) -> None:
        super().__init__()
        self.schema: Final = PayloadSchema(schema)
        rows = {self.schema.require(name, "DataParallel").shape[:1] for name in split}
        if len(rows) != 1 or () in rows:
            raise ShapeError(
                f"the fields to split, {', '.join(split) or 'none'}, have not one number of rows.",
                "name fields with the same first length in `split`.",
            )
        self.parts: Final = parts_of(next(iter(rows))[0], len(devices))
        self._split = tuple(split)
        self._runs: list[tuple[Program, dict[str, Array], dict[str, Array]]] = []
        for device, part in zip(devices, self.parts, strict=True):
            inputs = {
                name: device.zeros((part.size, *form.shape[1:]) if name in split else form.shape, form.element)
                for name, form in self.schema.items()
            }
            binder = OpBinder(device, ops)
            forms = _result_forms(binder, inputs)
            results = {name: device.zeros(form.shape, form.element) for name, form in forms.items() if name in joined}
            if missing := [name for name in joined if name not in results]:
                raise InputError(f"no op makes the field {missing[0]!r}.", "name fields that ops make in `joined`.")
            bound = binder.bind(inputs, results)
            program = self._program(device, bound.steps, feed=list(inputs.values()), fetch=list(results.values()))
            self._runs.append((program, inputs, results))

    def apply(self, payload: Mapping[str, HostArray]) -> dict[str, HostArray]:
        """The joined fields for a payload; all devices work at the same time."""
        for name, form in self.schema.items():
            require_values(name, payload[name], form.shape, form.dtype)
        tickets: list[Ticket] = []
        for part, (program, inputs, _) in zip(self.parts, self._runs, strict=True):
            feed = {
                array: payload[name][part.slice] if name in self._split else payload[name]
                for name, array in inputs.items()
            }
            tickets.append(program.submit(feed=feed))
        return {
            name: np.concatenate([t.fetched(w[name]) for t, (_, _, w) in zip(tickets, self._runs, strict=True)])
            for name in self._runs[0][2]
        }


def _result_forms(binder: OpBinder, inputs: Mapping[str, Array]) -> PayloadSchema:
    schema = schema_of(inputs)
    forms: dict[str, Field] = {}
    for op in binder.ops:
        new = op.makes(schema)
        forms |= new
        schema = schema.with_fields(new)
    return PayloadSchema(forms)


class BlockColumns(_Pattern):
    """Pattern B by columns: x A, each device having some of the columns of A. Nothing is summed over devices."""

    def __init__(self, devices: Sequence[Device], matrix: HostArray) -> None:
        super().__init__()
        self.dtype: Final = require_floats("matrix", _two_axes(matrix))
        self.shape: Final = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.parts: Final = parts_of(self.shape[1], len(devices))
        self._runs: list[tuple[Program, Array, Array]] = []
        for device, part in zip(devices, self.parts, strict=True):
            x = device.zeros(self.shape[0], self.dtype)
            step = device.bind("gemv", x, device.array(np.ascontiguousarray(matrix[:, part.slice])))
            y = step.outputs[0]
            self._runs.append((self._program(device, [step], feed=[x], fetch=[y]), x, y))

    def apply(self, x: HostArray) -> HostArray:
        """x A, with the bits of `gemv` on one device."""
        require_values("x", x, self.shape[:1], self.dtype)
        tickets = [program.submit(feed={array: x}) for program, array, _ in self._runs]
        return np.concatenate([t.fetched(y) for t, (_, _, y) in zip(tickets, self._runs, strict=True)])


class BlockRows(_Pattern):
    """Pattern B by rows: x A, each device having some of the rows of A, with borders at multiples of 64. The sums of
    every run of 64 rows go to the first device, which adds them up in the canonical order."""

    def __init__(self, devices: Sequence[Device], matrix: HostArray) -> None:
        super().__init__()
        self.dtype: Final = require_floats("matrix", _two_axes(matrix))
        self.shape: Final = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.parts: Final = parts_of(self.shape[0], len(devices), RUN)
        runs = [ceil_div(part.size, RUN) for part in self.parts]
        self._gathering = Gathering(devices, devices[0], runs, self.shape[1], self.dtype)
        self._held.callback(self._gathering.close)
        self._next = 0
        self._runs: list[tuple[Program, Array]] = []
        for number, (device, part) in enumerate(zip(devices, self.parts, strict=True)):
            x, a = device.zeros(part.size, self.dtype), device.array(np.ascontiguousarray(matrix[part.slice]))
            step = device.bind("gemv_run_sums", x, a, out=self._gathering.outgoing(number))
            self._runs.append((self._program(device, [step], feed=[x]), x))
        fold = devices[0].bind("fold_run_sums", self._gathering.whole)
        self._result = fold.outputs[0]
        self._fold = self._program(devices[0], [*self._gathering.steps, fold], fetch=[self._result])

    def apply(self, x: HostArray) -> HostArray:
        """x A, with the bits of `gemv` on one device."""
        require_values("x", x, self.shape[:1], self.dtype)
        step, self._next = self._next, self._next + 1
        written = [
            program.submit(after=self._gathering.take(i, step), feed={array: x[part.slice]})
            for i, ((program, array), part) in enumerate(zip(self._runs, self.parts, strict=True))
        ]
        folded = self._fold.submit(after=self._gathering.send(step, written))
        self._gathering.release(step, folded)
        return folded.fetched(self._result)


class Consensus(_Pattern):
    """Pattern C: a reduction of a list of `size` elements that is cut over devices at multiples of 64. Each reduces its
    part, the first device what they found, in the order of the parts, and all devices are told: `values` are arrays of
    one element, one on each."""

    def __init__(self, devices: Sequence[Device], reduction: Reduction, size: int, dtype: str = "f32") -> None:
        super().__init__()
        if reduction not in _REDUCTIONS:
            raise InputError(
                f"reduction={reduction!r} is none of {', '.join(map(repr, _REDUCTIONS))}.", "choose one of these."
            )
        self.size: Final = size
        self.dtype: Final = dtype
        self.parts: Final = parts_of(size, len(devices), RUN)
        self._next = 0
        summed = reduction in ("reduce_sum", "reduce_sumsq")
        rows = [ceil_div(part.size, RUN) if summed else 1 for part in self.parts]
        self._gathering = Gathering(devices, devices[0], rows, 1, dtype)
        self._held.callback(self._gathering.close)
        self._local = [self._reduce(i, device, reduction, part) for i, (device, part) in enumerate(self._cut(devices))]
        self._broadcast = [Link(devices[0], device, {"value": Field((1,), dtype)}, window=1) for device in devices]
        for link in self._broadcast:
            self._held.enter_context(link)
        whole = self._gathering.whole
        final = devices[0].bind("fold_run_sums", whole) if summed else devices[0].bind(reduction, whole.reshape(-1))
        value = final.outputs[0]
        telling = [devices[0].copy_step(value, link.outgoing(0)["value"]) for link in self._broadcast]
        self._final = self._program(devices[0], [*self._gathering.steps, final, *telling])
        self.values: Final = [device.zeros(1, dtype) for device in devices]
        self._heard = [
            self._program(device, [device.copy_step(link.incoming(0)["value"], value)], fetch=[value])
            for device, link, value in zip(devices, self._broadcast, self.values, strict=True)
        ]

    def _cut(self, devices: Sequence[Device]) -> list[tuple[Device, Part]]:
        return list(zip(devices, self.parts, strict=True))

    def _reduce(self, number: int, device: Device, reduction: Reduction, part: Part) -> tuple[Program, Array]:
        x = device.zeros(part.size, self.dtype)
        out = self._gathering.outgoing(number)
        if reduction in ("reduce_max", "reduce_min"):
            step = device.bind(reduction, x, out=out.reshape(-1))
        else:
            factors = x if reduction == "reduce_sumsq" else device.full(part.size, 1.0, self.dtype)
            step = device.bind("gemv_run_sums", x, factors.reshape(-1, 1), out=out)
        return self._program(device, [step], feed=[x]), x

    def apply(self, x: HostArray) -> list[HostArray]:
        """What every device was told, with the bits of the kernel on one device."""
        require_values("x", x, (self.size,), self.dtype)
        step, self._next = self._next, self._next + 1
        written = [
            program.submit(after=self._gathering.take(i, step), feed={array: x[part.slice]})
            for i, ((program, array), part) in enumerate(zip(self._local, self.parts, strict=True))
        ]
        free = [ticket for link in self._broadcast for ticket in link.take(step)]
        final = self._final.submit(after=[*self._gathering.send(step, written), *free])
        self._gathering.release(step, final)
        heard: list[Ticket] = []
        for link, program in zip(self._broadcast, self._heard, strict=True):
            arrived = link.send(step, after=[final])
            link.receive(step)
            heard.append(program.submit(after=arrived))
            link.release(step, after=[heard[-1]])
        return [ticket.fetched(value) for ticket, value in zip(heard, self.values, strict=True)]


def _two_axes(matrix: HostArray) -> HostArray:
    if matrix.ndim != 2:
        raise ShapeError(f"`matrix` has the shape {matrix.shape}.", "pass an array of two axes.")
    return matrix
