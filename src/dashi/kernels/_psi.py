"""The admissible nonlinearities of a step: NumPy twin of `_include/psi.glsl`, and the scalars that kernels share.

| name | number | value |
|---|---|---|
| none | 0 | x |
| squash | 1 | tanh(alpha x) |
| softplus | 2 | log(1 + e^x) |
| clamp | 3 | x, but at least low and at most high |

All are portable: canonical results, the same bits everywhere; NaN stays NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError
from dashi.kernels.abi import Number, Scalar, Spec
from dashi.kernels.portable._bits import Floats, canon, mul
from dashi.kernels.portable._exp import softplus, tanh

NAMES: Final = ("none", "squash", "softplus", "clamp")
"""A nonlinearity's number is its place here."""

NUMBERS: Final = (
    Scalar("alpha", default=1.0, doc="squash: steepness at 0"),
    Scalar("low", default=-1.0, doc="clamp: lowest value"),
    Scalar("high", default=1.0, doc="clamp: highest value"),
)
"""What they depend on; push constants of a shader under the same names."""
SCALARS: Final = (Scalar("psi", "u32", 0, "0 none, 1 squash, 2 softplus, 3 clamp"), *NUMBERS)
"""The scalars of a kernel that applies one."""
SPEC: Final = Spec("PSI", 0)
"""The nonlinearity as a specialisation constant: `apply_psi(PSI, v, alpha, low, high)`."""
FLOPS: Final = {"f32": (0, 61, 73, 2), "f64": (0, 75, 95, 2)}
"""Float operations of each, on its longer path."""


def number_of(name: str) -> int:
    """The number of a nonlinearity."""
    if name not in NAMES:
        raise InputError(f"there is no nonlinearity {name!r}.", f"use one of {', '.join(NAMES)}.")
    return NAMES.index(name)


def apply_psi(which: int, x: npt.ArrayLike, alpha: Number = 1.0, low: Number = -1.0, high: Number = 1.0) -> Floats:
    """The nonlinearity with that number of every value; the numbers are rounded to the type of x."""
    v = canon(x)
    slope, least, most = (canon(np.asarray(n, dtype=v.dtype)) for n in (alpha, low, high))
    if which == 1:
        return tanh(mul(slope, v))
    if which == 2:
        return softplus(v)
    return np.where(v < least, least, np.where(v > most, most, v)) if which == 3 else v


def require_psi(kernel: str, scalars: Mapping[str, Number]) -> None:
    """Refuses a number that no nonlinearity has, numbers that are NaN, and a range in which nothing lies."""
    which = int(scalars["psi"])
    if which >= len(NAMES):
        offer = ", ".join(f"{n} {name}" for n, name in enumerate(NAMES))
        raise InputError(f"kernel {kernel!r}: there is no nonlinearity {which}.", f"pass psi as one of {offer}.")
    if which == 1 and scalars["alpha"] != scalars["alpha"]:
        raise InputError(f"kernel {kernel!r}: alpha is {scalars['alpha']}.", "pass a number.")
    if which == 3 and not scalars["low"] <= scalars["high"]:
        raise InputError(
            f"kernel {kernel!r}: there is nothing between low={scalars['low']} and high={scalars['high']}.",
            "pass low <= high.",
        )
