"""Benches in parts: each shard measures some of the rows, and merged they are one document.

Times are of the machine, so shards of one document are of one kind of device; their rows stand in the order that they
have without shards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from dashi.errors import FileError, InputError
from dashi.io import _run_folder as run_folder
from dashi.io._files import read_plain, require_writable, write_text
from dashi.io._run_mark import as_settings
from dashi.io._run_names import BENCH, SHARD
from dashi.io._shard_standing import Standing, standing_of
from dashi.io._shards import Shard, ShardFolder, ShardRecord, write_record

Work = TypeVar("Work")
Document = dict[str, Any]
PREFIX: Final = "bench "
"""What the commands of benches begin with."""
_TOLD: Final = ("command", "date", "device", "bandwidth")
"""What a merged document tells of each shard."""
_LARGEST: Final = 1 << 26
_AGAIN: Final = "run that shard again."


class _Rows(BaseModel):
    """What a document must have to be merged; what else it has is that of the first shard."""

    model_config = ConfigDict(extra="allow", strict=True)

    device: dict[str, JsonValue]
    date: Annotated[str, Field(max_length=100)]
    command: Annotated[str, Field(max_length=100_000)]
    rows: list[dict[str, JsonValue]]


class BenchShard:
    """A part of a bench: which rows it measures, and where it keeps them. `work` tells all of the work, in words;
    `options` are what else was asked and decides what the rows hold, by name."""

    def __init__(
        self, name: str, shard: Shard, folder: Path | None, *, options: Mapping[str, object] | None = None,
        overwrite: bool = False,
    ) -> None:  # fmt: skip
        if folder is None:
            raise InputError(f"`shard={shard}` leaves a folder to merge.", "name it with `save=`.")
        self.command, self.shard, self.folder, self._overwrite = f"{PREFIX}{name}", shard, folder, overwrite
        self._options = {name: _words(value) for name, value in (options or {}).items()}
        run_folder.require_ours(folder, self.command, overwrite=overwrite)
        require_writable(folder, folder=True)

    def share(self, work: Sequence[Work]) -> list[Work]:
        """The work of this shard."""
        part = self.shard.part(len(work), "rows")
        return list(work[part.start : part.stop])

    def is_finished(self, work: Sequence[object], device: Mapping[str, Any]) -> bool:
        """Whether the folder holds this shard of this work on this device."""
        settings = self._settings(self._record(work, device))
        return standing_of(self.folder, settings, overwrite=self._overwrite) is Standing.FINISHED

    def keep(self, work: Sequence[object], document: Document) -> None:
        """Writes the rows of this shard, and what they are a part of."""
        record = self._record(work, document["device"])
        with run_folder.open_run(
            self.folder, False, self.command, files=(BENCH, SHARD), settings=self._settings(record),
            overwrite=self._overwrite,
        ) as place:  # fmt: skip
            assert place is not None
            write_text(place / BENCH, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
            write_record(place / SHARD, record)
            run_folder.close_run(place, (), finished=True)

    def _settings(self, record: ShardRecord) -> dict[str, object]:
        return {**record.settings, **record.bits, "shard": str(self.shard)}

    def _record(self, work: Sequence[object], device: Mapping[str, Any]) -> ShardRecord:
        import dashi

        return ShardRecord(
            dashi_version=dashi.__version__, command=self.command, index=self.shard.index, count=self.shard.count,
            total=len(work), unit="rows", settings=as_settings({"work": repr([*work]), **self._options}),
            bits={"device": str(device["name"]), "driver": str(device["driver"])}, work={},
        )  # fmt: skip


def _words(value: object) -> str:
    """An option in words, which an error may show."""
    if value in (None, False, [], ()):
        return "none"
    return ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list | tuple) else str(value)


def merged_document(shards: Sequence[ShardFolder]) -> Document:
    """The rows of all shards in one document; what else it says is of the first, and `shards` tells of each."""
    documents = [_document(shard) for shard in shards]
    first = documents[0]
    sources = [{name: one[name] for name in _TOLD if name in one} for one in documents]
    rows = [row for one in documents for row in one["rows"]]
    cases = {"cases": {"asked": len(rows), "measured": len(rows)}} if "cases" in first else {}
    return {**first, **cases, "rows": rows, "shards": sources}


def save_merged(
    shards: Sequence[ShardFolder], out: Path, page: Callable[[Document], str] | None, prefix: str = ""
) -> tuple[Path, Path]:
    """Keeps the merged document as the bench without shards keeps its own: JSON, and a page."""
    from dashi.bench.results import save

    document = merged_document(shards)
    try:
        text = None if page is None else page(document)
        return save(document, out, text, prefix)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise FileError(f"{shards[0]} holds rows that make no page: {error!r:.80}.", _AGAIN) from error


def _document(shard: ShardFolder) -> Document:
    file = shard.file(BENCH)
    data = read_plain(file, _LARGEST, within=shard.folder)
    try:
        document = _Rows.model_validate_json(data).model_dump(mode="json")
    except (ValidationError, ValueError, RecursionError) as error:
        raise FileError(f"{file} is no document of a bench.", _AGAIN) from error
    if str(document["device"].get("name")) != shard.record.bits.get("device"):
        raise FileError(f"{shard} was measured on another device than it says.", _AGAIN)
    return document
