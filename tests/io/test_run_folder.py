"""Run folders: one run at a time, begun or resumed, and nothing of anyone else's is ever written over."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dashi.errors import FileError
from dashi.io import _run_folder as run_folder
from dashi.io import _run_names as run_names
from dashi.io._files import write_text
from dashi.io._run_folder import (
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
)
from dashi.io._run_mark import MARK, Mark, write_mark
from dashi.io._run_names import GENERATOR, SCORED
from dashi.io._run_reading import is_unfinished, names_like, run_file

ALL = (*run_folder.RESULTS, SCORED, "z.npz", "fields.zarr")
"""What the runs of these tests may leave."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != MARK)


def listing(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """All that is below a folder, with what a change would leave its trace in."""
    return {path: ((s := path.lstat()).st_mtime_ns, s.st_ino, s.st_size) for path in [folder, *folder.rglob("*")]}


def begin(out: Path, resume: bool = False, command: str = "rollout", **more: Any) -> Path:
    with open_run(out, resume, command, **{"files": ALL, **more}) as folder:
        assert folder is not None
        return folder  # as a run that was killed leaves it: it is begun, and not closed


def finished(out: Path, *files: str) -> Path:
    """A finished run with these files."""
    folder = begin(out)
    for name in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("first")
    return close_run(folder, files, finished=True)


def test_what_is_not_a_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    (tmp_path / "file").write_text("")
    said = r"is there already and is not the folder of a run. Fix: choose another with `out=`."
    for out in (tmp_path / "mine", tmp_path / "file"):
        with pytest.raises(FileError, match=said):
            begin(out)
    assert names(tmp_path / "mine") == ["thesis.txt"]


def test_an_interrupted_run_is_resumed_and_never_written_over_unasked(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(FileError, match=r"holds no checkpoint to go on from. Fix: leave `resume=True` away"):
        begin(out, resume=True)
    assert not out.exists()
    begin(out)
    (out / CHECKPOINT).write_text("")
    with pytest.raises(FileError, match=r"holds a run that was interrupted. Fix: go on with `resume=True`"):
        begin(out)
    (out / ".checkpoint.npz-12345678.part").write_text("cut")
    (out / ".fields.zarr.part").mkdir()
    (out / "fields.zarr" / "x").mkdir(parents=True)
    (out / "fields.zarr" / "x" / ".zarr.json.part").write_text("cut")
    assert begin(out, resume=True) == out
    assert names(out) == [CHECKPOINT, "fields.zarr"]
    assert begin(out, overwrite=True) == out
    assert names(out) == []
    (out / "fields.zarr" / "x").mkdir(parents=True)
    assert names(out / "fields.zarr" / "x") == []


def test_a_finished_run_leaves_only_what_it_wrote(tmp_path: Path) -> None:
    out = begin(tmp_path / "run")
    for name in (SHEET, STATE, METRICS, CHECKPOINT):
        (out / name).write_text("")
    (out / REPORT).write_text(f"<html>{GENERATOR}")
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
    if file == CHECKPOINT:
        assert begin(out, resume=True, command=whose or "rollout") == out  # such a run was not finished
        return
    for overwrite in (False, True):
        with pytest.raises(FileError, match=r"was left by an earlier version, .*Fix: move it away, or choose another"):
            begin(out, command=whose or "rollout", overwrite=overwrite)
    assert names(out) == [file]  # nobody knows what else may be its own


def test_a_run_takes_the_place_of_a_finished_one_only_when_it_is_finished(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS, STATE, "z.npz", "fields.zarr/old")
    (out / "notes.txt").write_text("mine")
    folder = begin(out)
    assert folder == out / UNFINISHED
    (folder / METRICS).write_text("second")
    (folder / "fields.zarr").mkdir()
    (folder / "fields.zarr" / "new").write_text("")
    assert close_run(folder, {METRICS}, finished=False) == folder
    assert (out / METRICS).read_text() == "first"
    (folder / CHECKPOINT).write_text("")
    fix = r"go on with `resume=True`, .* or remove .*unfinished/checkpoint"
    with pytest.raises(FileError, match=rf"interrupted. Fix: {fix}"):
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
    before = listing(tmp_path)
    text = "second" if after > 0 else "first"  # the first is the mark that says it is finished
    assert run_file(out, METRICS).read_text() == run_file(out, STATE).read_text() == text
    assert run_file(out, "fields.zarr").is_dir() is (after > 0)
    assert run_file(out, SHEET).exists() is (after == 0)  # of the run before, which is none of this one's
    assert not is_unfinished(out)
    assert names_like(out, "*.npz") == [STATE]
    assert listing(tmp_path) == before  # whoever reads changes nothing
    assert begin(out) == out / UNFINISHED
    assert (out / METRICS).read_text() == (out / STATE).read_text() == text
    assert names(out) == sorted([UNFINISHED, METRICS, STATE, "fields.zarr" if after else SHEET])


def test_the_place_where_runs_of_a_folder_work_is_no_place_of_its_own(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS)
    inner = begin(out)
    for resume in (False, True):
        with pytest.raises(FileError, match=r"unfinished is where runs of .*run work. Fix: give `out=.*run`, or "):
            begin(inner, resume)
    alone = finished(tmp_path / UNFINISHED, STATE)  # a name like others where there is no run around it
    assert names(alone) == [STATE]


def test_a_finished_run_that_lies_where_another_would_work_is_left_alone(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS)
    finished(tmp_path / "other", STATE).rename(out / UNFINISHED)
    with pytest.raises(FileError, match=r"unfinished holds a finished run. Fix: move it elsewhere, or "):
        begin(out)
    assert names(out / UNFINISHED) == [STATE]


@pytest.mark.parametrize("aside", [False, True])
def test_a_run_never_mixes_with_what_a_stopped_one_left(tmp_path: Path, aside: bool) -> None:
    out = finished(tmp_path / "run", METRICS) if aside else tmp_path / "run"
    folder = begin(out)
    for name in ("z.npz", METRICS, "evaluation-test.npz"):
        (folder / name).write_text("of the run that was stopped")
    close_run(folder, {METRICS}, finished=False)
    (out / "notes.txt").write_text("mine")
    assert begin(out) == folder
    assert names(folder) == ([] if aside else ["notes.txt"])
    assert (out / "notes.txt").read_text() == "mine"


def test_what_others_put_beside_a_run_stays_whatever_it_is_called(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS, STATE)
    mine = [out / "pictures" / "w.jpg", out / "evaluation-notes.md", out / "z.npz", out / REPORT]
    mine[0].parent.mkdir()
    for file in mine:
        file.write_text("mine")
    for finishes in (True, False, True):
        folder = begin(out, files=(METRICS, STATE))
        for name in (METRICS, STATE):
            (folder / name).write_text("second")
        close_run(folder, {METRICS, STATE}, finished=finishes)
        assert [file.read_text() for file in mine] == ["mine"] * 4
    assert (out / METRICS).read_text() == "second"
    assert json.loads((out / MARK).read_text())["files"] == [METRICS, STATE]


def test_what_others_put_where_a_run_would_write_is_refused_before_the_work_and_at_its_end(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS)
    (out / "z.npz").write_text("mine")
    with pytest.raises(FileError, match=r"z.npz is there, and no run left it: it is not replaced. Fix: move it away"):
        begin(out)
    (out / "z.npz").unlink()
    folder = begin(out)
    (folder / "z.npz").write_text("of the run")
    (folder / METRICS).write_text("second")
    (out / "z.npz").write_text("mine")
    for attempt in (lambda: close_run(folder, {METRICS}, finished=True), lambda: begin(out)):
        with pytest.raises(FileError, match=r"z.npz is there, and no run left it: the run that is finished stays in "):
            attempt()
        assert (out / "z.npz").read_text() == "mine"
        assert run_file(out, METRICS).read_text() == "second"
    (out / "z.npz").unlink()
    assert begin(out) == folder
    assert (out / "z.npz").read_text() == "of the run"


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", [MARK, UNFINISHED, STATE, "fields.zarr", "fields.zarr/x/c"])
def test_a_run_never_writes_through_a_link(tmp_path: Path, name: str, resume: bool) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "thesis.tex").write_text("mine")
    out = begin(tmp_path / "run")
    (out / "fields.zarr" / "x").mkdir(parents=True)
    if name == UNFINISHED:
        write_mark(victim, Mark("rollout", finished=False))
        close_run(out, (), finished=True)
    elif resume:
        (out / CHECKPOINT).touch()
    link = out / name
    if name in (MARK, "fields.zarr"):
        link.unlink() if name == MARK else (link / "x").rmdir() or link.rmdir()
    link.symlink_to(victim if name in (UNFINISHED, "fields.zarr", "fields.zarr/x/c") else victim / "thesis.tex")
    before = listing(victim)
    if name == "fields.zarr/x/c" and not resume:
        begin(out)
        assert not (out / "fields.zarr").exists()  # the link went with what the run before left
    else:
        said = r" is a link: (it is not replaced|a run writes in its own folder alone)\. Fix: (move|remove) it"
        with pytest.raises(FileError, match=said):
            begin(out, resume)
    assert listing(victim) == before


def test_links_are_followed_where_they_were_named_and_replaced_in_the_folder_of_a_run(tmp_path: Path) -> None:
    out = begin(tmp_path / "run")
    (tmp_path / "mine").write_text("mine")
    for link in (out / STATE, tmp_path / "link"):
        link.symlink_to(tmp_path / "mine")
    write_text(out / STATE, "new")
    assert not (out / STATE).is_symlink()
    assert (tmp_path / "mine").read_text() == "mine"
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "mine").read_text() == "new"


