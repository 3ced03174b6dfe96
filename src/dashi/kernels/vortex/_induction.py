"""Velocity induced by vortex atoms in the plane: the twin of `_include/induction.glsl`, and the numbers that both use.

In free space an atom of circulation Gamma at distance r, with core radius d, induces Gamma/(2 pi) h J r, where J r is r
turned by a quarter and

    gaussian     h = (1 - exp(-r^2/d^2)) / r^2
    algebraic    h = 1 / (r^2 + d^2)

In the doubly periodic square box of side L the images are added exactly: with z = (x + i y)/L to the nearest image,

    u - i v = Gamma/(2 pi i L) (zeta(z) - pi conj(z)),    zeta(z) = 1/z - sum over k of G_4k z^(4k - 1),

the zeta function of Weierstrass on the square lattice (DLMF 23.2, 23.9; only every fourth lattice sum is not 0), whose
1/z is the free part, with its core. The core of the nearest image alone is counted: what is left out of the others is
exp(-L^2/(4 d^2)) of a point's velocity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import ShapeError
from dashi.kernels.portable import canon, divide, exp, mul, reciprocal, round, sum64

Floats = npt.NDArray[Any]

CORE_TERMS: Final = {"f32": 9, "f64": 15}
"""Terms of (1 - exp(-t))/t below t = 1/2: the next is 1e-8, or 5e-17."""
LATTICE_TERMS: Final = {"f32": 13, "f64": 27}
"""Lattice sums: at the corner of the box the next term is 6e-8, or 2e-16."""
_LATTICE: Final = 2 + CORE_TERMS["f64"]
TABLE: Final = _LATTICE + LATTICE_TERMS["f64"]
"""Numbers of the table `terms`; those of float32 use the first of each series."""
TILE: Final = 4096
MOST_TILES: Final = 64
_SMALL: Final = 0.5
_BLOCK: Final = 1 << 17


def variant_of(dtype: Any) -> str:
    """f32 or f64."""
    return "f64" if np.dtype(dtype) == np.float64 else "f32"


@lru_cache(maxsize=1)
def _terms() -> tuple[float, ...]:
    core = [(-1) ** k / math.factorial(k + 1) for k in range(CORE_TERMS["f64"])]
    return (1 / (2 * math.pi), math.pi, *core, *lattice_sums(LATTICE_TERMS["f64"]))


def terms(dtype: Any) -> Floats:
    """The table that the kernel is passed: 1/(2 pi), pi, the series of the core, the lattice sums G_4, G_8, ..."""
    return np.array(_terms(), dtype)


def lattice_sums(count: int) -> list[float]:
    """G_4, G_8, ... of the lattice of Gaussian integers. G_4 = varpi^4/15 with the lemniscate constant varpi; the
    others follow from the differential equation of Weierstrass' function (DLMF 23.9.8)."""
    g4 = 2.622057554292119810464839589891**4 / 15
    laurent = {2: 3 * g4}  # c_n = (2n - 1) G_2n; those of odd n are 0
    for n in range(4, 2 * count + 1, 2):
        total = math.fsum(laurent[m] * laurent[n - m] for m in range(2, n - 1, 2))
        laurent[n] = 3 * total / ((2 * n + 1) * (n - 3))
    return [laurent[2 * k] / (4 * k - 1) for k in range(1, count + 1)]


def require_terms(count: int) -> None:
    """Refuses a table of another length."""
    if count != TABLE:
        raise ShapeError(
            f"the table `terms` has {count} numbers instead of {TABLE}.",
            "pass dashi.kernels.vortex._induction.terms(dtype).",
        )


@dataclass(frozen=True)
class InductionSetting:
    """What a sum of velocities is taken over, besides the atoms."""

    box: float = 0.0
    """Side of the periodic box; 0: free space."""
    algebraic: bool = False
    mixed: bool = False
    """Whether the d^2 of a pair is the mean of both, so that impulse is conserved; else it is the source's."""
    quantum: float = 1.0


