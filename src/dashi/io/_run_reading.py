"""Reading run folders, which may come from anyone: nothing is written, no link is followed out of the folder.

A run that was killed between its end and the taking of its place lies partly in `unfinished`, finished, and partly in
the folder. Its files are found by their names, where they are; the next run there moves them.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path

from dashi.io._files import require_within
from dashi.io._run_mark import MARK, Mark, read_mark
from dashi.io._run_names import CHECKPOINT, UNFINISHED, is_folder, is_itself


def run_file(folder: Path, name: str) -> Path:
    """Where the file of that name of the run in a folder lies; it may not be there. Refuses a link out of the
    folder."""
    pending = _pending(folder)
    place = folder / name
    if pending is not None:
        aside = folder / UNFINISHED / name
        old = _mark(folder)
        listed = name in pending.files
        if (listed and is_itself(aside)) or (not listed and old is not None and name in old.files):
            place = aside  # of the run before, it has none: there is no such file
    require_within(place, folder)
    return place


def named_file(path: Path) -> Path:
    """A file that was named by its path, which may be that of a run: where it lies then."""
    of_a_run = os.path.lexists(path.parent / MARK) or _pending(path.parent) is not None
    return run_file(path.parent, path.name) if of_a_run else path


def names_like(folder: Path, pattern: str) -> list[str]:
    """The names of that kind that the run of a folder left."""
    pending = _pending(folder)
    there = {path.name for path in folder.iterdir()} | set(pending.files if pending else ())
    return sorted(name for name in there if fnmatchcase(name, pattern) and run_file(folder, name).exists())


def is_marked(folder: Path) -> bool:
    """Whether a folder says of itself that it is a run's."""
    return is_itself(folder / MARK)


def typed_for(folder: Path) -> tuple[str, ...]:
    """The command lines that began the run of a folder, and went on with it; none where nobody knows."""
    mark = _pending(folder) or _mark(folder)
    return mark.lines if mark else ()


def is_unfinished(folder: Path) -> bool:
    """Whether the run of a folder was stopped or is at work, by its mark or its checkpoint."""
    if _pending(folder) is not None:
        return False
    mark = _mark(folder)
    return (folder / CHECKPOINT).exists() or (mark is not None and not mark.finished)


def _pending(folder: Path) -> Mark | None:
    """The mark of a finished run that has not taken its place yet."""
    aside = folder / UNFINISHED
    if not is_folder(aside):
        return None
    try:
        mark = _mark(aside)
    except OSError:
        return None
    return mark if mark is not None and mark.finished and mark.aside else None


def _mark(folder: Path) -> Mark | None:
    return read_mark(folder, checkpoint=CHECKPOINT, telling=())
