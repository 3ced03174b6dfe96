"""`dashi flow annihilate`: what it prints, the same numbers on every device, and errors with their flags."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli.main import app
from dashi.flow.annihilation import AnnihilationSettings, planted_field

QUICK = ["--surrogates", "3"]


@pytest.fixture
def saved(here: Path) -> Path:
    np.save(here / "omega.npy", planted_field(32, 1, 3))
    return here / "omega.npy"


@pytest.mark.parametrize("null", ["phase", "iaaft", "shift"])
def test_the_document_has_the_same_numbers_on_every_device(saved: Path, null: str) -> None:
    command = ["flow", "annihilate", "omega.npy", "--null", null, *QUICK, "--seed", "4", "--rounds", "2", "--json"]
    documents = []
    for device in ("cpu", "vulkan:0"):
        done = CliRunner().invoke(app, [*command, "--device", device])
        assert done.exit_code == 0, done.output
        documents.append(json.loads(done.stdout))
    ours, other = documents
    assert list(ours["bands"][1]) == ["k", "statistic", "null_mean", "null_sd", "p"]
    assert {"octaves", "low", "high"} <= set(ours["K"])
    assert {"K_grid", "survival", "verdict", "hash"} <= set(ours)
    assert ours.pop("device") != other.pop("device")
    assert ours == other


def test_a_table_shows_every_statistic_and_the_verdict(saved: Path) -> None:
    done = CliRunner().invoke(app, ["flow", "annihilate", "omega.npy", *QUICK, "--device", "cpu"])
    assert done.exit_code == 0, done.output
    for word in ("persistence", "information", "concentration", "flatness", "undecided", "K_grid"):
        assert word in done.stdout


def test_filaments_are_written_and_their_survival_printed(saved: Path) -> None:
    words = ["flow", "annihilate", "omega.npy", *QUICK, "--filaments", "filaments.npz", "--device", "cpu"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "scales lived" in done.stdout
    table = np.load("filaments.npz")
    assert set(table) == {"birth", "death", "censored", "sign", "area", "circulation"}
    assert (np.sign(table["circulation"]) == table["sign"]).all()
    document = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert document["filaments"]["count"] == len(table["birth"]) == document["filaments"]["curve"][0]["at_risk"]
    refused = CliRunner().invoke(app, ["flow", "annihilate", "omega.npy", "--filaments", "filaments.csv"])
    assert refused.exit_code == 3
    assert "--filaments" in refused.output


def test_errors_name_the_flags_and_what_to_do(saved: Path) -> None:
    np.save("flat.npy", np.ones((32, 32)))
    np.savez("named.npz", other=np.ones((32, 32)))
    Path("text.npy").write_text("no array")
    for words, message in (
        (["omega.npy", "--surrogates", "0"], "--surrogates"),
        (["omega.npy", "--null", "other"], "phase, iaaft"),
        (["omega.npy", "--device", "null"], "measures nothing"),
        (["flat.npy"], "constant"),
        (["named.npz"], "vorticity"),
        (["text.npy"], "neither"),
        (["missing.npy"], "missing.npy"),
    ):
        done = CliRunner().invoke(app, ["flow", "annihilate", *words])
        assert done.exit_code == 3, words
        assert message in done.output
        assert "Fix:" in done.output


def test_python_gets_what_the_command_prints(saved: Path) -> None:
    settings = AnnihilationSettings(surrogates=3)
    measured = lab.annihilate(lab.AnnihilateRequest(source=saved, settings=settings), device="cpu")
    assert measured.annihilation.verdict in repr(measured)
    assert "null" in measured._repr_html_()
    assert json.loads(json.dumps(measured.as_json()))["fields"] == 1
