"""What a Galerkin model makes of the nu_e that was learned: a factor, and how much it may feed.

In two dimensions nu_e is negative at large scales. Learned while a flow is young and times a factor above 1, it feeds
them for ever: where nu + nu_e < 0 in a flow without a force, energy grows without end. So there are two forms:

- `scaled`: c nu_e in every shell;
- `bounded`: c nu_e where it drains; where it feeds, as learned, and no more than viscosity drains: nu + nu_e >= 0. The
  advection of the truncation conserves energy, so that what no force feeds cannot gain any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

import numpy as np

from dashi.errors import InputError
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats

Backscatter = Literal["scaled", "bounded"]
BACKSCATTER: Final[tuple[Backscatter, ...]] = get_args(Backscatter)
STRIDES: Final = (0.5, 0.25)
LARGEST: Final = 6.0
"""The factor of nu_e is looked for from 1 on in steps, then in finer ones, up to so much."""


def backscatter_named(name: str) -> Backscatter:
    """The form of backscatter with this name. Raises InputError."""
    for form in BACKSCATTER:
        if form == name:
            return form
    raise InputError(f"there is no form {name!r} of backscatter.", f"use one of {', '.join(BACKSCATTER)}.")


def limited_viscosity(learned: Floats, factor: float, backscatter: Backscatter, flow: Flow) -> Floats:
    """Eddy viscosity of a model: nu_e times `factor`, in the form `backscatter`, in the element type of the flow."""
    if backscatter == "scaled":
        return as_readonly(factor * learned, flow)
    return bounded(np.where(learned > 0, factor, min(factor, 1.0)) * learned, flow)


def bounded(eddy: Floats, flow: Flow) -> Floats:
    """The eddy viscosity raised to at least -nu, to the last bit."""
    least = flow.numpy_dtype.type(-flow.nu)
    if float(least) < -flow.nu:
        least = np.nextafter(least, flow.numpy_dtype.type(0))
    return as_readonly(np.maximum(eddy.astype(flow.numpy_dtype), least), flow)


def as_readonly(values: Floats, flow: Flow) -> Floats:
    """The values as a read-only array in the element type of the flow."""
    array = np.ascontiguousarray(values, flow.numpy_dtype)
    array.setflags(write=False)
    return array


def hill_climb(score: Callable[[float], float]) -> float:
    """The factor with the best score, uphill from 1; each is scored once."""
    scores: dict[float, float] = {}

    def known(factor: float) -> float:
        if factor not in scores:
            scores[factor] = score(factor)
        return scores[factor]

    best = 1.0
    for stride in STRIDES:
        while True:
            near = (best, max(0.0, best - stride), min(LARGEST, best + stride))
            better = max(near, key=known)
            if better == best:
                break
            best = better
    return best
