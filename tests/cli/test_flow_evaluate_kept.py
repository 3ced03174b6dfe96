"""Claims about what `dashi flow evaluate --out` leaves: nothing finished is lost, nothing of others is touched."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.errors import FileError, InputError
from dashi.flow.evaluation import load_evaluation
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.proxy.galerkin._model import Truncation
from dashi.lab import evaluation_plans

FullDisk = Callable[[int], AbstractContextManager[list[Path]]]
EVALUATE = "--device cpu --fast --eval-seed 9 --no-train"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # many small files; no machine is to fail here


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model so small that it is scored in an instant: what is kept of its scores is what this is about."""
    out = tmp_path_factory.mktemp("fit") / "model.npz"
    words = "--train-steps 40 --train-seed 1 --frame-every 5 --spin-up 20 --n 16 --nu 0.005 --dt 0.02 --set peak=2"
    more = "--k-cut 3 --scheme rk4 --baseline persistence --baseline truncation --device cpu --fast"
    found = dashi("flow fit", words, more, f"--out {out}")
    assert found.exit_code == 0, found.output
    return out


def test_a_folder_of_something_else_is_left_alone(fitted: Path, here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "letter.txt").write_text("dear")
    found = dashi("flow evaluate", str(fitted), EVALUATE, "--out mine")
    assert found.exit_code == 3
    assert "is not the folder of a run" in found.stderr
    assert [path.name for path in (here / "mine").iterdir()] == ["letter.txt"]


def test_the_folder_of_another_command_is_left_alone(fitted: Path, here: Path) -> None:
    assert dashi("flow simulate --n 16 --steps 4 --device cpu --fast --out run").exit_code == 0
    (here / "demo").mkdir()
    (here / "demo" / "summary.json").write_text("{}")
    for out, whose in (("run", "flow simulate"), ("demo", "demo")):
        before = sorted((here / out).rglob("*"))
        found = dashi("flow evaluate", str(fitted), EVALUATE, f"--out {out}")
        assert found.exit_code == 3
        assert f"{out} holds a run of `dashi {whose}`, and one of `dashi flow evaluate` has a folder" in found.stderr
        assert sorted((here / out).rglob("*")) == before


@pytest.mark.parametrize("writes", [1, 6])
def test_a_full_disk_loses_no_scores_and_its_leftovers_are_taken_over(
    fitted: Path, here: Path, full_disk: FullDisk, writes: int
) -> None:
    words = "--seeds 1 --eval-steps 40 --perturb nu=0.01 --out s --json"
    with full_disk(writes):
        full = dashi("flow evaluate", str(fitted), EVALUATE, words)
    assert full.exit_code == 3, full.output
    assert "No space left on device" in full.stderr
    assert "make room on that disk" in full.stderr
    told = json.loads(full.stdout)
    assert "which are there all the same" in told["error"]["what"]
    assert [one["split"] for one in told["evaluations"]] == ["train", "validation", "test", "test"]
    written, _, missing = told["error"]["what"].partition("was written to s; not written is ")
    for path in (here / "s").glob("[!.]*"):
        assert (path.name in written) is not (path.name in missing)
    assert "evaluation-test-nu=0.01.npz" in missing
    again = dashi("flow evaluate", str(fitted), EVALUATE, words)
    assert again.exit_code == 0, again.output
    assert (
        json.loads(again.stdout)["evaluations"][-1]["table"][0]["horizons"]
        == (told["evaluations"][-1]["table"][0]["horizons"])
    )
    assert load_evaluation(here / "s" / "evaluation-test-nu=0.01.npz").lines
    assert not (here / "s" / "unfinished").exists()


def test_a_table_is_printed_before_a_full_disk_is_told(fitted: Path, here: Path, full_disk: FullDisk) -> None:
    with full_disk(1):
        full = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --out s")
    assert full.exit_code == 3
    scores = full.stdout.split("windows: test (1)\n")[1]
    assert all(f"\n{name} " in scores for name in load_fit(fitted).models)
    assert "nothing was written to s; not written is evaluation-train.npz" in full.stderr


def test_a_full_disk_behind_what_is_printed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table("a")
    add_row(table, "b")
    for show in (lambda: print_json({"scores": 1}), lambda: print_table(table)):
        with open("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", full)
            with pytest.raises(FileError, match=r"what is printed cannot be written: No space left .* Fix: make room"):
                show()


