"""`dashi sheet view`: what it prints, and flags in its errors."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.core.observations.sheet import save_sheet


def view(*words: str) -> Any:
    return CliRunner().invoke(app, ["sheet", "view", "--device", "cpu", *words])


def test_picture_and_film_are_written_and_listed(here: Path) -> None:
    save_sheet(here / "sheet_energy.npy", np.random.default_rng(0).random((30, 4)))
    done = view("sheet_energy.npy", "--out", "a/sheet.png", "--video", "a/sheet.apng", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["sheet"], document["steps"], document["bands"]) == ("sheet_energy.npy", 30, 4)
    assert document["device"]["spec"] == "cpu"
    for part, frames in (("image", 1), ("video", 30)):
        picture = document[part]
        assert picture["bytes"] == (here / picture["file"]).stat().st_size
        assert (picture["width"] > 0, picture.get("frames", 1)) == (True, frames)
    assert document["video"]["seconds"] == pytest.approx(1.5)


def test_people_get_lines_and_the_default_is_a_picture_alone(here: Path) -> None:
    save_sheet(here / "s.npy", np.ones((3, 2), np.float32))
    done = view("s.npy")
    assert done.exit_code == 0
    assert done.stdout.startswith("sheet.png: 960 x 480, ")
    assert sorted(path.name for path in here.iterdir()) == ["s.npy", "sheet.png"]


def test_scale_and_nonfinite_reach_the_job(here: Path) -> None:
    save_sheet(here / "s.npy", np.array([[1.0, 1e-3], [math.nan, 1.0]]))
    assert json.loads(view("s.npy", "--nonfinite", "--scale", "linear", "--json").stdout)["scale"] == "linear"


def test_the_example_needs_no_file(here: Path) -> None:
    assert view("--example").exit_code == 0
    assert (here / "sheet.png").is_file()


@pytest.mark.parametrize(
    ("words", "what", "fix"),
    [
        (
            ["nan.npy"],
            "the energy of band 0 in row 1 is nan; 1 of 4 values are not finite.",
            "cut the sheet there, or allow such values (--nonfinite): they are shown in magenta.",
        ),
        (
            ["good.npy", "--out", "sheet.jpg"],
            "--out sheet.jpg is not a kind of file that is written here.",
            "let the name end in .png.",
        ),
        (
            ["good.npy", "--video", "sheet.mp4"],
            "--video sheet.mp4 is not a kind of file that is written here.",
            "let the name end in .apng or .png (ffmpeg -i sheet.apng sheet.mp4 converts it).",
        ),
        (
            ["good.npy", "--out", "a.png", "--video", "a.png"],
            "--out and --video both name a.png.",
            "give them different names.",
        ),
        (
            [],
            "one sheet is to be shown: that of a file, or the example.",
            "name a sheet_energy.npy, or pass --example.",
        ),
    ],
)
def test_errors_speak_of_flags(here: Path, words: list[str], what: str, fix: str) -> None:
    np.save(here / "nan.npy", np.array([[1.0, 1.0], [math.nan, 1.0]]))
    np.save(here / "good.npy", np.ones((2, 2)))
    done = view(*words, "--json")
    assert done.exit_code == 3
    error = json.loads(done.stdout)["error"]
    assert (error["what"], error["fix"]) == (what, fix)
