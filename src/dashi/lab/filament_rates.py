"""The job `dashi filament rate`: bits against error of the codes of a field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dashi.errors import InputError
from dashi.filament.code.rates import ERRORS, Rates, rate
from dashi.flow.windows.sources import Naming, read_vorticity
from dashi.io._paths import path_of
from dashi.io.arrays import read_array
from dashi.lab._arguments import require_events, require_request, require_types
from dashi.lab._job import AnyPath
from dashi.lab.events import SILENT, Events


@dataclass(frozen=True, kw_only=True)
class RateRequest:
    """A field, as .npy, or a frame of a record (the folder of a run, a NetCDF file, a Zarr store), and errors over its
    norm."""

    source: AnyPath
    frame: int = -1
    """Which frame of a record; -1 is the last."""
    member: int = 0
    errors: tuple[float, ...] = ERRORS
    variables: tuple[str, ...] = ()
    dims: Mapping[str, str] = field(default_factory=dict[str, str])
    periodic: bool = False

    def __post_init__(self) -> None:
        require_types(self)


def measure_rates(request: RateRequest, *, events: Events = SILENT) -> Rates:
    """Codes a field as modes, as wavelets, and with atoms in front, at several errors."""
    require_request(request, RateRequest)
    require_events(events)
    values = _field(request)
    with events.progress("codes", len({*request.errors}), "errors") as advance:
        return rate(values, request.errors, advance)


def _field(request: RateRequest) -> Any:
    source = path_of("source", request.source)
    if source.suffix == ".npy":
        return read_array(source, "field")
    record = read_vorticity(source, Naming(request.variables, request.dims), periodic=request.periodic).values
    if not 0 <= request.member < len(record):
        raise InputError(f"`member={request.member}` is not among {len(record)} members.", "use one from 0 on.")
    frames = record[request.member]
    if not -len(frames) <= request.frame < len(frames):
        raise InputError(f"`frame={request.frame}` is not among {len(frames)} frames.", f"use -1 to {len(frames) - 1}.")
    return frames[request.frame]
