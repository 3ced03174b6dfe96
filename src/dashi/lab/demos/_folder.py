"""The folder of a demonstration: filled beside its place while the work goes on, and put there when it is whole.

Until then it is `OUT-unfinished` (`OUT-unfinished-2`, ... where a run that was stopped left one): always an empty one.
So a run that is stopped or killed replaces nothing and loses nothing, and a finished run is never half of one.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Final

from dashi.core.metrics._placement import Placement
from dashi.io._files import unwritable
from dashi.io._locks import BUSY, open_folder, try_lock
from dashi.io._parts import named_by, remove_stale
from dashi.io._paths import path_of
from dashi.io._run_names import files_left_by
from dashi.io._whole_folder import Owner, put, require_replaceable
from dashi.lab._job import AnyPath, Job, Request, uninterruptible
from dashi.lab.events import SILENT, Events
from dashi.runtime.device import Device

FILES: Final = files_left_by("demo")
"""All that the command ever leaves in its folder."""
OWNER: Final = Owner("demo", FILES, noun="demo")
"""Whose folders a demo may replace; that of a single demo has its settings too."""


def require_place(out: Path, owner: Owner = OWNER) -> Path:
    """Refuses, before any work, a place that could not be written or holds anything but an earlier demo that may be
    replaced. Gives the place itself where a link was named."""
    return require_replaceable(out, owner)


def command_of(words: Sequence[str], spec: str, out: Path) -> str:
    """The command that repeats a demonstration on the device where it ran; `words` choose which one."""
    return shlex.join(["dashi", "demo", *words, "--device", spec, "--out", str(out)])


@dataclass(frozen=True, eq=False)
class DemoJob:
    """A demonstration that may begin: the job, the place itself where its folder will lie, and whose folder that is."""

    job: Job
    place: Path
    owner: Owner
    words: tuple[str, ...]
    """The words that choose this demonstration on the command line."""

    def open_folder(self, placed: Placement) -> AbstractContextManager[Path]:
        """An empty folder to fill, which takes its place at the end."""
        again = command_of(self.words, placed.device.info.spec, self.job.out or self.place)
        return publish_folder(self.place, again, self.owner, self.job.events)


def begin_demo(
    request: Request,
    settings: Mapping[str, object],
    words: tuple[str, ...],
    *,
    device: str | Device,
    out: AnyPath,
    overwrite: bool,
    events: Events,
) -> DemoJob:
    """A demonstration with these settings. Refuses, before any work, a place that it may not replace."""
    owner = replace(OWNER, settings=settings, overwrite=overwrite)
    place = path_of("out", out)
    job = Job(command="demo", request=request, device=device, out=place, overwrite=overwrite, events=events)
    return DemoJob(job, require_place(place, owner), owner, words)


@contextmanager
def publish_folder(out: Path, again: str, owner: Owner = OWNER, events: Events = SILENT) -> Generator[Path]:
    """An empty folder to fill, which becomes `out` at the end. If anything stops that, what is in it stays, and where
    it is and how to go on is told; `again` is the command that does the work anew."""
    folder, handle = _empty(out)
    try:
        yield folder
        with uninterruptible():
            put(folder, out, owner)
    except BaseException:
        _tell(folder, out, again, events)
        raise
    finally:
        os.close(handle)


def _empty(out: Path) -> tuple[Path, int]:
    """A folder with nothing in it, and the handle that holds its lock: no other demo takes it."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        for number in count(1):
            folder = out.with_name(f"{out.name}-unfinished" + (f"-{number}" if number > 1 else ""))
            try:
                folder.mkdir()
            except FileExistsError:
                if folder.is_symlink() or not folder.is_dir():
                    continue
            handle = open_folder(folder)
            if try_lock(handle) != BUSY:
                _remove_half_written(folder)
                if not any(folder.iterdir()):
                    return folder, handle
            os.close(handle)
    except OSError as error:
        raise unwritable(out, error) from error
    raise AssertionError  # there is always another number


def _remove_half_written(folder: Path) -> None:
    """Removes what a demo that was killed while it wrote left half written; all else is for whoever looks at it."""
    for at, folders, names in os.walk(folder):
        for name in (*folders, *names):
            if named_by(name) is not None:
                remove_stale(Path(at, name))


def _tell(folder: Path, out: Path, again: str, events: Events) -> None:
    """Where what was finished is, and how to go on."""
    if not folder.exists():
        events.remark(f"{out} is finished")
        return
    names = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    if not names:
        shutil.rmtree(folder, ignore_errors=True)
        events.remark(f"nothing was finished yet; `{again}` begins anew")
        return
    unchanged = f", and {out} is as it was" if out.exists() else ""
    events.remark(f"{folder} holds what was finished ({len(names)} file{'s' * (len(names) != 1)}){unchanged}")
    events.remark(f"`dashi report {shlex.quote(str(folder))}` shows it, `{again}` begins anew")
