"""Where a shard stands when its command runs again: finished, to go on, or to be begun."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from pathlib import Path

from dashi.errors import FileError
from dashi.io import _run_folder as run_folder
from dashi.io._run_mark import as_settings, read_mark
from dashi.io._run_names import is_folder, is_itself


class Standing(Enum):
    """What a folder holds of a shard."""

    NEW = auto()
    INTERRUPTED = auto()
    FINISHED = auto()


def standing_of(out: Path, settings: Mapping[str, object], *, overwrite: bool) -> Standing:
    """What is in the folder of a shard with these settings. What is another run's is left to whoever opens the folder
    to refuse, but for one that was interrupted: it would be gone on with."""
    if overwrite or not is_folder(out):
        return Standing.NEW
    mark = read_mark(out, checkpoint=run_folder.CHECKPOINT, telling=())
    if mark is None or mark.settings is None:
        return Standing.NEW
    ours, theirs = as_settings(settings), mark.settings
    if mark.finished:
        return Standing.FINISHED if ours == theirs else Standing.NEW
    if not is_itself(out / run_folder.CHECKPOINT):
        return Standing.NEW
    name = next((name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)), None)
    if name is not None:
        raise FileError(
            f"{out} holds a run with other settings that was interrupted ({name} is {theirs.get(name, 'not said')} "
            f"there, {ours.get(name, 'not said')} here).",
            f"finish it with its own command, replace it with `overwrite=True`, or {run_folder.CHOOSE}",
        )
    return Standing.INTERRUPTED


def is_of_another_run(out: Path, command: str, settings: Mapping[str, object]) -> bool:
    """Whether a folder is marked as that of another run than this, finished or not."""
    mark = read_mark(out, checkpoint=run_folder.CHECKPOINT, telling=()) if is_folder(out) else None
    return mark is not None and (mark.command != command or mark.settings != as_settings(settings))
