"""What v4 reported, number by number, and how many of its digits another number has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

SETTING: Final = (64, 300, 0)
"""n, steps and seed of the golden values."""

GOLDEN: Final[Mapping[str, str]] = {
    "enstrophy at t = 0": "0.5",
    "enstrophy at t = 300": "0.466451",
    "|omega| at t = 300": "61.8156",
    "rank of X": "238",
    "spectral radius of A": "0.9999998",
    "relative L2 at t = 1": "0.546",
    "relative L2 at t = 10": "0.543",
    "relative L2 at t = 50": "0.551",
    "relative L2 at t = 100": "0.565",
    "relative L2 at t = 200": "0.616",
    "relative L2 at t = 300": "0.648",
    "correlation at t = 300": "0.787",
    "dE at t = 300": "-2.38E-4",
    "dZ at t = 300": "-1.64E-2",
    "low-k only, relative L2 at t = 300": "0.473",
    "low-k only, correlation at t = 300": "0.881",
    "true low-k + anchors, relative L2 at t = 300": "0.435",
    "true low-k + anchors, correlation at t = 300": "0.901",
    "hold-out, low-k error at t = 210": "0.021",
    "hold-out, low-k error at t = 250": "0.154",
    "hold-out, low-k error at t = 300": "0.405",
    "hold-out, persistence at t = 210": "0.059",
    "hold-out, persistence at t = 250": "0.289",
    "hold-out, persistence at t = 300": "0.544",
    "hold-out, ridge 1e-9, low-k error at t = 210": "0.000",
    "hold-out, ridge 1e-9, low-k error at t = 250": "0.022",
    "hold-out, ridge 1e-9, low-k error at t = 300": "0.172",
    "seed 0 to seed 1, correlation at t = 1": "-0.09",
    "seed 0 to seed 1, persistence at t = 1": "1.000",
}
"""At n = 64, 300 steps, seed 0, with the digits that were reported."""


@dataclass(frozen=True)
class Row:
    """One number: as reported ("" in another setting), by NumPy, and with the map learned and rolled on a device."""

    name: str
    golden: str
    ours: float
    device: float | None = None

    @property
    def digits(self) -> int:
        """Digits that were reported: significant ones, or places after the point of a zero."""
        if not self.golden:
            return 0
        parts = Decimal(self.golden).as_tuple()
        return len(parts.digits) if any(parts.digits) else -int(parts.exponent)

    def agreeing(self, value: float) -> int:
        """How many of them a value has too, rounded there."""
        if not self.golden or not math.isfinite(value):
            return 0
        wanted, found = Decimal(self.golden), Decimal(repr(value))
        fine = int(wanted.as_tuple().exponent)
        fits = (left for left in range(self.digits) if _rounded(wanted, fine + left) == _rounded(found, fine + left))
        return self.digits - next(fits, self.digits)

    @property
    def shown(self) -> str:
        """Ours with one digit more than was reported; all of them where nothing was."""
        if not self.golden:
            return repr(self.ours)
        finer = int(Decimal(self.golden).as_tuple().exponent) - 1
        return f"{_rounded(Decimal(repr(self.ours)), finer)}"

    @property
    def holds(self) -> bool:
        """Whether every reported digit is there, by NumPy and on the device."""
        values = [self.ours] if self.device is None else [self.ours, self.device]
        return all(self.agreeing(value) == self.digits for value in values)


def _rounded(value: Decimal, exponent: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(exponent))
