"""`dashi verify`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli.main import app
from dashi.core.certificates._certificate import document_digest


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
