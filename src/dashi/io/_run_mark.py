"""The mark of a run folder: whose run it is, with which settings, and whether it was finished.

It is the first file that a run writes, all or nothing. So whatever stops a run after that, a full disk or kill -9, its
folder is known as one of ours, and the next run of the same command takes it over. A mark may come from anyone: its
names are plain names, and a link in its place is not followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from dashi.errors import FileError
from dashi.io._files import MARK as MARK
from dashi.io._files import open_plain, write_text
from dashi.io._run_names import METRICS, SCORES, SUMMARY

_LARGEST: Final = 1 << 28
"""Most bytes of a document that is read for the command that wrote it: metrics hold every hash of a run."""
_LONGEST: Final = 80
_SHORTENED: Final = re.compile(r".{24}\.\.\. [0-9a-f]{24}", re.DOTALL)
_TELLING: Final = {SUMMARY: "demo", SCORES: "flow evaluate"}
"""Files that one command alone writes, in folders from before there were marks."""


@dataclass(frozen=True)
class Mark:
    """What a run folder says of itself."""

    command: str
    """Such as `flow simulate`; empty where nobody knows."""
    finished: bool
    files: tuple[str, ...] = ()
    """What a finished run left; of one at work, what it may leave."""
    aside: bool = False
    """Whether it works beside a finished run, whose place it takes when it is finished."""
    lines: tuple[str, ...] = ()
    """What was typed to begin it, and to go on; none where nobody knows."""
    settings: Mapping[str, str] | None = None
    """All that decides its results, by name; None where nobody knows."""
    there: bool = True
    """Whether it stands in a file; those of folders from before there were marks are guessed."""


def as_settings(values: Mapping[str, object]) -> dict[str, str]:
    """Settings as a mark keeps them: a long text as its beginning and its digest, which stay as they are."""
    texts = {name: str(value) for name, value in values.items()}
    return {
        name: text
        if len(text) <= _LONGEST // 2 or _SHORTENED.fullmatch(text)
        else f"{text[:24]}... {sha256(text.encode()).hexdigest()[:24]}"
        for name, text in texts.items()
    }


def write_mark(folder: Path, mark: Mark) -> None:
    """Writes the file, all or nothing."""
    document = {
        "schema_version": 1, "command": mark.command, "finished": mark.finished, "files": list(mark.files),
        "aside": mark.aside, "lines": list(mark.lines),
        **({} if mark.settings is None else {"settings": dict(mark.settings)}),
    }  # fmt: skip
    write_text(folder / MARK, json.dumps(document) + "\n")


def read_mark(folder: Path, *, checkpoint: str, telling: Collection[str]) -> Mark | None:
    """The mark of a folder. One without a mark has it from its files: `telling` are those that only runs write, of
    which `checkpoint` says that it was not finished. None if it is no run's."""
    names = {path.name for path in folder.iterdir()}
    if MARK in names:
        document = _document(folder / MARK)
        safe = tuple(name for name in _words(document, "files") if name and name == Path(name).name and name[0] != ".")
        finished = document.get("finished") is True and checkpoint not in names
        return Mark(
            _plain(str(document.get("command", ""))), finished, safe, document.get("aside") is True,
            _words(document, "lines"), _settings(document),
        )  # fmt: skip
    if not names & set(telling):
        return None
    known = next((command for name, command in _TELLING.items() if name in names), "")
    command = known or _plain(str(_document(folder / METRICS).get("command", "")))
    return Mark(command, finished=checkpoint not in names, there=False)


def _words(found: dict[str, Any], name: str) -> tuple[str, ...]:
    words = found.get(name)
    return tuple(str(word) for word in cast("list[Any]", words)) if isinstance(words, list) else ()


def _settings(found: dict[str, Any]) -> dict[str, str] | None:
    values = found.get("settings")
    if not isinstance(values, dict):
        return None
    return {_plain(name): _plain(str(value)) for name, value in cast("dict[str, Any]", values).items()}


def _plain(text: str) -> str:
    """Text from a file that is shown: short, and without anything that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST])


def _document(file: Path) -> dict[str, Any]:
    """A JSON object; an empty one where there is none, or it is damaged: it is asked for its names only."""
    try:
        with open_plain(file, _LARGEST, follow=False) as (opened, _):
            document = json.loads(opened.read())
    except (FileError, ValueError, RecursionError, OSError):
        return {}
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}
