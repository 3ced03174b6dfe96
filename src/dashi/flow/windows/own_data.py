"""Windows from one's own data: an xarray Dataset of vorticity, or of velocities, on a doubly periodic square box.

Nothing here imports xarray: whoever passes a Dataset has it, and `_foreign.py` opens files. What cannot be right is
refused: other dimensions, uneven points or times, a box that is no square, a column that is there twice, units that
do not belong together, a velocity that is not free of divergence, gaps. See docs/own-data.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.errors import DashiError, InputError, ShapeError
from dashi.flow._resample import curl_and_divergence, resample
from dashi.flow._units import base_of, require_units
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.initial import INITIAL
from dashi.flow.windows._foreign import load_variables, open_foreign
from dashi.flow.windows._periodic import require_periodic
from dashi.flow.windows.windows import UNKNOWN, Windows, cut, frames_in

EVEN: Final = 1e-3
"""Distances between points, and between times, may differ by so much of their mean: coordinates are often float32."""
_DIVERGENCE: Final = 0.1
"""The largest divergence, over vorticity (root mean squares), that is taken for rounding and interpolation."""
_MEAN: Final = 1e-2
_NO_VORTICITY: Final = (
    "use all of a periodic box, in a frame that does not turn: vorticity has no mean there, and without its mean a "
    "part of a box is no more periodic than with it."
)
_NO_VELOCITY: Final = (
    "look from a frame that moves along: take the mean off, and shift every frame back by mean times time (by modes: "
    "exp(i k mean t)); the flow is carried by its mean, so taking that off alone would be another flow."
)
_DIMENSIONS: Final = {"time": "time", "y": "y", "x": "x", "member": "member"}
_NAMES: Final = (("velocity_x", "velocity_y"), ("u", "v"), ("ux", "uy"))


def windows_from_dataset(
    data: Any, *, flow: Flow | None = None, steps: int | None = None, n: int | None = None,
    vorticity: str = "vorticity", velocity: tuple[str, str] | None = None,
    dims: Mapping[str, str] | None = None, seeds: Sequence[int] | None = None, windows: int | None = None,
    first: int = 0, periodic: bool = False,
) -> Windows:  # fmt: skip
    """Windows of a Dataset with the dimensions time, y and x, and perhaps member; or of the file or Zarr store that
    holds one, or of a DataArray of vorticity.

    `flow` says what the equations are (viscosity, forcing, the solver's dt); n and length come from the data. A Dataset
    that dashi wrote brings its own. `steps` (of flow.dt) is the length of a window, all of the record unless told, and
    `first` the step where the first one may start, counted from the first frame of data that are not dashi's; `n`
    resamples to another grid; `dims` renames, such as {"time": "t", "member": "run"}; `seeds` name the members, if
    they have any. What jumps across the edges of the box is refused, or warned of, unless `periodic` says that the box
    is that for certain. Raises InputError.
    """
    named = {**_DIMENSIONS, **(dims or {})}
    options: dict[str, Any] = {
        "flow": flow, "steps": steps, "n": n, "vorticity": vorticity, "velocity": velocity, "seeds": seeds,
        "windows": windows, "first": first, "periodic": periodic,
    }  # fmt: skip
    if isinstance(data, str | Path):
        path = Path(data)
        with open_foreign(path) as opened:
            return _windows(load_record(opened, path, dims, vorticity, velocity), named, **options)
    try:
        return _windows(_as_dataset(data, vorticity), named, **options)
    except DashiError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise InputError(
            f"the data cannot be understood: {type(error).__name__}: {error}.",
            "pass numbers for coordinates and values; docs/own-data.md says what is asked of the data.",
        ) from error


@dataclass(frozen=True, eq=False)
class VorticityRecord:
    """Vorticity (members, frames, n, n) in float64 at even times, in a periodic square box."""

    values: Floats
    times: Floats
    length: float
    """The side of the box."""


def vorticity_record(
    data: Any, *, vorticity: str = "vorticity", velocity: tuple[str, str] | None = None,
    dims: Mapping[str, str] | None = None, periodic: bool = False,
) -> VorticityRecord:  # fmt: skip
    """The vorticity of a Dataset in memory, under the rules of `windows_from_dataset`, whatever flow it is of."""
    named = {**_DIMENSIONS, **(dims or {})}
    length = _box({axis: _line(data, named[axis]) for axis in ("x", "y")})
    time = _line(data, named["time"])
    values = _record(data, named, vorticity, velocity, _bases(data, named), length, periodic)
    return VorticityRecord(values, time, length)


def load_record(
    data: Any, source: Path, dims: Mapping[str, str] | None = None, vorticity: str = "vorticity",
    velocity: tuple[str, str] | None = None,
) -> Any:  # fmt: skip
    """What `windows_from_dataset` reads of a Dataset that is open, in memory, and nothing else of it."""
    coordinates = {**_DIMENSIONS, **(dims or {})}.values()
    return load_variables(data, _variables(data, vorticity, velocity), [*coordinates], source)


def _as_dataset(data: Any, vorticity: str) -> Any:
    """What was passed, as a Dataset; a DataArray is vorticity, unless its name says that it is a velocity."""
    if hasattr(data, "data_vars") and hasattr(data, "sizes"):
        return data
    if hasattr(data, "to_dataset") and hasattr(data, "dims"):
        if data.name in {name for pair in _NAMES for name in pair}:
            raise InputError(
                f"a DataArray of {data.name!r} alone is half of a velocity.",
                "pass a Dataset with both velocities, or one of vorticity.",
            )
        return data.to_dataset(name=vorticity)
    raise InputError(
        f"the data are a {type(data).__name__}, which says nothing of its box and times.",
        "pass xarray.Dataset({'vorticity': (('time', 'y', 'x'), values)}, {'time': ..., 'y': ..., 'x': ...}), or the "
        "path of a file that holds one.",
    )


def _variables(data: Any, vorticity: str, velocity: tuple[str, str] | None) -> tuple[str, ...]:
    """The name of vorticity, or those of a pair of velocities, in a Dataset. Raises InputError where there are none."""
    if vorticity in data and velocity is None:
        return (vorticity,)
    pair = velocity or next((pair for pair in _NAMES if all(name in data for name in pair)), None)
    if pair is None or not all(name in data for name in pair):
        listed = ", ".join(map(str, data.data_vars)) or "nothing"
        raise InputError(
            f"the data hold {listed}: neither {vorticity!r} nor a pair of velocities.",
            "name them: `vorticity='w'`, or `velocity=('u', 'v')` along x and along y.",
        )
    return pair


def _windows(
    data: Any, named: Mapping[str, str], *, flow: Flow | None, steps: int | None, n: int | None, vorticity: str,
    velocity: tuple[str, str] | None, seeds: Sequence[int] | None, windows: int | None, first: int, periodic: bool,
) -> Windows:  # fmt: skip
    sides = {axis: _line(data, named[axis]) for axis in ("x", "y")}
    time = _line(data, named["time"])
    length = _box(sides)
    units = _bases(data, named)
    record = _record(data, named, vorticity, velocity, units, length, periodic)
    known = _flow(data, flow, record.shape[-1], length)
    interval = _interval(known, time)
    if n is not None:
        record, known = resample(record, n), replace(known, n=n)
    members = record.shape[0]
    member_seeds = _seeds(data, named, members, seeds)
    begins = _first(data, time, known)
    skipped = max(0, -(-(first - begins) // interval))
    if record.shape[1] - skipped < 2:
        raise InputError(
            f"the data end at step {begins + (record.shape[1] - 1) * interval}: no two frames are left from step "
            f"{first} on, and a window takes two.",
            "start earlier.",
        )
    record, begins = record[:, skipped:], begins + skipped * interval
    frames = record.shape[1] if steps is None else frames_in(steps, interval)
    if windows is not None:
        record = record[:, : windows * frames]
    cut_windows = cut(known, interval, record.astype(known.numpy_dtype), member_seeds, begins, frames)
    if windows is not None and len(cut_windows) < windows * members:
        raise InputError(
            f"the data hold {len(cut_windows) // members} windows of {frames} frames, not {windows}.",
            "ask for fewer or shorter windows.",
        )
    return cut_windows


def grid_of(data: Any, dims: Mapping[str, str] | None = None) -> tuple[int, float]:
    """Points along a side, and the side of the box, of a Dataset."""
    named = {"y": "y", "x": "x", **(dims or {})}
    sides = {axis: _line(data, named[axis]) for axis in ("x", "y")}
    return len(sides["x"]), _box(sides)


def _line(data: Any, name: str) -> Floats:
    """An even coordinate, in float64; times of a calendar become seconds."""
    if name not in data.sizes:
        raise ShapeError(
            f"the data have the dimensions {', '.join(map(str, data.sizes))}, and no {name!r}.",
            "rename them to time, y and x, or say which are which: `dims={'time': 't'}`.",
        )
    if name not in data.coords:
        raise InputError(f"the dimension {name!r} has no coordinate.", f"assign one: data.assign_coords({name}=...).")
    values = np.asarray(data.coords[name].values)
    if values.dtype.kind in "mM":
        values = (values - values[0]) / np.timedelta64(1, "s")
    line = values.astype(np.float64)
    if len(line) < 2:
        raise ShapeError(f"the dimension {name!r} has {len(line)} point(s).", "pass data with two or more along it.")
    between = np.diff(line)
    if not np.isfinite(line).all() or between.mean() <= 0:
        raise InputError(f"the coordinate {name!r} does not rise.", f"sort by it: data.sortby({name!r}).")
    if np.abs(between - between.mean()).max() > EVEN * between.mean():
        raise InputError(
            f"the coordinate {name!r} is uneven: its distances go from {between.min():g} to {between.max():g}.",
            f"interpolate to even ones: data.interp({name}=...).",
        )
    return line


def _box(sides: Mapping[str, Floats]) -> float:
    """The side of the box: as many distances as points, since the last point is followed by the first."""
    lengths = {axis: float(len(line) * np.diff(line).mean()) for axis, line in sides.items()}
    if len(sides["x"]) != len(sides["y"]) or abs(lengths["x"] - lengths["y"]) > EVEN * lengths["x"]:
        raise ShapeError(
            f"the box has {len(sides['x'])} x {len(sides['y'])} points and sides {lengths['x']:g} and "
            f"{lengths['y']:g}; it must be a square.",
            "use data of a periodic square box, with as many points along x as along y (`scipy.signal.resample` keeps "
            "a side periodic); a square that is cut out of a larger box is not periodic.",
        )
    return lengths["x"]


def _bases(data: Any, named: Mapping[str, str]) -> tuple[str, str]:
    """The units of length and of time."""
    bases = {axis: base_of(axis, _units(data, named[axis])) for axis in ("x", "y")}
    if bases["x"] != bases["y"]:
        raise InputError(f"x is in {bases['x']!r} and y in {bases['y']!r}.", "use the same unit for both.")
    calendar = np.asarray(data.coords[named["time"]].values).dtype.kind in "mM"
    return bases["x"], "s" if calendar else base_of("time", _units(data, named["time"]))


def _units(data: Any, name: str) -> str | None:
    text = data[name].attrs.get("units")
    # Times since a date: the unit is what comes first.
    return None if text is None else str(text).split(" since ")[0]


def _record(
    data: Any, named: Mapping[str, str], vorticity: str, velocity: tuple[str, str] | None, units: tuple[str, str],
    length: float, periodic: bool,
) -> Floats:  # fmt: skip
    """Vorticity (members, frames, n, n)."""
    names = _variables(data, vorticity, velocity)
    if len(names) == 1:
        values = _values(data, vorticity, named)
        require_units(vorticity, _units(data, vorticity), *units, (0, -1))
        _require_closed(vorticity, values, periodic=periodic)
        _require_no_mean(vorticity, values, float(np.sqrt(np.mean(values * values))), _NO_VORTICITY)
        return values
    pair = (names[0], names[1])
    u, v = (_values(data, name, named) for name in pair)
    for name, values in zip(pair, (u, v), strict=True):
        require_units(name, _units(data, name), *units, (1, -1))
        _require_closed(name, values, periodic=periodic)
        _require_no_mean(name, values, float(np.sqrt(np.mean(u * u + v * v))), _NO_VELOCITY)
    return _curl(pair, u, v, length)


def _values(data: Any, name: str, named: Mapping[str, str]) -> Floats:
    """A variable as (members, frames, n, n), finite."""
    dims = [named[axis] for axis in ("time", "y", "x")]
    variable = data[name]
    if named["member"] in variable.dims:
        dims = [named["member"], *dims]
    if set(variable.dims) != set(dims):
        raise ShapeError(
            f"{name!r} has the dimensions {', '.join(map(str, variable.dims))}; {', '.join(dims)} are read.",
            "choose one of the others with data.isel(...), or rename them.",
        )
    values = np.asarray(variable.transpose(*dims).values)
    if values.dtype.kind not in "fiu":
        raise InputError(f"{name!r} holds {values.dtype}.", "convert it to float32 or float64.")
    if not np.isfinite(values).all():
        many = int((~np.isfinite(values)).sum())
        first = np.unravel_index(int(np.argmin(np.isfinite(values))), values.shape)
        place = ", ".join(f"{axis} {at}" for axis, at in zip(dims, first, strict=True))
        raise InputError(
            f"{name!r} holds {many} values of {values.size} that are not finite, the first at index {place}.",
            "fill gaps, or choose times and regions without any.",
        )
    floats = values.astype(np.float64)
    return floats if floats.ndim == 4 else floats[None]


def _require_closed(name: str, values: Floats, *, periodic: bool) -> None:
    """Refuses a box that closes with its first column or row again, which is one too many, and one that does not
    close."""
    for axis, word in ((-1, "x"), (-2, "y")):
        if np.array_equal(values.take(0, axis), values.take(-1, axis)) and np.ptp(values, axis=axis).any():
            raise InputError(
                f"the first and the last values of {name!r} along {word} are the same: the point is there twice.",
                f"leave the last one away: data.isel({word}=slice(None, -1)).",
            )
    if not periodic:
        require_periodic(name, values)


def _require_no_mean(name: str, values: Floats, size: float, fix: str) -> None:
    mean = float(np.abs(values.mean(axis=(-2, -1))).max())
    if mean > _MEAN * size:
        raise InputError(
            f"{name!r} has a mean of up to {mean:.3g} over the box; in a periodic box at rest it has none.", fix
        )


def _curl(pair: tuple[str, str], u: Floats, v: Floats, length: float) -> Floats:
    curl, divergence = curl_and_divergence(u, v, length)
    turning, spreading = (float(np.sqrt(np.mean(one * one))) for one in (curl, divergence))
    if spreading > _DIVERGENCE * turning:
        raise InputError(
            f"the velocity ({pair[0]}, {pair[1]}) is not free of divergence: {spreading:.3g} against a vorticity of "
            f"{turning:.3g}.",
            "check which is along x and which along y, and that the box is periodic; or pass vorticity.",
        )
    return curl


def _flow(data: Any, flow: Flow | None, n: int, length: float) -> Flow:
    """The flow of the data on their grid."""
    if flow is None:
        parameters = {k.removeprefix("flow_"): v for k, v in data.attrs.items() if str(k).startswith("flow_")}
        if not parameters:
            raise InputError(
                "the data do not say which flow they are of.",
                "say which, by `nu=` and `dt=`, and `drag=` and `forcing=` if there are any: "
                f"flow=Flow(n={n}, length={length:.6g}, nu=..., dt=...).",
            )
        flow = Flow.restore({k: v.item() if hasattr(v, "item") else v for k, v in parameters.items()})
    if flow.n != n or abs(flow.length - length) > EVEN * length:
        raise InputError(
            f"the data have {n} x {n} points in a box of {length:.6g}, the flow {flow.n} x {flow.n} in "
            f"{flow.length:.6g}.",
            f"use Flow(n={n}, length={length:.6g}, ...); the option n resamples the data to another grid.",
        )
    return flow


def _interval(flow: Flow, time: Floats) -> int:
    between = float(np.diff(time).mean())
    interval = round(between / flow.dt)
    if interval < 1 or abs(between / flow.dt - interval) > EVEN * max(1, interval):
        count = max(1, interval)
        raise InputError(
            f"frames lie {between:g} apart, which is no whole number of steps of dt = {flow.dt:g}.",
            f"use a flow with dt = {between / count:g}.",
        )
    return interval


def _seeds(data: Any, named: Mapping[str, str], members: int, seeds: Sequence[int] | None) -> tuple[int, ...]:
    """Seeds of the members: those passed, those that dashi wrote, or unknown."""
    if seeds is not None:
        if len(seeds) != members:
            raise ShapeError(f"there are {members} members and {len(seeds)} seeds.", "name one seed for each member.")
        return tuple(int(seed) for seed in seeds)
    ours = "flow_n" in data.attrs and data.attrs.get("initial") in INITIAL
    if ours and named["member"] in data.coords:
        return tuple(int(seed) for seed in np.atleast_1d(data.coords[named["member"]].values))
    return (UNKNOWN,) * members


def _first(data: Any, time: Floats, flow: Flow) -> int:
    """The step of the first frame; counted from the first where the data are not dashi's."""
    return round(float(time[0]) / flow.dt) if "flow_n" in data.attrs else 0
