"""Flows with other parameters than those trained on: does a model that never saw them hold?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, Final

from dashi.errors import InputError, suggestion
from dashi.flow.equations import Flow

NAMES: Final = ("nu", "cs", "dt", "n", "drag")
"""Viscosity, Smagorinsky's constant, the solver's time step, its grid, the linear drag."""
FORCE: Final = "force_"
"""What names of numbers of the force begin with, such as force_wavenumber; its kicks' seed is no parameter."""
TOLD: Final = ("nu", "drag")
"""What a model with equations can be told of, beside the numbers of the force."""


def perturbed(flow: Flow, name: str, value: float) -> Flow:
    """The flow with one parameter of another value. Raises InputError."""
    if name.startswith(FORCE):
        return replace(flow, forcing=_other_force(flow, name, value))
    if name not in NAMES:
        known = [*NAMES, *_force_names(flow)]
        raise InputError(f"{name!r} is not perturbed.", f"{suggestion(name, known)}use one of {', '.join(known)}.")
    change: dict[str, Any] = {"smagorinsky" if name == "cs" else name: _whole(name, value) if name == "n" else value}
    return replace(flow, **change)


def _force_names(flow: Flow) -> list[str]:
    if flow.forcing is None:
        return []
    return [FORCE + field.name for field in fields(flow.forcing) if field.name != "seed"]


def _other_force(flow: Flow, name: str, value: float) -> Any:
    forcing, known = flow.forcing, _force_names(flow)
    if forcing is None:
        raise InputError(f"{name!r} is not perturbed: the flow has no force.", f"use one of {', '.join(NAMES)}.")
    if name not in known:
        raise InputError(f"{name!r} is not perturbed.", f"{suggestion(name, known)}use one of {', '.join(known)}.")
    own = name.removeprefix(FORCE)
    whole = isinstance(getattr(forcing, own), int)
    return replace(forcing, **{own: _whole(name, value) if whole else float(value)})


def _whole(name: str, value: float) -> int:
    if value != int(value):
        what = "is no number of points" if name == "n" else "is no whole number"
        raise InputError(f"{name} = {value:g} {what}.", "use a whole number.")
    return int(value)


def told_names(changes: str) -> list[str]:
    """Which of changed parameters, in words such as `nu=0.004 drag=0.2`, a model with equations can be told of."""
    names = [part.partition("=")[0] for part in changes.split()]
    return [name for name in names if name in TOLD or name.startswith(FORCE)]


def told_flow(trained: Flow, flow: Flow, names: Iterable[str]) -> Flow:
    """The flow that a model was trained with, with these parameters as another flow has them."""
    chosen = list(names)
    plain = {name: getattr(flow, name) for name in chosen if name in TOLD}
    if any(name.startswith(FORCE) for name in chosen):
        plain["forcing"] = flow.forcing
    return replace(trained, **plain)


def same_times(flow: Flow, changed: Flow, steps: int) -> int:
    """Steps of the changed flow that take the flow time of `steps` steps of the flow. Raises InputError."""
    exact = steps * flow.dt / changed.dt
    if round(exact) < 1 or abs(exact - round(exact)) > 1e-9 * exact:
        raise InputError(
            f"dt = {changed.dt:g} does not divide the {steps * flow.dt:g} that {steps} steps of {flow.dt:g} take.",
            f"use for instance dt = {flow.dt / 2:g}.",
        )
    return round(exact)


def label(name: str, value: float) -> str:
    """The label of a perturbed flow in tables and in names of files, such as nu=0.004."""
    return f"{name}={value:g}"
