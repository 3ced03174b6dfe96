"""The folder of `dashi demo`: filled beside its place while the work goes on, and put there when it is whole.

Until then it is `OUT-unfinished` (`OUT-unfinished-2`, ... where a run that was stopped left one): always a fresh one.
So a run that is stopped or killed replaces nothing and loses nothing, and a finished run is never half of one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Final

from dashi.cli.beforehand import require_writable
from dashi.cli.output import remark
from dashi.core.rollouts.interrupt import deferred_interrupt
from dashi.errors import FileError
from dashi.io.files import sync_folder, unwritable
from dashi.io.run_folder import CERTIFICATE, INPUTS, METRICS, SHEET, SUMMARY, require_ours
from dashi.io.run_mark import MARK

NAME: Final = "demo"
"""Of the command, as marks of run folders name it."""
PICTURE: Final = "state.png"
FILES: Final = frozenset(
    {
        CERTIFICATE, INPUTS, METRICS, SHEET, SUMMARY, PICTURE, "continuation.npz", "evaluation-test.json",
        "evaluation-test.npz", "evaluation-train.json", "evaluation-train.npz", "fields.zarr", "model.npz",
        "report.html", "story.json", "trace.perfetto-trace", "z.npz",
    }
)  # fmt: skip
"""All that the command ever leaves in its folder: what else is there is somebody else's, and is not replaced."""
_HARMLESS: Final = frozenset({MARK, ".DS_Store", ".directory"})
"""What this program and file managers put into folders; other hidden files, such as .git, are somebody's."""
_CHOOSE: Final = "choose another with --out."


def require_place(out: Path) -> Path:
    """Refuses, before any work, a place that could not be written or holds anything but an earlier demo. Gives the
    place itself where a link was named."""
    place = out.resolve() if out.is_symlink() or not out.name else out
    require_ours(place, NAME)
    if place.exists():
        foreign = sorted({path.name for path in place.iterdir()} - FILES - _HARMLESS)
        if foreign:
            what = f"{out} holds {foreign[0]}, which no demo left there, and would be replaced as a whole."
            raise FileError(what, f"move it away, or {_CHOOSE}")
        if place.is_mount() or place.resolve() == Path.cwd():
            why = "a disk of its own" if place.is_mount() else "the folder you are in"
            raise FileError(f"{out} is {why}: it cannot be replaced as a whole.", "name a folder in it with --out.")
    # What is there is replaced by a rename, which its parent must allow.
    require_writable(place.absolute().parent if place.exists() else place, folder=True)
    return place


@contextmanager
def beside(out: Path, again: str) -> Generator[Path]:
    """A fresh folder to fill, which becomes `out` at the end. If anything stops that, what is in it stays, and where it
    is and how to go on is told; `again` is the command that does the work anew."""
    folder = _fresh(out)
    try:
        yield folder
        with whole():
            _put(folder, out)
    except BaseException:
        _tell(folder, out, again)
        raise


@contextmanager
def whole() -> Generator[None]:
    """What is written within is written to its end before Ctrl-C counts; a second one counts at once."""
    with deferred_interrupt() as interrupt:
        yield
    if interrupt.asked:
        raise KeyboardInterrupt


def _fresh(out: Path) -> Path:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            folder = out.with_name(f"{out.name}-unfinished" + (f"-{number}" if number > 1 else ""))
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder
    except OSError as error:
        raise unwritable(out, error) from error
    raise AssertionError  # there is always another number


def _put(made: Path, out: Path) -> None:
    """In the place of `out`, which steps aside for an instant, and comes back if that fails."""
    try:
        require_place(out)  # minutes have passed: somebody may have put something there
        if out.exists():
            _exchange(made, out)
        else:
            os.rename(made, out)
        sync_folder(out.parent)
    except OSError as error:
        raise unwritable(out, error) from error


def _exchange(made: Path, out: Path) -> None:
    """A folder that holds files cannot be renamed over."""
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}-old-", dir=out.parent))
    try:
        os.rename(out, old / NAME)
        try:
            os.rename(made, out)
        except OSError:
            os.rename(old / NAME, out)
            raise
    except OSError:
        with suppress(OSError):
            old.rmdir()  # what could not be put back stays in it
        raise
    shutil.rmtree(old, ignore_errors=True)


def _tell(folder: Path, out: Path, again: str) -> None:
    """Where what was finished is, and how to go on."""
    if not folder.exists():
        remark(f"{out} is finished")
        return
    names = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    if not names:
        shutil.rmtree(folder, ignore_errors=True)
        remark(f"nothing was finished yet; `{again}` begins anew")
        return
    kept = f", and {out} is as it was" if out.exists() else ""
    remark(f"{folder} holds what was finished ({', '.join(names)}){kept}")
    remark(f"`dashi report {quote(str(folder))}` shows it, `{again}` begins anew")