@pytest.mark.parametrize("left", ["nothing", "half a mark"])
def test_a_run_that_is_killed_before_its_mark_is_there_does_not_bar_the_next(tmp_path: Path, left: str) -> None:
    out = finished(tmp_path / "run", METRICS)
    (out / UNFINISHED).mkdir()
    if left == "half a mark":
        (out / UNFINISHED / f".{MARK}.part").write_text("{")
    folder = begin(out)
    assert [path.name for path in folder.iterdir()] == [MARK]


def test_a_finished_run_is_replaced_unasked_only_by_one_with_the_same_settings(tmp_path: Path) -> None:
    out = tmp_path / "run"
    folder = begin(out, settings={"steps": 8, "seed": 1})
    (folder / METRICS).write_text("first")
    close_run(folder, {METRICS}, finished=True)
    fix = r" Fix: replace it with `overwrite=True`, or choose another with `out=`."
    said = r"run holds a finished run of `dashi rollout` with other settings \(steps is 8 there, 9 here\)." + fix
    with pytest.raises(FileError, match=said):
        begin(out, settings={"steps": 9, "seed": 1})
    with pytest.raises(
        FileError, match=r"holds a run of `dashi rollout`, and one of `dashi flow rollout` has .*" + fix
    ):
        begin(out, command="flow rollout", settings={"steps": 8, "seed": 1})
    assert begin(out, settings={"seed": 1, "steps": 8}) == out / UNFINISHED
    other = begin(out, command="flow rollout", settings={"steps": 9}, overwrite=True)
    (other / "z.npz").write_text("second")
    assert close_run(other, (), finished=True) == out
    assert names(out) == ["z.npz"]
    document = json.loads((out / MARK).read_text())
    del document["settings"]
    (out / MARK).write_text(json.dumps(document))
    with pytest.raises(FileError, match=r"of an earlier version, which does not say with which settings." + fix):
        begin(out, command="flow rollout", settings={"steps": 9})


