"""Claims about the folders of rollouts, decoded or not: a full disk loses nothing, and a place is one run's alone."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import pytest

from dashi import lab
from dashi.core.rollouts.run import Run
from dashi.errors import DashiError, FileError
from dashi.flow import Flow
from dashi.io._run_folder import open_run
from dashi.io._run_reading import typed_for
from dashi.lab import rollouts
from dashi.report.run import read_run

FullDisk = Callable[[int], AbstractContextManager[list[Path]]]
Job = Callable[..., Any]
"""Does its work into a folder, or goes on there."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small files, whose durability is not what is tested here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def roll(out: str | None, *, resume: bool = False, overwrite: bool = False, **asked: Any) -> Run:
    plain: dict[str, Any] = {"z0": "z0.npz", "A": "A.npz", "steps": 8, "hash_every": 2, "sheet_every": 2}
    request = lab.RolloutRequest(**{**plain, "checkpoint_every": 4 if out else None, **asked})
    return lab.rollout(request, device="cpu", out=out, resume=resume, overwrite=overwrite)


def follow(out: str, *, resume: bool = False) -> Run:
    assert not resume  # it keeps no checkpoints
    request = lab.FollowRequest(
        fit_from="flow", k_cut=4.0, steps=4, decode_every=2, observer="snapshots", stage_times=False
    )
    return lab.follow(request, device="cpu", out=out)


def again(job: Job, full_disk: FullDisk, after: int) -> None:
    """Runs on a disk that is full after so many files (from the end, if negative), then where there is room."""
    with full_disk(1 << 30) as written:
        whole = job("whole")
    with full_disk(after % len(written)), pytest.raises(FileError, match="No space left on device"):
        job("run")
    assert job("run", resume=Path("run/checkpoint.npz").exists()).metrics.hashes == whole.metrics.hashes
    ours, theirs = ({p.relative_to(out) for p in Path(out).rglob("*")} for out in ("run", "whole"))
    assert ours == theirs


@pytest.mark.parametrize("after", [0, 1, 2, 3, -3, -2, -1])
def test_a_rollout_on_a_full_disk_is_taken_over_or_goes_on(
    write_inputs: Callable[[int], None], full_disk: FullDisk, after: int
) -> None:
    write_inputs(6)
    again(roll, full_disk, after)


@pytest.mark.parametrize("after", [0, 1, 2, 9, -1])
def test_a_rollout_of_a_flow_on_a_full_disk_is_taken_over(here: Path, full_disk: FullDisk, after: int) -> None:
    request = lab.SimulateRequest(
        flow=Flow(16, nu=0.01, dt=0.01), steps=12, frame_every=2, initial_options={"peak": 2}, host_fft=True
    )
    lab.simulate(request, device="cpu", out="flow")
    again(follow, full_disk, after)


def test_a_rollout_leaves_a_finished_one_as_it_is_until_it_is_finished(
    here: Path, write_inputs: Callable[[int], None], full_disk: FullDisk
) -> None:
    write_inputs(6)
    roll("run")
    before = {path: path.read_bytes() for path in (here / "run").iterdir()}
    with full_disk(3), pytest.raises(FileError):
        roll("run", b="b.npz", overwrite=True)
    assert {path: path.read_bytes() for path in (here / "run").iterdir() if path.is_file()} == before
    result = roll("run", b="b.npz", resume=True)
    assert (result.folder, [*result.certificates]) == (Path("run"), [Path("run/certificate.json")])
    assert {path.name for path in (here / "run").iterdir()} == {path.name for path in before}
    assert (here / "run" / "state.npz").read_bytes() != before[here / "run" / "state.npz"]
    assert lab.verify(lab.VerifyRequest(certificate=Path("run/certificate.json")), device="cpu").same


def test_the_page_of_a_run_has_the_lines_that_were_typed_for_it(write_inputs: Callable[[int], None]) -> None:
    write_inputs(6)
    roll("run", command_line="dashi rollout --z0 z0.npz")
    assert read_run(Path("run")).command == "dashi rollout --z0 z0.npz"
    # A run that was stopped and went on was typed in two lines.
    with open_run(Path("other"), resume=False, command="rollout", line="dashi rollout 'a b'"):
        Path("other/checkpoint.npz").touch()
    with open_run(Path("other"), resume=True, command="rollout", line="dashi rollout --resume"):
        pass
    assert typed_for(Path("other")) == ("dashi rollout 'a b'", "dashi rollout --resume")


@pytest.mark.parametrize(
    ("out", "asked", "said"),
    [
        ("run", {"metrics": "taken"}, "taken cannot be written: it is a folder"),
        ("run", {"certificate": "taken"}, "taken cannot be written: it is a folder"),
        ("run", {"certificate": "A.npz/c.json"}, "A.npz is no folder"),
        ("taken", {}, "taken is there already and is not the folder of a run"),
        ("A.npz/run", {}, "A.npz is no folder"),
    ],
)
def test_a_place_that_a_rollout_cannot_have_is_refused_before_the_work(
    here: Path,
    write_inputs: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
    out: str,
    asked: dict[str, Any],
    said: str,
) -> None:
    write_inputs(6)
    (here / "taken").mkdir()
    (here / "taken" / "thesis.txt").touch()
    before = {path.name for path in here.iterdir()}
    monkeypatch.setattr("dashi.lab._job.place", pytest.fail)
    with pytest.raises(FileError, match=said):
        roll(out, **asked)
    assert {path.name for path in here.iterdir()} == before


@pytest.mark.parametrize("parameter", ["metrics", "certificate"])
@pytest.mark.parametrize("out", [None, "run"])
def test_a_file_that_can_no_longer_be_written_takes_nothing_else_with_it(
    here: Path, write_inputs: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, parameter: str, out: str | None
) -> None:
    """Somebody put a folder there while the steps were made."""
    write_inputs(6)
    whole = roll(None)
    rollout = rollouts.engine.rollout

    def meanwhile(*words: Any, **named: Any) -> Any:
        (here / "taken").mkdir()
        return rollout(*words, **named)

    monkeypatch.setattr(rollouts.engine, "rollout", meanwhile)
    with pytest.raises(FileError, match=r"taken cannot be written: Is a directory. Fix: ") as error:
        roll(out, checkpoint_every=None, **cast("dict[str, Any]", {parameter: "taken"}))
    result = error.value.result
    assert isinstance(result, Run)
    assert result.metrics.hashes == whole.metrics.hashes
    if out:
        assert {path.name for path in (here / "run").iterdir()} == {
            ".dashi-run", "inputs.npz", "certificate.json", "state.npz", "sheet_energy.npy", "metrics.json",
        }  # fmt: skip
        assert json.loads((here / "run" / ".dashi-run").read_text())["finished"] is True


def test_a_second_rollout_into_the_same_folder_waits_its_turn(
    here: Path, write_inputs: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_inputs(6)
    rollout, second = rollouts.engine.rollout, list[str]()

    def meanwhile(*words: Any, **named: Any) -> Any:
        if not second:
            second.append("")
            with pytest.raises(DashiError) as error:
                roll("run")
            second[0] = str(error.value)
        return rollout(*words, **named)

    monkeypatch.setattr(rollouts.engine, "rollout", meanwhile)
    roll("run")
    assert second[0] == "another run is at work in run. Fix: wait for it, or choose another with `out=`."
    assert (here / "run" / "metrics.json").is_file()
