"""The files of run folders, each declared once: its name, who writes it, what it means."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from dashi.errors import FileError
from dashi.io._files import open_plain

METRICS: Final = "metrics.json"
CERTIFICATE: Final = "certificate.json"
STATE: Final = "state.npz"
STATES: Final = "states"
SHEET: Final = "sheet_energy.npy"
INPUTS: Final = "inputs.npz"
CHECKPOINT: Final = "checkpoint.npz"
FIELDS: Final = "fields.zarr"
DECODED: Final = "decoded.npz"
PICTURES: Final = "pictures"
FILM: Final = "film.png"
Z: Final = "z.npz"
MODEL: Final = "model.npz"
SCORES: Final = "evaluation.json"
SCORED: Final = "evaluation-*"
EVALUATION: Final = "evaluation-test.npz"
EVALUATION_TABLE: Final = "evaluation-test.json"
TRAINING: Final = "evaluation-train.npz"
TRAINING_TABLE: Final = "evaluation-train.json"
CONTINUATION: Final = "continuation.npz"
SUMMARY: Final = "summary.json"
STORY: Final = "story.json"
TRACE: Final = "trace.perfetto-trace"
PICTURE: Final = "state.png"
REPORT: Final = "report.html"
SHARD: Final = "shard.json"
BENCH: Final = "bench.json"
TRUTH: Final = "truth.npz"
BENCHMARK: Final = "benchmark.json"
BENCHMARK_TABLE: Final = "benchmark.md"
HASHED: Final = "states.zarr"
ATOMS: Final = "atoms.json"
ATOM_EVENTS: Final = "events.json"
PARTS: Final = "shard-*"
STREAM: Final = "stream.json"
SNAPSHOTS: Final = "snapshots"
UNFINISHED: Final = "unfinished"
"""Where a run works while a finished one is in its place."""


@dataclass(frozen=True)
class RunFile:
    """A file of run folders; a name with a star stands for several."""

    name: str
    writers: tuple[str, ...]
    """The commands that leave it."""
    meaning: str
    is_folder: bool = False
    is_passing: bool = False
    """Whether it goes away when the run is finished."""


_RUNS: Final = ("rollout", "flow simulate", "flow rollout", "filament run", "demo")
RUN_FILES: Final = (
    RunFile(
        METRICS,
        (*_RUNS, "stream run"),
        "where it ran and what it did: device, strategy, dispatches, memory, times, verdict",
    ),
    RunFile(CERTIFICATE, (*_RUNS, "flow benchmark"), "what `dashi verify` repeats: inputs, operator, hashes"),
    RunFile(
        INPUTS,
        (*_RUNS, "flow benchmark"),
        "the arrays that the certificate names: initial states, arrays of the operator",
    ),
    RunFile(STATE, ("rollout", "flow simulate", "flow rollout", "filament run"), "the last states, and their step"),
    RunFile(
        STATES, ("rollout", "flow simulate", "flow rollout"), "states on the way, of `--states-every`", is_folder=True
    ),
    RunFile(SHEET, ("rollout", "demo"), "energies of bands over time, for `dashi sheet view`"),
    RunFile(
        CHECKPOINT,
        ("rollout", "flow simulate", "filament run"),
        "what a stopped run goes on from with `--resume`",
        is_passing=True,
    ),
    RunFile(ATOM_EVENTS, ("filament run",), "what happened to atoms: events, and the accounts of circulation"),
    RunFile(ATOMS, ("filament run",), "the last atoms, which `dashi filament run --atoms` takes"),
    RunFile(FIELDS, ("flow simulate", "flow rollout", "demo"), "frames, as Zarr, which xarray opens", is_folder=True),
    RunFile(DECODED, ("flow rollout",), "measures of decoded fields: energy, enstrophy, bands, support"),
    RunFile(PICTURES, ("flow rollout",), "pictures of decoded fields", is_folder=True),
    RunFile(FILM, ("flow rollout",), "those pictures as an animation"),
    RunFile(Z, ("flow rollout", "demo"), "the last proxy, to go on from"),
    RunFile(MODEL, ("demo",), "the fitted model with its baselines"),
    RunFile(SCORES, ("flow evaluate",), "all tables of scores, and the command that repeats them"),
    RunFile(SCORED, ("flow evaluate",), "scores of a split: `.npz` every array, `.json` the table"),
    RunFile(EVALUATION, ("demo",), "scores on unseen windows, every array"),
    RunFile(EVALUATION_TABLE, ("demo",), "scores on unseen windows, the table"),
    RunFile(TRAINING, ("demo",), "scores on training windows, every array"),
    RunFile(TRAINING_TABLE, ("demo",), "scores on training windows, the table"),
    RunFile(CONTINUATION, ("flow evaluate", "demo"), "energies of the canonical figure, of the first window"),
    RunFile(SUMMARY, ("demo",), "stages, times and results of the demo"),
    RunFile(STORY, ("demo",), "what its page tells in words: command, settings, versions, files"),
    RunFile(TRACE, ("demo",), "the timeline of the device, for Perfetto"),
    RunFile(PICTURE, ("demo",), "the last state as a picture, of `--rollout`"),
    RunFile(REPORT, ("demo", "report"), "the page that shows all of it"),
    RunFile(
        SHARD, ("flow simulate", "flow evaluate", "flow fit", "bench"), "of a shard: which part of which run it is"
    ),
    RunFile(HASHED, ("flow simulate",), "of a shard: its states where the whole run is hashed", is_folder=True),
    RunFile(PARTS, ("flow evaluate", "flow fit"), "of a shard: what the scores, or the data, of all are made of"),
    RunFile(STREAM, ("stream run",), "of a chain of stages: hashes of all items, what each stage did, what happened"),
    RunFile(SNAPSHOTS, ("stream run",), "States behind stages, of `--snapshot`", is_folder=True),
    RunFile(BENCH, ("bench",), "of a shard: what it measured"),
    RunFile(TRUTH, ("flow benchmark",), "coarse fields of the truth, with the hash of its last states"),
    RunFile(BENCHMARK, ("flow benchmark",), "all scores, along time too"),
    RunFile(BENCHMARK_TABLE, ("flow benchmark",), "the scores as a table"),
)
"""Every file of a run folder: its name, the commands that write it, what it means. All other lists are made from it."""
RESULTS: Final = (INPUTS, SHEET, STATE, CERTIFICATE, METRICS)
"""What a rollout leaves: a run that did not write one of them removes that of the run before."""
STORES: Final = tuple(file.name for file in RUN_FILES if file.is_folder)
_LEFT: Final = frozenset(file.name for file in RUN_FILES if not file.is_passing)
"""All that runs leave. A later run removes such a name only where the mark of the run before lists it too."""


def files_left_by(command: str) -> frozenset[str]:
    """The names of all that a command ever leaves in its folder."""
    return frozenset(file.name for file in RUN_FILES if command in file.writers and not file.is_passing)


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
