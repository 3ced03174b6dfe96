"""Claims about `dashi flow simulate --out`: what stops it loses nothing, and what cannot be meant is told before."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.flow._trajectory import Trajectory
from dashi.io.arrays import read_arrays, write_arrays

FullDisk = Callable[[int], AbstractContextManager[list[Path]]]
BASE = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --fast --look-every 4 --frame-every 4 --hash-every 4"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of small files, whose durability is not what is tested here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint with every frame, however fast they come."""
    monkeypatch.setattr("dashi.flow._trajectory.TrajectoryWriter.pause", lambda self: 0.0)


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def run(*words: str) -> dict[str, Any]:
    found = dashi(BASE, *words, "--json")
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def interrupted(monkeypatch: pytest.MonkeyPatch, frames: int, *words: str) -> None:
    """Runs until so many frames are written, as if killed then."""

    class Killed(BaseException):
        pass

    real = Trajectory.add
    done = 0

    def add(self: Trajectory, *rest: Any) -> None:
        nonlocal done
        if done == frames:
            raise Killed
        real(self, *rest)
        done += 1

    with monkeypatch.context() as patch:
        patch.setattr(Trajectory, "add", add)
        with pytest.raises(Killed):
            dashi(BASE, *words)


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("after", [0, 1, 2, 3, 8, 30, 60, -4, -3, -2, -1])
def test_a_run_on_a_full_disk_is_taken_over_or_goes_on_to_the_same_hashes(
    here: Path, full_disk: FullDisk, after: int, eager: bool, request: pytest.FixtureRequest
) -> None:
    if eager:
        request.getfixturevalue("_eager")
    with full_disk(1 << 30) as written:
        whole = run("--steps 12 --out whole")
    with full_disk(after % len(written)):
        full = dashi(BASE, "--steps 12 --out run")
    assert full.exit_code == 3, full.output
    assert "No space left on device.\nFix: make room on that disk" in full.stderr
    kept = (here / "run" / "checkpoint.npz").exists()
    assert ("then go on with --resume" in full.stderr) == kept
    again = run("--steps 12 --out run", "--resume" if kept else "")
    assert again["hashes"] == whole["hashes"]
    ours, theirs = contents(here / "run"), contents(here / "whole")
    assert set(ours) == set(theirs)
    for name in (name for name in theirs if "/c/" in name or name == "state.npz"):
        assert ours[name] == theirs[name], name


def test_a_run_that_is_killed_leaves_a_finished_one_as_it_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("--steps 12 --out run")
    before = contents(here / "run")
    other = dashi(BASE, "--steps 12 --seed 5 --out run")
    assert other.exit_code == 3
    assert "with other settings (seed is 0 there, 5 here).\nFix: replace it with --overwrite, or choose" in other.stderr
    interrupted(monkeypatch, 2, "--steps 12 --seed 5 --out run --overwrite")
    assert {k: v for k, v in contents(here / "run").items() if not k.startswith("unfinished")} == before
    refused = dashi(BASE, "--steps 12 --seed 5 --out run")
    assert refused.exit_code == 3
    assert "run holds a run that was interrupted" in refused.stderr
    assert "or remove run/unfinished/checkpoint.npz" in refused.stderr
    second = run("--steps 12 --seed 5 --out run --resume")
    assert second["folder"] == "run"
    assert second["hashes"] != first["hashes"]
    assert second["hashes"] == run("--steps 12 --seed 5 --out other")["hashes"]
    assert not (here / "run" / "unfinished").exists()
    assert set(contents(here / "run")) == set(before)


@pytest.mark.usefixtures("_eager")
def test_a_run_goes_on_further_than_it_was_meant_to_with_the_strides_it_had(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --fast --steps"
    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.BASE", base)
        interrupted(monkeypatch, 2, "20 --out run")
    more = dashi(base, "40 --out run --resume --json")
    assert more.exit_code == 0, more.output
    assert [h["step"] for h in json.loads(more.stdout)["hashes"]] == [*range(2, 41, 2)]
    interrupted(monkeypatch, 3, "--steps 12 --out other")
    for words, said in (
        ("--steps 12 --frame-every 2", "the run that goes on has --frame-every 4."),
        ("--steps 12 --seed 3", "is a checkpoint of a run with another flow, start, fields or strides"),
        ("--steps 2", "8 steps are done already, 2 asked for."),
    ):
        refused = dashi(BASE, words, "--out other --resume")
        assert refused.exit_code == 3, refused.output
        assert said in refused.stderr
        assert "steps of 16 x 16" not in refused.stderr


@pytest.mark.usefixtures("_eager")
def test_a_damaged_run_does_not_go_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(monkeypatch, 3, "--steps 12 --out good")
    frame = Path("fields.zarr/vorticity/c/1/0/0/0")

    def refused(change: Callable[[Path], object]) -> str:
        shutil.rmtree(here / "run", ignore_errors=True)
        shutil.copytree(here / "good", here / "run")
        change(here / "run")
        found = dashi(BASE, "--steps 12 --out run --resume")
        assert found.exit_code == 3, found.output
        return found.stderr

    anew = "Fix: start anew: remove run/checkpoint.npz, and leave --resume away."
    assert anew in refused(lambda out: (out / "checkpoint.npz").write_bytes(b"PK"))
    assert anew in refused(lambda out: (out / "checkpoint.npz").write_text("x"))
    gone = "run/fields.zarr has no whole frame 1 of vorticity, written before step 8."
    assert gone in refused(lambda out: (out / frame).unlink())
    assert gone in refused(lambda out: (out / frame).write_bytes(b"cut"))
    arrays = read_arrays(here / "good" / "checkpoint.npz")
    for name in ("hashes:every", "frames:every", "diagnostics:every"):
        odd = {**arrays, name: np.array(4.0)}
        assert f"{name} is no setting.\n{anew}" in refused(
            lambda out, odd=odd: write_arrays(out / "checkpoint.npz", odd)
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--field nothing --out run", "there is no field 'nothing'"),
        ("--set speed=nan", "--set speed=nan is not NAME=NUMBER"),
        ("--set colour=3", "does not fit these options: it has no 'colour'.\nFix: use some of peak, speed."),
        ("--members 100000000", "GiB"),
        ("--trace . --out run", "cannot be written: it is a folder"),
        ("--trace /proc/none/trace --out run", "cannot be written"),
        ("--dt 9 --out run", "dt = 9 is too long after step 0"),
    ],
)
def test_what_cannot_be_meant_is_told_before_the_work(here: Path, words: str, said: str) -> None:
    found = dashi(BASE if "--out" in words else BASE.replace("--frame-every 4", ""), "--steps 4", words)
    assert found.exit_code == 3, found.output
    assert said in found.stderr
    assert not (here / "run" / "metrics.json").exists()
    assert "Fix: " in found.stderr


def test_frames_without_a_folder_are_told() -> None:
    found = dashi(BASE, "--steps 4")
    assert found.exit_code == 3
    assert "--frame-every writes frames to a run folder.\nFix: name it with --out" in found.stderr
