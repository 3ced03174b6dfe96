"""The mark of a run folder: whose run it is, and whether it was finished.

It is the first file that a run writes, all or nothing. So whatever stops a run after that, a full disk or kill -9, its
folder is known as one of ours, and the next run of the same command takes it over.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from dashi.errors import FileError
from dashi.io.files import open_plain, write_text

MARK: Final = ".dashi-run"
_LARGEST: Final = 1 << 28
"""Of a document that is read for the command that wrote it: metrics hold every hash of a run."""
_TELLING: Final = {"summary.json": "demo", "evaluation.json": "flow evaluate"}
"""Files that one command alone writes, in folders from before there were marks."""


@dataclass(frozen=True)
class Mark:
    """What a run folder says of itself."""

    command: str
    """Such as `flow simulate`; empty where nobody knows."""
    finished: bool
    files: tuple[str, ...] = ()
    """What a finished run left."""
    aside: bool = False
    """Whether it works beside a finished run, whose place it takes when it is finished."""
    lines: tuple[str, ...] = ()
    """What was typed to begin it, and to go on; none where nobody knows."""


def write_mark(folder: Path, mark: Mark) -> None:
    """Writes the file, all or nothing."""
    told = {
        "schema_version": 1, "command": mark.command, "finished": mark.finished, "files": list(mark.files),
        "aside": mark.aside, "lines": list(mark.lines),
    }  # fmt: skip
    write_text(folder / MARK, json.dumps(told) + "\n")


def read_mark(folder: Path, *, checkpoint: str, telling: Collection[str]) -> Mark | None:
    """The mark of a folder. One without a mark has it from its files: `telling` are those that only runs write, of
    which `checkpoint` says that it was not finished. None if it is no run's."""
    names = {path.name for path in folder.iterdir()}
    if MARK in names:
        found = _document(folder / MARK)
        safe = tuple(name for name in _words(found, "files") if name and name == Path(name).name and name[0] != ".")
        finished = found.get("finished") is True and checkpoint not in names
        return Mark(str(found.get("command", "")), finished, safe, found.get("aside") is True, _words(found, "lines"))
    if not names & set(telling):
        return None
    known = next((command for name, command in _TELLING.items() if name in names), "")
    command = known or str(_document(folder / "metrics.json").get("command", ""))
    return Mark(command, finished=checkpoint not in names)


def _words(found: dict[str, Any], name: str) -> tuple[str, ...]:
    words = found.get(name)
    return tuple(str(word) for word in cast("list[Any]", words)) if isinstance(words, list) else ()


def _document(file: Path) -> dict[str, Any]:
    """A JSON object; an empty one where there is none, or it is damaged: it is asked for its names only."""
    try:
        with open_plain(file, _LARGEST) as (opened, _):
            found = json.loads(opened.read())
    except (FileError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
