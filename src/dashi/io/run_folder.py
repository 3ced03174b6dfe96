"""Run folders: what a run leaves behind, under names that stay the same.

The folder lives while the run does, so that a run that was killed can be resumed: every file in it is written all or
nothing, the mark first, and the checkpoint goes away last, when everything else is there. A run that finds a finished
one in its place works in the folder `unfinished` beside those files, and takes their place when it is finished itself:
until then they stay as they are. What a stopped run left stays until the next run begins in the same folder. Folders
that are replaced as a whole are in `whole_folder`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Generator
from dataclasses import replace
from pathlib import Path
from typing import Final

from dashi.errors import FileError
from dashi.io.files import sync_folder, unwritable
from dashi.io.folder_lock import locked
from dashi.io.run_mark import Mark, read_mark, write_mark

METRICS: Final = "metrics.json"
CERTIFICATE: Final = "certificate.json"
STATE: Final = "state.npz"
SHEET: Final = "sheet_energy.npy"
INPUTS: Final = "inputs.npz"
CHECKPOINT: Final = "checkpoint.npz"
SUMMARY: Final = "summary.json"
SCORES: Final = "evaluation.json"
CONTINUATION: Final = "continuation.npz"
"""The energies of the canonical figure, of the first window."""
REPORT: Final = "report.html"
UNFINISHED: Final = "unfinished"
RESULTS: Final = (INPUTS, SHEET, STATE, CERTIFICATE, METRICS)
_LEFT: Final = frozenset(
    {*RESULTS, SCORES, REPORT, CONTINUATION, "decoded.npz", "fields.zarr", "film.png", "pictures", "z.npz"}
)
"""What runs leave beside anybody else's files, but the scores named `evaluation-*`: a later run removes it."""

_PART: Final = ".*.part"
CHOOSE: Final = "choose another with --out."
"""What helps where a place is not free."""


@contextlib.contextmanager
def open_run(out: Path | None, resume: bool, command: str, line: str = "") -> Generator[Path | None]:
    """The folder of a run that begins, or goes on: `out`, or `out/unfinished` where a finished run is in `out`; none
    where none was asked for. What an interrupted run left is never written over unasked, and no other run has the
    folder while this one does. `line` is what was typed."""
    if out is None:
        yield None
        return
    require_ours(out, command)
    if resume and not out.exists():
        raise _no_checkpoint(out)  # before a folder is made for it
    with locked(out):
        yield _open(out, resume, command, line)


def _open(out: Path, resume: bool, command: str, line: str) -> Path:
    try:
        _take_place(out)  # a run that was killed between its end and its place
        place = _place(out)
        checkpoint = place / CHECKPOINT
        if resume and not checkpoint.is_file():
            raise _no_checkpoint(out)
        if checkpoint.exists() and not resume:
            raise FileError(
                f"{out} holds a run that was interrupted.",
                f"go on with --resume, choose another with --out, or remove {checkpoint}.",
            )
        if not resume and place.is_dir():
            _clear(place, whole=place != out)
        place.mkdir(exist_ok=True)
        for left in [*out.glob(_PART), *place.rglob(_PART)]:  # by a run that was killed while it wrote
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(out, error) from error
    before = _mark(place) if resume else None
    lines = (*(before.lines if before else ()), *([line] if line else []))
    write_mark(place, Mark(command, finished=False, aside=place != out, lines=lines))
    return place


def settle(folder: Path) -> None:
    """Before a folder is read: finishes what a run that was killed between its end and its place left half done. Where
    that cannot be written, it stays so."""
    if (folder / UNFINISHED).is_dir():
        with contextlib.suppress(OSError, FileError), locked(folder):
            _take_place(folder)


def _no_checkpoint(out: Path) -> FileError:
    return FileError(f"{out} holds no checkpoint to go on from.", "leave --resume away, or correct --out.")


def typed_for(folder: Path) -> tuple[str, ...]:
    """The command lines that began the run of a folder, and went on with it; none where nobody knows."""
    mark = _mark(folder)
    return mark.lines if mark else ()


