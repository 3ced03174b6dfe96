"""YAML from outside, with the line of every part: bounded before anything is built, without code and aliases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from dashi.errors import StreamConfigError
from dashi.io._files import open_plain

DocumentPath = tuple[str | int, ...]
"""Where a part of a document is: keys and places in lists."""

MOST_BYTES: Final = 1 << 18
"""The largest file."""
MOST_PARTS: Final = 20_000
"""Values, lists and sections of a file, all together."""
MOST_DEPTH: Final = 24
"""How deep lists and sections may lie in each other."""
LONGEST_NUMBER: Final = 100
"""Characters of what looks like a number, without quotes: longer ones make whole numbers that Python does not print."""
_NUMBER_BEGINS: Final = frozenset("0123456789+-.")


_untyped: Any = yaml


@dataclass(frozen=True)
class YamlDocument:
    """What a file says, and the line of each part of it by its path: ("stages", 1, "id")."""

    name: str
    values: Any
    lines: dict[DocumentPath, int]

    def place(self, path: DocumentPath) -> str:
        """File and line of a part; of the nearest one that there is, where it is missing."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines.get(path, 1)}"


def read_yaml(path: Path) -> YamlDocument:
    """The document in a file. Raises a FileError where it cannot be read, a StreamConfigError where it is no YAML."""
    with open_plain(path, MOST_BYTES) as (file, _):
        data = file.read(MOST_BYTES)
    return parse_yaml(data, str(path))


def parse_yaml(data: bytes | str, name: str) -> YamlDocument:
    """The document in a text; `name` is what errors call it."""
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise StreamConfigError(f"{name} is not text in UTF-8.", "save it as UTF-8.") from error
    if len(text) > MOST_BYTES:
        raise StreamConfigError(f"{name} has more than {MOST_BYTES} characters.", "split what it describes.")
    try:
        _require_harmless(text, name)
        root: Any = _untyped.compose(text, yaml.SafeLoader)
        lines: dict[DocumentPath, int] = {}
        if root is not None:
            _collect(root, (), name, lines)
        return YamlDocument(name, yaml.safe_load(text), lines)
    except StreamConfigError:  # a ValueError too
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise StreamConfigError(
            f"{name}{line}: this is not YAML: {error.problem or error.context or 'it ends too early'}.",
            "correct the line; strings with : or # need quotes.",
        ) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise StreamConfigError(f"{name}: this is not YAML: {error!s:.200}.", "correct the file.") from error


def _require_harmless(text: str, name: str) -> None:
    """Counts parts and depth before anything is built of them, and refuses aliases, by which a small text can stand for
    a very large one, tags, which say how a part is built, and numbers without end."""
    parts = depth = documents = 0
    for event in _untyped.parse(text, yaml.SafeLoader):
        line = event.start_mark.line + 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.AliasEvent):
            raise StreamConfigError(
                f"{name}:{line}: *{event.anchor} stands for another part; a configuration has no aliases.",
                "write the part out.",
            )
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            _require_plain_part(event, f"{name}:{line}")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        parts += isinstance(event, yaml.NodeEvent)
        if depth > MOST_DEPTH or parts > MOST_PARTS:
            raise StreamConfigError(
                f"{name}:{line}: more than {MOST_PARTS} parts, or {MOST_DEPTH} levels of them.",
                "keep large arrays in .npy files (`draw: file`).",
            )
    if documents > 1:
        raise StreamConfigError(f"{name} holds {documents} documents.", "keep one in a file.")


def _require_plain_part(event: Any, where: str) -> None:
    if event.tag is not None:
        raise StreamConfigError(
            f"{where}: the tag {event.tag!r:.80} says how a part is built; a configuration has no tags.",
            "write the value alone; text that looks like a number needs quotes.",
        )
    value = event.value if isinstance(event, yaml.ScalarEvent) and event.implicit[0] else ""
    if len(value) > LONGEST_NUMBER and value[0] in _NUMBER_BEGINS:
        raise StreamConfigError(
            f"{where}: {value:.20}... has {len(value)} characters, more than a number needs ({LONGEST_NUMBER}).",
            "write a shorter number; text that begins like one needs quotes.",
        )


def _collect(node: Any, path: DocumentPath, name: str, lines: dict[DocumentPath, int]) -> None:
    """Notes the line of every part, and refuses keys that stand twice in a section: of those YAML keeps the last."""
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, part in enumerate(node.value):
            _collect(part, (*path, index), name, lines)
    elif isinstance(node, yaml.MappingNode):
        for key, part in node.value:
            inner = (*path, str(key.value))
            if inner in lines:
                raise StreamConfigError(
                    f"{name}:{key.start_mark.line + 1}: {key.value!r} stands twice in this section, first in line "
                    f"{lines[inner]}.",
                    "keep one of them.",
                )
            _collect(part, inner, name, lines)
            lines[inner] = key.start_mark.line + 1
