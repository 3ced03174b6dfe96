"""Files that are written beside their place: what a killed process left is taken over, what another fills is not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dashi.io._files import require_writable, write_text
from dashi.io._parts import named_by, open_part, part_of, remove_stale, remove_stale_parts


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("write", [lambda file: write_text(file, "new"), require_writable, remove_stale_parts])
def test_what_a_killed_process_left_of_a_file_goes_with_the_next_of_that_name(tmp_path: Path, write: Any) -> None:
    file = tmp_path / "m.npz"
    part_of(file).write_text("half of a long one")
    write(file)
    assert names(tmp_path) == (["m.npz"] if file.exists() else [])
    assert not file.exists() or file.read_text() == "new"


def test_what_another_process_fills_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "m.npz"
    handle, part = open_part(file)  # a lock is that of an open file, so this does for another process
    os.write(handle, b"theirs")
    write_text(file, "ours")
    require_writable(file)
    remove_stale_parts(file)
    assert (file.read_text(), part.read_text()) == ("ours", "theirs")
    second, other = open_part(file)
    assert (named_by(part.name), named_by(other.name), other != part) == ("m.npz", "m.npz", True)
    for opened in (handle, second):
        os.close(opened)
    remove_stale_parts(file)
    assert names(tmp_path) == ["m.npz"]


def test_a_part_that_somebody_planted_is_neither_filled_nor_followed(tmp_path: Path) -> None:
    file, victim = tmp_path / "m.npz", tmp_path / "victim"
    for plant in (Path.symlink_to, Path.hardlink_to, lambda part, _: part.mkdir(), lambda part, _: os.mkfifo(part)):
        victim.write_text("mine")
        plant(part_of(file), victim)
        write_text(file, "new")
        assert (file.read_text(), victim.read_text()) == ("new", "mine")
        part = part_of(file)
        part.rmdir() if part.is_dir() else part.unlink()
        file.unlink()
        assert names(tmp_path) == ["victim"]


def test_only_names_of_parts_are_taken_for_parts(tmp_path: Path) -> None:
    for name in (".m.npz.part", ".m.npz-abcd_123.part"):
        assert named_by(name) == "m.npz"
    for name in ("m.npz.part", ".part", ".m.npz", "..part"):
        assert named_by(name) is None
    for name in (".m.npz", ".other.part", "m.npz.part"):
        (tmp_path / name).write_text("mine")
    remove_stale_parts(tmp_path / "m.npz")
    (tmp_path / ".m.npz.part").symlink_to(tmp_path / ".m.npz")
    remove_stale(tmp_path / ".m.npz.part")
    assert names(tmp_path) == [".m.npz", ".m.npz.part", ".other.part", "m.npz.part"]
