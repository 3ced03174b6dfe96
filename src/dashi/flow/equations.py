"""The equation that is solved, its parameters, and what they may be.

Two-dimensional incompressible flow in a doubly periodic box of side L, as vorticity w:

    w_t + u w_x + v w_y = nu lap w - nu_p (-lap)^p w + div(nu_t grad w) - mu w - beta v + f
    u = psi_y,  v = -psi_x,  lap psi = -w

Axis 0 of a field is y, axis 1 is x. nu is the viscosity, nu_p a hyperviscosity of order p (2 or 4:
nu_p k^4 or nu_p k^8), mu a linear drag, beta the slope of the planet's vorticity
along y, nu_t = (Cs dx)^2 |S| Smagorinsky's eddy
viscosity (J. Smagorinsky, Mon. Weather Rev. 91, 1963, doi 10.1175/1520-0493(1963)091<0099:GCEWTP>2.3.CO;2) with
|S|^2 = 2 S_ij S_ij and dx = L / n, and f the curl of a force. Modes with 3 |k_x| < n and 3 |k_y| < n (in units of
2 pi / L) are kept, so products of two fields are free of aliasing (S. Orszag, J. Atmos. Sci. 28, 1971,
doi 10.1175/1520-0469(1971)028<1074:OTEOAI>2.0.CO;2). The eddy flux is not a product of two fields: what aliasing its
square root leaves stays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Literal, cast, get_args

import numpy as np

from dashi.errors import InputError, suggestion
from dashi.kernels.fft._roots import is_length

Scheme = Literal["rk4", "heun", "etdrk4"]
SCHEMES: Final[tuple[Scheme, ...]] = get_args(Scheme)
SMALLEST: Final = 8
LARGEST: Final = 4096
HYPERVISCOSITY_ORDERS: Final = (2, 4)
OPTIONAL: Final = (("hyperviscosity", "hyperviscosity_order"), ("beta",))
"""Parameters, by what they belong to, that flows without it do not list: files from before they were there describe the
same flows."""
LARGEST_NUMBER: Final = 1e100
"""What a flow is described by lies below it, so that products of a few such numbers are finite."""
COURANT: Final[Mapping[Scheme, float]] = {"rk4": 2.0, "etdrk4": 2.0, "heun": 1.0}
"""The largest Courant number dt max(|u| + |v|) / dx that a run goes on with. RK4 is stable up to 2.83 on the imaginary
axis, where the largest kept wave numbers, n/3 along each axis, put 2 pi / 3 times the Courant number: in an even stream
up to 1.35. The peaks of a turbulent flow are small and pass, and viscosity helps, so a run is let go on up to 2; Heun,
which has no such interval and grows slowly, up to half of that. A flow that blows up is seen by its energy."""


@dataclass(frozen=True)
class Kolmogorov:
    """The steady force amplitude sin(wavenumber y) along x, the wave number in units of 2 pi / L."""

    wavenumber: int = 4
    amplitude: float = 1.0

    def __post_init__(self) -> None:
        _plain(self)


@dataclass(frozen=True)
class Stochastic:
    """Random kicks of all modes with low <= |k| <= high (in units of 2 pi / L), white in time.

    After each step every such mode gets sqrt(dt) A(k) exp(i a), with an angle a drawn for that step and mode alone
    (Philox; see the kernel `random_kick`). A(k) puts the same energy into every mode, `rate` per unit of time in all,
    on average. Member j of an ensemble is kicked as a single run with seed + j is.
    """

    low: float = 3.0
    high: float = 5.0
    rate: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        _plain(self)


Forcing = Kolmogorov | Stochastic
FORCINGS: Final[Mapping[str, type[Kolmogorov] | type[Stochastic]]] = {
    "kolmogorov": Kolmogorov, "stochastic": Stochastic,
}  # fmt: skip
"""All forcings by the names that the command line, files and `Flow(forcing=...)` know."""
UNFORCED: Final = "none"


def forcing_named(name: str, **numbers: Any) -> Forcing | None:
    """The forcing of a name with these numbers, the others at their defaults; None for `none`. Raises InputError."""
    if name != UNFORCED and name not in FORCINGS:
        raise InputError(
            f"there is no forcing {name!r}.",
            f"{suggestion(name, FORCINGS)}use none or one of {', '.join(FORCINGS)}.",
        )
    known = [] if name == UNFORCED else [one.name for one in fields(FORCINGS[name])]
    for odd in [number for number in numbers if number not in known]:
        raise InputError(
            f"the forcing {name} has no {odd!r}.",
            f"{suggestion(odd, known)}it takes {' and '.join(known) if known else 'nothing'}.",
        )
    return None if name == UNFORCED else FORCINGS[name](**numbers)


@dataclass(frozen=True)
class Flow:
    """A flow to be solved: n x n points, and all that decides a step.

    Good values, in a box of 2 pi with u_rms about 1: nu = 2e-3 at n = 128, dt = 0.01 (a Courant number of about 0.5);
    halve dt and quarter nu where n doubles. `scheme` is rk4 (viscosity and drag by an integrating factor), heun (the
    same, second order) or etdrk4 (exponential time differencing). `smagorinsky` is Cs, 0.17 where it is used.
    `hyperviscosity` is nu_p, and `hyperviscosity_order` p: damping nu_p k^(2 p), for which nu_p = 10 / k_max^(2 p) with
    k_max the largest kept wave number is usual in the same box. `beta` makes a beta plane: Rossby waves.
    `forcing` may be given by its name (`forcing_named`), `dtype` as NumPy has it.
    """

    n: int
    nu: float = 2e-3
    dt: float = 0.01
    length: float = 2 * math.pi
    drag: float = 0.0
    smagorinsky: float = 0.0
    forcing: Forcing | None = None
    scheme: Scheme = "rk4"
    dtype: str = "float32"
    hyperviscosity: float = 0.0
    hyperviscosity_order: int = 2
    beta: float = 0.0

    def __post_init__(self) -> None:
        _plain(self)
        if isinstance(self.forcing, str):
            object.__setattr__(self, "forcing", forcing_named(self.forcing))
        object.__setattr__(self, "dtype", _dtype_name(self.dtype))
        _check_size(self.n)
        for name in ("nu", "drag", "smagorinsky", "hyperviscosity"):
            _check_number(name, getattr(self, name), 0.0)
        if self.hyperviscosity_order not in HYPERVISCOSITY_ORDERS:
            raise InputError(
                f"there is no hyperviscosity of order {repr(self.hyperviscosity_order)[:40]}.",
                "use order 2, which damps by k^4, or 4, which damps by k^8.",
            )
        _check_number("beta", self.beta, -math.inf)
        for name in ("dt", "length"):
            _check_number(name, getattr(self, name), 0.0)
            if getattr(self, name) <= 0:
                raise InputError(f"{name} is {getattr(self, name)}.", f"pass a {name} above 0.")
        if self.scheme not in SCHEMES:
            raise InputError(f"there is no time scheme {self.scheme!r}.", f"use one of {', '.join(SCHEMES)}.")
        _check_forcing(self)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type."""
        return np.dtype(self.dtype)

    @property
    def modes(self) -> int:
        """Columns of the half spectrum."""
        return self.n // 2 + 1

    @property
    def cut(self) -> int:
        """The largest wave number that is kept along an axis, in units of 2 pi / L."""
        return (self.n - 1) // 3

    @property
    def dx(self) -> float:
        """The distance between points."""
        return self.length / self.n

    def damping(self, square: Any) -> Any:
        """How fast modes of these k^2 decay: nu k^2 + nu_p k^(2 p) + mu."""
        rate = self.nu * square + self.drag
        if not self.hyperviscosity:
            return rate
        power = square * square
        return rate + self.hyperviscosity * (power if self.hyperviscosity_order == 2 else power * power)

    @property
    def courant_limit(self) -> float:
        """See `COURANT`."""
        return COURANT[self.scheme]

    @property
    def parameters(self) -> dict[str, int | float | str]:
        """Plain numbers and names, for files and certificates."""
        absent = [name for group in OPTIONAL if not getattr(self, group[0]) for name in group]
        plain: dict[str, int | float | str] = {
            k: v for k, v in asdict(self).items() if k != "forcing" and k not in absent
        }
        name = next((k for k, v in FORCINGS.items() if isinstance(self.forcing, v)), UNFORCED)
        return {**plain, "forcing": name, **{f"force_{k}": v for k, v in _numbers(self.forcing).items()}}

    @classmethod
    def restore(cls, parameters: Mapping[str, int | float | str]) -> Flow:
        """The inverse of `parameters`. Raises InputError where one is missing: a default would be another flow."""
        values = dict(parameters)
        name = str(values.pop("forcing", UNFORCED))
        numbers = {k.removeprefix("force_"): values.pop(k) for k in [*values] if k.startswith("force_")}
        absent = [name for group in OPTIONAL if not any(one in values for one in group) for name in group]
        _require_names("a flow", values, cls, but=("forcing", *absent))
        kind = FORCINGS.get(name)
        _require_names(f"the forcing {name}" if kind else "a flow without force", numbers, kind)
        return cls(**cast("dict[str, Any]", values), forcing=forcing_named(name, **numbers))


