"""Runs of the engine alone are certified with public names, and repeated by `dashi.verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi.errors import InputError


def test_a_run_of_the_engine_is_certified_with_public_names(tmp_path: Path) -> None:
    turn, z0 = dashi.Linear(np.array([[0.6, 0.8], [-0.8, 0.6]], np.float32)), np.ones(2, np.float32)
    run = dashi.core.rollout(turn, z0, 20, device="cpu", hash_every=5)
    file = dashi.core.certify(run, turn, z0, tmp_path / "certified")
    verification = dashi.verify(tmp_path / "certified", device="cpu")
    assert (verification.same, verification.file, verification.certificate.steps) == (True, file, 20)
    assert not dashi.verify(dashi.core.certify(run, turn, 2 * z0, tmp_path / "other"), device="cpu").same


@pytest.mark.parametrize(
    ("hash_every", "operator", "error"),
    [
        (0, None, r"the run has no hashes. Fix: roll out with `hash_every=`"),
        (
            5,
            dashi.Affine(np.eye(2, dtype=np.float32)),
            r"the run is of linear, .* affine, .*Fix: pass the operator that",
        ),
        (5, 7, r"int is no operator. Fix"),
    ],
)
def test_what_cannot_be_certified_is_refused(hash_every: int, operator: Any, error: str, tmp_path: Path) -> None:
    still, z0 = dashi.Linear(np.eye(2, dtype=np.float32)), np.ones(2, np.float32)
    run = dashi.core.rollout(still, z0, 20, device="cpu", hash_every=hash_every)
    with pytest.raises(InputError, match=error):
        dashi.core.certify(run, operator or still, z0, tmp_path / "certified")
    assert not (tmp_path / "certified" / "certificate.json").exists()


def test_a_certificate_is_never_written_over_and_needs_a_portable_operator(tmp_path: Path) -> None:
    still, z0 = dashi.Linear(np.eye(2, dtype=np.float32)), np.ones(2, np.float32)
    run = dashi.core.rollout(still, z0, 4, device="cpu", hash_every=2)
    dashi.core.certify(run, still, z0, tmp_path)
    with pytest.raises(InputError, match=r"is there already. Fix: name another folder"):
        dashi.core.certify(run, still, z0, tmp_path)
    fast = dashi.Linear(np.eye(2, dtype=np.float32), portable=False)
    run = dashi.core.rollout(fast, z0, 4, device="cpu", hash_every=2)
    with pytest.raises(InputError, match=r"not portable.*Fix: roll out a portable operator"):
        dashi.core.certify(run, fast, z0, tmp_path / "fast")
