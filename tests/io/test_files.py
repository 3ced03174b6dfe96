"""Several files at a time: all of them whole, with the permissions of the process."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from dashi.errors import FileError
from dashi.io._files import do_together, write_text


def test_files_written_together_are_all_there_and_leave_the_mask_of_permissions(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        do_together([partial(write_text, tmp_path / str(j), f"{j}") for j in range(40)])
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(mask)
    assert [(tmp_path / str(j)).read_text() for j in range(40)] == [str(j) for j in range(40)]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_what_one_of_several_files_raises_is_raised_once_all_are_done(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    pieces = [partial(write_text, tmp_path / "folder", "x"), partial(write_text, tmp_path / "file", "y")]
    with pytest.raises(FileError, match="folder cannot be written"):
        do_together(pieces)
    assert (tmp_path / "file").read_text() == "y"
    do_together([])
