"""`merge`: the folders of all shards of a job become the folder of the whole job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dashi.errors import FileError, InputError
from dashi.io._folder_lock import locked
from dashi.io._run_folder import CHECKPOINT, CHOOSE, REPORT, UNFINISHED
from dashi.io._run_names import files_left_by, is_folder, is_itself
from dashi.io._shards import ShardFolder, read_shards
from dashi.io._whole_folder import Owner, require_replaceable, whole_folder
from dashi.lab._job import AnyPath, as_path
from dashi.lab.events import SILENT, Events
from dashi.lab.fits import fit_to
from dashi.lab.shards import _merged_evaluation, _merged_simulation, fit_data
from dashi.runtime.device import Device

Fill = Callable[[Sequence[ShardFolder], Path, Path, Events], str | None]
_KINDS: Final[dict[str, Fill]] = {
    "flow simulate": _merged_simulation.merge_simulation,
    "flow evaluate": _merged_evaluation.merge_evaluation,
}
"""What makes the whole of the shards of each command: given them, the folder to fill and the one that it becomes."""


@dataclass(frozen=True)
class Merged:
    """The whole that shards became."""

    command: str
    """The name of the job in files: `flow simulate`."""
    out: Path
    shards: int
    total: int
    """How many members or windows there are in all, by `unit`."""
    unit: str
    certificate: str | None = None
    """The digest of its certificate, if it has one."""

    def __repr__(self) -> str:
        return f"<Merged {self.command} of {self.shards} shard(s), {self.total} {self.unit}: {self.out}>"


def merge(
    folders: Sequence[AnyPath], *, out: AnyPath, overwrite: bool = False, device: str | Device = "auto",
    events: Events = SILENT,
) -> Merged:  # fmt: skip
    """Makes the whole of the folders of all shards of a job: `out` holds the bytes that the job without `shard` would
    have left there, but for what tells where and how long it ran (`shards.comparison`). The shards stay as they are.

    Refuses shards of different runs, one that is there twice, and a hole, which it names. `out` is filled beside its
    place and put there when all of it is written; what is there already is replaced as by the job itself.

    Of data of a fit `out` is the file of the model, which is fitted now, on `device`.
    """
    place = as_path(out)
    if place is None:
        raise InputError("a merge needs a folder to write.", "name it with `out=`.")
    with events.progress("reading shards", None, ""):
        shards = read_shards(folders)
    record = shards[0].record
    if record.command == fit_data.COMMAND:
        request, windows = fit_data.merged_data(shards)
        fit_to(request, windows, device=device, out=place, events=events)
        return Merged(record.command, place, len(shards), record.total, record.unit)
    fill = _KINDS.get(record.command)
    if fill is None:
        raise FileError(f"{shards[0]} is of `dashi {record.command}`, which is not merged here.", "run `dashi merge`.")
    _require_apart(shards, place)
    owner = owner_of(record.command, record.settings, overwrite=overwrite)
    _require_not_at_work(place, overwrite=overwrite)
    require_replaceable(place, owner)
    events.remark(f"merging {len(shards)} shard(s) of {record.total} {record.unit} into {place}")
    with whole_folder(place, owner) as folder:
        certificate = fill(shards, folder, place, events)
    return Merged(record.command, place, len(shards), record.total, record.unit, certificate)


def owner_of(command: str, settings: dict[str, str], *, overwrite: bool) -> Owner:
    """Whose folder the whole becomes: that of the job without shards."""
    files = {*files_left_by(command), REPORT, CHECKPOINT, UNFINISHED}
    return Owner(command, files, settings=settings, overwrite=overwrite)


def _require_apart(shards: Sequence[ShardFolder], out: Path) -> None:
    """Refuses a place that is one of the shards, lies in one, or holds one: it would be replaced."""
    place = out.resolve()
    for shard in shards:
        there = shard.folder.resolve()
        if there == place or there in place.parents or place in there.parents:
            raise FileError(f"{out} is not apart from {shard}.", CHOOSE)


def _require_not_at_work(out: Path, *, overwrite: bool) -> None:
    """Refuses the folder of a run that is at work, or that was interrupted and could go on."""
    if not is_folder(out):
        return
    with locked(out):
        if is_itself(out / CHECKPOINT) and not overwrite:
            raise FileError(
                f"{out} holds a run that was interrupted.", f"replace it with `overwrite=True`, or {CHOOSE}"
            )
