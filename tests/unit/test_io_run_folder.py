"""Run folders: replaced as a whole or resumed, and nothing of anyone else's is ever written over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashi.errors import FileError
from dashi.io import run_folder
from dashi.io.run_folder import (
    CHECKPOINT,
    INPUTS,
    METRICS,
    REPORT,
    SCORES,
    SHEET,
    STATE,
    SUMMARY,
    UNFINISHED,
    close_run,
    open_run,
    whole_folder,
)
from dashi.io.run_mark import MARK, Mark, write_mark


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != MARK)


def begin(out: Path, resume: bool = False, command: str = "rollout") -> Path:
    return open_run(out, resume, command)


def finished(out: Path, *files: str) -> Path:
    """A finished run with these files."""
    folder = begin(out)
    for name in files:
        (folder / name).write_text("first")
    return close_run(folder, files, finished=True)


def fill_in_vain(out: Path) -> None:
    with whole_folder(out, "demo") as folder:
        (folder / "other.json").write_text("{}")
        raise ZeroDivisionError


def test_a_whole_folder_appears_when_it_is_full_and_not_before(tmp_path: Path) -> None:
    out = tmp_path / "runs" / "one"
    with whole_folder(out, "demo") as folder:
        (folder / "summary.json").write_text("{}")
        assert not out.exists()
    assert names(out) == ["summary.json"]
    with pytest.raises(ZeroDivisionError):
        fill_in_vain(out)
    assert names(out) == ["summary.json"]
    with whole_folder(out, "demo") as folder:
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
            begin(out)
        with pytest.raises(FileError, match=said), whole_folder(out, "demo"):
            pass
    assert names(tmp_path / "mine") == ["thesis.txt"]


def test_an_interrupted_run_is_resumed_and_never_written_over_unasked(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(FileError, match=r"holds no checkpoint to go on from. Fix: leave --resume away"):
        begin(out, resume=True)
    begin(out)
    (out / CHECKPOINT).write_text("")
    with pytest.raises(FileError, match=r"holds a run that was interrupted. Fix: go on with --resume"):
        begin(out)
    (out / ".checkpoint.npz-1234.part").write_text("cut")
    (out / "fields.zarr" / "x").mkdir(parents=True)
    (out / "fields.zarr" / "x" / ".zarr.json-1234.part").write_text("cut")
    assert begin(out, resume=True) == out
    assert names(out) == [CHECKPOINT, "fields.zarr"]
    assert names(out / "fields.zarr" / "x") == []


def test_a_finished_run_leaves_only_what_it_wrote(tmp_path: Path) -> None:
    out = begin(tmp_path / "run")
    for name in (SHEET, STATE, METRICS, CHECKPOINT, REPORT):
        (out / name).write_text("")
    (out / "notes.txt").write_text("mine")
    assert close_run(out, {STATE, METRICS}, finished=False) == out
    assert names(out) == sorted([CHECKPOINT, METRICS, STATE, "notes.txt"])
    assert close_run(out, {STATE, METRICS}, finished=True) == out
    assert names(out) == sorted([METRICS, STATE, "notes.txt"])


def test_a_folder_that_was_begun_is_known_as_ours_whatever_is_in_it(tmp_path: Path) -> None:
    """As a full disk or kill -9 leave it: some files, and neither metrics nor a checkpoint."""
    out = begin(tmp_path / "run")
    (out / "fields.zarr").mkdir()
    (out / "evaluation-train.npz").write_text("")
    assert begin(out) == out
    with pytest.raises(FileError, match=r"holds a run of `dashi rollout`, and one of `dashi flow evaluate` has a fold"):
        begin(out, command="flow evaluate")
    (out / MARK).write_text("{ cut")
    assert begin(out, command="flow evaluate") == out


@pytest.mark.parametrize(
    ("file", "text", "whose"),
    [
        (SUMMARY, "{}", "demo"),
        (SCORES, "{}", "flow evaluate"),
        (METRICS, '{"command": "flow simulate"}', "flow simulate"),
        (METRICS, "{ cut", ""),
        (CHECKPOINT, "", ""),
        (INPUTS, "", ""),
    ],
)
def test_folders_without_a_mark_are_known_by_their_files(tmp_path: Path, file: str, text: str, whose: str) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / file).write_text(text)
    if whose:
        with pytest.raises(FileError, match=f"holds a run of `dashi {whose}`"):
            begin(out)
    assert begin(out, resume=file == CHECKPOINT, command=whose or "rollout").parent in (out, tmp_path)


def test_a_run_takes_the_place_of_a_finished_one_only_when_it_is_finished(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS, STATE, "z.npz")
    (out / "notes.txt").write_text("mine")
    (out / "fields.zarr").mkdir()
    (out / "fields.zarr" / "old").write_text("")
    folder = begin(out)
    assert folder == out / UNFINISHED
    (folder / METRICS).write_text("second")
    (folder / "fields.zarr").mkdir()
    (folder / "fields.zarr" / "new").write_text("")
    assert close_run(folder, {METRICS}, finished=False) == folder
    assert (out / METRICS).read_text() == "first"
    (folder / CHECKPOINT).write_text("")
    with pytest.raises(FileError, match=r"interrupted. Fix: go on with --resume, .* or remove .*unfinished/checkpoint"):
        begin(out)
    assert begin(out, resume=True) == folder
    assert close_run(folder, {METRICS}, finished=True) == out
    assert names(out) == ["fields.zarr", METRICS, "notes.txt"]
    assert (out / METRICS).read_text() == "second"
    assert names(out / "fields.zarr") == ["new"]
    assert begin(out) == out / UNFINISHED


@pytest.mark.parametrize("after", range(5))
def test_a_run_that_is_killed_while_it_takes_its_place_has_it_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    out = finished(tmp_path / "run", METRICS, STATE, SHEET)
    folder = begin(out)
    for name in (METRICS, STATE):
        (folder / name).write_text("second")
    (folder / "fields.zarr").mkdir()

    class Killed(BaseException):
        pass

    calls = 0
    real = run_folder.os.replace

    def counted(*paths: Path) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise Killed
        real(*paths)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.os, "replace", counted)
        with pytest.raises(Killed):
            close_run(folder, {METRICS, STATE}, finished=True)
    begin(out)
    if after > 0:  # the first is the mark that says it is finished
        assert names(out) == ["fields.zarr", METRICS, STATE, UNFINISHED]
        assert (out / METRICS).read_text() == (out / STATE).read_text() == "second"
    else:
        assert (out / METRICS).read_text() == "first"


def test_a_folder_that_happens_to_be_called_unfinished_is_a_run_like_others(tmp_path: Path) -> None:
    outer = finished(tmp_path / "run", METRICS)
    (outer / UNFINISHED).mkdir()
    inner = finished(outer / UNFINISHED, STATE)
    assert names(inner) == [STATE]
    assert names(outer) == [METRICS, UNFINISHED]


def test_what_is_called_unfinished_and_is_no_run_is_left_alone(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS)
    (out / UNFINISHED).mkdir()
    (out / UNFINISHED / "thesis.txt").write_text("all of it")
    with pytest.raises(FileError, match=r"unfinished is there already and was left by no run. Fix: rename it, or "):
        begin(out)


def test_a_mark_never_leads_out_of_the_folder(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS)
    folder = begin(out)
    (tmp_path / "precious").write_text("mine")
    write_mark(folder, Mark("rollout", finished=True, aside=True, files=("../../precious", "/etc/passwd", METRICS)))
    (folder / METRICS).write_text("second")
    begin(out)
    assert (tmp_path / "precious").read_text() == "mine"
    assert (out / METRICS).read_text() == "second"
    assert json.loads((out / MARK).read_text())["files"] == [METRICS]


def test_a_place_that_cannot_be_written_is_told_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot be written: Not a directory. Fix: "):
        begin(tmp_path / "file" / "run")
    with pytest.raises(FileError, match=r"cannot be written: .* Fix: "), whole_folder(Path("/proc/none/run"), "demo"):
        pass