def packed(sources: Floats, table: Floats, setting: InductionSetting) -> tuple[Floats, ...]:
    """x, y, Gamma/(2 pi), and d^2 (Gaussian cores that are not mixed: 1/d^2) of sources (n, w)."""
    x, y, square, quanta = (canon(sources[:, k]) for k in range(4))
    scaled = mul(mul(quanta, canon(quanta.dtype.type(setting.quantum))), canon(table[0]))
    return x, y, scaled, square if setting.algebraic or setting.mixed else reciprocal(square)


def velocity(targets: Floats, sources: Floats, table: Floats, setting: InductionSetting) -> tuple[Floats, Floats]:
    """u and v (m, t) at targets (m, t, w), sums in the order tree64."""
    kind = sources.dtype
    u, v = (np.empty(targets.shape[:2], kind) for _ in range(2))
    step = max(1, _BLOCK // max(1, sources.shape[1]))
    with np.errstate(all="ignore"):
        for member in range(len(targets)):
            x, y, scaled, core = packed(sources[member], table, setting)
            for first in range(0, targets.shape[1], step):
                rows = canon(targets[member, first : first + step])
                dx, dy = rows[:, 0, None] - x, rows[:, 1, None] - y
                shared = np.broadcast_to(core, dx.shape)
                if setting.mixed:
                    shared = mul(kind.type(0.5), rows[:, 2, None] + core)
                parts = pair(dx, dy, scaled, shared, table, setting)
                for out, part in zip((u, v), parts, strict=True):
                    out[member, first : first + step] = sum64(part)
    return u, v


def pair(
    dx: Floats, dy: Floats, scaled: Floats, core: Floats, table: Floats, setting: InductionSetting
) -> tuple[Floats, Floats]:
    """The velocity that each source induces at each target."""
    kind, box = dx.dtype, setting.box
    inverse = kind.type(1 / box) if box > 0 else kind.type(0)
    if box > 0:
        dx, dy = (d - mul(round(mul(d, inverse)), kind.type(box)) for d in (dx, dy))
    strength = mul(scaled, factor(mul(dx, dx) + mul(dy, dy), core, table, setting))
    u, v = -mul(strength, dy), mul(strength, dx)
    if box > 0:
        real, imaginary = images(mul(dx, inverse), mul(dy, inverse), table)
        strength = mul(scaled, inverse)
        u, v = u + mul(strength, imaginary), v + mul(strength, real)
    return u, v


def factor(square: Floats, core: Floats, table: Floats, setting: InductionSetting) -> Floats:
    """h of the two cores at r^2."""
    kind = square.dtype
    if setting.algebraic:
        return reciprocal(square + core)
    inverse = reciprocal(core) if setting.mixed else core
    ratio = mul(square, inverse)
    series = canon(table[2 : 2 + CORE_TERMS[variant_of(kind)]])
    near = np.full_like(ratio, series[-1])
    for coefficient in series[-2::-1]:
        near = mul(near, ratio) + coefficient
    return np.where(ratio < kind.type(_SMALL), mul(near, inverse), divide(kind.type(1) - exp(-ratio), square))


def images(x: Floats, y: Floats, table: Floats) -> tuple[Floats, Floats]:
    """zeta(z) - 1/z - pi conj(z) of z = x + i y, in sides of the box."""
    x2, y2 = mul(x, x) - mul(y, y), mul(x, y) + mul(x, y)
    x3, y3 = mul(x2, x) - mul(y2, y), mul(x2, y) + mul(y2, x)
    x4, y4 = mul(x2, x2) - mul(y2, y2), mul(x2, y2) + mul(x2, y2)
    sums = canon(table[_LATTICE : _LATTICE + LATTICE_TERMS[variant_of(x.dtype)]])
    real, imaginary = np.full_like(x, sums[-1]), np.zeros_like(x)
    for coefficient in sums[-2::-1]:
        following = mul(real, x4) - mul(imaginary, y4) + coefficient
        real, imaginary = following, mul(real, y4) + mul(imaginary, x4)
    pi = canon(table[1])
    return (
        -(mul(x3, real) - mul(y3, imaginary)) - mul(pi, x),
        -(mul(x3, imaginary) + mul(y3, real)) + mul(pi, y),
    )
