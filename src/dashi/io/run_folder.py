"""Run folders: what a run leaves behind, under names that stay the same.

Two kinds. `whole_folder` is filled aside and put in its place when all is in it. `open_run` is a folder that lives
while the run does, so that a run that was killed can be resumed: every file in it is written all or nothing, and the
checkpoint goes away last, when everything else is there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Generator
from pathlib import Path
from typing import Final

from dashi.errors import FileError
from dashi.io.files import sync_folder, umask, unwritable

METRICS: Final = "metrics.json"
CERTIFICATE: Final = "certificate.json"
STATE: Final = "state.npz"
SHEET: Final = "sheet_energy.npy"
INPUTS: Final = "inputs.npz"
CHECKPOINT: Final = "checkpoint.npz"
SUMMARY: Final = "summary.json"
RESULTS: Final = (INPUTS, SHEET, STATE, CERTIFICATE, METRICS)

_CHOOSE: Final = "choose another with --out."


@contextlib.contextmanager
def whole_folder(out: Path) -> Generator[Path]:
    """A folder to fill, which becomes `out` when all is in it: whoever looks sees the old one or the new one."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _require_ours(out)
        made = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise unwritable(out, error) from error
    try:
        yield made
        os.chmod(made, 0o777 & ~umask())  # temporary folders are private; this one becomes an ordinary one
        _put(made, out)
    except OSError as error:
        raise unwritable(out, error) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def open_run(out: Path, resume: bool) -> Path:
    """The folder of a run that begins, or goes on. What an interrupted run left is never written over unasked."""
    try:
        _require_ours(out)
        checkpoint = out / CHECKPOINT
        if resume and not checkpoint.is_file():
            raise FileError(f"{out} holds no checkpoint to go on from.", "leave --resume away, or correct --out.")
        if checkpoint.exists() and not resume:
            raise FileError(
                f"{out} holds a run that was interrupted.",
                f"go on with --resume, choose another with --out, or remove {checkpoint}.",
            )
        out.mkdir(parents=True, exist_ok=True)
        for left in out.glob(".*.part"):  # by a run that was killed while it wrote
            left.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(out, error) from error
    return out


def close_run(out: Path, written: Collection[str], finished: bool) -> None:
    """Removes what an earlier run left here and this one did not write; of a finished run, the checkpoint too."""
    for name in RESULTS:
        if name not in written:
            (out / name).unlink(missing_ok=True)
    sync_folder(out)
    if finished:
        (out / CHECKPOINT).unlink(missing_ok=True)
        sync_folder(out)


def _require_ours(out: Path) -> None:
    """What is written over must be an earlier run, or empty."""
    if not out.exists():
        return
    if out.is_dir():
        names = {path.name for path in out.iterdir() if not path.name.startswith(".")}
        if not names or names & {SUMMARY, CHECKPOINT, METRICS, INPUTS}:
            return
    raise FileError(f"{out} is there already and is not the folder of a run.", _CHOOSE)


def _put(made: Path, out: Path) -> None:
    if not out.exists():
        os.rename(made, out)
        return
    # A folder that holds files cannot be renamed over: it steps aside for an instant.
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}-old-", dir=out.parent))
    os.rename(out, old / "run")
    os.rename(made, out)
    shutil.rmtree(old, ignore_errors=True)
