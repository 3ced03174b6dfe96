"""Run folders: what a run leaves behind, under names that stay the same.

Two kinds. `whole_folder` is filled aside and put in its place when all is in it. `open_run` is a folder that lives
while the run does, so that a run that was killed can be resumed: every file in it is written all or nothing, the mark
first, and the checkpoint goes away last, when everything else is there. A run that finds a finished one in its place
works in the folder `unfinished` beside those files, and takes their place when it is finished itself: until then they
stay as they are.
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
from dashi.io.files import sync_folder, umask, unwritable
from dashi.io.run_mark import Mark, read_mark, write_mark

METRICS: Final = "metrics.json"
CERTIFICATE: Final = "certificate.json"
STATE: Final = "state.npz"
SHEET: Final = "sheet_energy.npy"
INPUTS: Final = "inputs.npz"
CHECKPOINT: Final = "checkpoint.npz"
SUMMARY: Final = "summary.json"
SCORES: Final = "evaluation.json"
REPORT: Final = "report.html"
UNFINISHED: Final = "unfinished"
RESULTS: Final = (INPUTS, SHEET, STATE, CERTIFICATE, METRICS)
_LEFT: Final = frozenset(
    {*RESULTS, SCORES, REPORT, "continuation.npz", "decoded.npz", "fields.zarr", "film.png", "pictures", "z.npz"}
)
"""All that runs of `open_run` leave, but the scores named `evaluation-*`: what the next one replaces."""

_PART: Final = ".*.part"
_CHOOSE: Final = "choose another with --out."


@contextlib.contextmanager
def whole_folder(out: Path, command: str) -> Generator[Path]:
    """A folder to fill, which becomes `out` when all is in it: whoever looks sees the old one or the new one."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        require_ours(out, command)
        made = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise unwritable(out, error) from error
    try:
        yield made
        write_mark(made, Mark(command, finished=True))
        os.chmod(made, 0o777 & ~umask())  # temporary folders are private; this one becomes an ordinary one
        _put(made, out)
    except OSError as error:
        raise unwritable(out, error) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def open_run(out: Path, resume: bool, command: str, line: str = "") -> Path:
    """The folder of a run that begins, or goes on: `out`, or `out/unfinished` where a finished run is in `out`. What an
    interrupted run left is never written over unasked. `line` is what was typed."""
    try:
        require_ours(out, command)
        _take_place(out)  # a run that was killed between its end and its place
        place = _place(out)
        checkpoint = place / CHECKPOINT
        if resume and not checkpoint.is_file():
            raise FileError(f"{out} holds no checkpoint to go on from.", "leave --resume away, or correct --out.")
        if checkpoint.exists() and not resume:
            raise FileError(
                f"{out} holds a run that was interrupted.",
                f"go on with --resume, choose another with --out, or remove {checkpoint}.",
            )
        if place != out and not resume and place.exists():
            shutil.rmtree(place)  # what a run left that cannot go on
        place.mkdir(parents=True, exist_ok=True)
        for left in [*out.glob(_PART), *place.rglob(_PART)]:  # by a run that was killed while it wrote
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(out, error) from error
    before = _mark(place) if resume else None
    lines = (*(before.lines if before else ()), *([line] if line else []))
    write_mark(place, Mark(command, finished=False, aside=place != out, lines=lines))
    return place


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
        left = tuple(sorted(path.name for path in folder.iterdir() if _left_by_runs(path.name)))
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
        raise FileError(f"{out} is there already and is not the folder of a run.", _CHOOSE)
    try:
        mark = _mark(out)
        foreign = mark is None and any(not path.name.startswith(".") for path in out.iterdir())
    except OSError as error:
        raise unwritable(out, error) from error
    if foreign:
        raise FileError(f"{out} is there already and is not the folder of a run.", _CHOOSE)
    if mark is not None and mark.command not in ("", command):
        what = f"{out} holds a run of `dashi {mark.command}`, and one of `dashi {command}` has a folder of its own."
        raise FileError(what, _CHOOSE)


def _mark(folder: Path) -> Mark | None:
    return read_mark(folder, checkpoint=CHECKPOINT, telling=(SUMMARY, CHECKPOINT, METRICS, INPUTS, SCORES))


def _place(out: Path) -> Path:
    """Where a run works: aside, if what is in `out` is finished."""
    if not out.is_dir():
        return out
    mark, aside = _mark(out), out / UNFINISHED
    if mark is None or not mark.finished:
        return out
    if aside.exists() and (not aside.is_dir() or _mark(aside) is None) and any(aside.iterdir()):
        raise FileError(f"{aside} is there already and was left by no run.", f"rename it, or {_CHOOSE}")
    return aside


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
    for name in mark.files:
        if (new / name).exists():
            if (out / name).is_dir():
                _remove(out / name)
            os.replace(new / name, out / name)
    write_mark(out, replace(mark, aside=False))
    shutil.rmtree(new)
    return out


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


def _put(made: Path, out: Path) -> None:
    if not out.exists():
        os.rename(made, out)
        return
    # A folder that holds files cannot be renamed over: it steps aside for an instant.
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}-old-", dir=out.parent))
    os.rename(out, old / "run")
    os.rename(made, out)
    shutil.rmtree(old, ignore_errors=True)