def _require_names(what: str, values: Mapping[str, Any], kind: Any, but: Collection[str] = ()) -> None:
    """Refuses parameters that are missing, and ones too many."""
    names = {field.name for field in fields(kind)} - set(but) if kind is not None else set[str]()
    odd = sorted(names ^ set(values))
    if odd:
        problem = "is missing" if odd[0] in names else "is none of its parameters"
        raise InputError(
            f"{what} is described by {', '.join(sorted(names)) or 'nothing'}: {odd[0]!r} {problem}.",
            "pass all of Flow.parameters, or write the file again.",
        )


def _plain(described: Kolmogorov | Stochastic | Flow) -> None:
    """Makes plain numbers of NumPy's in a frozen description: files and hashes of it hold plain ones."""
    for field in fields(described):
        value = getattr(described, field.name)
        if isinstance(value, np.number):
            object.__setattr__(described, field.name, value.item())


def _dtype_name(dtype: Any) -> str:
    """float32 or float64, of a name, a NumPy type or its class."""
    try:
        name = np.dtype(dtype).name if dtype is not None else "None"
    except (TypeError, ValueError):
        name = ""
    if name not in ("float32", "float64"):
        raise InputError(f"a flow has no element type {dtype!r}.", "use float32 or float64.")
    return name


def _numbers(forcing: Forcing | None) -> dict[str, int | float]:
    return {} if forcing is None else asdict(forcing)


