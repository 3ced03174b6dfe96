"""Claims about the folder of a simulation: what stops it loses nothing, and what cannot be meant is told before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.core.rollouts.run import Run
from dashi.errors import DashiError, FileError
from dashi.flow import Flow
from dashi.flow._trajectory import Trajectory
from dashi.io.arrays import read_arrays, write_arrays

FullDisk = Callable[[int], AbstractContextManager[list[Path]]]
EVERY_FOUR = {"look_every": 4, "frame_every": 4, "hash_every": 4}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of small files, whose durability is not what is tested here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint with every frame, however fast they come."""
    monkeypatch.setattr("dashi.flow._trajectory.TrajectoryWriter.pause", lambda self: 0.0)


def run(out: str | None, *, resume: bool = False, overwrite: bool = False, **asked: Any) -> Run:
    plain: dict[str, Any] = {"flow": Flow(n=16, nu=0.01, dt=0.01), "initial_options": {"peak": 2}, "host_fft": True}
    request = lab.SimulateRequest(**{**plain, **EVERY_FOUR, "steps": 12, **asked})
    return lab.simulate(request, device="cpu", out=out, resume=resume, overwrite=overwrite)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def interrupted(monkeypatch: pytest.MonkeyPatch, frames: int, out: str, **asked: Any) -> None:
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
            run(out, **asked)


@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("after", [0, 1, 2, 3, 8, 30, 60, -4, -3, -2, -1])
def test_a_run_on_a_full_disk_is_taken_over_or_goes_on_to_the_same_hashes(
    here: Path, full_disk: FullDisk, after: int, eager: bool, request: pytest.FixtureRequest
) -> None:
    if eager:
        request.getfixturevalue("_eager")
    with full_disk(1 << 30) as written:
        whole = run("whole")
    with full_disk(after % len(written)), pytest.raises(FileError) as full:
        run("run")
    assert full.value.what.endswith("No space left on device.")
    assert full.value.fix.startswith("make room on that disk")
    kept = (here / "run" / "checkpoint.npz").exists()
    assert ("then go on with `resume=True`" in full.value.fix) == kept
    assert run("run", resume=kept).hashes == whole.hashes
    ours, theirs = contents(here / "run"), contents(here / "whole")
    assert set(ours) == set(theirs)
    for name in (name for name in theirs if "/c/" in name or name == "state.npz"):
        assert ours[name] == theirs[name], name


def test_a_run_that_is_killed_leaves_a_finished_one_as_it_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run("run")
    before = contents(here / "run")
    other = r"with other settings \(seed is 0 there, 5 here\). Fix: replace it with `overwrite=True`, or choose"
    with pytest.raises(FileError, match=other):
        run("run", seeds=(5,))
    interrupted(monkeypatch, 2, "run", seeds=(5,), overwrite=True)
    assert {k: v for k, v in contents(here / "run").items() if not k.startswith("unfinished")} == before
    with pytest.raises(FileError, match=r"run holds a run that was interrupted.* or remove run/unfinished/checkpoint"):
        run("run", seeds=(5,))
    second = run("run", seeds=(5,), resume=True)
    assert second.folder == Path("run")
    assert second.hashes != first.hashes
    assert second.hashes == run("other", seeds=(5,)).hashes
    assert not (here / "run" / "unfinished").exists()
    assert set(contents(here / "run")) == set(before)


@pytest.mark.usefixtures("_eager")
def test_a_run_goes_on_further_than_it_was_meant_to_with_the_strides_it_had(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual: dict[str, Any] = dict.fromkeys(EVERY_FOUR)
    interrupted(monkeypatch, 2, "run", steps=20, **usual)
    more = run("run", steps=40, resume=True, **usual)
    assert [h.step for h in more.hashes] == [*range(2, 41, 2)]
    interrupted(monkeypatch, 3, "other")
    with monkeypatch.context() as patch:
        patch.setattr("dashi.lab.simulations.solve", pytest.fail)
        refusals: tuple[tuple[dict[str, Any], str], ...] = (
            ({"frame_every": 2}, "the run that goes on has `frame_every=4`."),
            ({"seeds": (3,)}, "is a checkpoint of a run with another flow, start, fields or strides"),
            ({"steps": 2}, "8 steps are done already, 2 asked for."),
        )
        for asked, said in refusals:
            with pytest.raises(DashiError, match=said):
                run("other", resume=True, **asked)


@pytest.mark.usefixtures("_eager")
def test_a_damaged_run_does_not_go_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(monkeypatch, 3, "good")
    frame = Path("fields.zarr/vorticity/c/1/0/0/0")

    def refused(change: Callable[[Path], object]) -> str:
        shutil.rmtree(here / "run", ignore_errors=True)
        shutil.copytree(here / "good", here / "run")
        change(here / "run")
        with pytest.raises(FileError) as error:
            run("run", resume=True)
        return str(error.value)

    anew = "Fix: start anew: remove run/checkpoint.npz, and leave `resume=True` away."
    assert anew in refused(lambda out: (out / "checkpoint.npz").write_bytes(b"PK"))
    assert anew in refused(lambda out: (out / "checkpoint.npz").write_text("x"))
    gone = "run/fields.zarr has no whole frame 1 of vorticity, written before step 8."
    assert gone in refused(lambda out: (out / frame).unlink())
    assert gone in refused(lambda out: (out / frame).write_bytes(b"cut"))
    arrays = read_arrays(here / "good" / "checkpoint.npz")
    for name in ("hashes:every", "frames:every", "diagnostics:every"):
        odd = {**arrays, name: np.array(4.0)}
        assert f"{name} is no setting. {anew}" in refused(
            lambda out, odd=odd: write_arrays(out / "checkpoint.npz", odd)
        )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"fields": ("nothing",)}, "there is no field 'nothing'"),
        ({"initial_options": {"colour": 3}}, r"these options: it has no 'colour'. Fix: use some of peak, speed."),
        ({"trace": "."}, "cannot be written: it is a folder"),
        ({"trace": "/proc/none/trace"}, "cannot be written"),
        ({"flow": Flow(n=16, nu=0.01, dt=9)}, "dt = 9 is too long after step 0"),
    ],
)
def test_what_cannot_be_meant_leaves_no_finished_run(here: Path, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(DashiError, match=said):
        run("run", **asked)
    assert not (here / "run" / "metrics.json").exists()
