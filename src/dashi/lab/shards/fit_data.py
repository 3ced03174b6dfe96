"""Data of a fit in parts: each shard simulates some of the seeds, and the model is fitted when they are merged. The fit
itself is one search over all its data, and is not shared out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dashi.errors import FileError, InputError
from dashi.flow._operator import Vorticity
from dashi.flow.equations import Flow
from dashi.flow.evaluation.files import BROKEN
from dashi.flow.windows import Windows, frames_in
from dashi.flow.windows.simulated import require_room
from dashi.flow.windows.windows import Origin
from dashi.io import _run_folder as run_folder
from dashi.io._array_digest import array_digest
from dashi.io._run_mark import as_settings
from dashi.io._run_names import PARTS, SHARD
from dashi.io._shard_standing import Standing, standing_of
from dashi.io._shards import Shard, ShardFolder, ShardRecord, write_record
from dashi.io.arrays import file_digest, read_arrays, write_arrays
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Job, as_path, require_results
from dashi.lab.events import SILENT, Events
from dashi.lab.fit_setup import FitRequest, check_fit
from dashi.lab.fits import simulated_data
from dashi.lab.shards._simulation_part import host_bits
from dashi.lab.shards._standing import remark_finished, require_folder
from dashi.runtime.device import Device

COMMAND: Final = "flow fit"
_WINDOWS: Final = "shard-windows.npz"
_AGAIN: Final = "run that shard again."
_LONGEST: Final = 1 << 10
"""Bytes of a digest, at most."""
_Text = Annotated[str, Field(max_length=4000)]
_Number = int | float
_Seeds = Annotated[list[int], Field(max_length=1 << 20)]
_Count = Annotated[int, Field(ge=0, lt=1 << 53)]


@dataclass(frozen=True)
class FitData:
    """The data of a shard of a fit."""

    shard: Shard
    folder: Path
    windows: int


class FitWork(BaseModel):
    """What a shard says of the whole fit, for whoever merges it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: _Text
    flow: dict[str, _Number | str]
    train: _Seeds
    validate_on: _Seeds
    train_steps: _Count
    frame_every: _Count
    windows: _Count
    spin_up: _Count
    initial: _Text
    initial_options: dict[_Text, _Number | str]
    k_cut: float
    anchors: _Count
    model_options: dict[_Text, bool | _Number | str]
    baselines: list[_Text]
    host_fft: bool

    @property
    def request(self) -> FitRequest:
        """The whole as it was asked for."""
        return FitRequest(
            model=self.model, flow=Flow.restore(self.flow), train=tuple(self.train), validate=tuple(self.validate_on),
            train_steps=self.train_steps, frame_every=self.frame_every, windows=self.windows, spin_up=self.spin_up,
            initial=self.initial, initial_options=self.initial_options, k_cut=self.k_cut, anchors=self.anchors,
            model_options=self.model_options, baselines=tuple(self.baselines), host_fft=self.host_fft,
        )  # fmt: skip


def fit_data(
    request: FitRequest, *, out: AnyPath, device: str | Device = "auto", overwrite: bool = False,
    events: Events = SILENT,
) -> FitData:  # fmt: skip
    """Simulates the data of the seeds of a shard of a fit, training and validation seeds counted together, into a
    folder. `merge` of all of them fits the model; of one that is finished nothing is done."""
    require_request(request, FitRequest)
    shard = request.shard
    if shard is None:
        raise InputError("data of a fit are made in parts.", "say which with `shard=`, or use dashi.lab.fit.")
    place = require_folder(shard, as_path(out))
    if request.source is not None:
        raise InputError("`shard=` shares out simulations, and `source=` reads what is there.", "leave one away.")
    check_fit(request, None)
    seeds = [seed for some in request.simulated_seeds for seed in some]
    part = shard.part(len(seeds), "seeds")
    record = _record(request, shard, len(seeds))
    settings = {**record.settings, "shard": str(shard)}
    if standing_of(place, settings, overwrite=overwrite) is Standing.FINISHED:
        remark_finished(shard, place, events)
        return FitData(shard, place, len(part) * (request.windows or 1))
    job = Job(command=COMMAND, request=request, device=device, out=place, overwrite=overwrite, events=events)
    job.require_place()
    with job.place() as placed, job.open_folder(settings, files=(SHARD, PARTS)) as folder:
        assert folder is not None
        require_results(placed)
        windows = simulated_data(request, seeds, placed.device, events, part)
        arrays = {"fields": windows.fields, "seeds": np.array(windows.seeds), "starts": np.array(windows.starts)}
        write_arrays(folder / _WINDOWS, {**arrays, "digest": np.array(array_digest(windows.fields))})
        write_record(folder / SHARD, record)
        left = run_folder.close_run(folder, (), finished=True)
    return FitData(shard, left, len(windows))


