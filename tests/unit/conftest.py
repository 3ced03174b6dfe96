"""Folders that commands are tried in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write_inputs(here: Path) -> Callable[[int], None]:
    """Writes inputs of a rollout of that many components into it: a rotation, a bias, a state, an ensemble."""

    def write(d: int) -> None:
        rng = np.random.default_rng(5)
        turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
        np.savez(here / "A.npz", A=turn.astype(np.float32))
        np.savez(here / "b.npz", b=rng.standard_normal(d).astype(np.float32))
        np.savez(here / "z0.npz", z0=rng.standard_normal(d).astype(np.float32))
        np.savez(here / "many.npz", z0=rng.standard_normal((3, d)).astype(np.float32))

    return write
