"""`dashi flow rollout` and `dashi flow parity`: flags in their errors, what they print, and their exit codes."""

from __future__ import annotations

import json
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi import lab
from dashi.cli.main import app
from dashi.core.rollouts.observer import Values
from dashi.flow import Flow
from dashi.flow.decode import Decoder
from dashi.flow.decode.observer import DecodeRecord, Decodes
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.files import save_z
from dashi.flow.proxy.schema import Schema
from dashi.io.metrics import read_metrics
from dashi.runtime._cpu_device import CpuDevice

N = 16
FIT = ("--k-cut", "3", "--steps", "8", "--decode-every", "4")


def dashi(*words: str) -> Any:
    return CliRunner().invoke(app, [*words])


def roll(*words: str) -> Any:
    return dashi("flow", "rollout", *words, "--device", "cpu", "--no-stage-times")


def refused(*words: str) -> str:
    done = roll(*words, "--json")
    assert done.exit_code == 3, done.output
    error = json.loads(done.stdout)["error"]
    return f"{error['what']} Fix: {error['fix']}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A short run of two members to fit."""
    out = tmp_path_factory.mktemp("flow") / "run"
    request = lab.SimulateRequest(
        flow=Flow(N, nu=0.01, dt=0.01), seeds=(0, 1), initial_options={"peak": 2}, steps=12, frame_every=2,
        host_fft=True,
    )  # fmt: skip
    lab.simulate(request, device="cpu", out=out)
    return str(out)


@pytest.fixture(scope="module")
def model(run: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that stays where it begins."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    request = lab.FitRequest(model="persistence", source=run, train_steps=4, k_cut=3, baselines=("damped",), validate=0)
    lab.fit(request, device="cpu", out=path)
    return str(path)


@pytest.fixture
def inputs(here: Path) -> tuple[str, ...]:
    """A z with its schema, and a rotation of it."""
    schema = Schema(N, 3)
    with CpuDevice() as cpu:
        save_z(here / "z0.npz", schema, encode(schema, np.random.default_rng(0).standard_normal((N, N)), device=cpu))
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((schema.size, schema.size)))
    np.savez(here / "A.npz", A=turn)
    return "--z0", "z0.npz", "--A", "A.npz"


def test_errors_name_flags(inputs: tuple[str, ...], run: str) -> None:
    assert refused().startswith("a rollout starts from one place: a z, a run, or a run to fit. Fix: give --z0 with --A")
    assert refused("--from", run, "--A", "A.npz").startswith("--from goes with --model")
    assert refused(*inputs, "--observer", "snapshots").startswith("--observer snapshots has nowhere to put fields")
    assert refused(*inputs, "--residual", "statistics").endswith("give --statistics, or start from a run.")
    assert "compatibility mode 'v3'" in dashi("flow", "rollout", "--compat", "v3").stderr
    fit = ("--fit-from", run, "--k-cut", "3")
    assert refused(*fit, "--ridge=-1") == ("--ridge is -1. Fix: use a finite number, 0 or more; 1e-6 is the default.")
    assert "Fix: use a larger --ridge (1e-6 is the default)" in refused(*fit, "--ridge", "0")


def test_options_that_would_change_nothing_are_refused(run: str, model: str) -> None:
    start = ("--model", model, "--from", run)
    assert refused(*start, "--k-cut", "3") == "--k-cut goes with --fit-from. Fix: leave --k-cut away."
    assert refused(*start, "--seed", "2").startswith("--seed goes with a residual, and there is none.")
    assert refused(*start, "--statistics", "x").startswith("--statistics goes with --residual statistics.")
    assert refused(*start, "--n", "64").startswith("--n goes with --compat v4;")
    assert refused("--compat", "v4", *start).startswith("--compat v4 has a setting of its own, and --model changes")


def test_a_table_tells_the_cost_of_a_residual_and_the_time_of_a_step(run: str, here: Path) -> None:
    done = roll("--fit-from", run, *FIT, "--residual", "seeded")
    assert done.exit_code == 0, done.output
    assert "relative error of the first field" in done.stdout
    assert " 0.00 us per step" not in done.stdout


