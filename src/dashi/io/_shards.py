"""Shards: which part of a job a folder holds, and whether several of them are all of one job.

The parts of a job are numbered from 1, and each is a run of its own in a folder of its own: nothing is shared while
they work. `shard.json` is the last file that a shard writes before it is finished. A shard may come from anyone: the
file is held against a strict model, and what it says decides only what the merge then checks for itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from dashi.errors import FileError, InputError
from dashi.io._files import read_plain, write_text
from dashi.io._paths import path_of
from dashi.io._run_names import SHARD, is_folder, is_itself
from dashi.io._run_reading import is_marked, is_unfinished, run_file

MOST: Final = 100_000
"""Shards of a job."""
_LARGEST: Final = 1 << 26
_TEXT: Final = re.compile(r"(-?\d{1,9})/(-?\d{1,9})")
_Text = Annotated[str, Field(max_length=4000)]
_Texts = Annotated[dict[_Text, _Text], Field(max_length=200)]
_Whole = Annotated[int, Field(ge=1, le=1 << 40)]


@dataclass(frozen=True)
class Shard:
    """Part `index` of the `count` parts of a job, from 1 on: `Shard(2, 7)` is `--shard 2/7`."""

    index: int
    count: int

    def __post_init__(self) -> None:
        index, count = self.index, self.count
        if type(index) is not int or type(count) is not int:
            raise InputError(f"`shard=` is {index!r}/{count!r}.", "give whole numbers: Shard(2, 7).")
        if not 1 <= count <= MOST:
            raise InputError(f"`shard=` is {index}/{count}.", f"make 1 to {MOST} shards.")
        if not 1 <= index <= count:
            raise InputError(f"`shard=` is {index}/{count}.", f"use 1/{count} to {count}/{count}.")

    @classmethod
    def parse(cls, text: str) -> Shard:
        """A shard as it is typed: `2/7`."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise InputError(f"`shard=` is {text[:80]!r}.", "give the part and how many there are, such as 2/7.")
        return cls(int(match[1]), int(match[2]))

    def part(self, total: int, unit: str) -> range:
        """The part of `total` things that this shard has: parts follow each other, and differ by one at most."""
        if self.count > total:
            raise InputError(
                f"`shard=` is {self}, and there are {total} {unit} to share.", f"make {total} shards or fewer."
            )
        return range((self.index - 1) * total // self.count, self.index * total // self.count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class ShardRecord(BaseModel):
    """What `shard.json` says: all of it but the index is the same in all shards of a job."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    schema_version: Literal[1] = 1
    dashi_version: _Text
    command: _Text
    """The name of the job in files: `flow simulate`."""
    index: _Whole
    count: Annotated[int, Field(ge=1, le=MOST)]
    total: _Whole
    unit: _Text
    """What was shared out: `total` members, windows, rows."""
    settings: _Texts
    """All that decides the results of the whole job, as its mark would say it."""
    bits: _Texts
    """Versions of what else decides them."""
    work: dict[_Text, JsonValue]
    """What the whole job is made again from."""

    @property
    def shard(self) -> Shard:
        return Shard(self.index, self.count)

    @property
    def part(self) -> range:
        """The part that it has."""
        return self.shard.part(self.total, self.unit)


@dataclass(frozen=True)
class ShardFolder:
    """A finished shard, and where it lies."""

    folder: Path
    record: ShardRecord

    def file(self, name: str) -> Path:
        """Where a file of it lies; no link leads out of the folder."""
        return run_file(self.folder, name)

    def __str__(self) -> str:
        return f"shard {self.record.shard} in {self.folder}"


def write_record(path: Path, record: ShardRecord) -> None:
    """Writes `shard.json`, all or nothing."""
    write_text(path, record.model_dump_json(indent=1) + "\n")


def read_shard(folder: Path) -> ShardFolder:
    """The shard in a folder. Refuses what is none, and one that is not finished."""
    if not folder.is_dir():
        raise FileError(f"there is no folder {folder}.", "correct its name, or run its shard.")
    if not is_marked(folder):
        raise FileError(f"{folder} is no shard: no run left it.", "name folders that `shard=` left.")
    if is_unfinished(folder):
        raise FileError(f"{folder} holds a run that is not finished.", "run the same command again: it goes on.")
    file = run_file(folder, SHARD)
    if not is_itself(file) or is_folder(file):
        raise FileError(f"{folder} is no shard: it has no {SHARD}.", "name folders that `shard=` left.")
    data = read_plain(file, _LARGEST, within=folder)
    try:
        record = ShardRecord.model_validate_json(data)
        _ = record.part
    except (ValidationError, ValueError, RecursionError) as error:
        raise FileError(f"{file} is not what a shard says of itself.", "run that shard again.") from error
    return ShardFolder(folder, record)


def read_shards(folders: Sequence[Any]) -> list[ShardFolder]:
    """All shards of one job, in order. Refuses shards of several jobs, one that is there twice, and a hole."""
    places = [path_of("folders", folder) for folder in folders]
    if not places:
        raise InputError("there is nothing to merge.", "name the folders of all shards.")
    shards = [read_shard(place) for place in places]
    first = shards[0]
    for other in shards[1:]:
        require_same(first, other)
    there: dict[int, ShardFolder] = {}
    for shard in shards:
        twin = there.setdefault(shard.record.index, shard)
        if twin is not shard:
            raise FileError(f"{twin.folder} and {shard.folder} are both shard {shard.record.shard}.", "leave one away.")
    count = first.record.count
    missing = [str(Shard(index, count)) for index in range(1, count + 1) if index not in there]
    if missing:
        named = ", ".join(missing[:8]) + (f" and {len(missing) - 8} more" if len(missing) > 8 else "")
        raise FileError(
            f"of {count} shards {len(missing)} {'is' if len(missing) == 1 else 'are'} missing: {named}.",
            f"run the same command with `shard={missing[0]}`, name its folder too, and merge again.",
        )
    return [there[index] for index in sorted(there)]


def require_same(first: ShardFolder, other: ShardFolder) -> None:
    """Refuses shards of two jobs, and those that other versions made, whose bits could differ."""
    difference = _difference(first.record, other.record)
    if difference is not None:
        name, ours, theirs = difference
        raise FileError(
            f"{first.folder} and {other.folder} are shards of different runs: {name} is {ours} in the first and "
            f"{theirs} in the second.",
            "merge shards of one command, of one version and on one kind of machine.",
        )


def _difference(first: ShardRecord, other: ShardRecord) -> tuple[str, str, str] | None:
    """What is other in two records, in words; None where they are of one job."""
    for name in ("command", "dashi_version", "count", "total", "unit"):
        if getattr(first, name) != getattr(other, name):
            return _word(name), _shown(getattr(first, name)), _shown(getattr(other, name))
    for part in ("settings", "bits", "work"):
        ours: Mapping[str, object] = getattr(first, part)
        theirs: Mapping[str, object] = getattr(other, part)
        for name in sorted({*ours, *theirs}):
            if ours.get(name) != theirs.get(name):
                return _shown(name), _shown(ours.get(name, "not said")), _shown(theirs.get(name, "not said"))
    return None


def _word(name: str) -> str:
    return {"dashi_version": "the version of dashi", "count": "the number of shards"}.get(name, f"the {name}")


def _shown(value: object) -> str:
    """A value from a file, short, and without anything that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(value)[:80])