def close_run(folder: Path, written: Collection[str], finished: bool) -> Path:
    """Removes what an earlier run left here and this one did not write; of a finished run, the checkpoint too. Gives
    where the run lies now: a finished one took the place of the finished run that was there before."""
    try:
        for name in RESULTS:
            if name not in written:
                (folder / name).unlink(missing_ok=True)
        (folder / REPORT).unlink(missing_ok=True)  # of what was here before
        sync_folder(folder)
        if not finished:
            return folder
        mark = _mark(folder) or Mark("", finished=False)
        # What is aside is this run's, all of it. Elsewhere others may have put something beside it.
        there = sorted(path.name for path in folder.iterdir())
        left = tuple(name for name in there if (_may_move(name) if mark.aside else _left_by_runs(name)))
        write_mark(folder, replace(mark, finished=True, files=left))
        (folder / CHECKPOINT).unlink(missing_ok=True)
        sync_folder(folder)
        return _take_place(folder.parent) if mark.aside else folder
    except OSError as error:
        raise unwritable(folder, error) from error


def require_ours(out: Path, command: str) -> None:
    """What is written over must be an earlier run of the same command, or empty."""
    if not out.exists():
        return
    if not out.is_dir():
        raise FileError(f"{out} is there already and is not the folder of a run.", CHOOSE)
    if out.name == UNFINISHED and _mark(out.parent):
        raise FileError(f"{out} is where runs of {out.parent} work.", f"give --out {out.parent}, or {CHOOSE}")
    try:
        mark = _mark(out)
        foreign = mark is None and any(not path.name.startswith(".") for path in out.iterdir())
    except OSError as error:
        raise unwritable(out, error) from error
    if foreign:
        raise FileError(f"{out} is there already and is not the folder of a run.", CHOOSE)
    if mark is not None and mark.command not in ("", command):
        what = f"{out} holds a run of `dashi {mark.command}`, and one of `dashi {command}` has a folder of its own."
        raise FileError(what, CHOOSE)


def _mark(folder: Path) -> Mark | None:
    return read_mark(folder, checkpoint=CHECKPOINT, telling=(SUMMARY, CHECKPOINT, METRICS, INPUTS, SCORES))


def _place(out: Path) -> Path:
    """Where a run works: aside, if what is in `out` is finished."""
    if not out.is_dir():
        return out
    mark, aside = _mark(out), out / UNFINISHED
    if mark is None or not mark.finished:
        return out
    if aside.exists():
        left = _mark(aside) if aside.is_dir() else None
        if left is None and (not aside.is_dir() or any(aside.iterdir())):
            raise FileError(f"{aside} is there already and was left by no run.", f"rename it, or {CHOOSE}")
        if left is not None and left.finished:
            raise FileError(f"{aside} holds a finished run.", f"move it elsewhere, or {CHOOSE}")
    return aside


def _clear(place: Path, whole: bool) -> None:
    """Removes what a run left that cannot go on, so that two runs are never mixed: all of a folder that is a run's
    alone, else what runs leave."""
    for path in list(place.iterdir()):
        if whole or _left_by_runs(path.name):
            _remove(path)


def _take_place(out: Path) -> Path:
    """Puts a finished run that worked aside in the place of the one before. Killed in between, it is done again: the
    mark, which lists all files, goes last."""
    new = out / UNFINISHED
    mark = _mark(new) if new.is_dir() else None
    if mark is None or not mark.finished or not mark.aside:
        return out
    for old in list(out.iterdir()):
        if old.name not in mark.files and _left_by_runs(old.name):
            _remove(old)
    for name in filter(_may_move, mark.files):
        if (new / name).exists():
            if (out / name).is_dir():
                _remove(out / name)
            os.replace(new / name, out / name)
    write_mark(out, replace(mark, aside=False))
    shutil.rmtree(new)
    return out


def _may_move(name: str) -> bool:
    """Whether a file of a run that worked aside has a place outside."""
    return name not in (CHECKPOINT, UNFINISHED) and not name.startswith(".")


def _left_by_runs(name: str) -> bool:
    return name in _LEFT or name.startswith("evaluation-")


def _remove(path: Path) -> None:
    """A file or folder; a folder under another name first, so that nobody sees half of it."""
    if not path.is_dir():
        path.unlink()
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", suffix=".part", dir=path.parent))
    os.rename(path, aside / path.name)
    shutil.rmtree(aside)
