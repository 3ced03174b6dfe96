"""Claims about what a run folder keeps of decoded fields, however many there are."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from dashi.flow._fields import read_line
from dashi.flow.decode._album import Album
from dashi.flow.decode.decoder import Decoded
from dashi.flow.decode.settings import Settings
from dashi.flow.proxy.schema import Schema
from dashi.io._run_names import DECODED

ONE, THREE = np.ones(1), np.ones((1, 3))
MEASURED = Decoded(
    "metrics", ONE, ONE, THREE, ONE, np.ones((1, 2)), None, None, None, dtype="float32", residual="none", bytes_read=28
)


def new_album(folder: Path) -> Album:
    return Album(folder, Schema(16, 3), 1, Settings(), 0.5)


def test_the_last_of_many_decodes_is_as_quick_to_keep_as_the_first(tmp_path: Path) -> None:
    album = new_album(tmp_path)
    took: list[int] = []
    for step in range(40_000):
        began = time.perf_counter_ns()
        album.add(step, MEASURED)
        took.append(time.perf_counter_ns() - began)
    # A copy of all steps before would take some fifty times as long at the end. Medians are deaf to pauses.
    assert median(took[-2000:]) < 5 * median(took[:2000])
    album.close()
    with np.load(tmp_path / DECODED) as kept:
        assert np.array_equal(kept["step"], np.arange(40_000))
        assert kept["bands"].shape == (40_000, 1, 3)


def test_frames_carry_their_own_steps(tmp_path: Path) -> None:
    album = new_album(tmp_path)
    for step in (0, 4, 8):
        field = np.full((1, 16, 16), step, np.float32)
        album.add(step, replace(MEASURED, fields=field, mask=np.zeros((1, 16, 16), np.int8)))
    album.close()
    assert read_line(tmp_path / "fields.zarr", "step").tolist() == [0, 4, 8]
    assert read_line(tmp_path / "fields.zarr", "time").tolist() == [0, 2, 4]
