"""`dashi rollout`: what it computes, what it leaves, and how it says that something is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import dashi
from dashi.cli.main import app
from dashi.core.certificates._certificate import read_certificate
from dashi.io._run_reading import typed_for
from dashi.io.metrics import read_metrics
from dashi.kernels.hash._blake3 import hexdigest128
from dashi.kernels.portable import canon

D = 12


@pytest.fixture
def here(here: Path, write_inputs: Callable[[int], None]) -> Path:
    """A folder with inputs."""
    write_inputs(D)
    return here


INPUTS = ("--z0", "z0.npz", "--A", "A.npz")


def call(*words: str) -> Any:
    return CliRunner().invoke(app, ["rollout", *words])


def good(*words: str) -> dict[str, Any]:
    done = call(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def bad(*words: str) -> str:
    """What is said on stderr by a call that ends with an error and its fix; the document on stdout says the same."""
    done = call(*words, "--json")
    assert done.exit_code == 3, done.output
    error = json.loads(done.stdout)["error"]
    told = f"error: {error['what']}\nFix: {error['fix']}\n"
    assert done.stderr.endswith(told)
    return told


# What it computes


def test_the_command_of_the_issue_works_and_its_hashes_are_those_of_the_states(here: Path) -> None:
    result = good(*INPUTS, "--steps", "5", "--hash-every", "2", "--certificate", "c.json", "--device", "cpu")
    assert [h["step"] for h in result["hashes"]] == [2, 4, 5]
    z: Any = np.load("z0.npz")["z0"]
    matrix = np.load("A.npz")["A"]
    by_name = {}
    with dashi.open("cpu") as device:
        for step in range(1, 6):
            z = device.run("gemv", z, matrix).numpy()
            by_name[step] = hexdigest128(canon(z))
    assert [h["hash"] for h in result["hashes"]] == [by_name[2], by_name[4], by_name[5]]
    assert result["hash"] == by_name[5]
    assert result["dtype"] == "float32"
    assert result["certificate"] == "c.json"
    assert [c.hash for c in read_certificate(here / "c.json").hashes] == [by_name[2], by_name[4], by_name[5]]


def test_fast_says_that_it_is_not_portable_and_has_no_certificate(here: Path) -> None:
    made = good(*INPUTS, "--steps", "4", "--no-portable", "--device", "cpu", "--out", "run")
    assert made["portable"] is False
    assert not (here / "run" / "certificate.json").exists()
    assert (
        "no: these hashes hold on this device alone"
        in call(*INPUTS, "--steps", "4", "--no-portable", "--device", "cpu").stdout
    )
    assert "are not portable" in bad(*INPUTS, "--steps", "4", "--no-portable", "--certificate", "c.json")


# What it leaves


def test_a_table_is_printed_for_people(here: Path) -> None:
    done = call(*INPUTS, "--steps", "20", "--device", "cpu", "--certificate", "c.json")
    rows = {line.split()[0] for line in done.stdout.splitlines() if line[0] != " "}
    assert rows == {"verdict", "device", "steps", "time", "strategy", "hash", "certificate"}
    assert done.stderr.startswith("rolling out 20 steps of linear on NumPy")


def test_the_folder_tells_the_line_that_was_typed(here: Path) -> None:
    good(*INPUTS, "--steps", "4", "--device", "cpu", "--out", "run")
    assert typed_for(here / "run") == ("dashi rollout --z0 z0.npz --A A.npz --steps 4 --device cpu --out run --json",)


# Where it runs


def test_op_device_overrides_device(here: Path) -> None:
    made = good(*INPUTS, "--steps", "4", "--device", "vulkan:99", "--op-device", "cpu")
    assert (made["op_backend_requested"], made["op_backend_used"]) == ("cpu", "cpu")


# Bad input


def savez(name: str, **arrays: Any) -> str:
    np.savez(name, **arrays)
    return name


@pytest.mark.parametrize("option", ["--hash-every", "--observe-every", "--sheet-every", "--checkpoint-every"])
def test_a_stride_of_0_is_refused(here: Path, option: str) -> None:
    for value in ("0", "-5"):
        told = bad(*INPUTS, "--steps", "4", option, value, "--out", "run")
        assert told == f"error: {option} is {value}.\nFix: give a stride of 1 or more, or leave the option away.\n"
    assert not (here / "run").exists()


def test_a_full_device_is_told(here: Path) -> None:
    told = bad(*INPUTS, "--steps", "4", "--device", "cpu", "--certificate", "/dev/full")
    assert told.startswith("error: /dev/full cannot be written: No space left on device.\nFix: make room on that disk")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--z0", "z0.npz", "--steps", "4"), "an operator is needed, and one only.\nFix: give --A, or --operator."),
        (("--z0", "z0.npz", "--operator", "o", "--no-portable", "--steps", "4"), "and --no-portable go with --A."),
        ((*INPUTS, "--steps", "0"), "--steps is 0."),
        ((*INPUTS, "--steps", "4", "--resume"), "checkpoints are kept in a run folder.\nFix: name one with --out."),
        ((*INPUTS, "--steps", "4", "--resume", "--out", "new"), "Fix: leave --resume away, or correct --out."),
        ((*INPUTS, "--steps", "4", "--no-portable", "--certificate", "c"), "leave --no-portable or --certificate"),
    ],
)
def test_options_that_cannot_be_meant_are_told(here: Path, words: tuple[str, ...], said: str) -> None:
    assert said in bad(*words)


def test_a_state_that_blows_up_stops_the_run_with_step_and_index(here: Path) -> None:
    savez("grow.npz", A=np.eye(D, dtype=np.float32) * 1e10)
    words = ("--z0", "z0.npz", "--A", "grow.npz", "--steps", "40", "--device", "cpu", "--observe-every", "10")
    told = bad(*words, "--hash-every", "2", "--out", "run", "--certificate", "c.json")
    assert "not finite after step 4, the first at index 0." in told
    assert "--keep-going" in told
    metrics = read_metrics(here / "run" / "metrics.json")
    assert (metrics.steps, metrics.stopped, metrics.nonfinite_count) == (4, True, D)
    assert metrics.verdict is not None
    assert metrics.verdict.name == "blown up"
    assert read_certificate(here / "c.json").steps == 2
    assert good(*words, "--keep-going")["verdict"]["name"] == "blown up"
