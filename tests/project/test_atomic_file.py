"""A file that is replaced is the old one or the new one, whatever stops it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dashi._atomic_file import replace_file


def test_a_file_is_replaced_with_the_permissions_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    replace_file(file, b"old")
    assert file.stat().st_mode & 0o777 == 0o600
    replace_file(file, b"new", mode=0o644)
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o644)
    assert os.listdir(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("failure", [OSError("full"), KeyboardInterrupt()])
def test_what_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise failure

    file = tmp_path / "a.bin"
    replace_file(file, b"old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(type(failure)):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.bin"]
