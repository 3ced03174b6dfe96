"""Windows from the run folders of `dashi flow simulate`: fields.zarr, read without trust and without zarr."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np

from dashi.errors import DashiError, FileError, InputError
from dashi.flow._fields import read_attributes, read_frame, read_line
from dashi.flow._resample import curl_and_divergence
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.initial import INITIAL
from dashi.flow.windows.windows import UNKNOWN, Windows, cut, frames_in
from dashi.io._memory import require_room
from dashi.io._run_names import FIELDS
from dashi.io._run_reading import run_file


def windows_from_run(
    run: Path, *, steps: int | None = None, first: int = 0, last: int | None = None, windows: int | None = None
) -> Windows:
    """Windows of `steps` steps (default: all there are) from the frames of a run between the steps `first` and `last`,
    at most so many of each member. A run that stored both velocities and no vorticity will do."""
    path = run if run.suffix == ".zarr" else run_file(run, FIELDS)
    if not path.is_dir():
        raise FileError(f"there is no {path}.", "name the folder of a simulation with `out=`.")
    if "flow_n" in read_attributes(path) and not (path / "step").is_dir():
        raise FileError(f"{path} holds no frames.", "go on with that simulation: `resume=True`.")
    flow, seeds = _flow(path)
    numbers = _whole(path, "step")
    chosen = np.flatnonzero((numbers >= first) & (numbers <= (numbers.max(initial=0) if last is None else last)))
    if len(chosen) < 2:
        raise InputError(
            f"{path} holds {len(chosen)} frames between steps {first} and {last or 'the end'}; a window takes two.",
            "choose other steps, or record more frames with `frame_every=`.",
        )
    interval = _interval(path, numbers[chosen])
    frames = len(chosen) if steps is None else frames_in(steps, interval)
    if windows is not None:
        chosen = chosen[: windows * frames]
    require_room(len(chosen) * len(seeds) * flow.n**2 * flow.numpy_dtype.itemsize, f"the record in {path}")
    record = np.stack([_vorticity(path, flow, int(j), len(seeds)) for j in chosen], axis=1)
    parts = cut(flow, interval, record, seeds, int(numbers[chosen[0]]), frames)
    if windows is not None and len(parts) < windows * len(seeds):
        raise InputError(
            f"{path} holds {len(parts) // len(seeds)} windows of {frames} frames after step {first}, not {windows}.",
            "ask for fewer or shorter windows, or record more frames.",
        )
    return parts


def _flow(path: Path) -> tuple[Flow, tuple[int, ...]]:
    """The flow of a run, and the seeds of its members; unknown ones where a file was its start."""
    attributes = read_attributes(path)
    named = {name.removeprefix("flow_"): v for name, v in attributes.items() if name.startswith("flow_")}
    if not all(type(value) in (int, float, str) for value in named.values()):
        raise FileError(f"{path} describes no flow.", "name the folder of a simulation with `out=`.")
    try:
        flow = Flow.restore(cast("dict[str, int | float | str]", named))
    except (DashiError, TypeError, ValueError, ArithmeticError) as error:
        raise FileError(
            f"{path} describes no flow that this dashi knows: {error}", "name the folder of a simulation with `out=`."
        ) from error
    seeds = tuple(int(seed) for seed in _whole(path, "member"))
    known = attributes.get("initial") in INITIAL
    return flow, seeds if known else (UNKNOWN,) * len(seeds)


def _whole(path: Path, name: str) -> Any:
    """A line of whole numbers, however they are stored."""
    values = read_line(path, name)
    numbers: Floats = values.astype(np.float64)
    if not np.isfinite(numbers).all() or (np.abs(numbers) > 2.0**62).any() or (numbers != np.round(numbers)).any():
        raise FileError(f"{path}: {name} holds numbers that are not whole.", "get the run again.")
    return values.astype(np.int64)


def _interval(path: Path, numbers: Floats) -> int:
    between = np.unique(np.diff(numbers))
    if len(between) != 1 or between[0] < 1:
        raise FileError(f"{path} has frames at uneven steps.", "choose a stretch with even ones by its first step.")
    return int(between[0])


def _vorticity(path: Path, flow: Flow, index: int, members: int) -> Floats:
    """Vorticity of all members in a frame, (members, n, n)."""

    def read(name: str) -> Any:
        values = read_frame(path, name, index)
        if values.shape != (members, flow.n, flow.n):
            raise FileError(f"{path}: {name} has frames of shape {values.shape}.", "get the run again.")
        return values

    if (path / "vorticity").is_dir():
        return read("vorticity")
    if (path / "velocity_x").is_dir() and (path / "velocity_y").is_dir():
        return curl_and_divergence(read("velocity_x"), read("velocity_y"), flow.length)[0].astype(flow.numpy_dtype)
    raise FileError(
        f"{path} holds neither vorticity nor both velocities.",
        "simulate it again with `fields=('vorticity',)` or `fields=('velocity_x', 'velocity_y')`.",
    )
