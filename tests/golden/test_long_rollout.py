"""The first steps of the long rollout have the hashes that NumPy, lavapipe and an H200 gave for all 300,000."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np

from dashi.core.certificates._certificate import array_digest
from dashi.core.operators.affine import Linear
from dashi.core.rollouts.rollout import rollout
from dashi.runtime.device import Device

ROOT = Path(__file__).parents[2]
CERTIFICATE = json.loads((ROOT / "docs" / "benchmarks" / "long-rollout" / "certificate.json").read_text())


def inputs() -> tuple[np.ndarray, np.ndarray]:
    spec = importlib.util.spec_from_file_location("long_rollout", ROOT / "benchmarks" / "long_rollout.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with np.errstate(over="ignore"):
        return module.operator(), module.uniform(module.D, 7)


def test_two_thousand_steps_have_the_certified_hashes(device: Device) -> None:
    matrix, z0 = inputs()
    assert {array_digest(matrix), array_digest(z0)} == {entry["digest"] for entry in CERTIFICATE["inputs"]}
    done = rollout(Linear(matrix), z0, 2000, device=device, hash_every=1000)
    assert [{"step": h.step, "hash": h.digest} for h in done.hashes] == CERTIFICATE["hashes"][:2]