def _record(request: FitRequest, shard: Shard, total: int) -> ShardRecord:
    import dashi

    train, validate = request.simulated_seeds
    flow = request.simulated_flow
    try:
        work = FitWork(
            model=request.model, flow=flow.parameters, train=list(train), validate_on=list(validate),
            train_steps=request.train_steps, frame_every=request.interval, windows=request.windows or 1,
            spin_up=request.first_step, initial=request.start, initial_options=dict(request.initial_options),
            k_cut=float(request.k_cut), anchors=request.anchors, model_options=dict(request.model_options),
            baselines=list(request.baselines), host_fft=request.host_fft,
        )  # fmt: skip
    except ValidationError as error:
        raise InputError(
            f"the fit cannot be kept for a merge: {error.errors()[0]['msg']}.", "use plain values."
        ) from error
    document: dict[str, Any] = work.model_dump(mode="json")
    bits = {"operator": f"{Vorticity.kind} {Vorticity.version}"} | (host_bits(flow.n) if request.host_fft else {})
    start = {"start": file_digest(Path(request.start))} if request.from_file else {}
    return ShardRecord(
        dashi_version=dashi.__version__, command=COMMAND, index=shard.index, count=shard.count, total=total,
        unit="seeds", settings=as_settings({**document, **start}), bits=bits, work=document,
    )  # fmt: skip


def merged_data(shards: Sequence[ShardFolder]) -> tuple[FitRequest, Windows]:
    """The request of the whole, and the windows of all its seeds, read without trust."""
    try:
        work = FitWork.model_validate_json(json.dumps(shards[0].record.work))
        request = work.request
        seeds = [*work.train, *work.validate_on]
        frames = frames_in(work.train_steps, request.interval)
        require_room(request.simulated_flow, len(seeds), work.windows, frames)
    except (ValidationError, InputError, *BROKEN) as error:
        raise FileError(f"{shards[0]} does not say what is fitted.", _AGAIN) from error
    if len(seeds) != shards[0].record.total:
        raise FileError(f"{shards[0]} does not say what is fitted.", _AGAIN)
    parts = [_windows_of(shard, work, request, seeds) for shard in shards]
    first = parts[0]
    return request, Windows(
        first.flow, first.interval, np.concatenate([part.fields for part in parts]),
        sum((part.seeds for part in parts), ()), sum((part.starts for part in parts), ()), first.origin,
    )  # fmt: skip


def _windows_of(shard: ShardFolder, work: FitWork, request: FitRequest, seeds: Sequence[int]) -> Windows:
    part, flow, each = shard.record.part, request.simulated_flow, work.windows
    frames = frames_in(work.train_steps, request.interval)
    shape = (len(part) * each, frames, flow.n, flow.n)
    size = math.prod(shape) * flow.numpy_dtype.itemsize
    most = {"fields": size, "seeds": 8 * shape[0], "starts": 8 * shape[0], "digest": _LONGEST}
    arrays = read_arrays(shard.file(_WINDOWS), [*most], most=most)
    fields = arrays["fields"]
    if fields.shape != shape or fields.dtype != flow.numpy_dtype:
        raise FileError(f"{shard} holds other windows than its own.", _AGAIN)
    # Only now: so many windows were there.
    own = [seed for j in part for seed in [seeds[j]] * each]
    starts = [work.spin_up + j * frames * request.interval for j in range(each)] * len(part)
    if arrays["seeds"].tolist() != own or arrays["starts"].tolist() != starts:
        raise FileError(f"{shard} holds other windows than its own.", _AGAIN)
    if arrays["digest"].tolist() != array_digest(fields) or not np.isfinite(fields).all():
        raise FileError(f"{shard} holds windows that were changed after they were made.", _AGAIN)
    origin = None if request.from_file else Origin(work.initial, dict(work.initial_options), work.spin_up)
    return Windows(flow, request.interval, fields, tuple(own), tuple(starts), origin)
