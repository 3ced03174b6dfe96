"""Folders that are replaced as a whole: filled beside their place, and put there when all is in them.

What is there already is replaced only where all of it is known: an earlier run of the same command, and nothing of
anybody else's. It steps aside for an instant, and comes back if anything comes between.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile
from collections.abc import Collection, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dashi.errors import FileError
from dashi.io.files import require_writable, sync_folder, umask, unwritable
from dashi.io.run_folder import CHOOSE, require_ours
from dashi.io.run_mark import MARK, Mark, write_mark

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


def require_replaceable(out: Path, owner: Owner) -> Path:
    """Refuses, before any work, a place that could not be written or holds anything but an earlier run of the owner.
    Gives the place itself where a link was named."""
    place = out.resolve() if out.is_symlink() or not out.name else out
    _bring_back(place)
    require_ours(place, owner.command)
    if place.exists():
        foreign = sorted({path.name for path in place.iterdir()} - set(owner.files) - _HARMLESS)
        if foreign:
            what = f"{out} holds {foreign[0]}, which no {owner.noun} left there, and would be replaced as a whole."
            raise FileError(what, f"move it away, or {CHOOSE}")
        if place.is_mount() or place.resolve() == Path.cwd():
            why = "a disk of its own" if place.is_mount() else "the folder you are in"
            raise FileError(f"{out} is {why}: it cannot be replaced as a whole.", "name a folder in it with --out.")
    # What is there is replaced by a rename, which its parent must allow.
    require_writable(place.absolute().parent if place.exists() else place, folder=True)
    return place


@contextlib.contextmanager
def whole_folder(out: Path, owner: Owner) -> Generator[Path]:
    """A folder to fill, which becomes `out` when all is in it: whoever looks sees the old one or the new one."""
    place = require_replaceable(out, owner)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    except OSError as error:
        raise unwritable(out, error) from error
    try:
        yield made
        write_mark(made, Mark(owner.command, finished=True))
        os.chmod(made, 0o777 & ~umask())  # temporary folders are private; this one becomes an ordinary one
        put(made, place, owner)
    except OSError as error:
        raise unwritable(out, error) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def put(made: Path, out: Path, owner: Owner) -> None:
    """A folder that is whole in the place of `out`."""
    require_replaceable(out, owner)  # minutes may have passed: somebody may have put something there
    try:
        if out.exists():
            _exchange(made, out)
        else:
            os.rename(made, out)
        sync_folder(out.parent)
    except OSError as error:
        raise unwritable(out, error) from error


def _bring_back(out: Path) -> None:
    """A folder that stepped aside, and whose process was killed before anything took its place, comes back."""
    if out.exists():
        return
    for old in sorted(out.parent.glob(f".{glob.escape(out.name)}{_ASIDE}*")):
        with contextlib.suppress(OSError):
            os.rename(old / out.name, out)
            old.rmdir()
            return


def _exchange(made: Path, out: Path) -> None:
    """A folder that holds files cannot be renamed over: it steps aside, and comes back whatever comes between, a second
    Ctrl-C too."""
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}{_ASIDE}", dir=out.parent))
    kept = old / out.name
    try:
        os.rename(out, kept)
        os.rename(made, out)
    finally:
        if kept.exists() and not out.exists():
            os.rename(kept, out)
        if made.exists():
            with contextlib.suppress(OSError):
                old.rmdir()  # what could not be put back stays in it
        else:
            shutil.rmtree(old, ignore_errors=True)
