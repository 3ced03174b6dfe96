"""Claims about the map, docs/layout.md, and about the size of rooms: what is named is there, what is there is named."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "dashi"
LISTED = ("kernels", "runtime", "graph", "lab", "bench")
"""Rooms whose modules the map names one by one; of others it names the packages."""
LONGEST = 400


def sections(text: str) -> dict[str, str]:
    """The lines of the map by room: what is indented below `room/`; modules above all rooms under ''."""
    block = text.split("    src/dashi/\n", 1)[1].split("    tests/", 1)[0]
    rooms: dict[str, str] = {}
    room = ""
    for line in block.splitlines():
        head = re.match(r" {6}(\w+)/", line)
        if line.startswith("      ") and not line.startswith("       "):
            room = head[1] if head else ""
        rooms[room] = rooms.get(room, "") + line + "\n"
    return rooms


MAP = sections((ROOT / "docs" / "layout.md").read_text())


def modules(room: Path) -> list[str]:
    return sorted(path.name for path in room.glob("*.py") if path.stem not in ("__init__", "__main__"))


@pytest.mark.parametrize("room", ["", *LISTED])
def test_the_map_names_every_module_of_a_room_once(room: str) -> None:
    words = re.findall(r"[\w*]+", MAP[room])
    missing = [name for name in modules(SOURCE / room) if not any(fnmatchcase(Path(name).stem, word) for word in words)]
    assert not missing, f"name them in docs/layout.md: {missing}"
    named = re.findall(r"[\w/]+\.py", MAP[room])
    assert sorted({*named}) == sorted(named), "a module stands twice in the map"


def test_what_the_map_names_is_there() -> None:
    for room, text in MAP.items():
        place = SOURCE / room
        for name in re.findall(r"(?<![<\w])([\w/]+(?:\.py|/))(?!\w)", text.replace("<family>/<name>/", "")):
            below = [*place.rglob(name.rstrip("/").rsplit("/", 1)[-1])]
            assert below or name.rstrip("/") == room, f"docs/layout.md: there is no {room}/{name}"


def test_the_map_names_every_package_but_families_of_kernels() -> None:
    for place in sorted(path.parent for path in SOURCE.rglob("__init__.py")):
        room, *inside = place.relative_to(SOURCE).parts or ("",)
        if not inside:
            assert room in MAP
        elif room != "kernels" and not any(part.startswith("_") for part in inside):
            assert f"{inside[-1]}/" in MAP[room], f"name {place.relative_to(SOURCE)} in docs/layout.md"


def test_a_file_is_one_room() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        lines = len(path.read_text().splitlines())
        assert lines <= LONGEST, f"{path.relative_to(SOURCE)} has {lines} lines: which second thing lives there?"


def test_a_map_is_read_by_rooms() -> None:
    text = "    src/dashi/\n      a.py b.py   two\n      room/    a room\n        c.py\n          d.py\n    tests/"
    assert sections(text) == {
        "": "      a.py b.py   two\n",
        "room": "      room/    a room\n        c.py\n          d.py\n",
    }
