"""The data of `dashi flow fit` and `dashi flow evaluate`: simulated on the device, or read from runs and files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dashi.cli.flow_setup import faster_choice
from dashi.cli.output import remark
from dashi.cli.progress import phase, progress
from dashi.errors import FileError, InputError, suggestion
from dashi.flow.equations import Flow
from dashi.flow.fields import read_attributes
from dashi.flow.grid import Floats
from dashi.flow.windows import UNKNOWN, Windows
from dashi.flow.windows.foreign import NETCDF, open_foreign
from dashi.flow.windows.own_data import grid_of, load_record, windows_from_dataset
from dashi.flow.windows.recorded import windows_from_run
from dashi.flow.windows.simulated import simulated_steps, windows_of
from dashi.runtime.device import Device

_AXES = ("time", "y", "x", "member")


@dataclass(frozen=True)
class Wanted:
    """Which windows are wanted."""

    flow: Flow
    steps: int
    interval: int
    windows: int
    spin_up: int
    initial: str
    options: Mapping[str, Any]
    states: Floats | None = None
    """One for each seed, instead of the initial condition."""


def simulated(title: str, wanted: Wanted, seeds: Sequence[int], device: Device, *, fast: bool) -> Windows:
    """Windows from a simulation, with progress."""
    flow = wanted.flow
    hint = faster_choice(device.info, fast=fast)
    if hint:
        remark(hint)
    total = simulated_steps(flow, seeds, wanted.steps, wanted.interval, wanted.windows, wanted.spin_up)
    remark(f"{title}: {total} steps of {flow.n} x {flow.n} for {len(seeds)} seed(s), on {device.info.name}")
    with progress(title, total, "steps") as advance:
        return windows_of(
            flow, seeds, device=device, steps=wanted.steps, interval=wanted.interval, windows=wanted.windows,
            spin_up=wanted.spin_up, initial=wanted.initial, options=wanted.options, host_fft=fast, progress=advance,
            states=wanted.states,
        )  # fmt: skip


@dataclass(frozen=True)
class Naming:
    """How a record of one's own names what it holds."""

    variables: tuple[str, ...] = ()
    """None: as usual; one: vorticity; two: the velocities along x and along y."""
    dims: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, variables: Sequence[str], dims: Sequence[str], source: Path | None) -> Naming:
        """From --variable and --dims, which only records of one's own have a use for."""
        if (variables or dims) and (source is None or not is_own(source)):
            raise InputError(
                f"{'--variable' if variables else '--dims'} names what a NetCDF file or a Zarr store holds.",
                "give --from with such a file, or leave it away.",
            )
        if len(variables) > 2:
            raise InputError(
                f"--variable is given {len(variables)} times.", "give it once for vorticity, twice for velocities."
            )
        return cls(tuple(variables), dict(map(_renamed, dims)))

    @property
    def words(self) -> dict[str, Any]:
        """What `windows_from_dataset` is told."""
        if len(self.variables) == 2:
            return {"velocity": self.variables, "dims": self.dims}
        return {"dims": self.dims, **({"vorticity": self.variables[0]} if self.variables else {})}


def _renamed(text: str) -> tuple[str, str]:
    axis, _, name = text.partition("=")
    if axis not in _AXES or not name:
        raise InputError(
            f"--dims {text} is not AXIS=NAME.",
            f"{suggestion(axis, _AXES)}write for instance --dims time=t; the axes are {', '.join(_AXES)}.",
        )
    return axis, name


def read(
    source: Path, flow: Flow | None, *, steps: int | None, first: int, windows: int | None, naming: Naming | None = None
) -> Windows:
    """Windows from the folder of a run, or from a file that xarray opens; the latter are of `flow`, on their grid."""
    if not is_own(source):
        if not source.is_dir():
            raise FileError(
                f"{source} is a file that no windows are read from: an array alone has neither times nor places."
                if source.exists()
                else f"there is no {source}.",
                "give the folder of a run of `dashi flow simulate --out`, a NetCDF file "
                f"({', '.join(NETCDF)}) or a Zarr store (.zarr); xarray.Dataset(...).to_netcdf makes one of arrays.",
            )
        with phase(f"reading {source}"):
            return windows_from_run(source, steps=steps, first=first, windows=windows)
    naming = naming or Naming()
    with phase(f"reading {source}"), open_foreign(source) as data:
        if naming.variables:
            _require_variables(data, naming, source)
        record = load_record(data, source, **naming.words)
        n, length = grid_of(record, naming.dims)
        known = None if flow is None else replace(flow, n=n, length=length)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cut = windows_from_dataset(record, flow=known, steps=steps, first=first, windows=windows, **naming.words)
    for warning in caught:
        remark(f"{source}: {warning.message}")
    return cut


def _require_variables(data: Any, naming: Naming, source: Path) -> None:
    names = list(map(str, data.data_vars))
    for name in naming.variables:
        if name not in names:
            raise InputError(
                f"{source} holds no variable {name!r}.", f"{suggestion(name, names)}it holds {', '.join(names)}."
            )


def is_own(source: Path) -> bool:
    """Whether it is opened by xarray: a NetCDF file, or a Zarr store that no run of ours wrote."""
    if source.suffix != ".zarr" or not source.is_dir():
        return source.suffix in NETCDF
    try:
        return "flow_n" not in read_attributes(source)
    except FileError:
        return True  # of an older version of Zarr, perhaps


def split(made: Windows, first: int | None, count: int, validation: int) -> tuple[Windows, Windows | None]:
    """Training and validation windows of a record: by seed where there are several, else in time. With `first` the
    seeds from there on are for training, `count` of them, and those that follow for validation; otherwise the last
    ones are for validation and all others for training."""
    seeds = list(dict.fromkeys(made.seeds))
    if first is not None and UNKNOWN not in seeds:
        return _by_seed(made, seeds, list(range(first, first + count)), validation)
    if len(seeds) > validation > 0 and UNKNOWN not in seeds:
        return _by_seed(made, seeds, seeds[:-validation], validation)
    kept = len(made) - (min(validation, len(made) - 1) if validation else 0)
    order = np.lexsort((range(len(made)), made.starts))
    if kept == len(made):
        return made, None
    return made.take(np.sort(order[:kept])), made.take(np.sort(order[kept:]))


def _by_seed(
    made: Windows, seeds: Sequence[int], train: Sequence[int], validation: int
) -> tuple[Windows, Windows | None]:
    missing = [seed for seed in train if seed not in seeds]
    if missing:
        raise InputError(
            f"the record has no seed {missing[0]}; it has {', '.join(map(str, seeds))}.",
            "choose others with --train-seed and --seeds, or leave both away.",
        )
    left = [seed for seed in seeds if seed not in train][:validation]
    places = np.array(made.seeds)
    chosen = np.flatnonzero(np.isin(places, left))
    return made.take(np.flatnonzero(np.isin(places, train))), made.take(chosen) if len(chosen) else None
