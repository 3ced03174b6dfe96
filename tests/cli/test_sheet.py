"""`dashi sheet view` writes a picture and a film of a run's sheet, and says what is wrong with a file that is none."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
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
        made = document[part]
        file = here / made["file"]
        assert made["bytes"] == file.stat().st_size
        with Image.open(file) as picture:
            assert picture.size == (made["width"], made["height"])
            assert getattr(picture, "n_frames", 1) == frames == made.get("frames", 1)
    assert document["video"]["seconds"] == pytest.approx(1.5)


def test_people_get_lines_and_the_default_is_a_picture_alone(here: Path) -> None:
    save_sheet(here / "s.npy", np.ones((3, 2), np.float32))
    done = view("s.npy")
    assert done.exit_code == 0
    assert done.stdout.startswith("sheet.png: 960 x 480, ")
    assert sorted(path.name for path in here.iterdir()) == ["s.npy", "sheet.png"]


def test_scale_and_nonfinite_change_the_picture(here: Path) -> None:
    sheet = np.array([[1.0, 1e-3], [1e-6, 1.0]])
    save_sheet(here / "s.npy", sheet)
    assert view("s.npy", "--out", "log.png").exit_code == 0
    assert view("s.npy", "--out", "linear.png", "--scale", "linear").exit_code == 0
    assert (here / "log.png").read_bytes() != (here / "linear.png").read_bytes()
    sheet[0, 0] = math.nan
    save_sheet(here / "s.npy", sheet)
    assert view("s.npy", "--nonfinite", "--out", "nan.png").exit_code == 0
    with Image.open(here / "nan.png") as picture:
        assert picture.convert("RGB").getpixel((0, picture.height - 1)) == (255, 0, 255)


def test_the_example_needs_no_file(here: Path) -> None:
    assert view("--example").exit_code == 0
    assert (here / "sheet.png").is_file()


@pytest.mark.parametrize(
    ("words", "what", "fix"),
    [
        (["none.npy"], "there is no file none.npy.", "correct the path."),
        (
            ["line.npy"],
            "line.npy has 1 dimensions (shape (4,)); a sheet has two, steps and bands.",
            "pass an array [T, B]: one row of band energies for every observed step.",
        ),
        (["empty.npy"], "a sheet of shape (0, 3) has nothing to show.", "record at least one step and one band."),
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
def test_what_cannot_be_shown_is_an_error_with_a_fix_and_leaves_nothing(
    here: Path, words: list[str], what: str, fix: str
) -> None:
    np.save(here / "line.npy", np.zeros(4))
    np.save(here / "empty.npy", np.zeros((0, 3)))
    np.save(here / "nan.npy", np.array([[1.0, 1.0], [math.nan, 1.0]]))
    np.save(here / "good.npy", np.ones((2, 2)))
    before = sorted(here.iterdir())
    done = view(*words, "--json")
    assert done.exit_code == 3
    error = json.loads(done.stdout)["error"]
    assert (error["what"], error["fix"]) == (what, fix)
    assert sorted(here.iterdir()) == before


def test_a_place_that_cannot_be_written_is_an_error(here: Path) -> None:
    np.save(here / "good.npy", np.ones((2, 2)))
    (here / "sheet.png").mkdir()
    done = view("good.npy")
    assert done.exit_code == 3
    assert "sheet.png cannot be written: Is a directory." in done.stderr
