"""The sheet comes back from its file as it was, and its pictures show what is in it, the same on every device."""

from __future__ import annotations

import io
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dashi.core.observations.png import write_apng, write_png
from dashi.core.observations.sheet import SheetStyle, draw, example_sheet, film, film_length, load_sheet, save_sheet
from dashi.errors import DashiError, DTypeError, FileError, InputError, ShapeError
from dashi.kernels.view.images import heat, unpack
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._null_device import NullDevice
from dashi.runtime.device import Device

CPU = CpuDevice()
COLOURS = unpack(heat())[:, :3]
MAGENTA = [255, 0, 255]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (300, 16)])
def test_a_sheet_comes_back_as_it_was(tmp_path: Path, kind: Any, shape: tuple[int, int]) -> None:
    sheet = np.random.default_rng(0).random(shape).astype(kind)
    file = tmp_path / "run" / "sheet_energy.npy"
    save_sheet(file, sheet)
    assert load_sheet(file).tobytes() == sheet.tobytes()
    assert load_sheet(file).dtype == kind
    # NumPy reads it too, and files that NumPy wrote are read.
    assert np.array_equal(np.load(file, allow_pickle=False), sheet)
    np.savez(tmp_path / "all.npz", sheet_energy=sheet)
    assert load_sheet(tmp_path / "all.npz").shape == shape


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (
            np.zeros(5),
            ShapeError,
            (
                "{file} has 1 dimensions (shape (5,)); a sheet has two, steps and bands. "
                "Fix: pass an array [T, B]: one row of band energies for every observed step."
            ),
        ),
        (
            np.zeros((2, 3), np.int32),
            DTypeError,
            "{file} holds int32; a sheet holds float32 or float64. Fix: convert it.",
        ),
    ],
)
def test_a_file_that_is_no_sheet_is_refused(tmp_path: Path, values: Any, kind: type[DashiError], message: str) -> None:
    file = tmp_path / "sheet.npy"
    np.save(file, values)
    with pytest.raises(kind) as caught:
        load_sheet(file)
    assert str(caught.value) == message.format(file=file)
    with pytest.raises(kind):
        save_sheet(tmp_path / "other.npy", values)
    assert not (tmp_path / "other.npy").exists()