def test_an_evaluation_that_is_stopped_leaves_a_finished_one_as_it_is(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "--seeds 1 --eval-steps 40 --out s"
    assert dashi("flow evaluate", str(fitted), EVALUATE, words).exit_code == 0
    before = {path: path.read_bytes() for path in (here / "s").iterdir()}

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Truncation, "rollout", stop)
        found = dashi("flow evaluate", str(fitted), EVALUATE, words, "--eval-seed 20 --overwrite")
    assert found.exit_code == 130
    assert "wrote s/unfinished; s stays as it was" in found.stderr
    assert {path: path.read_bytes() for path in (here / "s").iterdir() if path.is_file()} == before
    assert load_evaluation(here / "s" / "unfinished" / "evaluation-test.npz").seeds == (20,)
    other = dashi("flow evaluate", str(fitted), EVALUATE, words, "--eval-seed 20")
    assert "other settings (first_seed is 9 there, 20 here).\nFix: replace it with --overwrite, or " in other.stderr
    assert dashi("flow evaluate", str(fitted), EVALUATE, words, "--eval-seed 20 --overwrite").exit_code == 0
    assert load_evaluation(here / "s" / "evaluation-test.npz").seeds == (20,)
    assert not (here / "s" / "unfinished").exists()


def test_an_error_on_the_way_loses_no_scores(fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = evaluation_plans.simulate_windows

    def simulated(title: str, *words: Any, **options: Any) -> Any:
        if "nu=" in title:
            raise InputError("it blew up.", "use a smaller dt.")
        return real(title, *words, **options)

    monkeypatch.setattr(evaluation_plans, "simulate_windows", simulated)
    words = "--seeds 1 --eval-steps 40 --perturb nu=0.01 --out s"
    found = dashi("flow evaluate", str(fitted), EVALUATE, words, "--json")
    assert found.exit_code == 3, found.output
    told = json.loads(found.stdout)
    assert told["error"] == {"type": "InputError", "what": "it blew up.", "fix": "use a smaller dt."}
    assert [one["split"] for one in told["evaluations"]] == ["train", "validation", "test"]
    assert told["stopped"] is True
    assert load_evaluation(here / "s" / "evaluation-test.npz").lines
    assert "test (1)" in dashi("flow evaluate", str(fitted), EVALUATE, words).stdout


def test_ctrl_c_while_the_last_model_runs_is_not_forgotten(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Truncation.rollout

    def pressed(*words: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return real(*words, **options)

    monkeypatch.setattr(Truncation, "rollout", pressed)
    found = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --perturb nu=0.01 --json")
    assert found.exit_code == 130, found.output
    told = json.loads(found.stdout)
    assert [one["split"] for one in told["evaluations"]] == ["train", "validation", "test"]
    assert "truncation" in [row["model"] for row in told["evaluations"][-1]["table"]]
    assert told["stopped"] is True


def test_what_an_earlier_evaluation_left_goes_when_the_new_one_is_whole(fitted: Path, here: Path) -> None:
    first = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --perturb nu=0.01 --out s")
    assert first.exit_code == 0, first.output
    second = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --out s --overwrite")
    assert second.exit_code == 0
    names = {path.name for path in (here / "s").glob("evaluation-*.npz")}
    assert names == {"evaluation-train.npz", "evaluation-validation.npz", "evaluation-test.npz"}


def test_what_a_stopped_evaluation_left_is_not_shown_as_that_of_the_next(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "--seeds 1 --eval-steps 40 --perturb nu=0.01 --out s"
    test, drawn = here / "s" / "evaluation-test.npz", here / "s" / "continuation.npz"
    real = evaluation_plans.simulate_windows
    stop_at = "nu="

    def simulated(title: str, *given: Any, **options: Any) -> Any:
        if stop_at in title:
            raise KeyboardInterrupt
        return real(title, *given, **options)

    monkeypatch.setattr(evaluation_plans, "simulate_windows", simulated)
    assert dashi("flow evaluate", str(fitted), EVALUATE, words).exit_code == 130
    assert load_evaluation(test).seeds == (9,)
    assert drawn.exists()
    stop_at = ""  # at once
    assert dashi("flow evaluate", str(fitted), EVALUATE, words, "--eval-seed 20").exit_code == 130
    names = {path.name for path in (here / "s").glob("[!.]*")}
    kept = {f"evaluation-{split}{suffix}" for split in ("train", "validation") for suffix in (".npz", ".json")}
    assert names == {*kept, "evaluation.json"}


def test_ctrl_c_keeps_the_models_and_flows_that_are_finished(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Truncation, "rollout", stop)
    found = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --perturb nu=0.01 --out s --json")
    assert found.exit_code == 130, found.output
    told = json.loads(found.stdout)
    assert told["stopped"] is True
    names = [row["model"] for row in told["evaluations"][-1]["table"]]
    assert names[0] == "galerkin"
    assert "truncation" not in names
    assert load_evaluation(here / "s" / "evaluation-test.npz").stopped
    assert not (here / "s" / "evaluation-test-nu=0.01.npz").exists()
