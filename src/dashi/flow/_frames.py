"""Frames of a flow: its fields on a stride, handed out in order while the solver goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dashi.core.rollouts.observer import Bound, Context, Fault, Observer, Slot, Values, require_stride
from dashi.flow._derived_fields import FieldReader, PressureReader, flow_tables, require_fields, require_states_of
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.runtime.array import Array
from dashi.runtime.device import Step

TakeFrame = Callable[[int, Mapping[str, Floats]], None]
"""Is given the step and the fields, (members, n, n) each."""


class Frames(Observer[None]):
    """Fields of a flow on a stride, and at the start: `frame` is given them. They are made on the device."""

    name = "frames"
    at_start = True
    certified = False

    def __init__(self, flow: Flow, every: int, frame: TakeFrame, fields: Sequence[str] = ("vorticity",)) -> None:
        require_fields(fields)
        self.flow, self.every, self.frame, self.fields = flow, require_stride("frame", every), frame, tuple(fields)
        self._plain = tuple(name for name in self.fields if name != "pressure")

    def bind(self, context: Context) -> Bound:
        require_states_of(self.flow, context)
        members, n = context.shape[0], self.flow.n
        slots: list[Slot] = [((members, len(self._plain), n, n), self.flow.numpy_dtype)] if self._plain else []
        slots += [((members, 1, n, n), self.flow.numpy_dtype)] if "pressure" in self.fields else []
        readers: list[FieldReader | PressureReader] = []

        def steps(_: Array, states: Array, out: Sequence[Array]) -> list[Step]:
            if not readers:
                readers.extend(self._readers(context))
            return [step for reader, slot in zip(readers, out, strict=True) for step in reader.steps(states, slot)]

        def take(step: int, values: Values) -> None:
            self.hand_out(step, self._by_name(values), stop=context.stop)

        return Bound(slots, steps, take)

    def hand_out(self, step: int, fields: Mapping[str, Floats], *, stop: bool) -> None:
        """Gives the fields of a step to whoever wants them; with `stop`, only where they are finite."""
        odd = next((name for name, field in fields.items() if not np.isfinite(field).all()), None) if stop else None
        if odd is not None:
            raise Fault(f"after step {step} its {odd} is not finite")
        self.frame(step, fields)

    def _readers(self, context: Context) -> list[FieldReader | PressureReader]:
        loaded, device = flow_tables(self.flow, context), context.device
        readers: list[FieldReader | PressureReader] = []
        if self._plain:
            readers.append(FieldReader(self.flow, device, loaded, self._plain, "frame"))
        if "pressure" in self.fields:
            readers.append(PressureReader(self.flow, device, loaded))
        return readers

    def _by_name(self, values: Values) -> Mapping[str, Floats]:
        rest = list(values)
        plain = rest.pop(0) if self._plain else None
        fields: dict[str, Any] = {name: plain[:, place] for place, name in enumerate(self._plain) if plain is not None}
        if rest:
            fields["pressure"] = rest[0][:, 0]
        return {name: fields[name] for name in self.fields}

    def measure(self, stepper: Any) -> Values | None:
        if not hasattr(stepper, "fields"):
            return None
        fields = stepper.fields(self.fields)
        plain = [np.stack([fields[name] for name in self._plain], axis=1)] if self._plain else []
        return [*plain, *([fields["pressure"][:, None]] if "pressure" in fields else [])]
