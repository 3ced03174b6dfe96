"""Initial conditions: states (n, n/2 + 1, 2) in float64 from a few numbers, the same bits on every machine.

Lengths are in the units of the box. Fields with edges are smoothed over about two points, so that they have modes that
fit the grid; whatever is not resolved is cut off. The mean of vorticity in a periodic box is 0: where the formula's is
not, it is taken off, which is a solid rotation of the fluid round every vortex (its effect is in docs/flow.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dashi.errors import InputError, suggestion
from dashi.flow import grid
from dashi.flow.equations import Flow
from dashi.kernels._philox import philox, unit
from dashi.kernels.portable import cos, exp, sin, sincos, tanh
from dashi.runtime.device import Device

Floats = npt.NDArray[Any]
Patch = tuple[float, float, float, float]
"""Centre x and y, radius, vorticity."""
_STREAM: Final = 1
"""The last word of the generator's counter: 0 is the forcing's."""
_EDGE: Final = 2.0
"""Points over which an edge is smoothed."""
_FLAT: Final = 20.0
"""Past it tanh is 1 in float64, to the last bit."""


def random(flow: Flow, seed: int = 0, *, peak: float = 6.0, speed: float = 1.0) -> Floats:
    """Random phases under the spectrum E(k) ~ k^6 exp(-3 (k / peak)^2), k in units of 2 pi / L, with
    sqrt(mean(u^2 + v^2)) = speed. The phase of a mode depends on the seed and on the mode alone, so a finer grid has
    the same field, and more of it."""
    n = flow.n
    # Past this wave number the spectrum is 0 in float64, and what is not kept is 0: few modes need a phase.
    reach = int(min(flow.cut, max(1.0, 23.0 * abs(peak)))) if math.isfinite(peak) else flow.cut
    inside = np.ix_(np.flatnonzero(np.abs(grid.rows(n)) <= reach), np.arange(reach + 1))
    rows, columns = grid.rows(n)[inside[0]], grid.columns(n)[inside[1]]
    values, place = grid.distinct(rows**2 + columns**2)
    k = np.sqrt(values.astype(np.float64))
    shape = k * k * k * exp(-1.5 * (k / peak) * (k / peak))
    # |w|^2 of a mode is 2 k^2 times its energy, E(k) / (2 pi k): a factor that the speed decides.
    size = np.where(k > 0, shape * np.sqrt(k), 0.0)[place]
    counted = np.where(columns == 0, 1.0, 2.0)
    squared = counted * size * size * grid.inverse_squares(flow, rows**2 + columns**2)
    mirrored = (columns == 0) & (rows < 0)
    words = philox((columns, np.where(mirrored, -rows, rows), 0, _STREAM), (seed, 0))[0]
    used = size != 0
    sine, cosine = np.zeros(size.shape), np.zeros(size.shape)
    sine[used], cosine[used] = sincos(2 * np.pi * unit(words, np.float64)[used])
    factor = speed / math.sqrt(math.fsum(squared[size != 0].tolist()))
    modes = np.zeros((n, flow.modes, 2))
    modes[inside] = np.stack([factor * (size * cosine), factor * (size * np.where(mirrored, -sine, sine))], axis=-1)
    return modes


def taylor_green(flow: Flow, seed: int = 0, *, wavenumber: int = 1, speed: float = 1.0) -> Floats:
    """w = 2 k U cos(k x) cos(k y): it keeps its shape and decays as exp(-2 nu k^2 t). The largest speed is U."""
    if type(wavenumber) is not int or not 1 <= wavenumber <= flow.cut:
        raise InputError(f"the wave number is {wavenumber}.", f"use a whole number from 1 to {flow.cut}.")
    made = np.zeros((flow.n, flow.modes, 2))
    made[[wavenumber, -wavenumber], wavenumber, 0] = 0.5 * wavenumber * grid.unit(flow) * speed
    return made


def _of_vorticity(vorticity: Callable[..., Floats]) -> Callable[..., Floats]:
    """The states of an initial condition that is a field."""

    @wraps(vorticity)
    def states(flow: Flow, seed: int = 0, **options: Any) -> Floats:
        return grid.to_modes(vorticity(flow, seed, **options))

    return states


@_of_vorticity
def shear_layer(flow: Flow, seed: int = 0, *, steepness: float = 30.0, wave: float = 0.05) -> Floats:
    """Two shear layers that roll up: u = tanh(steepness (y/L - 1/4)) below the middle, mirrored above, and
    v = wave sin(2 pi x/L). D. Brown and M. Minion, J. Comput. Phys. 122, 1995, doi 10.1006/jcph.1995.1205."""
    line = np.arange(flow.n) * flow.dx
    x, y = line[None, :] / flow.length, line[:, None] / flow.length
    lower = y <= 0.5
    bend = tanh(steepness * np.where(lower, y - 0.25, 0.75 - y))
    slope = np.where(lower, -1.0, 1.0) * (steepness / flow.length) * (1 - bend * bend)
    return slope + wave * grid.unit(flow) * cos(2 * np.pi * x)


@_of_vorticity
def patches(flow: Flow, seed: int = 0, *, places: Sequence[Patch] | None = None, count: int = 12) -> Floats:
    """Round patches of even vorticity; unless given, `count` of them in random places, of radius L/32 to L/16 and
    vorticity of about 10 in turning signs."""
    chosen = _random_patches(flow, seed, int(count)) if places is None else places
    field = np.zeros((flow.n, flow.n))
    for at_x, at_y, radius, vorticity in chosen:
        x, y = _around(flow, at_x, at_y)
        field += vorticity * _inside(np.sqrt(x * x + y * y) - radius, flow)
    return field


def _random_patches(flow: Flow, seed: int, count: int) -> list[Patch]:
    draws = philox((np.arange(count), 0, 0, _STREAM + 1), (seed, 0))
    u = [unit(words, np.float64) for words in draws]
    side = flow.length
    return [
        (side * a, side * b, side * (1 + c) / 32, (10.0 if j % 2 else -10.0) * (0.5 + d))
        for j, (a, b, c, d) in enumerate(zip(*(part.tolist() for part in u), strict=True))
    ]


@_of_vorticity
def lamb_dipole(
    flow: Flow, seed: int = 0, *, radius: float | None = None, speed: float = 1.0, direction: float = 0.0
) -> Floats:
    """The dipole of Lamb and Chaplygin in the middle of the box: in unbounded fluid it moves with `speed` along
    `direction` (an angle from x). V. Meleshko and G. van Heijst, J. Fluid Mech. 272, 1994,
    doi 10.1017/S0022112094004428."""
    size = flow.length / 10 if radius is None else radius
    x, y = _around(flow, 0.5 * flow.length, 0.5 * flow.length)
    turn = np.array([direction])
    across = y * cos(turn) - x * sin(turn)
    r = np.sqrt(x * x + y * y)
    kappa = _ZERO / size
    inside = r < size
    r, across = r[inside], across[inside]
    # J1(kappa r) sin(angle) = (J1(kappa r) / r) across
    over = np.where(r > 0, bessel(1, kappa * r) / np.where(r > 0, r, 1.0), 0.5 * kappa)
    field = np.zeros((flow.n, flow.n))
    field[inside] = -2 * speed * kappa / float(bessel(0, np.array(_ZERO))) * over * across
    return field


_ZERO: Final = 3.8317059702075125
"""The first zero of J1."""


def bessel(order: int, x: Floats) -> Floats:
    """J of order 0 or 1 by its series, for |x| < 5: to about 1e-15."""
    quarter = -0.25 * x * x
    term = np.ones_like(x) if order == 0 else 0.5 * x
    total = term
    for j in range(1, 30):
        term = term * quarter / (j * (j + order))
        total = total + term
    return total


@_of_vorticity
def ellipse(
    flow: Flow, seed: int = 0, *, a: float | None = None, b: float | None = None, vorticity: float = 1.0
) -> Floats:
    """Kirchhoff's elliptical patch, half axes a along x and b along y: in unbounded fluid it turns without a change of
    shape, at the rate vorticity a b / (a + b)^2 (G. Kirchhoff, Vorlesungen ueber mathematische Physik, 1876)."""
    long, short = flow.length / 8 if a is None else a, flow.length / 16 if b is None else b
    x, y = _around(flow, 0.5 * flow.length, 0.5 * flow.length)
    level = np.sqrt((x / long) * (x / long) + (y / short) * (y / short))
    # The distance from the edge, to first order: (level - 1) over the slope of the level there.
    slope = np.sqrt((x / long**2) * (x / long**2) + (y / short**2) * (y / short**2))
    away = (level - 1) * level / np.where(slope > 0, slope, 1.0) - np.where(slope > 0, 0.0, short)
    return vorticity * _inside(away, flow)


@_of_vorticity
def lamb_oseen(flow: Flow, seed: int = 0, *, circulation: float = 1.0, core: float | None = None) -> Floats:
    """One round vortex, w = G / (pi c^2) exp(-r^2 / c^2): viscosity widens its core, c^2 = c0^2 + 4 nu t."""
    width = flow.length / 16 if core is None else core
    x, y = _around(flow, 0.5 * flow.length, 0.5 * flow.length)
    return circulation / (np.pi * width * width) * exp(-(x * x + y * y) / (width * width))


INITIAL: Final[Mapping[str, Callable[..., Floats]]] = {
    "random": random,
    "taylor-green": taylor_green,
    "shear-layer": shear_layer,
    "patches": patches,
    "lamb-dipole": lamb_dipole,
    "ellipse": ellipse,
    "lamb-oseen": lamb_oseen,
}


def ensemble(
    flow: Flow, name: str, seeds: int | Sequence[int], *, progress: Callable[[int], None] | None = None,
    device: Device | None = None, **options: Any,
) -> Floats:  # fmt: skip
    """States (members, n, n/2 + 1, 2) of an initial condition by name, one for each seed, in the flow's type. A single
    seed may stand by itself. `progress` is told of members. A `device` transforms large fields, with the same bits."""
    if name not in INITIAL:
        raise InputError(
            f"there is no initial condition {name!r}.",
            f"{suggestion(str(name), INITIAL)}use one of {', '.join(INITIAL)}, or a file.",
        )
    seeds = seed_list(seeds)
    known = [
        parameter.name
        for parameter in signature(INITIAL[name]).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for option in options:
        if option not in known:
            raise InputError(
                f"the initial condition {name!r} does not fit these options: it has no {option!r}.",
                f"use some of {', '.join(option for option in known if option != 'places')}.",
            )
    try:
        with np.errstate(all="ignore"):  # what comes of odd numbers is looked at below
            states = np.empty((len(seeds), flow.n, flow.modes, 2), flow.numpy_dtype)
            for member, seed in enumerate(seeds):
                states[member] = _start(flow, name, seed, device, options)
                grid.clear_aliased(states[member])
                states[member, 0, 0] = 0
                if progress is not None:
                    progress(1)
    except TypeError as error:
        raise InputError(
            f"the initial condition {name!r} does not fit these options: {error}.",
            f"{name} takes {', '.join(option for option in known if option != 'places')}, numbers all of them.",
        ) from error
    except (ArithmeticError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _no_field(name, options) from error
    if not np.isfinite(states).all():
        raise _no_field(name, options)
    return states


def _start(flow: Flow, name: str, seed: int, device: Device | None, options: Mapping[str, Any]) -> Floats:
    """One member, in float64."""
    field: Callable[..., Floats] | None = getattr(INITIAL[name], "__wrapped__", None)
    if field is None:
        return INITIAL[name](flow, seed, **options)
    return grid.to_modes(field(flow, seed, **options), device)


def seed_list(seeds: Any) -> list[int]:
    """Seeds as plain whole numbers, of several or of one."""
    several: list[Any] = np.asarray(seeds, object).reshape(-1).tolist()
    for seed in several:
        if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 1 << 32:
            raise InputError(f"a seed is {seed!r}.", "use whole numbers from 0 to 2^32 - 1.")
    return [int(seed) for seed in several]


def _no_field(name: str, options: Mapping[str, Any]) -> InputError:
    told = ", ".join(f"{option} = {value}" for option, value in options.items()) or "its usual numbers"
    return InputError(f"there is no initial condition {name!r} with {told}.", "use numbers nearer to the usual ones.")


def from_field(flow: Flow, field: npt.ArrayLike) -> Floats:
    """States from vorticity on the flow's points, (n, n) or (members, n, n)."""
    values = np.asarray(field)
    if values.dtype.kind not in "fiub":
        raise InputError(f"the field holds {values.dtype}, and no numbers.", "save it as float32 or float64.")
    if values.ndim not in (2, 3) or values.shape[-2:] != (flow.n, flow.n) or not values.size:
        n = values.shape[-1] if values.ndim in (2, 3) and values.shape[-1] == values.shape[-2] else 0
        raise InputError(
            f"the field has shape {values.shape}, the flow {flow.n} x {flow.n} points.",
            "pass fields (n, n) or (members, n, n)" + (f", or use n = {n}." if n else "."),
        )
    if not np.isfinite(values).all():
        raise InputError("the field holds values that are not finite.", "remove NaN and infinities.")
    states = grid.to_modes(values).astype(flow.numpy_dtype)
    return states if states.ndim == 4 else states[None]


def _points(flow: Flow) -> tuple[Floats, Floats]:
    """x and y of every point, which start at 0."""
    line = np.arange(flow.n) * flow.dx
    return np.broadcast_to(line[None, :], (flow.n, flow.n)), np.broadcast_to(line[:, None], (flow.n, flow.n))


def _around(flow: Flow, at_x: float, at_y: float) -> tuple[Floats, Floats]:
    """The nearest periodic distance of every point from a place, along x and along y."""
    x, y = _points(flow)
    side = flow.length
    return _nearest(x - at_x, side), _nearest(y - at_y, side)


def _nearest(distance: Floats, side: float) -> Floats:
    return distance - side * np.floor(distance / side + 0.5)


def _inside(away: Floats, flow: Flow) -> Floats:
    """1 inside, 0 outside, smooth over the edge. Most points are so far from it that tanh is 1 or -1 there."""
    across = away / (0.5 * _EDGE * flow.dx)
    bend = np.sign(across)
    edge = ~(np.abs(across) > _FLAT)
    bend[edge] = tanh(across[edge])
    return 0.5 * (1 - bend)