def _check_size(n: Any) -> None:
    if type(n) is not int or n % 2 or not SMALLEST <= n <= LARGEST or not is_length(n):
        near = [m for m in range(SMALLEST, LARGEST + 1, 2) if is_length(m)]
        wanted = n if isinstance(n, int | float) and abs(n) < LARGEST_NUMBER else 64
        low = max((m for m in near if m <= wanted), default=near[0])
        high = min((m for m in near if m >= wanted), default=near[-1])
        choice = f"{low}" if low == high else f"{low} or {high}"
        raise InputError(
            f"there is no solver for n = {repr(n)[:40]}: it must be whole, even, 2^a 3^b 5^c 7^d, from {SMALLEST} to "
            f"{LARGEST}.",
            f"use n = {choice}.",
        )


def _check_number(name: str, value: Any, least: float) -> None:
    # A whole number may be larger than any float.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not -LARGEST_NUMBER < value < LARGEST_NUMBER or value < least:
        raise InputError(f"{name} is {repr(value)[:40]}.", f"pass a finite number of at least {least:g}.")


def _check_forcing(flow: Flow) -> None:
    forcing = flow.forcing
    if isinstance(forcing, Kolmogorov):
        _check_number("the force's amplitude", forcing.amplitude, -math.inf)
        if type(forcing.wavenumber) is not int or not 1 <= forcing.wavenumber <= flow.cut:
            raise InputError(
                f"the force's wave number is {forcing.wavenumber}.", f"use a whole number from 1 to {flow.cut}."
            )
    elif isinstance(forcing, Stochastic):
        for name in ("rate", "low", "high"):
            _check_number(f"the forcing's {name}", getattr(forcing, name), 0.0)
        if not 0 < forcing.low <= forcing.high <= flow.cut:
            raise InputError(
                f"the forced band is {forcing.low} to {forcing.high}.", f"use 0 < low <= high <= {flow.cut}."
            )
        if type(forcing.seed) is not int or not 0 <= forcing.seed < 1 << 32:
            raise InputError(f"the forcing's seed is {forcing.seed}.", "use a whole number from 0 to 2^32 - 1.")
    elif forcing is not None:
        raise InputError(
            f"the forcing is {forcing!r}, which is none.",
            f"pass None, Kolmogorov(...), Stochastic(...) or a name: {', '.join(FORCINGS)}.",
        )
