"""The names of what runs leave in their folders, each said once."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from dashi.errors import FileError
from dashi.io.files import open_plain

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
"""Where a run works while a finished one is in its place."""
RESULTS: Final = (INPUTS, SHEET, STATE, CERTIFICATE, METRICS)
STORES: Final = ("fields.zarr", "pictures")
"""Those that are folders."""
SCORED: Final = "evaluation-*"
_LEFT: Final = frozenset(
    {
        *RESULTS, *STORES, SCORES, REPORT, CONTINUATION, SUMMARY, SCORED, "decoded.npz", "film.png", "model.npz",
        "state.png", "story.json", "trace.perfetto-trace", "z.npz",
    }
)  # fmt: skip
"""All that runs leave. A later run removes such a name only where the mark of the run before lists it too."""
GENERATOR: Final = '<meta name="generator" content="dashi report">'
"""Stands in the head of every page that was drawn here."""
_HEAD: Final = 4096
_LARGEST: Final = 1 << 34


def left_by_runs(name: str) -> bool:
    """Whether it is a name that runs give."""
    return is_among(name, _LEFT)


def is_among(name: str, names: Collection[str]) -> bool:
    """Whether a name is one of these, or of the kind that one with a star stands for."""
    return name in names or any("*" in pattern and fnmatchcase(name, pattern) for pattern in names)


def is_page(file: Path) -> bool:
    """Whether a file is a page that was drawn here."""
    try:
        with open_plain(file, _LARGEST, follow=False) as (opened, _):
            return GENERATOR.encode() in opened.read(_HEAD)
    except FileError:
        return False


def is_folder(path: Path) -> bool:
    """Whether it is a folder itself, and no link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_itself(path: Path) -> bool:
    """Whether there is an ordinary file or a folder of that name: no link, no device, no pipe."""
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
