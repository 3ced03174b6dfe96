"""Folders that are replaced as a whole: filled beside their place, and put there when all is in them.

What is there already is replaced only where all of it is known: an earlier run of the same command with the same
settings (of any run, where that is asked for), and nothing of anybody else's. It steps aside for an instant, and comes
back if anything comes between. What a process that was killed left beside the place, the next one removes.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dashi.errors import FileError
from dashi.io._files import require_writable, sync_folder, umask, unwritable
from dashi.io._locks import BUSY, open_folder, try_lock
from dashi.io._parts import named_by, part_of, remove_stale
from dashi.io._run_folder import CHECKPOINT, CHOOSE, METRICS, SCORES, SUMMARY, require_asked, require_ours
from dashi.io._run_mark import MARK, Mark, as_settings, read_mark, write_mark
from dashi.io._run_names import left_by_runs

_ASIDE: Final = "-old-"
_HARMLESS: Final = frozenset({MARK, ".DS_Store", ".directory"})
"""What this program and file managers put into folders; other hidden files, such as .git, are somebody's."""


@dataclass(frozen=True)
class Owner:
    """Whose folders may be replaced."""

    command: str
    """Such as `flow simulate`."""
    files: Collection[str]
    """All that the command ever leaves in its folder: what else is there is somebody else's, and is not replaced."""
    noun: str = "run of it"
    settings: Mapping[str, object] | None = None
    """All that decides the results of the run that begins."""
    overwrite: bool = False
    """Whether a finished run with other settings, or of another command, may be replaced."""

    @property
    def mark(self) -> Mark:
        """What its folder says of itself in the end."""
        return Mark(self.command, finished=True, settings=as_settings(self.settings or {}))


def require_replaceable(out: Path, owner: Owner) -> Path:
    """Refuses, before any work, a place that could not be written or holds anything but an earlier run of the owner.
    Gives the place itself where a link was named."""
    place = out.resolve() if out.is_symlink() or not out.name else out
    _bring_back(place)
    require_ours(place, owner.command, overwrite=owner.overwrite)
    if place.exists():
        _require_known(out, place, owner)
        if place.is_mount() or place.resolve() == Path.cwd():
            why = "a disk of its own" if place.is_mount() else "the folder you are in"
            raise FileError(f"{out} is {why}: it cannot be replaced as a whole.", "name a folder in it with `out=`.")
    # What is there is replaced by a rename, which its parent must allow.
    require_writable(place.absolute().parent if place.exists() else place, folder=True)
    _sweep(place)
    return place


def _require_known(out: Path, place: Path, owner: Owner) -> None:
    """Refuses a folder in which anything is somebody else's, or that holds a finished run which may not go."""
    before = read_mark(place, checkpoint=CHECKPOINT, telling=(SUMMARY, METRICS, SCORES))
    listed = {name for name in before.files if left_by_runs(name)} if before else set[str]()
    there = {path.name for path in place.iterdir() if named_by(path.name) is None}
    foreign = sorted(there - set(owner.files) - listed - _HARMLESS)
    if foreign:
        what = f"{out} holds {foreign[0]}, which no {owner.noun} left there, and would be replaced as a whole."
        raise FileError(what, f"move it away, or {CHOOSE}")
    if before is not None:
        require_asked(out, before, owner.mark, overwrite=owner.overwrite)


@contextlib.contextmanager
def whole_folder(out: Path, owner: Owner) -> Generator[Path]:
    """A folder to fill, which becomes `out` when all is in it: whoever looks sees the old one or the new one."""
    place = require_replaceable(out, owner)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        folder, handle = _temporary(place)
    except OSError as error:
        raise unwritable(out, error) from error
    try:
        yield folder
        os.chmod(folder, 0o777 & ~umask())  # temporary folders are private; this one becomes an ordinary one
        put(folder, place, owner)
    except OSError as error:
        raise unwritable(out, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _temporary(place: Path) -> tuple[Path, int]:
    """An empty folder beside the place, and the handle that holds its lock: nobody takes it for a leftover."""
    folder = part_of(place)
    try:
        folder.mkdir(0o700)
    except FileExistsError:  # somebody fills it: leftovers were removed before
        folder = Path(tempfile.mkdtemp(prefix=f".{place.name}-", suffix=".part", dir=place.parent))
    handle = open_folder(folder)
    try_lock(handle)
    return folder, handle


def put(folder: Path, out: Path, owner: Owner) -> None:
    """A folder that is whole in the place of `out`; it gets its mark."""
    require_replaceable(out, owner)  # minutes may have passed: somebody may have put something there
    left = tuple(sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")))
    mark = owner.mark
    write_mark(folder, Mark(mark.command, finished=True, files=left, settings=mark.settings))
    try:
        if out.exists():
            _exchange(folder, out)
        else:
            os.rename(folder, out)
        sync_folder(out.parent)
    except OSError as error:
        raise unwritable(out, error) from error


def _stepped_aside(out: Path) -> list[Path]:
    """Folders that hold what stepped aside, and whose processes are gone."""
    return [
        old
        for old in sorted(out.parent.glob(f".{glob.escape(out.name)}{_ASIDE}*"))
        if stat.S_ISDIR(os.lstat(old).st_mode) and not _is_held(old)
    ]


def _is_held(folder: Path) -> bool:
    """Whether a process that is at work holds the lock of a folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return True
    try:
        return try_lock(handle) == BUSY
    finally:
        os.close(handle)


def _bring_back(out: Path) -> None:
    """A folder that stepped aside, and whose process was killed before anything took its place, comes back."""
    if out.exists():
        return
    for old in _stepped_aside(out):
        with contextlib.suppress(OSError):
            os.rename(old / out.name, out)
            old.rmdir()
            return


def _sweep(out: Path) -> None:
    """Removes what processes that were killed left beside a place: half-filled folders, and what was replaced."""
    for path in list(out.parent.iterdir()) if out.parent.is_dir() else ():
        if named_by(path.name) == out.name:
            remove_stale(path)
    for old in _stepped_aside(out):
        # Nothing in it but an earlier run that was replaced: what is in the place now is whole.
        if not (set(os.listdir(old)) - {out.name}) and (out.exists() or not os.listdir(old)):
            shutil.rmtree(old, ignore_errors=True)


def _exchange(new: Path, out: Path) -> None:
    """A folder that holds files cannot be renamed over: it steps aside, and comes back whatever comes between, a second
    Ctrl-C too."""
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}{_ASIDE}", dir=out.parent))
    handle = open_folder(old)
    try_lock(handle)
    previous = old / out.name
    try:
        os.rename(out, previous)
        os.rename(new, out)
    finally:
        if previous.exists() and not out.exists():
            os.rename(previous, out)
        if new.exists():
            with contextlib.suppress(OSError):
                old.rmdir()  # what could not be put back stays in it
        else:
            shutil.rmtree(old, ignore_errors=True)
        os.close(handle)
