"""The data of `dashi flow fit` and `dashi flow evaluate`: simulated on the device, or read from runs and files."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dashi.cli.output import remark
from dashi.cli.progress import progress
from dashi.errors import FileError, InputError, install_extra
from dashi.flow.equations import Flow
from dashi.flow.fields import read_attributes
from dashi.flow.grid import Floats
from dashi.flow.own_data import grid_of, windows_from_dataset
from dashi.flow.recorded import windows_from_run
from dashi.flow.simulated import simulated_steps, windows_of
from dashi.flow.windows import UNKNOWN, Windows
from dashi.io.arrays import LIMIT
from dashi.runtime.device import Device

_FILES = (".nc", ".nc4", ".netcdf", ".h5")


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
    if device.info.type == "reference" and not fast:
        remark("the exact references on a processor are slow; --fast is several times faster")
    total = simulated_steps(flow, seeds, wanted.steps, wanted.interval, wanted.windows, wanted.spin_up)
    remark(f"{title}: {total} steps of {flow.n} x {flow.n} for {len(seeds)} seed(s), on {device.info.name}")
    with progress(title, total, "steps") as advance:
        return windows_of(
            flow, seeds, device=device, steps=wanted.steps, interval=wanted.interval, windows=wanted.windows,
            spin_up=wanted.spin_up, initial=wanted.initial, options=wanted.options, fast=fast, progress=advance,
            states=wanted.states,
        )  # fmt: skip


def read(source: Path, flow: Flow | None, *, steps: int | None, first: int, windows: int | None) -> Windows:
    """Windows from the folder of a run, or from a file that xarray opens; the latter are of `flow`, on their grid."""
    if not is_own(source):
        return windows_from_run(source, steps=steps, first=first, windows=windows)
    with _opened(source) as data:
        whole = _loaded(data, source)
        n, length = grid_of(whole)
        known = None if flow is None else replace(flow, n=n, length=length)
        return windows_from_dataset(whole, flow=known, steps=steps, first=first, windows=windows)


def is_own(source: Path) -> bool:
    """Whether it is opened by xarray: a NetCDF file, or a Zarr store that no run of ours wrote."""
    if source.suffix != ".zarr" or not source.is_dir():
        return source.suffix in _FILES
    try:
        return "flow_n" not in read_attributes(source)
    except FileError:
        return True  # of an older version of Zarr, perhaps


def _loaded(data: Any, source: Path) -> Any:
    """All of a Dataset in memory, unless it says that it is too large for that."""
    if data.nbytes > LIMIT:
        raise FileError(
            f"{source} unpacks to {data.nbytes / 2**30:.0f} GiB; at most {LIMIT >> 30} GiB are read.",
            "write a part of it to a file of its own, with fewer times or variables.",
        )
    try:
        return data.load()
    except (OSError, ValueError, RuntimeError, EOFError, MemoryError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise FileError(f"{source} cannot be read: {reason}.", "write the file again, or a part of it.") from error


def _opened(source: Path) -> Any:
    try:
        xarray: Any = importlib.import_module("xarray")
    except ImportError as error:
        raise InputError(
            f"xarray is not installed, and {source} is opened by it.", f"{install_extra('fields')}."
        ) from error
    if not source.exists():
        raise FileError(f"there is no file {source}.", "correct the path.")
    # Metadata in one piece are an addition that a store may lack.
    how: dict[str, Any] = {"engine": "zarr", "consolidated": False} if source.suffix == ".zarr" else {}
    try:
        return xarray.open_dataset(source, **how)
    except (OSError, ValueError, ImportError) as error:
        raise FileError(
            f"xarray does not open {source}: {str(error).splitlines()[0][:200]}.",
            "install what reads it (scipy, netcdf4 or h5netcdf; zarr for stores), or write the file again.",
        ) from error


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
