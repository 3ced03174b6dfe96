"""Windows: what proxies are fitted to and scored on. Stretches of trajectories with frames at even times, simulated or
read from runs, NetCDF files and Zarr stores; split into those to train on and those to choose on."""

from dashi.flow.windows.own_data import windows_from_dataset
from dashi.flow.windows.recorded import windows_from_run
from dashi.flow.windows.simulated import windows_of
from dashi.flow.windows.sources import Naming, is_own, read_windows
from dashi.flow.windows.splitting import split_windows
from dashi.flow.windows.windows import UNKNOWN, Origin, Windows, cut, frames_in

__all__ = [
    "UNKNOWN",
    "Naming",
    "Origin",
    "Windows",
    "cut",
    "frames_in",
    "is_own",
    "read_windows",
    "split_windows",
    "windows_from_dataset",
    "windows_from_run",
    "windows_of",
]
