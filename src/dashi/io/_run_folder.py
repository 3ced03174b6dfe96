"""Run folders: what a run leaves behind, under names that stay the same.

The folder lives while the run does, so that a run that was killed can be resumed: every file in it is written all or
nothing, the mark first, and the checkpoint goes away last, when everything else is there. A run that finds a finished
one in its place works in the folder `unfinished` beside those files, and takes their place when it is finished itself:
until then they stay as they are. What a stopped run left stays until the next run begins in the same folder.

Only a run writes here, under the folder's lock. What it may leave it declares when it begins; it removes and replaces
nothing but what the mark of the run before lists. Reading is in `_run_reading`, folders that are replaced as a whole in
`_whole_folder`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from dashi.errors import FileError
from dashi.io._files import sync_folder, unwritable
from dashi.io._folder_lock import locked
from dashi.io._parts import named_by, remove, remove_part, remove_stale
from dashi.io._run_mark import MARK, Mark, as_settings, read_mark, write_mark
from dashi.io._run_names import (
    CERTIFICATE,
    CHECKPOINT,
    CONTINUATION,
    INPUTS,
    METRICS,
    REPORT,
    RESULTS,
    SCORED,
    SCORES,
    SHEET,
    STATE,
    STATES,
    STORES,
    SUMMARY,
    UNFINISHED,
    is_among,
    is_folder,
    is_itself,
    is_page,
    left_by_runs,
)

__all__ = [
    "CERTIFICATE", "CHECKPOINT", "CHOOSE", "CONTINUATION", "INPUTS", "METRICS", "REPORT", "RESULTS", "SCORED", "SCORES",
    "SHEET", "STATE", "STATES", "SUMMARY", "UNFINISHED", "close_run", "open_run", "reopen_run", "require_asked",
    "require_ours",
]  # fmt: skip

CHOOSE: Final = "choose another with `out=`."
"""What helps where a place is not free."""


@contextlib.contextmanager
def open_run(
    out: Path | None, resume: bool, command: str, line: str = "", *, files: Collection[str] = RESULTS,
    settings: Mapping[str, object] | None = None, overwrite: bool = False,
) -> Generator[Path | None]:  # fmt: skip
    """The folder of a run that begins, or goes on: `out`, or `out/unfinished` where a finished run is in `out`; none
    where none was asked for. What an interrupted run left, and a finished run of another command or with other
    settings, is never replaced unasked (`overwrite`), and no other run has the folder while this one does. `files` are
    the names that it may leave, `settings` decide its results, `line` is what was typed."""
    if out is None:
        yield None
        return
    require_ours(out, command, overwrite=overwrite)
    if resume and not out.exists():
        raise _no_checkpoint(out)  # before a folder is made for it
    begun = Mark(command, False, tuple(files), lines=(line,) if line else (), settings=as_settings(settings or {}))
    with locked(out):
        yield _open(out, resume, begun, overwrite)


def _open(out: Path, resume: bool, begun: Mark, overwrite: bool) -> Path:
    try:
        _take_place(out)  # a run that was killed between its end and its place
        before, place = _mark(out), _place(out)
        checkpoint = place / CHECKPOINT
        if resume and not is_itself(checkpoint):
            raise _no_checkpoint(out)
        if os.path.lexists(checkpoint) and not resume and not overwrite:
            raise FileError(
                f"{out} holds a run that was interrupted.",
                f"go on with `resume=True`, replace it with `overwrite=True`, {CHOOSE[:-1]}, or remove {checkpoint}.",
            )
        if resume:
            _refuse_links(place, begun.files)
        else:
            if before is not None:
                require_asked(out, before, begun, overwrite=overwrite)
            _refuse_foreign(out, before, begun.files)
            _clear(place, whole=place != out)
        place.mkdir(exist_ok=True)
        _sweep(out, place)
        left = _mark(place) if resume else None
    except OSError as error:
        raise unwritable(out, error) from error
    lines = (*(left.lines if left else ()), *begun.lines)
    write_mark(place, replace(begun, aside=place != out, lines=lines))
    return place


def _no_checkpoint(out: Path) -> FileError:
    return FileError(f"{out} holds no checkpoint to go on from.", "leave `resume=True` away, or correct `out=`.")


def close_run(folder: Path, written: Collection[str], finished: bool) -> Path:
    """Removes what an earlier run left here and this one did not write; of a finished run, the checkpoint too. Gives
    where the run lies now: a finished one took the place of the finished run that was there before."""
    try:
        mark = _mark(folder) or Mark("", finished=False)
        for name in RESULTS:
            if name not in written and is_among(name, mark.files):
                (folder / name).unlink(missing_ok=True)
        _remove_page(folder)  # of what was here before
        sync_folder(folder)
        if not finished:
            return folder
        # What is aside is this run's, all of it. Elsewhere others may have put something beside it.
        there = sorted(path.name for path in folder.iterdir())
        left = tuple(name for name in there if (_may_move(name) if mark.aside else is_among(name, mark.files)))
        write_mark(folder, replace(mark, finished=True, files=left))
        (folder / CHECKPOINT).unlink(missing_ok=True)
        sync_folder(folder)
        return _take_place(folder.parent) if mark.aside else folder
    except OSError as error:
        raise unwritable(folder, error) from error


def reopen_run(out: Path, command: str, keep: Callable[[Path], None]) -> None:
    """Makes a finished run one that can go on. `keep` writes its checkpoint to the path it is given, all or nothing:
    with it the run counts as interrupted, and what it left stays."""
    require_ours(out, command)
    with locked(out):
        try:
            _take_place(out)
            mark = _mark(out)
        except OSError as error:
            raise unwritable(out, error) from error
        if mark is None or not mark.there:
            raise FileError(f"{out} holds no run to go on with.", "start a new one: leave `resume=True` away.")
        if mark.finished:
            keep(out / CHECKPOINT)


def require_ours(out: Path, command: str, *, overwrite: bool = False) -> None:
    """What is written over must be an earlier run of the same command (of any, where that is asked for), or empty."""
    if not out.exists():
        return
    if not out.is_dir():
        raise FileError(f"{out} is there already and is not the folder of a run.", CHOOSE)
    try:
        for link in (out / MARK, out / UNFINISHED):
            if link.is_symlink():
                raise FileError(f"{link} is a link: a run writes in its own folder alone.", f"remove it, or {CHOOSE}")
        if out.name == UNFINISHED and _mark(out.parent):
            raise FileError(f"{out} is where runs of {out.parent} work.", f"give `out={out.parent}`, or {CHOOSE}")
        mark = _mark(out)
        foreign = mark is None and any(not path.name.startswith(".") for path in out.iterdir())
    except OSError as error:
        raise unwritable(out, error) from error
    if foreign:
        raise FileError(f"{out} is there already and is not the folder of a run.", CHOOSE)
    if mark is not None and mark.command not in ("", command) and not overwrite:
        what = f"{out} holds a run of `dashi {mark.command}`, and one of `dashi {command}` has a folder of its own."
        raise FileError(what, f"replace it with `overwrite=True`, or {CHOOSE}")


def require_asked(out: Path, before: Mark, begun: Mark, *, overwrite: bool) -> None:
    """Refuses to replace a finished run with other settings, or of which nobody knows them, unless that is asked."""
    if overwrite or not before.finished or (before.settings is not None and before.settings == begun.settings):
        return
    if before.settings is None:
        other = "of an earlier version, which does not say with which settings"
    else:
        old, new = before.settings, begun.settings or {}
        name = next(name for name in {**new, **old} if old.get(name) != new.get(name))
        other = f"with other settings ({name} is {old.get(name, 'not said')} there, {new.get(name, 'not said')} here)"
    what = f"{out} holds a finished run of `dashi {before.command or begun.command}` {other}."
    raise FileError(what, f"replace it with `overwrite=True`, or {CHOOSE}")


def _mark(folder: Path) -> Mark | None:
    return read_mark(folder, checkpoint=CHECKPOINT, telling=(SUMMARY, CHECKPOINT, METRICS, INPUTS, SCORES))


def _place(out: Path) -> Path:
    """Where a run works: aside, if what is in `out` is finished."""
    mark, aside = _mark(out), out / UNFINISHED
    if mark is None or not mark.finished:
        return out
    if not mark.there:
        what = f"{out} was left by an earlier version, which does not say what is its own there."
        raise FileError(what, f"move it away, or {CHOOSE}")
    if os.path.lexists(aside):
        left = _mark(aside) if is_folder(aside) else None
        if left is None and not (is_folder(aside) and all(named_by(path.name) == MARK for path in aside.iterdir())):
            raise FileError(f"{aside} is there already and was left by no run.", f"rename it, or {CHOOSE}")
        if left is not None and left.finished:
            raise FileError(f"{aside} holds a finished run.", f"move it elsewhere, or {CHOOSE}")
    return aside


def _refuse_foreign(out: Path, before: Mark | None, files: Collection[str]) -> None:
    """Refuses, before the work, a folder in which somebody else put what the run may leave; and links."""
    listed = before.files if before else ()
    for path in out.iterdir():
        if is_among(path.name, files) and (path.is_symlink() or not is_among(path.name, listed)):
            raise _foreign(path)


def _foreign(path: Path) -> FileError:
    why = "a link" if path.is_symlink() else "there, and no run left it"
    return FileError(f"{path} is {why}: it is not replaced.", f"move it away, or {CHOOSE}")


def _refuse_links(place: Path, files: Collection[str]) -> None:
    """Refuses to go on where links stand for what the run writes, at any depth."""
    tops = [path for path in place.iterdir() if is_among(path.name, (*files, CHECKPOINT, MARK))]
    for path in tops:
        for folder, folders, names in os.walk(path) if is_folder(path) else ():
            tops += [link for name in (*folders, *names) if (link := Path(folder, name)).is_symlink()]
    for path in tops:
        if path.is_symlink():
            raise _foreign(path)


def _clear(place: Path, *, whole: bool) -> None:
    """Removes what a run left that cannot go on, so that two runs are never mixed: all of a folder that is a run's
    alone, but its mark; else what its mark lists."""
    if not is_folder(place):
        return
    mark = _mark(place)
    listed = (*mark.files, CHECKPOINT) if mark is not None and mark.there else ()
    for path in list(place.iterdir()):
        if whole and path.name != MARK:
            remove_part(path)
        elif not whole and is_among(path.name, listed) and (left_by_runs(path.name) or path.name == CHECKPOINT):
            remove(path)
    if not whole:
        _remove_page(place)


def _sweep(out: Path, place: Path) -> None:
    """Removes what a process that was killed while it wrote left half written."""
    known = {MARK, CHECKPOINT, UNFINISHED, out.name, place.name}
    for folder in {out, place}:
        for path in list(folder.iterdir()):
            name = named_by(path.name)
            if name is not None and (name in known or left_by_runs(name)):
                remove_stale(path)
    for store in STORES:
        for folder, folders, names in os.walk(place / store):
            for name in (*folders, *names):
                if named_by(name) is not None:
                    remove_stale(Path(folder, name))


def _take_place(out: Path) -> Path:
    """Puts a finished run that worked aside in the place of the one before. Killed in between, it is done again: the
    mark, which lists all files, goes last."""
    new = out / UNFINISHED
    mark = _mark(new) if is_folder(new) else None
    if mark is None or not mark.finished or not mark.aside:
        return out
    before = _mark(out)
    old = {name for name in before.files if left_by_runs(name)} if before else set[str]()
    coming = [name for name in mark.files if _may_move(name) and is_itself(new / name)]
    for name in coming:
        if os.path.lexists(out / name) and name not in old and not (name == REPORT and is_page(out / name)):
            raise FileError(
                f"{out / name} is there, and no run left it: the run that is finished stays in {new}.",
                "move it away, and run the same command again.",
            )
    for name in old - set(mark.files):
        if os.path.lexists(out / name):
            remove(out / name)
    if REPORT not in mark.files:
        _remove_page(out)
    for name in coming:
        if is_folder(out / name):
            remove(out / name)
        os.replace(new / name, out / name)
    write_mark(out, replace(mark, aside=False))
    _clear(new, whole=True)
    (new / MARK).unlink(missing_ok=True)
    new.rmdir()
    return out


def _remove_page(folder: Path) -> None:
    """The page of an earlier run, which `dashi report` may have drawn since; a file that is none stays."""
    if is_page(folder / REPORT):
        (folder / REPORT).unlink()


def _may_move(name: str) -> bool:
    """Whether a file of a run that worked aside has a place outside."""
    return name not in (CHECKPOINT, UNFINISHED) and not name.startswith(".")