def test_a_long_setting_is_kept_as_a_digest_and_a_mark_shows_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    out = tmp_path / "run"
    folder = begin(out, settings={"name": "a" * 500})
    close_run(folder, (), finished=True)
    with pytest.raises(FileError, match="other settings"):
        begin(out, settings={"name": "a" * 499 + "b"})
    assert begin(out, settings={"name": "a" * 500}) == out / UNFINISHED
    write_mark(out, Mark("\x1b[2J" + "x" * 999, finished=True, settings={"na\x1bme": "\x1b]52;"}))
    with pytest.raises(FileError) as refused:
        begin(out)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 600


def test_what_is_called_unfinished_and_is_no_run_is_left_alone(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS)
    (out / UNFINISHED).mkdir()
    (out / UNFINISHED / "thesis.txt").write_text("all of it")
    with pytest.raises(FileError, match=r"unfinished is there already and was left by no run. Fix: rename it, or "):
        begin(out)


@pytest.mark.parametrize("name", ["../../precious", "/etc/passwd", "", ".", "..", "./", UNFINISHED, MARK, ".git"])
def test_a_mark_never_leads_out_of_the_folder_nor_to_all_of_it(tmp_path: Path, name: str) -> None:
    out = finished(tmp_path / "run", METRICS)
    for mine in (tmp_path / "precious", out / "notes.txt", out / ".git"):
        mine.write_text("mine")
    folder = begin(out)
    (folder / ".git").write_text("theirs")
    (folder / UNFINISHED).mkdir()
    write_mark(folder, Mark("rollout", True, (name, METRICS), aside=True, settings={}))
    (folder / METRICS).write_text("second")
    begin(out)
    for mine in (tmp_path / "precious", out / "notes.txt", out / ".git"):
        assert mine.read_text() == "mine"
    assert (out / METRICS).read_text() == "second"
    assert name == UNFINISHED or json.loads((out / MARK).read_text())["files"] == [METRICS]


