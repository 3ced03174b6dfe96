"""Run folders: replaced as a whole or resumed, and nothing of anyone else's is ever written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashi.errors import FileError
from dashi.io.run_folder import CHECKPOINT, METRICS, SHEET, STATE, close_run, open_run, whole_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill_in_vain(out: Path) -> None:
    with whole_folder(out) as folder:
        (folder / "other.json").write_text("{}")
        raise ZeroDivisionError


def test_a_whole_folder_appears_when_it_is_full_and_not_before(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "one"
    with whole_folder(out) as folder:
        (folder / "summary.json").write_text("{}")
        assert not out.exists()
    assert names(out) == ["summary.json"]
    with pytest.raises(ZeroDivisionError):
        fill_in_vain(out)
    assert names(out) == ["summary.json"]
    with whole_folder(out) as folder:
        (folder / METRICS).write_text("{}")
    assert names(out) == [METRICS]
    assert names(tmp_path / "runs") == ["one"]


def test_what_is_not_a_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    (tmp_path / "file").write_text("")
    said = r"is there already and is not the folder of a run. Fix: choose another with --out."
    for out in (tmp_path / "mine", tmp_path / "file"):
        with pytest.raises(FileError, match=said):
            open_run(out, resume=False)
        with pytest.raises(FileError, match=said), whole_folder(out):
            pass
    assert names(tmp_path / "mine") == ["thesis.txt"]


def test_an_interrupted_run_is_resumed_and_never_written_over_unasked(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(FileError, match=r"holds no checkpoint to go on from. Fix: leave --resume away"):
        open_run(out, resume=True)
    open_run(out, resume=False)
    (out / CHECKPOINT).write_text("")
    with pytest.raises(FileError, match=r"holds a run that was interrupted. Fix: go on with --resume"):
        open_run(out, resume=False)
    (out / ".checkpoint.npz-1234.part").write_text("cut")
    assert open_run(out, resume=True) == out
    assert names(out) == [CHECKPOINT]


def test_a_finished_run_leaves_only_what_it_wrote(tmp_path: Path) -> None:
    out = open_run(tmp_path / "run", resume=False)
    for name in (SHEET, STATE, METRICS, CHECKPOINT):
        (out / name).write_text("")
    (out / "notes.txt").write_text("mine")
    close_run(out, {STATE, METRICS}, finished=False)
    assert names(out) == sorted([CHECKPOINT, METRICS, STATE, "notes.txt"])
    close_run(out, {STATE, METRICS}, finished=True)
    assert names(out) == sorted([METRICS, STATE, "notes.txt"])
    open_run(out, resume=False)


def test_a_place_that_cannot_be_written_is_told_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot be written: Not a directory. Fix: "):
        open_run(tmp_path / "file" / "run", resume=False)
    with pytest.raises(FileError, match=r"cannot be written: .* Fix: "), whole_folder(Path("/proc/none/run")):
        pass
