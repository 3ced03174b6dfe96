"""Checkpoints: read back bit for bit, and for no run but their own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi.core.certificates.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from dashi.core.observations.observation import Hash, Observation
from dashi.errors import FileError
from dashi.io.arrays import read_arrays, write_arrays

F32 = np.dtype(np.float32)


def sample(count: int = 3) -> Checkpoint:
    rng = np.random.default_rng(1)
    return Checkpoint(
        step=700,
        state=rng.standard_normal((2, 5)).astype(np.float32),
        hashes=tuple(Hash(100 * i, f"{i * 0x123456789ABCDEF:032x}") for i in range(1, count + 1)),
        observations=tuple(
            Observation(50 * i, 1.0 + i, math.inf if i == 2 else 0.1, 0.3, math.pi, 3, 4 if i == 2 else None)
            for i in range(1, count + 1)
        ),
        sheet=rng.standard_normal((count, 8)).astype(np.float32),
        sheet_steps=tuple(range(count)),
        strides=(100, 50, 7, 8),
    )


@pytest.mark.parametrize("count", [0, 3])
def test_a_checkpoint_is_read_back_bit_for_bit(count: int, tmp_path: Path) -> None:
    now = sample(count)
    write_checkpoint(tmp_path / "c.npz", "abc", now)
    found = read_checkpoint(tmp_path / "c.npz", "abc", (2, 5), F32)
    for name in ("step", "hashes", "observations", "sheet_steps", "strides"):
        assert getattr(found, name) == getattr(now, name)
    for name in ("state", "sheet"):
        assert getattr(found, name).tobytes() == getattr(now, name).tobytes()
        assert getattr(found, name).shape == getattr(now, name).shape


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "c.npz", "abc", sample())
    with pytest.raises(FileError, match=r"is a checkpoint of a run with other inputs. Fix: give the inputs"):
        read_checkpoint(tmp_path / "c.npz", "abd", (2, 5), F32)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("state", np.zeros((2, 6), np.float32)),
        ("state", np.zeros((2, 5))),
        ("step", np.array([3])),
        ("step", np.array(-3)),
        ("strides", np.array([1, 2, 3])),
        ("strides", np.array([1, 2, 3, -4])),
        ("hash_digests", np.zeros((3, 15), np.uint8)),
        ("hash_steps", np.array(3)),
        ("observed", np.zeros((3, 5))),
        ("nonfinite", np.zeros((3, 2), np.int64)),
        ("sheet", np.zeros((2, 8), np.float32)),
        ("sheet", np.zeros((3, 8), np.int32)),
        ("version", np.array(2)),
        ("extra", np.array(2)),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(name: str, values: Any, tmp_path: Path) -> None:
    file = tmp_path / "c.npz"
    write_checkpoint(file, "abc", sample())
    write_arrays(file, {**read_arrays(file), name: values})
    with pytest.raises(FileError, match=r"(is damaged|is not a checkpoint).* Fix: start anew"):
        read_checkpoint(file, "abc", (2, 5), F32)
