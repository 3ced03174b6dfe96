"""Programs of a stage: what its ops record on a device for a pair of slots, of the link before and the link behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.runtime._steps import AnyStep
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.stream._model import Field, PayloadSchema
from dashi.stream._op import Constants, DeviceOp, HostOp, StreamOp
from dashi.types import HostArray

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class BoundOps:
    """Steps of some ops in order, and all fields that can be read after them."""

    steps: tuple[AnyStep, ...]
    fields: Arrays


class OpBinder:
    """Binds the ops of a stage to arrays of its device. Constants are loaded once; what lies between two ops is one
    array for all slots, since runs of one queue come one after another."""

    def __init__(self, device: Device, ops: Sequence[StreamOp]) -> None:
        self.device: Final = device
        self.ops: Final = tuple(ops)
        self._constants: Final[list[Constants]] = [op.load(device) if isinstance(op, DeviceOp) else {} for op in ops]
        self._between: Final[dict[tuple[int, str], Array]] = {}

    def bind(self, inputs: Arrays, outgoing: Arrays) -> BoundOps:
        """The ops on the fields in `inputs`; of what they make, the last of each name goes to `outgoing` where it is
        named there. Fields that no op makes are copied there."""
        fields, steps = dict(inputs), list[AnyStep]()
        last = self._last_makers(inputs)
        for number, op in enumerate(self.ops):
            forms = op.makes(schema_of(fields))
            outputs = {
                name: outgoing[name] if name in outgoing and last[name] == number else self._own(number, name, form)
                for name, form in forms.items()
            }
            steps += self._steps(number, op, fields, outputs)
            fields |= outputs
        for name, target in outgoing.items():
            if name not in last:
                if name not in inputs:
                    raise InputError(
                        f"the field {name!r} is to leave a stage that neither gets nor makes it.",
                        "name it among the fields of the source, or let an op make it.",
                    )
                if target.nbytes:
                    steps.append(self.device.copy_step(inputs[name], target))
        return BoundOps(tuple(steps), fields)

    def _last_makers(self, inputs: Arrays) -> dict[str, int]:
        """The op that makes each field last."""
        schema, last = schema_of(inputs), dict[str, int]()
        for number, op in enumerate(self.ops):
            forms = op.makes(schema)
            last |= dict.fromkeys(forms, number)
            schema = schema.with_fields(forms)
        return last

    def _own(self, number: int, name: str, form: Field) -> Array:
        key = (number, name)
        if key not in self._between:
            self._between[key] = self.device.empty(form.shape, form.element)
        return self._between[key]

    def _steps(self, number: int, op: StreamOp, fields: Arrays, outputs: Arrays) -> Sequence[AnyStep]:
        missing = next((name for name in op.reads if name not in fields), None)
        if missing is not None:
            raise InputError(
                f"op {op.spec.id!r} reads the field {missing!r}, which is not there.", f"let an op make {missing!r}."
            )
        inputs = {name: fields[name] for name in op.reads}
        if isinstance(op, DeviceOp):
            return op.bind(self.device, self._constants[number], inputs, outputs)
        if isinstance(op, HostOp):
            return [_host_step(self.device, op, inputs, outputs)]
        raise InputError(
            f"op {op.spec.id!r} can neither be recorded on a device nor called on the host.",
            "give it `bind`, as kernels and operators have, or `call`.",
        )


def _host_step(device: Device, op: HostOp, inputs: Arrays, outputs: Arrays) -> AnyStep:
    """A function of the host among kernels; the device calls it in a thread of its own."""
    names, results = tuple(inputs), tuple(outputs)

    def call(*values: HostArray) -> tuple[Any, ...]:
        made = op.call(dict(zip(names, values, strict=True)))
        return tuple(np.asarray(made[name]) for name in results)

    return device.host_step(call, list(inputs.values()), list(outputs.values()), name=op.spec.id)


def schema_of(fields: Arrays) -> PayloadSchema:
    """The schema of a payload on a device."""
    return PayloadSchema.of(dict(fields))
