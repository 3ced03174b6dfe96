"""Claims about `dashi flow evaluate`: what its options mean, what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.errors import InputError
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.evaluation._record import read_record
from dashi.flow.proxy.galerkin._model import Truncation
from dashi.lab import evaluation_plans

EVALUATE = "--device cpu --host-fft --eval-seed 9 --no-train"


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [word for text in words for word in text.split()])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--perturb nu", "is not NAME=NUMBER"),
        ("--perturb nu=nan", "--perturb nu=nan is not NAME=NUMBER"),
        ("--perturb nu=1 --from nowhere", "--perturb is for simulations, and --from reads what is there"),
        ("--from nowhere", "--host-fft is for simulations, and --from reads what is there"),
        ("--device nowhere", "nowhere"),
        ("--eval-steps -5", "--eval-steps is -5"),
        ("--perturb nu=0.01 --perturb nu=0.010", "--perturb has nu=0.01 twice"),
        ("--n 48", "--n goes with --compat v4"),
        ("--compat v4", "and MODEL changes none of it"),
    ],
)
def test_what_cannot_be_evaluated_is_told_in_flags(fitted: Path, words: str, said: str) -> None:
    done = dashi("flow evaluate", str(fitted), EVALUATE, words)
    assert done.exit_code == 3, done.output
    assert said in done.stderr
    assert "Fix: " in done.stderr
    assert "seed(s), on" not in done.stderr  # nothing was simulated before


def test_a_refusal_with_json_is_a_document(fitted: Path) -> None:
    refused = dashi("flow evaluate", str(fitted), "--device cpu --host-fft --eval-seed 3 --eval-steps 40 --json")
    assert refused.exit_code == 3
    assert json.loads(refused.stdout)["error"]["type"] == "InputError"
    assert "rolling out" not in refused.stderr


@pytest.mark.parametrize("option", ["--start 0", "--seeds 0", "--no-train", "--perturb nu=1", "--out here"])
def test_the_compatibility_mode_passes_over_nothing_that_was_asked_for(option: str) -> None:
    done = dashi("flow evaluate --compat v4", option)
    assert done.exit_code == 3, done.output
    name = option.split()[0]
    assert f"--compat v4 has a setting of its own, and {name} changes none of it." in done.stderr
    assert f"Fix: leave {name} away." in done.stderr


def test_the_command_of_the_record_repeats_it_and_its_table_has_a_row_for_each_model(fitted: Path, here: Path) -> None:
    done = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --out s")
    assert done.exit_code == 0, done.output
    assert "windows: test (1)" in done.stdout.splitlines()
    blocks = [block.splitlines() for block in done.stdout.split("windows: test (1)\n")[1].split("\n\n")]
    for heading, *rows in blocks:
        assert heading.startswith("model")
        assert [row.split("  ")[0] for row in rows] == list(load_fit(fitted).models)
    record = read_record(here / "s")
    assert record is not None
    again = dashi(record.command.removeprefix("dashi "))
    assert (again.exit_code, again.stdout) == (0, done.stdout)


def test_a_table_is_printed_before_a_full_disk_is_told(
    fitted: Path, here: Path, full_disk: Callable[[int], AbstractContextManager[list[Path]]]
) -> None:
    with full_disk(1):
        full = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --out s")
    assert full.exit_code == 3
    scores = full.stdout.split("windows: test (1)\n")[1]
    assert all(f"\n{name} " in scores for name in load_fit(fitted).models)
    assert "nothing was written to s; not written is evaluation-train.npz" in full.stderr


def test_what_went_wrong_is_in_the_document_beside_the_scores(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = evaluation_plans.simulate_windows

    def simulated(title: str, *words: Any, **options: Any) -> Any:
        if "nu=" in title:
            raise InputError("it blew up.", "use a smaller dt.")
        return real(title, *words, **options)

    monkeypatch.setattr(evaluation_plans, "simulate_windows", simulated)
    done = dashi("flow evaluate", str(fitted), EVALUATE, "--seeds 1 --eval-steps 40 --perturb nu=0.01 --json")
    assert done.exit_code == 3, done.output
    document = json.loads(done.stdout)
    assert document["error"] == {"type": "InputError", "what": "it blew up.", "fix": "use a smaller dt."}
    assert [one["split"] for one in document["evaluations"]] == ["train", "validation", "test"]
    assert document["stopped"] is True


def test_ctrl_c_prints_what_is_finished_and_where_it_lies(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "--seeds 1 --eval-steps 40 --out s --overwrite"
    assert dashi("flow evaluate", str(fitted), EVALUATE, words).exit_code == 0

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Truncation, "rollout", stop)
    done = dashi("flow evaluate", str(fitted), EVALUATE, words, "--eval-seed 20")
    assert done.exit_code == 130
    assert "wrote s/unfinished; s stays as it was" in done.stderr
    assert "windows: test (1)" in done.stdout


def test_evaluate_without_a_model_is_wrong_usage() -> None:
    assert dashi("flow evaluate").exit_code == 2
