"""Windows from a path, whatever lies there: the folder of a run, a NetCDF file, or a Zarr store of one's own."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dashi.errors import FileError, InputError, suggestion
from dashi.flow._fields import read_attributes
from dashi.flow.equations import Flow
from dashi.flow.windows._foreign import NETCDF, open_foreign
from dashi.flow.windows.own_data import (
    VorticityRecord,
    grid_of,
    load_record,
    vorticity_record,
    windows_from_dataset,
)
from dashi.flow.windows.recorded import windows_from_run
from dashi.flow.windows.windows import Windows
from dashi.io._run_names import FIELDS

AXES: Final = ("time", "y", "x", "member")
"""The axes of a record, by the names that `dims` may replace."""


@dataclass(frozen=True)
class Naming:
    """How a record of one's own names what it holds."""

    variables: tuple[str, ...] = ()
    """None: as usual; one: vorticity; two: the velocities along x and along y."""
    dims: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of axes: time, y, x or member."""

    def __post_init__(self) -> None:
        if len(self.variables) > 2:
            raise InputError(
                f"`variables=` has {len(self.variables)} names.", "give one for vorticity, two for velocities."
            )
        for axis in self.dims:
            if axis not in AXES:
                raise InputError(
                    f"`dims=` has no axis {axis!r}.", f"{suggestion(axis, AXES)}the axes are {', '.join(AXES)}."
                )

    def require_own(self, source: Path | None) -> None:
        """Refuses names where there is nothing of one's own that they could be names in."""
        if (self.variables or self.dims) and (source is None or not is_own(source)):
            raise InputError(
                f"`{'variables' if self.variables else 'dims'}=` names what a NetCDF file or a Zarr store holds.",
                "give `source=` such a file, or leave it away.",
            )

    @property
    def arguments(self) -> dict[str, Any]:
        """Keywords of `windows_from_dataset`."""
        if len(self.variables) == 2:
            return {"velocity": self.variables, "dims": self.dims}
        return {"dims": self.dims, **({"vorticity": self.variables[0]} if self.variables else {})}


AS_USUAL: Final = Naming()


def read_windows(
    source: Path, flow: Flow | None = None, *, steps: int | None = None, first: int = 0, windows: int | None = None,
    naming: Naming = AS_USUAL,
) -> Windows:  # fmt: skip
    """Windows from the folder of a run, or from a file that xarray opens; the latter are of `flow`, on their grid.
    Doubts about a file are warnings that name it."""
    naming.require_own(source)
    if not is_own(source):
        if not source.is_dir():
            raise FileError(
                f"{source} is a file that no windows are read from: an array alone has neither times nor places."
                if source.exists()
                else f"there is no {source}.",
                "give the folder of a simulation with `out=`, a NetCDF file "
                f"({', '.join(NETCDF)}) or a Zarr store (.zarr); xarray.Dataset(...).to_netcdf makes one of arrays.",
            )
        return windows_from_run(source, steps=steps, first=first, windows=windows)
    names = naming.arguments
    with open_foreign(source) as data:
        _require_variables(data, naming, source)
        record = load_record(data, source, **names)
        n, length = grid_of(record, naming.dims)
        known = None if flow is None else replace(flow, n=n, length=length)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            windows_read = windows_from_dataset(record, flow=known, steps=steps, first=first, windows=windows, **names)
    for doubt in caught:
        warnings.warn(f"{source}: {doubt.message}", stacklevel=2)
    return windows_read


def read_vorticity(source: Path, naming: Naming = AS_USUAL, *, periodic: bool = False) -> VorticityRecord:
    """The vorticity that lies at a path: the folder of a run, a NetCDF file or a Zarr store, of anyone."""
    store = source / FIELDS if source.is_dir() and source.suffix != ".zarr" else source
    if store.suffix not in (*NETCDF, ".zarr"):
        raise FileError(
            f"{source} is no record of vorticity: an array alone has neither times nor places.",
            f"name the folder of a simulation, a NetCDF file ({', '.join(NETCDF)}) or a Zarr store (.zarr); "
            "xarray.Dataset(...).to_netcdf makes one of arrays.",
        )
    names = naming.arguments
    with open_foreign(store) as data:
        _require_variables(data, naming, store)
        return vorticity_record(load_record(data, store, **names), periodic=periodic, **names)


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
