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
from dashi.io.run_folder import open_run, typed_for
from dashi.report.run import read_run

FullDisk = Callable[[int], AbstractContextManager[list[Path]]]
ROLLOUT = "rollout --z0 z0.npz --A A.npz --steps 8 --hash-every 2 --checkpoint-every 4 --sheet-every 2 --device cpu"
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
        assert dashi(ROLLOUT, "--b b.npz --out run").exit_code == 3
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
    open_run(Path("other"), resume=False, command="rollout", line="dashi rollout 'a b'")
    Path("other/checkpoint.npz").touch()
    open_run(Path("other"), resume=True, command="rollout", line="dashi rollout --resume")
    assert typed_for(Path("other")) == ("dashi rollout 'a b'", "dashi rollout --resume")