def press(monkeypatch: pytest.MonkeyPatch, at: int, times: int = 1) -> None:
    """Ctrl-C, so often, after the decode of that step."""
    usual = Decodes._take

    def take(self: Decodes, step: int, values: Values) -> DecodeRecord:
        record = usual(self, step, values)
        for _ in range(times if step == at else 0):
            signal.raise_signal(signal.SIGINT)
        return record

    monkeypatch.setattr(Decodes, "_take", take)


def test_a_stopped_map_prints_a_command_that_goes_on_with_the_same_bits(
    run: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--fit-from", run, "--k-cut", "3", "--ridge", "0.01", "--steps", "40", "--hash-every", "4")
    more = ("--decode-every", "4", "--residual", "seeded", "--gate", "open", "--seed", "3")
    assert roll(*words, *more, "--out", "whole").exit_code == 0
    with monkeypatch.context() as patched:
        press(patched, 8)
        done = roll(*words, *more, "--out", "a folder")
    assert done.exit_code == 130, done.output
    command = done.stderr.split("go on: ")[1].splitlines()[0]
    assert "--A 'a folder/inputs.npz'" in command
    assert "--gate open --seed 3" in command
    assert dashi(*shlex.split(command)[1:]).exit_code == 0
    ends = [read_metrics(here / folder / "metrics.json").hashes[-1].hash for folder in ("whole", "a folder-2")]
    assert ends[0] == ends[1]


def test_a_stopped_model_says_what_stays_and_its_document_how_to_go_on(
    run: str, model: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--model", model, "--from", run, "--decode-every", "10", "--out", "out")
    assert roll(*words, "--steps", "30").exit_code == 0
    press(monkeypatch, 20, times=2)
    done = roll(*words, "--steps", "200", "--overwrite", "--json")
    assert done.exit_code == 130, done.output
    assert "the finished run in out stays as it was" in done.stderr
    told = json.loads(done.stdout)
    assert told["stopped"]
    assert told["go_on"].startswith("dashi flow rollout --z0 out/unfinished/z.npz --steps 1")


def test_without_a_folder_ctrl_c_says_that_nothing_is_kept(
    run: str, model: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Decoder.decoded

    def decoded(self: Decoder, *values: Any) -> Any:
        if self.snapshots == 2:
            signal.raise_signal(signal.SIGINT)
        return usual(self, *values)

    monkeypatch.setattr(Decoder, "decoded", decoded)
    done = roll("--model", model, "--from", run, "--steps", "200")
    assert done.exit_code == 130, done.output
    assert re.search(r"stopped after \d+ of 200 steps; nothing is kept without --out", done.stderr)
    assert [*here.iterdir()] == []


def test_parity_prints_a_document_and_its_exit_code_says_whether_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("flow", "parity", "--n", "16", "--k-cut", "3", "--anchors", "2", "--seeds", "1", "--device", "cpu")
    done = dashi(*words, "--json")
    assert (done.exit_code, json.loads(done.stdout)["same"]) == (0, True)
    monkeypatch.setattr("dashi.lab.decode_parity.DecodeParity.same", False)
    assert dashi(*words, "--residual", "none").exit_code == 1
    assert dashi(*words, "--residual", "pink").exit_code == 3
    assert dashi("flow", "parity", "--seeds", "0").exit_code == 3


def test_the_help_promises_no_certificate_of_a_model() -> None:
    told = " ".join(dashi("flow", "rollout", "--help").stdout.split())
    assert "A model has a rollout of its own, and no certificate." in told


def test_the_commands_of_the_page_on_decode_work_as_printed(here: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "decode.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for line in dict.fromkeys(line for commands in blocks for line in commands.splitlines()):
        done = dashi(*line.removeprefix("dashi ").split())
        assert done.exit_code == 0, f"{line}\n{done.output}"
    for name in ("decoded", "beside"):
        assert (here / "runs" / name / "fields.zarr" / "zarr.json").is_file()
