"""What a shard of an evaluation keeps: the scores on its windows, and what means over all windows are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from dashi.errors import FileError
from dashi.flow._operator import Vorticity
from dashi.flow.evaluation._fits import Fit
from dashi.flow.evaluation._parts import EvaluationPart
from dashi.flow.evaluation.files import BROKEN, pack, unpack
from dashi.io._run_mark import as_settings
from dashi.io._shards import ShardRecord
from dashi.io.arrays import read_arrays, write_arrays
from dashi.lab._evaluation_files import COMMAND, file_name, settings_of
from dashi.lab.evaluation_plans import SHARED_SEEDS, SHARED_WINDOWS, Chosen, EvaluateRequest
from dashi.lab.shards._simulation_part import host_bits
from dashi.runtime.device import Device

_SCORES: Final = "scores_"
_PART: Final = "part_"
_WINDOW_BYTES: Final = 1 << 23
"""Bytes that an array of scores may have for a window: numbers of a million frames."""
_Text = Annotated[str, Field(max_length=4000)]
_Number = Annotated[int, Field(ge=0, lt=1 << 53)] | None
_Name = Annotated[str, Field(max_length=200, pattern=r"^evaluation-[\w=.+-]+$")]


class EvaluationWork(BaseModel):
    """What a shard says of the whole evaluation, for whoever merges it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: _Text
    steps: _Number
    first_seed: Annotated[int, Field(ge=-(1 << 53), lt=1 << 53)] | None
    seeds: _Number
    windows: _Number
    start: Annotated[int, Field(ge=0, lt=1 << 53)]
    listed: Annotated[list[int], Field(max_length=1 << 20)]
    source: _Text | None
    variables: Annotated[list[_Text], Field(max_length=8)]
    dims: Annotated[dict[_Text, _Text], Field(max_length=8)]
    perturb: Annotated[list[tuple[_Text, float]], Field(max_length=100)]
    perfect: bool
    allow_overlap: bool
    host_fft: bool
    fit_scores: Annotated[list[_Name], Field(max_length=8)]
    """Names of the scores on the data that the model saw, which its file holds."""
    sets: Annotated[int, Field(ge=1, le=200)]
    """Sets of windows that are scored."""

    @property
    def request(self) -> EvaluateRequest:
        """The whole as it was asked for."""
        return EvaluateRequest(
            model=self.model, source=self.source, variables=tuple(self.variables), dims=self.dims,
            perturb=tuple(self.perturb), perfect=self.perfect, allow_overlap=self.allow_overlap,
            host_fft=self.host_fft,
        )  # fmt: skip

    @property
    def chosen(self) -> Chosen:
        """What was asked for, with its defaults."""
        return Chosen(self.steps, self.first_seed, self.seeds, self.windows, self.start, tuple(self.listed))

    def windows_of(self, share: int) -> int:
        """The windows of so many things that are shared out."""
        return share if self.source is not None else share * (self.windows or 1)

    def seeds_of(self, total: int) -> Sequence[int] | None:
        """The seeds of a simulation, which must be so many; None of a record. They may be more than memory holds."""
        if self.source is not None:
            return None
        if not self.listed and (self.first_seed is None or self.seeds is None):
            raise ValueError("it names no seeds")
        seeds = self.chosen.simulated_seeds
        if len(seeds) != total:
            raise ValueError(f"it names {len(seeds)} seeds, and shares out {total}")
        return seeds


def shard_record(
    request: EvaluateRequest, what: Chosen, fit: Fit, device: Device, *, sets: int, among: int
) -> ShardRecord:
    """What the folder of a shard says of the whole; `among` windows are scored in each set."""
    import dashi

    assert request.shard is not None
    recorded = request.source is not None
    work = EvaluationWork(
        steps=what.steps, first_seed=what.first_seed, seeds=what.seeds, windows=what.windows, start=what.start,
        listed=list(what.listed), model=str(request.model),
        source=str(request.source) if recorded else None, variables=list(request.variables), dims=dict(request.dims),
        perturb=[(name, float(value)) for name, value in request.perturb], perfect=request.perfect,
        allow_overlap=request.allow_overlap, host_fft=request.host_fft,
        fit_scores=[file_name(one) for one in fit.evaluations], sets=sets,
    )  # fmt: skip
    return ShardRecord(
        dashi_version=dashi.__version__, command=COMMAND, index=request.shard.index, count=request.shard.count,
        total=among if recorded else len(what.simulated_seeds), unit=SHARED_WINDOWS if recorded else SHARED_SEEDS,
        settings=as_settings(settings_of(request, what)), bits=_bits(fit, device, among),
        work=work.model_dump(mode="json"),
    )  # fmt: skip


def _bits(fit: Fit, device: Device, among: int) -> dict[str, str]:
    """What else decides the bits: versions of the host's libraries, and which of its forms a model computes in."""
    by = "NumPy" if device.info.type == "reference" else "kernels"
    bits = {"operator": f"{Vorticity.kind} {Vorticity.version}", "computed by": by, **host_bits(fit.model.schema.n)}
    for name, model in fit.models.items():
        chosen = model.explain(device, among)
        bits |= {f"strategy of {name}": chosen[0]} if chosen else {}
    return bits


def part_name(number: int) -> str:
    """The file of a set of windows."""
    return f"shard-{number}.npz"


def write_part(path: Path, part: EvaluationPart) -> None:
    """Keeps the part of one set of windows, all or nothing."""
    scores = {f"{_SCORES}{name}": values for name, values in pack(part.evaluation).items()}
    write_arrays(path, scores | {f"{_PART}{name}": values for name, values in part.arrays.items()})


def read_part(path: Path, windows: int | None = None) -> EvaluationPart:
    """The inverse of `write_part`, without trust; no array has more than is measured of so many windows."""
    arrays = read_arrays(path, most=None if windows is None else windows * _WINDOW_BYTES)
    evaluation = unpack(_under(arrays, _SCORES), path)
    try:
        return EvaluationPart.restore(evaluation, _under(arrays, _PART))
    except BROKEN as error:
        raise FileError(f"{path} is damaged: {error}.", "run that shard again.") from error


def _under(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}
