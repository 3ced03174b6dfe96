"""Folders that are replaced as a whole: by what is whole, and only where all that is there is known."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from dashi.errors import FileError
from dashi.io._run_folder import METRICS, SUMMARY, open_run
from dashi.io._run_mark import MARK
from dashi.io._whole_folder import Owner, require_replaceable, whole_folder

OURS = Owner("flow rollout", frozenset({METRICS, SUMMARY}))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def fill(out: Path, text: str, name: str = METRICS) -> None:
    with whole_folder(out, OURS) as folder:
        (folder / name).write_text(text)


def fill_in_vain(out: Path) -> NoReturn:
    with whole_folder(out, OURS) as folder:
        (folder / METRICS).write_text("half")
        raise ZeroDivisionError
    raise AssertionError


def test_a_whole_folder_appears_when_it_is_full_and_not_before(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "one"
    with whole_folder(out, OURS) as folder:
        (folder / SUMMARY).write_text("{}")
        assert not out.exists()
    assert names(out) == {SUMMARY, MARK}
    with pytest.raises(ZeroDivisionError):
        fill_in_vain(out)
    assert names(out) == {SUMMARY, MARK}
    fill(out, "{}")
    assert names(out) == {METRICS, MARK}
    assert names(tmp_path / "runs") == {"one"}


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("name", ["thesis.txt", ".git", "state.npz"])
def test_what_the_command_did_not_leave_is_never_replaced(tmp_path: Path, name: str, earlier: bool, late: bool) -> None:
    """Neither beside an earlier run, nor where it came while the folder was filled."""
    out = tmp_path / "run"
    if earlier:
        fill(out, "first")
    else:
        out.mkdir()
    if not late:
        (out / name).write_text("mine")
        with pytest.raises(FileError, match=r"run (holds|is there already)"):
            require_replaceable(out, OURS)

    def come() -> None:
        with whole_folder(out, OURS) as folder:
            (folder / METRICS).write_text("second")
            (out / name).write_text("mine")

    with pytest.raises(
        FileError, match=r"run (holds|is there already and is not) .*Fix: .*choose another with `out=`."
    ):
        come()
    assert (out / name).read_text() == "mine"
    assert not earlier or (out / METRICS).read_text() == "first"
    assert names(tmp_path) == {"run"}


def test_a_run_of_another_command_is_not_replaced(tmp_path: Path) -> None:
    with open_run(tmp_path / "run", False, "rollout"):
        pass
    with pytest.raises(FileError, match=r"holds a run of `dashi rollout`, and one of `dashi flow rollout` has"):
        fill(tmp_path / "run", "second")


class Stop(BaseException):
    """As Ctrl-C: no error that anybody handles."""


@pytest.mark.parametrize("how", [Stop(), OSError(errno.EIO, "Input/output error")])
@pytest.mark.parametrize(("after", "text"), [(0, "first"), (1, "first"), (2, "second")])
def test_whatever_comes_between_the_renames_one_whole_run_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: BaseException, after: int, text: str
) -> None:
    fill(tmp_path / "run", "first")
    rename, calls = os.rename, list[Path]()

    def stopped(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) <= 2 and after == 0:
            raise how
        rename(source, target)
        if len(calls) == after:
            raise how

    monkeypatch.setattr(os, "rename", stopped)
    with pytest.raises(Stop if isinstance(how, Stop) else FileError):
        fill(tmp_path / "run", "second")
    assert (tmp_path / "run" / METRICS).read_text() == text
    assert names(tmp_path) == {"run"}


def test_a_place_that_cannot_be_written_is_told_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "run", Path("/proc/none/run")):
        with pytest.raises(FileError, match=r"(is no folder|is not the folder of a run|cannot be written: .*)\. Fix: "):
            fill(out, "{}")


def test_a_run_whose_process_was_killed_between_the_renames_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "run [1]"
    fill(out, "first")
    hidden = tmp_path / ".run [1]-old-x"
    hidden.mkdir()
    out.rename(hidden / out.name)  # as far as kill -9 let it come
    require_replaceable(out, OURS)
    assert (out / METRICS).read_text() == "first"
    assert names(tmp_path) == {out.name}
