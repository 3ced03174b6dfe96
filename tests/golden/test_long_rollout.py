"""The first steps of the long rollout have the hashes that NumPy, lavapipe and an H200 gave for all 300,000."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np

from dashi.core.certificates._certificate import array_digest, read_certificate
from dashi.core.operators.affine import Linear
from dashi.core.rollouts._state_files import state_digest, state_name
from dashi.core.rollouts.rollout import rollout
from dashi.runtime.device import Device

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "benchmarks" / "long-rollout"
CERTIFICATE = json.loads((FOLDER / "certificate.json").read_text())


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


def test_the_certificate_with_states_claims_the_same_run_and_its_states_are_of_it() -> None:
    with_states = read_certificate(FOLDER / "kept.json").model_dump(mode="json")
    for field in ("operator", "inputs", "dtype", "steps", "hash_every", "hashes"):
        assert with_states[field] == CERTIFICATE[field]
    hashes = {claim["step"]: claim["hash"] for claim in CERTIFICATE["hashes"]}
    assert [record["step"] for record in with_states["states"]["files"]] == [*range(10_000, 300_001, 10_000)]
    for record in with_states["states"]["files"]:
        states = np.load(FOLDER / record["file"])
        assert (states.shape, states.dtype) == ((1, 654), np.dtype(np.float64))
        assert record["digest"] == state_digest(states, 128) == hashes[record["step"]]


def test_steps_after_a_kept_state_have_the_certified_hashes(device: Device) -> None:
    matrix, _ = inputs()
    start = np.load(FOLDER / "kept" / "states" / state_name(290_000))
    done = rollout(Linear(matrix), start, 1000, device=device, hash_every=1000)
    assert done.hashes[0].digest == CERTIFICATE["hashes"][290]["hash"]
