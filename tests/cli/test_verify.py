"""`dashi verify`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli.main import app
from dashi.core.certificates._certificate import document_digest
from dashi.core.rollouts._state_files import state_digest
from dashi.errors import WorkerError
from dashi.lab import verification


@pytest.fixture(autouse=True)
def certificate(write_inputs: Callable[[int], None]) -> None:
    write_inputs(10)
    asked = lab.RolloutRequest(z0="z0.npz", A="A.npz", steps=50, hash_every=20, certificate="c.json")
    lab.rollout(asked, device="cpu")


def verify(*words: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["verify", *words])
    assert done.exit_code == code, done.output
    return done


def test_it_is_told_in_words() -> None:
    done = verify("c.json", "--device", "cpu")
    assert "all 3 hashes are the same" in done.stdout
    assert done.stderr.startswith("repeating 50 steps of linear on NumPy")


def test_the_document_has_every_check() -> None:
    document = json.loads(verify("c.json", "--device", "cpu", "--against", "cpu", "--json").stdout)
    assert [document[name] for name in ("certificate", "same", "operator", "dtype", "steps", "hashes", "finite")] == [
        "c.json", True, "linear", "float32", 50, 3, True,
    ]  # fmt: skip
    assert [check["hashes"] for check in document["checks"]] == [3, 3]
    assert document["made_on"]["device"] == "cpu"
    assert document["parting"] is None


def test_a_hash_that_differs_is_exit_code_1() -> None:
    document = json.loads(Path("c.json").read_text())
    document["hashes"][1]["hash"] = "ab" * 16
    document["digest"] = document_digest(document)
    Path("c.json").write_text(json.dumps(document))
    assert "DIFFERS between step 20 and step 40" in verify("c.json", "--device", "cpu", code=1).stdout
    assert json.loads(verify("c.json", "--device", "cpu", "--json", code=1).stdout)["same"] is False


def test_what_cannot_be_repeated_is_exit_code_3_and_names_the_flag() -> None:
    Path("A.npz").unlink()
    done = verify("c.json", "--device", "cpu", "--json", code=3)
    said = "the input 'A' is not there: A.npz.\nFix: put it there, or say in which folder it is with --inputs.\n"
    assert done.stderr.endswith(said)
    assert json.loads(done.stdout)["error"]["fix"].endswith("with --inputs.")


@pytest.fixture
def run_folder(certificate: None) -> Path:
    """The folder of a run with five segments."""
    asked = lab.RolloutRequest(z0="z0.npz", A="A.npz", steps=50, hash_every=5, states_every=10)
    lab.rollout(asked, device="cpu", out="run")
    return Path("run")


@pytest.mark.long
def test_jobs_have_the_result_of_one_process_in_the_same_document(run_folder: Path) -> None:
    serial, parallel = (
        json.loads(verify("run", "--device", "cpu", "--jobs", jobs, "--json").stdout) for jobs in ("1", "2")
    )  # fmt: skip
    assert serial == parallel
    facts = [parallel[name] for name in ("segments", "verified", "missed_with_probability", "sample_seed", "same")]
    assert facts == [5, 5, 0.0, None, True]
    assert parallel["sentences"][0].endswith("all 10 hashes are the same, in 5 segments")


def test_jobs_are_handed_on(run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def check(errand: Any, segments: Any, devices: Any, jobs: int, advance: Any) -> Any:
        asked.append((devices, jobs))
        raise WorkerError("no process is started here.", "none.")

    monkeypatch.setattr(verification, "check_apart", check)
    said = verify("run", "--device", "cpu", "--device", "null", "--jobs", "3", code=3).stderr
    assert "no process is started here.\nFix: none." in said
    assert asked == [(["cpu", "null"], 3)]


def test_a_sample_is_told_in_words_and_in_the_document(run_folder: Path) -> None:
    words = ("run", "--device", "cpu", "--sample", "2", "--sample-seed", "3")
    document = json.loads(verify(*words, "--json").stdout)
    facts = [document[name] for name in ("segments", "verified", "missed_with_probability", "sample_seed")]
    assert facts == [5, 2, 0.6, 3]
    printed = " ".join(verify(*words).stdout.split())
    assert "all 4 hashes are the same, in 2 of 5 segments" in printed
    assert "drawn, by the seed 3: a fault in one segment alone is missed with probability 0.6" in printed


def test_a_state_that_is_another_is_exit_code_3_and_one_that_does_not_follow_1(run_folder: Path) -> None:
    file = run_folder / "states" / "000000000020.npy"
    values = np.load(file) + np.float32(1)
    np.save(file, values)
    told = verify("run", "--device", "cpu", code=3).stderr
    assert "is not the state after step 20 of this certificate" in told
    assert "(--inputs looks for `states/` in another folder)" in told
    document = json.loads((run_folder / "certificate.json").read_text())
    document["states"]["files"][1]["digest"] = document["hashes"][3]["hash"] = state_digest(values, 128)
    document["digest"] = document_digest(document)
    (run_folder / "certificate.json").write_text(json.dumps(document))
    found = json.loads(verify("run", "--device", "cpu", "--json", code=1).stdout)
    assert (found["same"], found["verified"], found["segments"]) == (False, 1, 5)
    assert "DIFFERS between step 15 and step 20" in found["sentences"][0]


def test_devices_are_repeated_and_refusals_name_flags(run_folder: Path) -> None:
    said = verify("run", "--device", "cpu", "--device", "null", "--jobs", "1", code=3).stderr
    assert "--jobs 1 uses 1 of 2 devices.\nFix: use --jobs 2, or more." in said
    said = verify("run", "--device", "cpu", "--sample-seed", "1", code=3).stderr
    assert "--sample-seed draws a sample, and none is asked for.\nFix: give --sample too." in said


def test_states_are_kept_by_flags() -> None:
    words = "rollout --z0 z0.npz --A A.npz --steps 20 --hash-every 5 --states-every 10 --device cpu --out kept".split()
    done = CliRunner().invoke(app, [*words, "--states-bits", "256"])
    assert done.exit_code == 0, done.output
    states = json.loads(Path("kept/certificate.json").read_text())["states"]
    assert (states["every"], states["bits"], len(states["files"])) == (10, 256, 2)
    refused = CliRunner().invoke(app, [*words[:-2], "--certificate", "c.json"])
    assert refused.exit_code == 3
    assert "states are kept in a run folder.\nFix: name one with --out." in refused.output
