"""What jobs hand to a live view: frames that are written anyway, or looks on a stride of its own, which leave nothing
in the run, its files and its certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import Operator
from dashi.core.rollouts._observers import BandSheet
from dashi.core.rollouts.observer import Bound, Context, Observer, Values
from dashi.flow._diagnostics import Diagnostics, TakeLook
from dashi.flow._frames import Frames, TakeFrame
from dashi.flow._trajectory import FlowStrides
from dashi.flow.decode import Decoded, Decoder
from dashi.flow.decode.observer import Decodes, Snapshot
from dashi.flow.equations import Flow
from dashi.report.live import LiveView

_LOOKS: Final = 200
"""Looks of its own in a run."""
_BANDS: Final = 16
_SPECTRUM: Final = "energy spectrum"
_PAUSE: Final = 0.25
"""Seconds between two fields."""


def live_stride(steps: int) -> int:
    """Steps between two looks of a view, where nothing is written anyway."""
    return max(1, steps // _LOOKS)


def flow_observers(
    view: LiveView | None, flow: Flow, steps: int, every: FlowStrides, *, fields: bool
) -> list[Observer[Any]]:
    """What looks at a flow for a view besides: at its spectra where the run itself does not, and at its vorticity
    unless the view has `fields` from frames."""
    if view is None:
        return []
    stride = live_stride(steps)
    spectra: list[Observer[Any]] = [] if every.look else [LiveSpectra(flow, stride, view)]
    return spectra if fields else [*spectra, LiveField(flow, stride, view)]


def look_seen(view: LiveView | None) -> TakeLook | None:
    """Gives a view the spectra of looks that are made anyway."""
    if view is None:
        return None
    return lambda record: view.show_row(record.step, _SPECTRUM, record.energy_spectrum.mean(axis=0)[1:])


def sheet_observers(view: LiveView | None, operator: Operator, steps: int) -> list[Observer[Any]]:
    """What looks at the band energies of a rollout for a view."""
    if view is None:
        return []
    return [LiveSheet(live_stride(steps), min(_BANDS, math.prod(operator.shape)), view)]


def frames_seen(view: LiveView | None, frame: TakeFrame | None) -> TakeFrame | None:
    """`frame`, which is given the fields of a flow; a view has them first, as they are."""
    if view is None or frame is None:
        return frame

    def show(step: int, fields: Any) -> None:
        name = next(iter(fields))
        view.show_field(step, name, fields[name][0])
        frame(step, fields)

    return show


def decodes_seen(view: LiveView | None, snapshot: Snapshot) -> Snapshot:
    """`snapshot`, which is given what was decoded; a view has its field first, if there is one."""
    if view is None:
        return snapshot

    def show(step: int, decoded: Decoded) -> None:
        if decoded.fields is not None:
            n = decoded.fields.shape[-1]
            view.show_field(step, "decoded vorticity", decoded.fields.reshape(-1, n, n)[0])
        snapshot(step, decoded)

    return show


class _Paused(Observer[Any]):
    """Looks at most once in `_PAUSE` seconds, wherever its stride would have it look."""

    _last = 0.0

    def due(self, step: int, end: int) -> bool:
        if not super().due(step, end) or time.monotonic() - self._last < _PAUSE:
            return False
        self._last = time.monotonic()
        return True


class LiveField(_Paused, Frames):
    """The vorticity of the first member on a stride."""

    name = "live field"
    transient = True

    def __init__(self, flow: Flow, every: int, view: LiveView) -> None:
        def show(step: int, fields: Any) -> None:
            view.show_field(step, "vorticity", fields["vorticity"][0])

        super().__init__(flow, every, show)

    def bind(self, context: Context) -> Bound:
        # A look decides nothing: whether values are finite is for those to say who keep them.
        def take(step: int, values: Values) -> None:
            self.frame(step, self._by_name(values))

        return replace(super().bind(context), take=take)


class LiveSpectra(Diagnostics):
    """Spectra of energy on a stride, the mean of all members."""

    name = "live sheet"
    certified = False
    transient = True
    at_end = False

    def __init__(self, flow: Flow, every: int, view: LiveView) -> None:
        super().__init__(flow, every)
        self._view = view

    def bind(self, context: Context) -> Bound:
        def take(step: int, values: Values) -> None:
            self._view.show_row(step, _SPECTRUM, np.asarray(values[0], np.float64).mean(axis=0)[1:])

        return replace(super().bind(context), take=take)


class LiveSheet(BandSheet):
    """Band energies of states on a stride, the mean of an ensemble."""

    name = "live sheet"
    certified = False
    transient = True
    at_start = True

    def __init__(self, every: int, bands: int, view: LiveView) -> None:
        super().__init__(every, bands)
        self._view = view

    def bind(self, context: Context) -> Bound:
        bound = super().bind(context)
        row: Callable[[int, Values], Any] = bound.take

        def take(step: int, values: Values) -> None:
            self._view.show_row(step, "band energies", row(step, values).energies)

        return replace(bound, take=take)


class LiveDecodes(_Paused, Decodes):
    """Decodes on a stride of a decoder of its own, for a run whose observer brings no fields back."""

    name = "live field"
    transient = True
    needs_finite = False

    def __init__(self, decoder: Decoder, every: int, view: LiveView) -> None:
        super().__init__(decoder, every, "snapshots", decodes_seen(view, _nothing))

    def bind(self, context: Context) -> Bound:
        bound = super().bind(context)

        def take(step: int, values: Values) -> None:
            bound.take(step, values)

        def late() -> tuple[()]:
            bound.late()
            return ()

        return replace(bound, take=take, late=late)


def _nothing(_step: int, _decoded: Decoded) -> None:
    """Keeps nothing."""