def test_files_that_are_missing_cut_short_pickled_or_lie_about_their_size_are_refused(tmp_path: Path) -> None:
    good = tmp_path / "good.npy"
    save_sheet(good, np.ones((50, 8)))
    cut = tmp_path / "cut.npy"
    cut.write_bytes(good.read_bytes()[:-100])
    pickled = tmp_path / "pickled.npy"
    np.save(pickled, np.array([[{}]]), allow_pickle=True)
    lying = tmp_path / "lying.npy"
    lying.write_bytes(good.read_bytes().replace(b"(50, 8)", b"(60, 8)"))
    huge = tmp_path / "huge.npy"
    header = repr({"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}).ljust(117) + "\n"
    huge.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(64))
    for file in (tmp_path / "none.npy", cut, pickled, lying, huge, tmp_path):
        with pytest.raises(FileError) as caught:
            load_sheet(file)
        assert "Fix: " in str(caught.value)


def level(fraction: float) -> list[int]:
    """The colour of a place on the scale."""
    return COLOURS[math.floor(fraction * 255 + 0.5)].tolist()


def test_time_runs_right_bands_run_up_and_colours_follow_the_energy(device: Device) -> None:
    sheet = np.array([[4.0, 1.0], [3.0, 2.0], [0.0, 4.0]], np.float32)
    look = SheetStyle(scale="linear", width=6, height=4)
    got = draw(device, sheet, look)
    assert got.shape == (4, 6, 3)
    # Blocks of 2 x 2 pixels; band 1 is above band 0.
    blocks = got[::2, ::2].tolist()
    assert np.array_equal(got, np.repeat(np.repeat(got[::2, ::2], 2, 0), 2, 1))
    assert blocks == [[level(1 / 4), level(2 / 4), level(1)], [level(1), level(3 / 4), level(0)]]


def test_the_logarithmic_scale_shows_decades_and_ends_twelve_below_the_largest(device: Device) -> None:
    sheet = 10.0 ** np.array([[5, 2, -1], [-7, -20, -math.inf]])
    got = draw(device, sheet, SheetStyle(width=2, height=3))
    assert got[::-1, 0].tolist() == [level(1), level(9 / 12), level(6 / 12)]
    assert got[::-1, 1].tolist() == [level(0), level(0), level(0)]


def test_pictures_and_films_are_the_same_on_every_device(device: Device) -> None:
    sheet, look = example_sheet(), SheetStyle(width=120, height=64, frames=7)
    assert np.array_equal(draw(device, sheet, look), draw(CPU, sheet, look))
    ours, theirs = list(film(device, sheet, look)), list(film(CPU, sheet, look))
    assert len(ours) == film_length(sheet, look) == 7
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("factor", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_energies_of_any_magnitude_are_drawn_alike(factor: float) -> None:
    sheet = np.random.default_rng(1).random((9, 4)) + 0.1
    for scale in ("log", "linear"):
        look = SheetStyle(scale=scale, width=9, height=4)
        assert np.array_equal(draw(CPU, factor * sheet, look), draw(CPU, sheet, look))


def test_a_sheet_of_one_value_or_of_nothing_but_zeros_is_drawn() -> None:
    for scale in ("log", "linear"):
        look = SheetStyle(scale=scale, width=4, height=4)
        assert draw(CPU, np.ones((1, 1)), look).tolist() == [[level(1)] * 4] * 4
        assert draw(CPU, np.zeros((2, 2)), look).tolist() == [[level(0)] * 4] * 4


def test_more_steps_and_bands_than_pixels_are_averaged() -> None:
    sheet = np.repeat(np.array([[1.0, 3.0], [2.0, 4.0]]), 500, axis=0)
    sheet[::2] *= 2
    sheet[1::2] *= 0
    look = SheetStyle(scale="linear", width=2, height=2)
    got = draw(CPU, sheet, look)
    assert got.shape == (2, 2, 3)
    assert got[::-1, 0].tolist() == [level(1 / 8), level(3 / 8)]
    many = draw(CPU, np.ones((3, 5000)), look)
    assert many.shape == (2, 2, 3)
    assert film_length(sheet, SheetStyle(frames=120)) == 120


def test_the_film_grows_downwards_and_older_rows_fade(device: Device) -> None:
    sheet = np.ones((4, 2), np.float32)
    frames = list(film(device, sheet, SheetStyle(scale="linear", width=4, height=8)))
    assert len(frames) == 4
    for t, frame in enumerate(frames):
        rows = frame[::2, 0, 0].astype(int)
        assert frame.shape == (8, 4, 3)
        assert rows[0] == 255
        assert np.all(np.diff(rows[: t + 1]) < 0)
        assert np.all(rows[t + 1 :] == 0)


def test_what_cannot_be_drawn_is_refused_with_a_fix() -> None:
    broken = np.ones((5, 3))
    broken[2, 1], broken[4, 0] = math.nan, math.inf
    with pytest.raises(InputError) as caught:
        draw(CPU, broken)
    assert str(caught.value) == (
        "the energy of band 1 in row 2 is nan; 2 of 15 values are not finite. "
        "Fix: cut the sheet there, or allow such values (`nonfinite=True`): they are shown in magenta."
    )
    with pytest.raises(InputError) as caught:
        draw(CPU, np.zeros((0, 3)))
    assert str(caught.value) == (
        "a sheet of shape (0, 3) has nothing to show. Fix: record at least one step and one band."
    )
    with pytest.raises(ShapeError):
        next(film(CPU, np.zeros((2, 2, 2))))
    with pytest.raises(DashiError, match="Fix: "):
        draw(NullDevice(), np.ones((2, 2)))


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_values_that_are_not_finite_are_magenta_where_they_are_allowed(device: Device, scale: Any) -> None:
    sheet = np.array([[1.0, math.nan], [-math.inf, 1.0]])
    look = SheetStyle(scale=scale, width=2, height=2)
    got = draw(device, sheet, look, nonfinite=True)
    assert got[::-1].tolist() == [[level(1), MAGENTA], [MAGENTA, level(1)]]
    last = list(film(device, sheet, look, nonfinite=True))[-1]
    assert last[0].tolist() == [MAGENTA, level(1)]
    nothing = draw(device, np.full((2, 2), math.nan), look, nonfinite=True)
    assert nothing.tolist() == [[MAGENTA] * 2] * 2


def pictures(count: int, h: int = 5, w: int = 7) -> list[Any]:
    return list(np.random.default_rng(2).integers(0, 256, (count, h, w, 3), dtype=np.uint8))


def chunks(data: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a PNG file, their checksums checked."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, result = 8, list[tuple[bytes, bytes]]()
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert data[at + 8 + length : at + 12 + length] == struct.pack(">I", zlib.crc32(kind + body))
        result.append((kind, body))
        at += 12 + length
    return result


def test_a_written_picture_is_read_back_pixel_by_pixel() -> None:
    (picture,) = pictures(1)
    file = io.BytesIO()
    write_png(file, picture)
    assert [kind for kind, _ in chunks(file.getvalue())] == [b"IHDR", b"IDAT", b"IEND"]
    file.seek(0)
    assert np.array_equal(np.asarray(Image.open(file).convert("RGB")), picture)


def test_a_written_film_is_read_back_frame_by_frame() -> None:
    shown = pictures(3)
    file = io.BytesIO()
    write_apng(file, iter(shown), 3, 40)
    result = chunks(file.getvalue())
    assert [kind for kind, _ in result] == [
        b"IHDR", b"acTL", b"fcTL", b"IDAT", b"fcTL", b"fdAT", b"fcTL", b"fdAT", b"IEND",
    ]  # fmt: skip
    numbers = [struct.unpack(">I", body[:4])[0] for kind, body in result if kind in {b"fcTL", b"fdAT"}]
    assert numbers == [0, 1, 2, 3, 4]
    file.seek(0)
    with Image.open(file) as film:
        assert (getattr(film, "n_frames", 1), film.info["loop"]) == (3, 0)
        for number, picture in enumerate(shown):
            film.seek(number)
            assert film.info["duration"] == 40
            assert np.array_equal(np.asarray(film.convert("RGB")), picture)


def test_pictures_of_the_wrong_kind_number_or_size_are_refused() -> None:
    with pytest.raises(ShapeError) as caught:
        write_png(io.BytesIO(), np.zeros((2, 2, 4), np.uint8))
    assert str(caught.value) == (
        "a picture is bytes of shape (h, w, 3), not uint8 of shape (2, 2, 4). Fix: pass red, green and blue as uint8."
    )
    with pytest.raises(ShapeError) as caught:
        write_apng(io.BytesIO(), pictures(2), 3, 40)
    assert str(caught.value) == "a film of 3 pictures was given 2. Fix: pass as many as there are, at least one."
    with pytest.raises(ShapeError) as caught:
        write_apng(io.BytesIO(), [*pictures(1), *pictures(1, h=6)], 2, 40)
    assert str(caught.value) == "picture 1 of a film has size (6, 7), the first (5, 7). Fix: pass one size."
