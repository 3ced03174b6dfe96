"""Claims about the folders of `dashi rollout --out` and `dashi flow rollout --out`: a full disk loses nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.io._run_folder import open_run
from dashi.io._run_reading import typed_for
from dashi.lab import rollouts
from dashi.report.run import read_run

FullDisk = Callable[[int], AbstractContextManager[list[Path]]]
PLAIN = "rollout --z0 z0.npz --A A.npz --steps 8 --hash-every 2 --sheet-every 2 --device cpu"
ROLLOUT = f"{PLAIN} --checkpoint-every 4"
FLOW = "flow rollout --fit-from flow --k-cut 4 --steps 4 --decode-every 2 --observer snapshots --device cpu"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small files, whose durability is not what is tested here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


def again(command: str, full_disk: FullDisk, after: int) -> None:
    """Runs on a disk that is full after so many files (from the end, if negative), then where there is room."""
    with full_disk(1 << 30) as written:
        whole = dashi(command, "--out whole --json")
    assert whole.exit_code == 0, whole.output
    with full_disk(after % len(written)):
        full = dashi(command, "--out run")
    assert full.exit_code == 3, full.output
    assert "No space left on device" in full.stderr
    more = "--resume" if Path("run/checkpoint.npz").exists() else ""
    found = dashi(command, "--out run --json", more)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["hashes"] == json.loads(whole.stdout)["hashes"]
    ours, theirs = ({p.relative_to(out) for p in Path(out).rglob("*")} for out in ("run", "whole"))
    assert ours == theirs


@pytest.mark.parametrize("after", [0, 1, 2, 3, -3, -2, -1])
def test_a_rollout_on_a_full_disk_is_taken_over_or_goes_on(
    write_inputs: Callable[[int], None], full_disk: FullDisk, after: int
) -> None:
    write_inputs(6)
    again(ROLLOUT, full_disk, after)


@pytest.mark.parametrize("after", [0, 1, 2, 9, -1])
def test_a_rollout_of_a_flow_on_a_full_disk_is_taken_over(here: Path, full_disk: FullDisk, after: int) -> None:
    made = dashi(
        "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --fast --steps 12 --frame-every 2 --out flow"
    )
    assert made.exit_code == 0, made.output
    again(FLOW, full_disk, after)


def test_a_rollout_leaves_a_finished_one_as_it_is_until_it_is_finished(
    here: Path, write_inputs: Callable[[int], None], full_disk: FullDisk
) -> None:
    write_inputs(6)
    assert dashi(ROLLOUT, "--out run").exit_code == 0
    before = {path: path.read_bytes() for path in (here / "run").iterdir()}
    with full_disk(3):
        assert dashi(ROLLOUT, "--b b.npz --out run --overwrite").exit_code == 3
    assert {path: path.read_bytes() for path in (here / "run").iterdir() if path.is_file()} == before
    found = dashi(ROLLOUT, "--b b.npz --out run --json --resume")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert (told["folder"], told["certificate"]) == ("run", "run/certificate.json")
    assert {path.name for path in (here / "run").iterdir()} == {path.name for path in before}
    assert (here / "run" / "state.npz").read_bytes() != before[here / "run" / "state.npz"]
    assert dashi("verify run/certificate.json --device cpu").exit_code == 0


def test_the_page_of_a_run_has_the_lines_that_were_typed_for_it(write_inputs: Callable[[int], None]) -> None:
    write_inputs(6)
    assert dashi(ROLLOUT, "--out run").exit_code == 0
    assert read_run(Path("run")).command == f"dashi {ROLLOUT} --out run"
    # A run that was stopped and went on was typed in two lines.
    with open_run(Path("other"), resume=False, command="rollout", line="dashi rollout 'a b'"):
        Path("other/checkpoint.npz").touch()
    with open_run(Path("other"), resume=True, command="rollout", line="dashi rollout --resume"):
        pass
    assert typed_for(Path("other")) == ("dashi rollout 'a b'", "dashi rollout --resume")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--metrics taken", "taken cannot be written: it is a folder"),
        ("--certificate taken", "taken cannot be written: it is a folder"),
        ("--certificate A.npz/c.json", "A.npz is no folder"),
        ("--out taken", "taken is there already and is not the folder of a run"),
        ("--out A.npz/run", "A.npz is no folder"),
    ],
)
def test_a_place_that_a_rollout_cannot_have_is_refused_before_the_work(
    here: Path, write_inputs: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    write_inputs(6)
    (here / "taken").mkdir()
    (here / "taken" / "thesis.txt").touch()
    before = {path.name for path in here.iterdir()}
    monkeypatch.setattr("dashi.lab._job.place", pytest.fail)
    found = dashi(ROLLOUT, "--out run" if "--out" not in words else "", words)
    assert (found.exit_code, said in found.stderr, "\nFix: " in found.stderr) == (3, True, True), found.output
    assert {path.name for path in here.iterdir()} == before


@pytest.mark.parametrize("option", ["--metrics", "--certificate"])
@pytest.mark.parametrize("out", ["", "--out run"])
def test_a_file_that_can_no_longer_be_written_takes_nothing_else_with_it(
    here: Path, write_inputs: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, option: str, out: str
) -> None:
    """Somebody put a folder there while the steps were made."""
    write_inputs(6)
    whole = dashi(PLAIN, "--json")
    rollout = rollouts.engine.rollout

    def meanwhile(*words: Any, **named: Any) -> Any:
        (here / "taken").mkdir()
        return rollout(*words, **named)

    monkeypatch.setattr(rollouts.engine, "rollout", meanwhile)
    found = dashi(PLAIN, out, option, "taken --json")
    assert found.exit_code == 3, found.output
    assert "error: taken cannot be written: Is a directory.\nFix: " in found.stderr
    told = json.loads(found.stdout)
    assert told["hashes"] == json.loads(whole.stdout)["hashes"]
    assert told["error"]["what"] == "taken cannot be written: Is a directory."
    if out:
        assert {path.name for path in (here / "run").iterdir()} == {
            ".dashi-run", "inputs.npz", "certificate.json", "state.npz", "sheet_energy.npy", "metrics.json",
        }  # fmt: skip
        assert json.loads((here / "run" / ".dashi-run").read_text())["finished"] is True


def test_a_second_rollout_into_the_same_folder_waits_its_turn(
    here: Path, write_inputs: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_inputs(6)
    rollout, second = rollouts.engine.rollout, list[Any]()

    def meanwhile(*words: Any, **named: Any) -> Any:
        if not second:
            second.append(None)
            second[0] = dashi(ROLLOUT, "--out run")
        return rollout(*words, **named)

    monkeypatch.setattr(rollouts.engine, "rollout", meanwhile)
    first = dashi(ROLLOUT, "--out run")
    assert first.exit_code == 0, first.output
    assert second[0].exit_code == 3
    said = "error: another run is at work in run.\nFix: wait for it, or choose another with --out.\n"
    assert second[0].stderr == said
    assert (here / "run" / "metrics.json").is_file()
