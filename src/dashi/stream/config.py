"""Configurations of streams: YAML from outside, checked, with file, line and fix in every error.

    config = load("chain.yaml", devices={"gpu_weak": "vulkan:0"})

`schema()` is the published JSON schema (docs/stream-schema.json).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from dashi.errors import DashiError, StreamConfigError, suggestion
from dashi.stream import _document as doc
from dashi.stream._config_checks import check_config
from dashi.stream._model import StreamConfig
from dashi.stream._sections import built
from dashi.stream._yaml import DocumentPath, YamlDocument, parse_yaml, read_yaml


def load(path: str | Path, *, devices: Mapping[str, str] | None = None) -> StreamConfig:
    """The configuration in a YAML file. `devices` binds names of devices to what opens them, before the file's own
    section. Raises a StreamConfigError that names file, line and fix; nothing is opened or run."""
    file = Path(path)
    return _configured(read_yaml(file), devices or {}, file.parent)


def parse(text: str, *, devices: Mapping[str, str] | None = None, name: str = "configuration") -> StreamConfig:
    """The configuration in a text; files that it names lie in the current folder."""
    return _configured(parse_yaml(text, name), devices or {}, Path())


def schema() -> str:
    """The published JSON schema of configurations (docs/stream-schema.json)."""
    return json.dumps(doc.StreamDocument.model_json_schema(), indent=2, sort_keys=True) + "\n"


def _configured(document: YamlDocument, bindings: Mapping[str, str], folder: Path) -> StreamConfig:
    sections = _validated(document)
    try:
        config = built(sections, bindings, folder, document)
    except StreamConfigError:
        raise
    except DashiError as error:
        raise StreamConfigError(f"{document.name}: {error.what}", error.fix) from error
    check_config(config, sections, document)
    return config


def _validated(document: YamlDocument) -> doc.StreamDocument:
    values: object = document.values
    if not isinstance(values, dict):
        raise StreamConfigError(
            f"{document.name}:1: a configuration is a section with `stages`.",
            "begin with `stages:`, as in docs/stream.md.",
        )
    try:
        return doc.StreamDocument.model_validate(values)
    except ValidationError as error:
        raise _first_error(document, error) from None


def _first_error(document: YamlDocument, error: ValidationError) -> StreamConfigError:
    """The first thing that is wrong, where it stands."""
    # Of the choices of a union the one that got farthest says best what is wrong.
    first = max(
        error.errors(include_url=False),
        key=lambda one: (one["type"] == "extra_forbidden", -_line(document, one["loc"])),
    )
    path = tuple(part for part in first["loc"])
    where, key = document.place(_known(document, path)), path[-1] if path else ""
    named = ".".join(str(part) for part in _known(document, path)) or "the file"
    if first["type"] == "extra_forbidden":
        keys = _keys(path)
        return StreamConfigError(
            f"{where}: {key!r} is no key here.", f"{suggestion(str(key), keys)}use one of {', '.join(keys)}."
        )
    if first["type"] == "missing":
        return StreamConfigError(f"{where}: {named} lacks the key {key!r}.", f"add `{key}:`.")
    shown = f", it is {first['input']!r:.60}" if not isinstance(first["input"], dict | list) else ""
    message = first["msg"][:1].lower() + first["msg"][1:]
    return StreamConfigError(f"{where}: {named}: {message}{shown}.", f"correct {named} (docs/stream-schema.json).")


def _line(document: YamlDocument, loc: tuple[int | str, ...]) -> int:
    return document.lines.get(_known(document, loc), 1)


def _known(document: YamlDocument, path: tuple[int | str, ...]) -> DocumentPath:
    """The part of an error's path that the file has: pydantic puts names of choices in between."""
    known: DocumentPath = ()
    for part in path:
        if (*known, part) in document.lines:
            known = (*known, part)
    return known


def _keys(path: tuple[int | str, ...]) -> list[str]:
    """The keys of the section that an unknown one stands in."""
    sections: Mapping[str, type[doc.StreamSection]] = {
        "devices": doc.DeviceSection, "stages": doc.StageSection, "links": doc.LinkSection, "ops": doc.OpSection,
        "observers": doc.ObserverSection, "source": doc.SourceSection, "broadcast": doc.BroadcastSection,
    }  # fmt: skip
    inner = {"inputs": doc.FeedSection, "params": doc.ArraySection, "fields": doc.ArraySection}
    section = doc.StreamDocument if len(path) < 2 else sections.get(str(path[0]), doc.StreamDocument)
    for part in path[1:-1]:
        section = inner.get(str(part), section)
    return [field.alias or name for name, field in section.model_fields.items()]
