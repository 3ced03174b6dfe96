"""Time schemes as data: each stage is a sum of modes weighted by real tables.

With N(w) the advection (with eddy and steady forcing) and L = -(nu k^2 + nu_p k^2p + mu) the rest, linear and
diagonal, every scheme here is y = sum of t_j x_j, x_0 the state and x_j = N of stage j. The last sum is the new state.

The solver computes the change instead, y = x_0 + sum of t_j x_j, with t_0 = exp(L t) - 1: a float32 of exp(L t), near
1, moves in steps of 6e-8, which is as much as viscosity does in a short step to large scales, while t_0 itself has all
its digits.

- rk4: the classical scheme on exp(-L t) w, that is with an integrating factor: exact in L.
- heun: the same with Heun's scheme of second order.
- etdrk4: exponential time differencing, S. Cox and P. Matthews, J. Comput. Phys. 176, 2002,
  doi 10.1006/jcph.2002.6995, its coefficients by contour integrals: A.-K. Kassam and L. Trefethen, SIAM J. Sci.
  Comput. 26, 2005, doi 10.1137/S1064827502410633, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.flow import grid
from dashi.flow.equations import Flow, Scheme
from dashi.kernels.portable import canon, cos, exp, sin

Floats = npt.NDArray[Any]
Complex = tuple[Floats, Floats]
CONTOUR: Final = 32
"""Points on the upper half of the unit circle round every value."""
_SERIES: Final = 16
"""Terms of the series of exp(x) - 1: the next one is below 1e-18 of it."""


@dataclass(frozen=True)
class Sum:
    """A stage: which of the state (0) and the tendencies (1, 2, ...) are added, each with which table."""

    terms: tuple[tuple[int, str], ...]


@dataclass(frozen=True, eq=False)
class Tableau:
    """The stages of a scheme and their tables, (n, n/2 + 1) each, in the element type of the flow. With `increments`
    each sum is the change of the state, not the state after it."""

    stages: tuple[Sum, ...]
    tables: Mapping[str, Floats]
    increments: bool = False


_RK4: Final = (
    Sum(((0, "half"), (1, "half_2"))),
    Sum(((0, "half"), (2, "one_2"))),
    Sum(((0, "whole"), (3, "half_1"))),
    Sum(((0, "whole"), (1, "whole_6"), (2, "half_3"), (3, "half_3"), (4, "one_6"))),
)
_HEUN: Final = (
    Sum(((0, "whole"), (1, "whole_1"))),
    Sum(((0, "whole"), (1, "whole_2"), (2, "one_2"))),
)
_ETDRK4: Final = (
    Sum(((0, "half"), (1, "q"))),
    Sum(((0, "half"), (2, "q"))),
    Sum(((0, "whole"), (1, "q_less"), (3, "q_twice"))),
    Sum(((0, "whole"), (1, "f_1"), (2, "f_2"), (3, "f_2"), (4, "f_3"))),
)
_STAGES: Final = {"rk4": _RK4, "heun": _HEUN, "etdrk4": _ETDRK4}


def tableau(flow: Flow) -> Tableau:
    """The scheme of a flow, as changes. Tables are 0 for modes that are not kept; the mean stays what it is."""
    # Modes that are not kept need no coefficient, and are more than half of all.
    inside = grid.kept_modes(flow.n)
    values, place = grid.distinct(grid.squares(flow.n)[inside])
    scale = grid.unit(flow)
    decay = -flow.damping(values * (scale * scale)) * flow.dt
    coefficients_of = coefficients(flow.scheme, decay, flow.dt)
    stages = tuple(_change(stage) for stage in stages_of(flow.scheme))
    used = {name for stage in stages for _, name in stage.terms}
    tables: dict[str, Floats] = {}
    for name in sorted(used):
        # Rounded before they are spread: there are far fewer different values than modes.
        table = np.zeros((flow.n, flow.modes), flow.numpy_dtype)
        table[inside] = canon(coefficients_of[name].astype(flow.numpy_dtype))[place]
        table[0, 0] = 0.0
        tables[name] = table
    return Tableau(stages, tables, increments=True)


def _change(stage: Sum) -> Sum:
    """The stage with the change of its state alone in place of the state after it."""
    (first, name), *others = stage.terms
    return Sum(((first, f"{name}_change"), *others))


def stages_of(scheme: Scheme) -> tuple[Sum, ...]:
    """The stages of a scheme."""
    return _STAGES[scheme]


def coefficients(scheme: Scheme, decay: Floats, dt: float) -> dict[str, Floats]:
    """The tables of a scheme, and maybe more, at values `decay` of L dt."""
    return _exponential(decay, dt) if scheme == "etdrk4" else _factors(decay, dt)


def _factors(decay: Floats, dt: float) -> dict[str, Floats]:
    half, whole = exp(0.5 * decay), exp(decay)
    ones = np.ones_like(decay)
    return {
        **_decays(decay),
        "half_1": dt * half,
        "half_2": 0.5 * dt * half,
        "half_3": dt / 3 * half,
        "whole_1": dt * whole,
        "whole_2": 0.5 * dt * whole,
        "whole_6": dt / 6 * whole,
        "one_2": 0.5 * dt * ones,
        "one_6": dt / 6 * ones,
    }


def _decays(decay: Floats) -> dict[str, Floats]:
    """exp(L dt / 2) and exp(L dt), and what they are less 1."""
    return {
        "half": exp(0.5 * decay),
        "whole": exp(decay),
        "half_change": exponential_less_one(0.5 * decay),
        "whole_change": exponential_less_one(decay),
    }


def exponential_less_one(x: Floats) -> Floats:
    """exp(x) - 1 to about 2 ulp, also where x is small: there by its series."""
    small = np.abs(x) < 0.5
    inside = np.where(small, x, 0.0)
    total = np.ones_like(inside)
    for j in range(_SERIES, 1, -1):
        total = 1 + inside / j * total
    return np.where(small, inside * total, exp(x) - 1)


def _exponential(decay: Floats, dt: float) -> dict[str, Floats]:
    """The coefficients of ETDRK4: means over a circle round each value of L dt. By symmetry the upper half is enough;
    the sums are in order, and exp(z + r) = exp(z) exp(r), so that every machine has the same bits."""
    half, whole = exp(0.5 * decay), exp(decay)
    sums = [np.zeros_like(decay) for _ in range(4)]
    for (r, i), turn, turn_half in _circle():
        z: Complex = (decay + r, np.broadcast_to(i, decay.shape))
        grown = _scaled(turn, whole)
        grown_half = _scaled(turn_half, half)
        sums = [total + term for total, term in zip(sums, _terms(z, grown, grown_half), strict=True)]
    q, alpha, beta, gamma = (total * (dt / CONTOUR) for total in sums)
    return {
        **_decays(decay),
        "q": q,
        "q_twice": 2 * q,
        "q_less": half * q - q,
        "f_1": alpha,
        "f_2": 2 * beta,
        "f_3": gamma,
    }


@cache
def _circle() -> tuple[tuple[Complex, Complex, Complex], ...]:
    """Points r of the upper half of the circle, exp(r) and exp(r / 2). Portable functions take their time: once."""
    points: list[tuple[Complex, Complex, Complex]] = []
    for j in range(CONTOUR):
        angle = np.array([np.pi * (j + 0.5) / CONTOUR])
        r, i = cos(angle), sin(angle)
        points.append(((r, i), _turn(r, i), _turn(0.5 * r, 0.5 * i)))
    return tuple(points)


def _turn(real: Floats, imaginary: Floats) -> Complex:
    """exp of a complex number."""
    size = exp(real)
    return size * cos(imaginary), size * sin(imaginary)


def _scaled(z: Complex, factor: Floats) -> Complex:
    return z[0] * factor, z[1] * factor


def _times(a: Complex, b: Complex) -> Complex:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _plus(a: Complex, b: Complex, factor: float = 1.0) -> Complex:
    return a[0] + factor * b[0], a[1] + factor * b[1]


def _over(a: Complex, b: Complex) -> Floats:
    """The real part of a / b."""
    return (a[0] * b[0] + a[1] * b[1]) / (b[0] * b[0] + b[1] * b[1])


def _terms(z: Complex, grown: Complex, grown_half: Complex) -> tuple[Floats, Floats, Floats, Floats]:
    """The four functions at one point, real parts: Kassam and Trefethen, equation (2.5)."""
    square = _times(z, z)
    cube = _times(square, z)
    first = _plus((z[0] * -3 + 4, z[1] * -3), square)
    lead = (-4 - z[0], -z[1])
    alpha = _plus(lead, _times(grown, first))
    beta = _plus((2 + z[0], z[1]), _times(grown, (z[0] - 2, z[1])))
    gamma = _plus(_plus((-4 - 3 * z[0], -3 * z[1]), square, -1.0), _times(grown, (4 - z[0], -z[1])))
    return _over((grown_half[0] - 1, grown_half[1]), z), _over(alpha, cube), _over(beta, cube), _over(gamma, cube)
