"""The page of a run, written where it belongs: over an earlier report, never over anything else."""

from __future__ import annotations

from pathlib import Path

from dashi.errors import FileError
from dashi.io._files import require_writable, unwritable
from dashi.io._paths import path_of
from dashi.io._run_folder import REPORT
from dashi.report.page import is_report, write_report
from dashi.report.run import read_run


def write(folder: str | Path, out: str | Path | None = None) -> Path:
    """Writes the report of the run in a folder, `report.html` in it unless `out` names another file, and returns where
    it is. Whatever the folder holds is shown; what is damaged is an error, and an earlier report stays."""
    place = path_of("folder", folder)
    file = require_place(place, None if out is None else path_of("out", out))
    write_report(file, read_run(place))
    return file


def require_place(folder: Path, out: Path | None) -> Path:
    """The file that the report of a run folder goes to. Raises before anything is drawn where there is no such folder,
    the place cannot be written, or it holds anything but an earlier report."""
    if not folder.is_dir():
        raise FileError(f"{folder} is not the folder of a run.", "name one, for instance runs/demo.")
    file = out or folder / REPORT
    if out is None and file.is_symlink():
        raise FileError(f"{file} is a link, which may lead anywhere.", "remove it, or name a file with `out=`.")
    require_report(file)
    return file


def require_report(file: Path) -> None:
    """Refuses a place that cannot be written or holds anything but an earlier report."""
    if file.is_dir():
        raise FileError(f"{file} is a folder.", "name a file with `out=`.")
    if file.exists() and not file.is_file():
        return  # a pipe or a device holds nothing that could be lost
    require_writable(file.resolve())
    try:
        ours = not file.exists() or not file.stat().st_size or is_report(file)
    except OSError as error:
        raise unwritable(file, error) from error
    if not ours:
        raise FileError(f"{file} is there already and is no report.", "choose another with `out=`, or move it away.")
