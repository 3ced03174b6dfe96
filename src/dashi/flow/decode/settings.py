"""What a decode is asked to do, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dashi.errors import InputError

RESIDUALS: Final = ("none", "seeded", "statistics")
GATES: Final = ("open", "support", "signed")
OBSERVERS: Final = ("none", "metrics", "snapshots", "visualize")
STAGES: Final = ("scatter", "ifft_lp", "smooth", "threshold", "majority", "synth", "ifft_resid", "combine")
"""In their order; the last three are those of a residual."""


@dataclass(frozen=True)
class Settings:
    """How fields are made of z, with w_lp the field of the modes that z holds, low modes and anchors.

    - the mask: ternary threshold at `tau` of d / (max |d| + eps), d = w_lp minus its mean over a periodic box of
      2 `radius` + 1 points, then `rounds` rounds of the 3 x 3 majority with threshold `eta`, which creates no support;
    - the residual r in the bands that z holds no modes of: `none`; `seeded`: modes of equal size in each band, with
      phases from Philox; `statistics`: Gaussian modes with the spectrum and anisotropy of training data. Both have the
      energies of the bands that z tells, the anchors counted;
    - the field: w_lp + g r, with g = 1 (`open`), |mask| (`support`) or the mask with its signs (`signed`).
    """

    residual: str = "none"
    gate: str = "support"
    seed: int = 0
    radius: int = 5
    tau: float = 0.35
    eps: float = 1e-12
    rounds: int = 8
    eta: int = 1
    dtype: str = "float32"

    def __post_init__(self) -> None:
        one_of("residual", self.residual, RESIDUALS)
        one_of("gate", self.gate, GATES)
        one_of("dtype", self.dtype, ("float32", "float64"))
        for name, least, most in (("seed", 0, (1 << 32) - 1), ("radius", 0, 4096), ("rounds", 0, 1024), ("eta", 1, 9)):
            value: object = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise InputError(f"{name} is {value!r}.", f"use a whole number from {least} to {most}.")
        for name in ("tau", "eps"):
            number = getattr(self, name)
            if not (math.isfinite(number) and number >= 0):
                raise InputError(f"{name} is {number!r}.", "use a finite number, 0 or more.")

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type of fields."""
        return np.dtype(self.dtype)

    @property
    def draws(self) -> bool:
        """Whether there is a residual."""
        return self.residual != "none"


def one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    """An error that names the choices, unless the value is one of them."""
    if value not in known:
        raise InputError(f"there is no {name} {value!r}.", f"use one of {', '.join(known)}.")
