"""Pictures of a sheet of band energies: files that hold what was asked for, and refusals before any is written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dashi.core.observations.sheet import save_sheet
from dashi.errors import FileError, InputError
from dashi.lab import SheetRequest, draw_sheet


def test_picture_and_film_are_written_and_described(here: Path) -> None:
    save_sheet(here / "sheet_energy.npy", np.random.default_rng(0).random((30, 4)))
    request = SheetRequest(sheet=Path("sheet_energy.npy"), out=Path("a/sheet.png"), video=Path("a/sheet.apng"))
    pictures = draw_sheet(request, device="cpu")
    assert (pictures.steps, pictures.bands, pictures.device.spec) == (30, 4, "cpu")
    assert pictures.video is not None
    assert (pictures.image.frames, pictures.video.seconds) == (None, pytest.approx(1.5))
    for made, frames in ((pictures.image, 1), (pictures.video, 30)):
        assert made.bytes == made.file.stat().st_size
        with Image.open(made.file) as picture:
            assert picture.size == (made.width, made.height)
            assert getattr(picture, "n_frames", 1) == frames == (made.frames or 1)


def test_scale_and_nonfinite_change_the_picture(here: Path) -> None:
    sheet = np.array([[1.0, 1e-3], [1e-6, 1.0]])
    save_sheet(here / "s.npy", sheet)
    draw_sheet(SheetRequest(sheet=Path("s.npy"), out=Path("log.png")), device="cpu")
    draw_sheet(SheetRequest(sheet=Path("s.npy"), out=Path("linear.png"), scale="linear"), device="cpu")
    assert (here / "log.png").read_bytes() != (here / "linear.png").read_bytes()
    sheet[0, 0] = math.nan
    save_sheet(here / "s.npy", sheet)
    draw_sheet(SheetRequest(sheet=Path("s.npy"), out=Path("nan.png"), nonfinite=True), device="cpu")
    with Image.open(here / "nan.png") as picture:
        assert picture.convert("RGB").getpixel((0, picture.height - 1)) == (255, 0, 255)


@pytest.mark.parametrize(
    ("sheet", "what", "fix"),
    [
        ("none.npy", "there is no file none.npy.", "correct the path."),
        (
            "line.npy",
            "line.npy has 1 dimensions (shape (4,)); a sheet has two, steps and bands.",
            "pass an array [T, B]: one row of band energies for every observed step.",
        ),
        ("empty.npy", "a sheet of shape (0, 3) has nothing to show.", "record at least one step and one band."),
        (
            "nan.npy",
            "the energy of band 0 in row 1 is nan; 1 of 4 values are not finite.",
            "cut the sheet there, or allow such values (`nonfinite=True`): they are shown in magenta.",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused_and_leaves_nothing(here: Path, sheet: str, what: str, fix: str) -> None:
    np.save(here / "line.npy", np.zeros(4))
    np.save(here / "empty.npy", np.zeros((0, 3)))
    np.save(here / "nan.npy", np.array([[1.0, 1.0], [math.nan, 1.0]]))
    before = sorted(here.iterdir())
    with pytest.raises((InputError, FileError)) as error:
        draw_sheet(SheetRequest(sheet=Path(sheet), out=Path("sheet.png")), device="cpu")
    assert (error.value.what, error.value.fix) == (what, fix)
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(
    ("names", "what", "fix"),
    [
        (
            {"out": "sheet.jpg"},
            "`out=sheet.jpg` is not a kind of file that is written here.",
            "let the name end in .png.",
        ),
        (
            {"video": "sheet.mp4"},
            "`video=sheet.mp4` is not a kind of file that is written here.",
            "let the name end in .apng or .png (ffmpeg -i sheet.apng sheet.mp4 converts it).",
        ),
        (
            {"out": "a.png", "video": "a.png"},
            "`out=` and `video=` both name a.png.",
            "give them different names.",
        ),
        (
            {"sheet": None},
            "one sheet is to be shown: that of a file, or the example.",
            "name a sheet_energy.npy, or pass `example=True`.",
        ),
    ],
)
def test_names_of_other_kinds_are_refused_by_the_request(names: dict[str, str | None], what: str, fix: str) -> None:
    files = {"sheet": "good.npy", "out": "sheet.png", **names}
    words: dict[str, Any] = {name: None if text is None else Path(text) for name, text in files.items()}
    with pytest.raises(InputError) as error:
        SheetRequest(**words)
    assert (error.value.what, error.value.fix) == (what, fix)


def test_a_place_that_cannot_be_written_is_an_error(here: Path) -> None:
    (here / "sheet.png").mkdir()
    with pytest.raises(FileError, match=r"sheet.png cannot be written: Is a directory\."):
        draw_sheet(SheetRequest(example=True, out=Path("sheet.png")), device="cpu")
