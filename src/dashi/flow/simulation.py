"""`simulate`: a flow from its initial states, for so many steps, looked at on strides, with frames of its fields."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dashi.core.observations.observation import Hash
from dashi.core.operators.operator import require_finite
from dashi.core.rollouts.fingerprint import Used
from dashi.core.rollouts.interrupt import deferred_interrupt
from dashi.core.rollouts.segments import Block, Strides, next_block
from dashi.errors import InputError, Interrupted, NonFiniteError, ShapeError
from dashi.flow.engine import DeviceEngine, Engine, Harvest, Ticket
from dashi.flow.equations import Flow, Stochastic
from dashi.flow.fast import FastEngine
from dashi.flow.grid import Floats
from dashi.flow.observers import Look
from dashi.flow.operator import Vorticity
from dashi.kernels.portable import canon
from dashi.runtime.device import Device
from dashi.runtime.using import using_device

BLOCK_US: Final = 50_000.0
"""What a block should take: long enough to hide the host, short enough to stop and to show progress."""
MOST_RECORDED: Final = 256
_SIDES: Final = 2


@dataclass(frozen=True)
class Every:
    """Strides in steps; 0 is never. Looks and hashes are made of the last step too."""

    look: int = 0
    frame: int = 0
    hash: int = 0


_NEVER: Final = Every()


@dataclass(frozen=True, eq=False)
class Simulation:
    """What a simulation leaves: the states after `steps` steps, and what was seen on the way."""

    flow: Flow
    steps: int
    states: Floats
    """(members, n, n/2 + 1, 2); `dashi.flow.grid.to_field` makes vorticity of them."""
    looks: tuple[Look, ...] = ()
    hashes: tuple[Hash, ...] = ()
    seconds: float = 0.0
    dispatches: int = 0
    stopped: bool = False
    """By Ctrl-C, before all steps were done."""
    portable: bool = True
    used: tuple[Used, ...] = ()

    @property
    def time(self) -> float:
        """Flow time since the start."""
        return self.steps * self.flow.dt


Frame = Callable[[Simulation, Mapping[str, Floats]], None]
"""Is given the simulation so far and the fields asked for, (members, n, n) each, on the stride of frames."""


def simulate(
    flow: Flow,
    states: Any,
    steps: int,
    *,
    device: Device | str,
    every: Every = _NEVER,
    fields: Sequence[str] = ("vorticity",),
    frame: Frame | None = None,
    transfer: bool = False,
    fast: bool = False,
    stop_on_nonfinite: bool = True,
    progress: Callable[[int], None] | None = None,
    resume: Simulation | None = None,
) -> Simulation:
    """Advances states (`dashi.flow.initial`) by so many steps of dt.

    On the stride `every.look` spectra, totals and the Courant number are measured on the device; a time step that is
    too long is an InputError. Values that are not finite are a NonFiniteError, looked at or not, unless
    `stop_on_nonfinite` is False. On `every.frame` (and at the start) `frame` is given the fields. `fast` uses NumPy's
    own transforms on the NumPy device: several times faster, with bits that hold on one machine alone. `resume` goes on
    from an earlier part. Ctrl-C raises Interrupted, a KeyboardInterrupt, whose `partial` is the Simulation so far.
    """
    with using_device(device) as opened:
        return _simulated(
            flow, states, steps, opened, every, fields, frame, transfer, fast, stop_on_nonfinite, progress, resume
        )


def _simulated(
    flow: Flow, states: Any, steps: int, device: Device, every: Every, fields: Sequence[str], frame: Frame | None,
    transfer: bool, fast: bool, stop: bool, progress: Callable[[int], None] | None, resume: Simulation | None,
) -> Simulation:  # fmt: skip
    start = _start(flow, states, steps)
    if not isinstance(every, Every):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"every is {every!r}.", "say what is done on which stride, in steps: Every(look=5), Every(frame=5, hash=5)."
        )
    if fast and device.info.type != "reference":
        raise InputError(
            f"fast is NumPy's own transform, and {device.info.name!r} is another device.",
            "use the device cpu with fast, or leave it away: on Vulkan the portable solver is the fast one.",
        )
    so_far = resume or Simulation(flow, 0, start)
    if not 0 <= so_far.steps <= steps:
        raise InputError(f"{so_far.steps} steps are done already, {steps} asked for.", "ask for more steps.")
    if stop and resume:
        require_finite("the states to go on from", resume.states)
    operator = Vorticity(flow)
    now = canon(so_far.states)
    engine: Engine = (
        FastEngine(flow, now, fields, transfer=transfer)
        if fast
        else DeviceEngine(device, operator, now, fields, transfer=transfer)
    )
    try:
        most = _first_guess(operator, device, len(start), fast)
        null = device.info.type == "null"
        run = _Run(engine, replace(so_far, portable=not fast), steps, every, most, null=null, stop=stop)
        return run.go(frame, progress or (lambda _: None))
    finally:
        engine.close()


def _start(flow: Flow, states: Any, steps: int) -> Floats:
    if not isinstance(flow, Flow):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{type(flow).__name__} is no flow.", "pass Flow(n=64, ...).")
    given = np.asarray(states)
    shape = (flow.n, flow.modes, 2)
    if given.shape == shape:
        given = given[None]
    if given.ndim != 4 or given.shape[1:] != shape or not len(given):
        raise ShapeError(
            f"the states have shape {np.shape(states)}, the flow's have {shape}.",
            "make them with dashi.flow.initial.ensemble(flow, ...), or initial.from_field(flow, vorticity).",
        )
    if given.dtype != flow.kind:
        raise InputError(f"the states are {given.dtype}, the flow is {flow.dtype}.", f"use .astype(np.{flow.dtype}).")
    require_finite("states", given)
    if not isinstance(steps, int | np.integer) or steps < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{steps!r} steps were asked for.", "ask for a whole number, 0 or more.")
    if isinstance(flow.forcing, Stochastic) and flow.dtype == "float32" and steps >= 1 << 24:
        raise InputError(f"{steps} steps are more than a float32 can count.", "use float64, or fewer steps.")
    return np.ascontiguousarray(given)


def _first_guess(operator: Vorticity, device: Device, members: int, fast: bool) -> int:
    """Steps of a block."""
    if device.info.type == "reference":
        points = members * operator.flow.n**2
        return max(1, (4_000_000 if fast else 400_000) // points)
    us = operator.microseconds("stepwise", device.limits, members)
    return max(1, min(int(BLOCK_US / us), MOST_RECORDED))


class _Run:
    """One simulation under way."""

    def __init__(
        self, engine: Engine, so_far: Simulation, end: int, every: Every, most: int, *, null: bool, stop: bool
    ) -> None:
        self.engine, self.so_far, self.end, self.every, self.most, self.null = engine, so_far, end, every, most, null
        self._stop = stop
        self._strides = Strides(every.hash, every.look, 0, every.frame)
        self._looks = list(so_far.looks)
        self._hashes = list(so_far.hashes)
        self._done = self._submitted = so_far.steps
        self._pending: deque[Ticket] = deque()
        self._began = time.perf_counter()

    def go(self, frame: Frame | None, progress: Callable[[int], None]) -> Simulation:
        if self._done == 0 and not self.null:
            self._first(frame)
        with deferred_interrupt() as interrupt:
            while self._done < self.end and not interrupt.asked:
                before = self._done
                self._advance()
                progress(self._done - before)
                if frame and self.every.frame and self._done % self.every.frame == 0 and not self._pending:
                    self._frame(frame)
            while self._pending:
                self._take(self._pending.popleft())
        result = replace(self._result(), stopped=self._done < self.end)
        if interrupt.asked:
            raise Interrupted(result)
        return result

    def _first(self, frame: Frame | None) -> None:
        """Looks at the initial states: a time step that is too long is known before anything is computed."""
        look = self.engine.look(0)
        self._check(look)
        if self.every.look:
            self._looks.append(look)
        if frame and self.every.frame:
            self._frame(frame)

    def _frame(self, frame: Frame) -> None:
        """Hands out a frame; the time that takes is not the solver's."""
        began = time.perf_counter()
        fields: Mapping[str, Floats] = {} if self.null else self.engine.fields()
        for name, values in fields.items():
            if self._stop and not np.isfinite(values).all():
                raise self._blown_up(f"after step {self._done} its {name} is not finite")
        frame(self._result(), fields)
        self._began += time.perf_counter() - began

    def _advance(self) -> None:
        while self._submitted < self.end and len(self._pending) < _SIDES and not self._must_stop():
            block = self._checked(next_block(self._submitted, self.end, self._strides, self.most))
            self._pending.append(self.engine.submit(block))
            self._submitted = block.last
        self._take(self._pending.popleft())

    def _checked(self, block: Block) -> Block:
        """The block, with a check of its last states; a look tells as much."""
        last = block.segments[-1]
        if not self._stop or last.observe:
            return block
        return replace(block, segments=(*block.segments[:-1], replace(last, check=True)))

    def _must_stop(self) -> bool:
        """Whether a frame must be taken before more is submitted."""
        return bool(self._pending) and self._pending[-1].block.segments[-1].keep

    def _take(self, ticket: Ticket) -> None:
        harvest: Harvest = self.engine.harvest(ticket)
        for look in harvest.looks:
            self._check(look)
            self._looks.append(look)
        if not harvest.finite:
            step = ticket.block.last
            raise self._blown_up(f"after step {step} its states are not finite, after step {self._done} they were")
        self._hashes += harvest.hashes
        self._done = ticket.block.last

    def _check(self, look: Look) -> None:
        flow = self.so_far.flow
        if not look.finite and not self._stop:
            return
        if not look.finite:
            raise self._blown_up(f"after step {look.step} its energy is not finite")
        number = courant(flow, look)
        if number > flow.courant_limit:
            most = flow.dt * flow.courant_limit / number
            raise InputError(
                f"dt = {flow.dt:g} is too long after step {look.step}: the Courant number dt max(|u| + |v|) / dx is "
                f"{number:.3g}, and {flow.scheme} goes up to {flow.courant_limit:g}.",
                f"use dt = {_rounded(most):g} or less.",
            )

    def _blown_up(self, what: str) -> NonFiniteError:
        """The error, once nothing is under way any more; its `rollout` is the simulation up to the last good block."""
        while self._pending:
            self.engine.harvest(self._pending.popleft())
        flow, last = self.so_far.flow, self._looks[-1] if self._looks else None
        told = f"; after step {last.step} the Courant number was {courant(flow, last):.2g}" if last else ""
        error = NonFiniteError(
            f"the flow blew up: {what}{told}.",
            f"use a smaller dt than {flow.dt:g}, or more viscosity than nu = {flow.nu:g}.",
        )
        error.rollout = self._result()
        return error

    def _result(self) -> Simulation:
        return replace(
            self.so_far,
            steps=self._done,
            states=self.so_far.states if self.null else self.engine.states(),
            looks=tuple(self._looks),
            hashes=tuple(self._hashes),
            seconds=self.so_far.seconds + time.perf_counter() - self._began,
            dispatches=self.so_far.dispatches + self.engine.dispatches,
            used=tuple(self.engine.used.values()),
        )


def courant(flow: Flow, look: Look) -> float:
    """dt max(|u| + |v|) / dx."""
    return flow.dt * look.speed / flow.dx


def _rounded(value: float) -> float:
    """Down to two digits."""
    size = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.floor(value / size) * size