def test_all_that_a_run_wrote_aside_takes_its_place_whatever_it_is_called(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS)
    (out / "notes.txt").write_text("mine")
    folder = begin(out)
    for name in (METRICS, "of-another-version.npz", CHECKPOINT, ".hidden"):
        (folder / name).write_text("second")
    (folder / "folder").mkdir()
    (folder / "out").symlink_to(tmp_path)
    close_run(folder, {METRICS}, finished=True)
    assert names(out) == ["folder", METRICS, "notes.txt", "of-another-version.npz"]
    assert (out / "of-another-version.npz").read_text() == "second"


def test_a_folder_belongs_to_one_run_at_a_time(tmp_path: Path) -> None:
    out = finished(tmp_path / "run", METRICS)
    said = rf"another run is at work in {out}. Fix: wait for it, or choose another with `out=`."
    with open_run(out, False, "rollout") as folder:
        assert folder is not None
        assert folder == out / UNFINISHED
        (folder / METRICS).write_text("second")
        for resume in (False, True):
            with pytest.raises(FileError, match=said):
                begin(out, resume)
        assert (folder / METRICS).read_text() == "second"
        close_run(folder, {METRICS}, finished=True)
    assert begin(out) == out / UNFINISHED
    assert (out / METRICS).read_text() == "second"


def test_a_run_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    out = tmp_path / "run"
    code = f"""
import sys
from pathlib import Path
from dashi.io._run_folder import open_run
with open_run(Path({str(out)!r}), False, "rollout"):
    print("begun", flush=True)
    sys.stdin.read()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        with pytest.raises(FileError, match=r"another run is at work in .*run. Fix: wait for it, or choose another"):
            begin(out)
        running.kill()
    assert begin(out) == out
    assert {path.name for path in out.iterdir()} == {MARK}  # the lock is no file


@pytest.mark.parametrize("why", ["no module", "no locks on this disk"])
def test_where_nothing_can_be_locked_runs_go_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    system = None if why == "no module" else SimpleNamespace(flock=refuse, LOCK_EX=2, LOCK_NB=4)
    monkeypatch.setitem(sys.modules, "fcntl", system)
    with open_run(tmp_path / "run", False, "rollout") as folder:
        assert folder == tmp_path / "run"
        assert begin(tmp_path / "run") == folder


def test_a_place_that_cannot_be_written_is_told_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot be written: Not a directory. Fix: "):
        begin(tmp_path / "file" / "run")
    with open_run(None, False, "rollout") as folder:
        assert folder is None  # and one that was not asked for is none


def test_the_file_of_the_canonical_figure_has_its_name_from_one_place() -> None:
    """Two that write it, one that draws it, and what later runs replace must agree."""
    sources = Path(run_folder.__file__).parents[1].rglob("*.py")
    named = [path for path in sources if f'"{run_folder.CONTINUATION}"' in path.read_text(encoding="utf-8")]
    assert named == [Path(run_names.__file__)]
