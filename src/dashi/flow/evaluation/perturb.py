"""Flows with other parameters than those trained on: does a model that never saw them hold?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from dashi.errors import InputError
from dashi.flow.equations import Flow

NAMES: Final = ("nu", "cs", "dt", "n")
"""Viscosity, Smagorinsky's constant, the solver's time step, its grid."""


def perturbed(flow: Flow, name: str, value: float) -> Flow:
    """The flow with one parameter of another value."""
    if name not in NAMES:
        raise InputError(f"{name!r} is not perturbed.", f"use one of {', '.join(NAMES)}.")
    if name == "n" and value != int(value):
        raise InputError(f"n = {value:g} is no number of points.", "use a whole number.")
    change: dict[str, Any] = {"smagorinsky" if name == "cs" else name: int(value) if name == "n" else float(value)}
    return replace(flow, **change)


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
