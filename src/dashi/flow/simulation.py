"""`simulate`: a flow from its initial states, for so many steps, looked at on strides, with frames of its fields.

It is `dashi.core.rollout` of the flow's operator, with `Diagnostics` and `Frames` for observers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import require_finite
from dashi.core.rollouts._guard import FiniteCheck, RangeCheck
from dashi.core.rollouts._observers import Keep, Pause, StateCopies
from dashi.core.rollouts._state_files import StateFiles
from dashi.core.rollouts.observer import Observer
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, NonFiniteError, ShapeError
from dashi.flow._derived_fields import require_fields
from dashi.flow._diagnostics import Diagnostics, DiagnosticsRecord, TakeLook, courant
from dashi.flow._frames import Frames, TakeFrame
from dashi.flow._host_fft import HostVorticity
from dashi.flow._operator import Vorticity
from dashi.flow.equations import Flow, Stochastic
from dashi.flow.grid import Floats
from dashi.runtime.device import Device
from dashi.runtime.using import using_device

_HANDED_OUT: Final = frozenset({Frames.name, StateCopies.name, StateFiles.name})
"""Observers that give states, or what is made of them, to others."""


def simulate(
    flow: Flow,
    states: Any,
    steps: int,
    *,
    device: Device | str,
    look_every: int = 0,
    frame_every: int = 0,
    hash_every: int = 0,
    fields: Sequence[str] = ("vorticity",),
    frame: TakeFrame | None = None,
    look: TakeLook | None = None,
    transfer: bool = False,
    host_fft: bool = False,
    keep_every: int = 0,
    keep: Keep | None = None,
    keep_pause: Pause | None = None,
    observers: Sequence[Observer[Any]] = (),
    stop_on_nonfinite: bool = True,
    progress: Callable[[int], None] | None = None,
    resume: Run | None = None,
) -> Run:
    """Advances states (`dashi.flow.initial`) by so many steps of dt.

    After every `look_every` steps spectra, totals and the Courant number are measured on the device
    (`run.records["diagnostics"]`, and `look` is given each record); a time step that is too long is an InputError.
    Values that are not finite are a NonFiniteError, looked at or not, unless `stop_on_nonfinite` is False. After every
    `frame_every` steps (and at the start) `frame` is given the step and the fields; after every `keep_every` steps (and
    at the start) `keep` is given the run so far, at most one in `keep_pause()` seconds. The solver goes on meanwhile.
    `host_fft` uses NumPy's own transforms on the NumPy device: several times faster, with bits that hold on one machine
    alone. `observers` look besides. `resume` goes on from an earlier part. Ctrl-C raises Interrupted, a
    KeyboardInterrupt, whose `partial` is the Run so far.
    """
    start = _start(flow, states, steps)
    require_fields(fields)
    looking: list[Observer[Any]] = [Diagnostics(flow, look_every, transfer=transfer, look=look)]
    if frame is not None and frame_every:
        looking.append(Frames(flow, frame_every, frame, fields))
    if keep is not None and keep_every:
        looking.append(StateCopies(keep_every, keep, pause=keep_pause, at_start=True))
    with using_device(device) as opened:
        if host_fft and opened.info.type != "reference":
            raise InputError(
                f"host_fft is NumPy's own transform, and {opened.info.name!r} is another device.",
                "use the device cpu with host_fft, or leave it away: on Vulkan the portable solver is the fast one.",
            )
        if stop_on_nonfinite and resume:
            require_finite("the states to go on from", resume.state)
        return rollout(
            HostVorticity(flow) if host_fft else Vorticity(flow), start, steps, device=opened, hash_every=hash_every,
            observers=[*looking, *observers], stop_on_nonfinite=stop_on_nonfinite, guard=BlowUp(flow),
            progress=progress, resume=resume,
        )  # fmt: skip


class BlowUp:
    """Ends a flow whose states are not finite, and says what to do about it."""

    check: FiniteCheck = RangeCheck()

    def __init__(self, flow: Flow) -> None:
        self._flow = flow

    def checks(self, *, last: bool, seen: Collection[str]) -> bool:
        """After the last segment of a block, and before a frame or a state is handed out; diagnostics tell as much."""
        return Diagnostics.name not in seen and (last or not _HANDED_OUT.isdisjoint(seen))

    def error(self, what: str, run: Run) -> NonFiniteError:
        """The error, with the Courant number of the last look."""
        looks: tuple[DiagnosticsRecord, ...] = run.records.get("diagnostics", ())
        last = looks[-1] if looks else None
        number = f"; after step {last.step} the Courant number was {courant(self._flow, last):.2g}" if last else ""
        return NonFiniteError(
            f"the flow blew up: {what}{number}.",
            f"use a smaller dt than {self._flow.dt:g}, or more viscosity than nu = {self._flow.nu:g}.",
        )


def _start(flow: Flow, states: Any, steps: int) -> Floats:
    if not isinstance(flow, Flow):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{type(flow).__name__} is no flow.", "pass Flow(n=64, ...).")
    start = np.asarray(states)
    shape = (flow.n, flow.modes, 2)
    if start.shape == shape:
        start = start[None]
    if start.ndim != 4 or start.shape[1:] != shape or not len(start):
        raise ShapeError(
            f"the states have shape {np.shape(states)}, the flow's have {shape}.",
            "make them with dashi.flow.initial.ensemble(flow, ...), or initial.from_field(flow, vorticity).",
        )
    if start.dtype != flow.numpy_dtype:
        raise InputError(f"the states are {start.dtype}, the flow is {flow.dtype}.", f"use .astype(np.{flow.dtype}).")
    require_finite("states", start)
    if not isinstance(steps, int | np.integer) or steps < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{steps!r} steps were asked for.", "ask for a whole number, 0 or more.")
    if isinstance(flow.forcing, Stochastic) and flow.dtype == "float32" and steps >= 1 << 24:
        raise InputError(f"{steps} steps are more than a float32 can count.", "use float64, or fewer steps.")
    return np.ascontiguousarray(start)
