"""`rollout`: very many steps of an operator on a device, observed on strides, with the truth about how it ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from dashi.core.operators.operator import HostOperator, Operator, Strategy, float_array, require_finite
from dashi.core.rollouts._engine import DeviceEngine, Engine
from dashi.core.rollouts._guard import Guard, SumCheck
from dashi.core.rollouts._host_engine import HostEngine
from dashi.core.rollouts._loop import MOST_RECORDED, Loop
from dashi.core.rollouts._observers import BandSheet, Hashes, Keep, StateCopies, StateMetrics
from dashi.core.rollouts._strategies import choose_strategy, limits_of
from dashi.core.rollouts.observer import Context, Observer, require_observers, require_stride
from dashi.core.rollouts.run import Run
from dashi.errors import InputError, ShapeError
from dashi.kernels.portable import canon
from dashi.runtime.device import Device
from dashi.runtime.using import using_device
from dashi.types import HostArray

BLOCK_US: Final = 50_000.0
"""What a block should take: long enough to hide the host, short enough to stop and to show progress."""


def rollout(
    operator: Operator,
    z0: Any,
    steps: int,
    *,
    device: Device | str,
    observers: Sequence[Observer[Any]] = (),
    hash_every: int = 0,
    observe_every: int = 0,
    sheet_every: int = 0,
    bands: int | Sequence[int] = 16,
    keep_every: int = 0,
    keep: Keep | None = None,
    strategy: str = "auto",
    stop_on_nonfinite: bool = True,
    guard: Guard | None = None,
    progress: Callable[[int], None] | None = None,
    resume: Run | None = None,
) -> Run:
    """Advances z0 (one state, or an ensemble with a leading axis) by so many steps.

    `observers` look at the states on their strides; what they leave is in `Run.records`, by their names. The strides
    `hash_every`, `observe_every` and `sheet_every` add the usual ones, `keep_every` one that gives `keep` the run so
    far, with its states; 0 switches them off. `bands` of the sheet are a number of equal slices of the state, or band
    edges. `strategy` is auto, stepwise, workgroup or tagged: the bits are the same.

    A state that is no longer finite raises NonFiniteError with its step and index, unless `stop_on_nonfinite` is False;
    a `guard` says it in other words, without searching for the step. `resume` goes on from an earlier part of the same
    rollout. Ctrl-C raises Interrupted, a KeyboardInterrupt, whose `partial` is the Run so far.
    """
    usual = [StateMetrics(observe_every), *([Hashes(hash_every)] if hash_every else [])]
    usual += [BandSheet(sheet_every, bands)] if sheet_every else []
    require_stride("keep", keep_every)
    for name, value in (("hash", hash_every), ("sheet", sheet_every)):
        require_stride(name, value)
    copies = [StateCopies(keep_every, keep)] if keep and keep_every else []
    everyone: list[Observer[Any]] = [*usual, *observers, *copies]
    _require_names(everyone)
    with using_device(device) as opened:
        return _rolled_out(operator, z0, steps, opened, everyone, strategy, stop_on_nonfinite, guard, progress, resume)


def _require_names(observers: Sequence[Observer[Any]]) -> None:
    require_observers(observers)
    names = [one.name for one in observers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two observers have the name {twice!r}.", "leave one of them away, or name it otherwise.")


def _rolled_out(
    operator: Operator, z0: Any, steps: int, device: Device, observers: Sequence[Observer[Any]], asked: str, stop: bool,
    guard: Guard | None, progress: Callable[[int], None] | None, resume: Run | None,
) -> Run:  # fmt: skip
    start = _start(operator, z0, steps, stop=stop)
    so_far = resume or Run(operator=operator.facts, steps=0, state=start)
    if not 0 <= so_far.steps <= steps:
        raise InputError(f"{so_far.steps} steps are done already, {steps} asked for.", "ask for more steps.")
    if stop and resume:
        require_finite("the state to go on from", resume.state)
    strategy, reason = _chosen(operator, device, len(start), asked)
    resumable = tuple(one for one in observers if one.every and not one.transient and not isinstance(one, StateCopies))
    so_far = replace(
        so_far, operator=operator.facts, device=device.info, observers=resumable, reason=reason, job=None,
        strategy=operator.strategy if isinstance(operator, HostOperator) else strategy,
    )  # fmt: skip
    states = canon(so_far.state)
    engine = _engine(Context(device, operator, start.shape, states, stop), states, observers, guard)
    most = _most_steps(operator, device, len(start), strategy)
    loop = Loop(engine, observers, so_far, steps, strategy=strategy, most=most, stop=stop, guard=guard)
    try:
        return loop.go(progress or (lambda _: None))
    finally:
        engine.close()
        for bound in engine.bound:
            bound.close()


def _engine(context: Context, states: HostArray, observers: Sequence[Observer[Any]], guard: Guard | None) -> Engine:
    if isinstance(context.operator, HostOperator):
        return HostEngine(context, states, observers)
    return DeviceEngine(context, states, observers, guard.check if guard else SumCheck(), repeats=guard is None)


def _chosen(operator: Operator, device: Device, states: int, asked: str) -> tuple[Strategy, str]:
    if not isinstance(operator, HostOperator):
        return choose_strategy(operator, device, states, asked)
    if not operator.runs_beside(device):
        raise InputError(
            f"{operator.kind} computes on the host here, and {device.info.name!r} is another device.",
            "use the device cpu, or the portable operator.",
        )
    return "stepwise", operator.host_reason


def _most_steps(operator: Operator, device: Device, states: int, strategy: Strategy) -> int:
    """Steps of a block."""
    if isinstance(operator, HostOperator) and operator.piece:
        return operator.piece
    if device.info.type == "reference":
        most = int(BLOCK_US / operator.reference_us(states))
    else:
        most = int(BLOCK_US / max(0.05, operator.estimated_us(strategy, limits_of(device), states)))
    return max(1, min(most, MOST_RECORDED) if strategy == "stepwise" else most)


def require_operator(operator: Any) -> None:
    """Refuses what is no operator, a bare matrix among it."""
    if not isinstance(operator, Operator):
        matrix = isinstance(operator, np.ndarray | list | tuple)
        raise InputError(
            f"{type(operator).__name__} is no operator.",
            "wrap it: dashi.core.Linear(A) advances z' = z A." if matrix else "pass one, such as dashi.core.Linear(A).",
        )


def _start(operator: Operator, z0: Any, steps: int, *, stop: bool) -> HostArray:
    require_operator(operator)
    states = float_array("z0", z0)
    if states.shape == operator.shape:
        states = states[None]
    if states.ndim != len(operator.shape) + 1 or states.shape[1:] != operator.shape or not len(states):
        raise ShapeError(
            f"z0 has shape {np.shape(z0)}; the operator advances states of shape {operator.shape}.",
            f"pass z0 of shape {operator.shape}, or (M, {', '.join(map(str, operator.shape))}) for an ensemble.",
        )
    if states.dtype != operator.dtype:
        raise InputError(
            f"z0 is {states.dtype}, the operator is {operator.dtype}.", f"convert z0: z0.astype(np.{operator.dtype})."
        )
    if stop:
        require_finite("z0", states)
    if not isinstance(steps, int | np.integer) or steps < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"{steps!r} steps were asked for.", "ask for a whole number, 0 or more.")
    return states
