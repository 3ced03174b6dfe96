"""`dashi filament pack` and `unpack`: files, what they print, and flags in their errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app

POINTS = np.arange(32) * (2 * math.pi / 32)
FIELD = np.sin(3 * POINTS)[:, None] * np.cos(2 * POINTS)[None] + 0.2 * np.sin(np.outer(POINTS, POINTS))
FIELD -= FIELD.mean()


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["filament", *words])


@pytest.fixture(autouse=True)
def field_file(here: Path) -> None:
    np.save(here / "field.npy", FIELD)


def test_a_field_comes_back_as_exact_as_was_asked(here: Path) -> None:
    done = run("pack", "field.npy", "--out", "field.df", "--max-error", "0.02", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["bytes"] == (here / "field.df").stat().st_size == sum(document["bits"].values()) // 8
    assert run("unpack", "field.df", "--out", "back.npy").exit_code == 0
    error = np.linalg.norm(np.load(here / "back.npy") - FIELD) / np.linalg.norm(FIELD)
    assert error == pytest.approx(document["error"], rel=1e-6)
    assert error <= 0.02


def test_a_prefix_decodes_and_says_what_is_missing(here: Path) -> None:
    assert run("pack", "field.npy", "--out", "field.df", "--max-bytes", "120").exit_code == 0
    assert (here / "field.df").stat().st_size <= 120
    done = run("unpack", "field.df", "--out", "back.npy", "--prefix-bytes", "60")
    assert done.exit_code == 0
    assert "the rest is missing" in done.stderr
    document = json.loads(run("unpack", "field.df", "--out", "more.npy", "--n", "64", "--json").stdout)
    assert (document["complete"], document["n"]) == (True, 64)
    few, all_of_it = np.load(here / "back.npy"), np.load(here / "more.npy")[::2, ::2]
    assert np.linalg.norm(all_of_it - FIELD) <= np.linalg.norm(few - FIELD)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["pack", "field.npy", "--out", "a.df", "--max-error", "2"], "--max-error is 2.0"),
        (
            ["pack", "field.npy", "--out", "a.df", "--max-error", "0.1", "--max-bytes", "9"],
            "both --max-error and --max",
        ),
        (["pack", "field.npy", "--out", "a.df", "--max-bytes", "9"], "--max-bytes 9 is less than the header"),
        (["pack", "none.npy", "--out", "a.df"], "none.npy"),
        (["unpack", "field.npy", "--out", "a.npy"], "this is no packed field"),
        (["unpack", "field.npy", "--out", "a.npy", "--prefix-bytes", "-1"], "--prefix-bytes -1 is below 0"),
        (["unpack", "field.npy", "--out", "a.npy", "--prefix-bytes", "0"], "cut short in its header, after 0 bytes"),
    ],
)
def test_errors_speak_of_flags_and_leave_no_file(here: Path, words: list[str], what: str) -> None:
    done = run(*words)
    assert (done.exit_code, what in done.stderr, "Fix: " in done.stderr) == (3, True, True), done.stderr
    assert sorted(path.name for path in here.iterdir()) == ["field.npy"]
