"""`dashi flow rollout --model`: what Ctrl-C leaves, how it goes on, what is refused before the first step."""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.flow._fields import read_line
from dashi.flow.decode import Decoder
from dashi.flow.decode._album import Album
from dashi.flow.proxy.catalogue import model_class, save_model
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.files import load_z
from dashi.flow.proxy.model_operator import PIECE
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows.recorded import windows_from_run
from dashi.io.metrics import read_metrics
from dashi.lab import _capacity as capacity
from dashi.report.measures import flow_of
from dashi.runtime._cpu_device import CpuDevice

N = 16
SCHEMA = Schema(N, 3)


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
    """A short run of two members."""
    out = tmp_path_factory.mktemp("flow") / "run"
    words = "flow simulate --n 16 --nu 0.01 --set peak=2 --device cpu --fast --steps 12 --members 2 --frame-every 2"
    assert dashi(*words.split(), "--out", str(out)).exit_code == 0
    return str(out)


@pytest.fixture(scope="module")
def models(run: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Models fitted to it, by name."""
    windows, folder = windows_from_run(Path(run)), tmp_path_factory.mktemp("models")
    made: dict[str, str] = {}
    with CpuDevice() as cpu:
        for name in ("galerkin", "persistence", "delay", "perfect"):
            made[name] = str(folder / f"{name}.npz")
            save_model(made[name], model_class(name).fit(SCHEMA, windows, windows, device=cpu))
    return made


def press(monkeypatch: pytest.MonkeyPatch, at: int, times: int = 1) -> None:
    """Ctrl-C, so often, after the decode of that step."""
    usual = Album.add

    def add(self: Album, step: int, decoded: Any) -> None:
        usual(self, step, decoded)
        for _ in range(times if step == at else 0):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Album, "add", add)


def test_a_stopped_model_leaves_what_it_did_and_goes_on_with_the_same_bits(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--model", models["galerkin"], "--from", run, "--steps", "200", "--decode-every", "20")
    more = ("--observer", "snapshots")
    assert roll(*words, *more, "--out", "whole").exit_code == 0
    with monkeypatch.context() as patched:
        press(patched, 20)
        done = roll(*words, *more, "--out", "out")
    assert done.exit_code == 130, done.output
    assert f"stopped after {PIECE} of 200 steps; what was done is in out" in done.stderr
    kept = read_metrics(here / "out" / "metrics.json")
    assert (kept.stopped, kept.steps, kept.decode_snapshots) == (True, PIECE, 4)
    with np.load(here / "out" / "decoded.npz") as measured:
        assert measured["step"].tolist() == [0, 20, 40, 60]
    assert read_line(here / "out" / "fields.zarr", "step").tolist() == [0, 20, 40, 60]
    command = done.stderr.split("go on: ")[1].splitlines()[0]
    again = dashi(*shlex.split(command)[1:])
    assert again.exit_code == 0, again.output
    assert read_metrics(here / "out-2" / "metrics.json").steps == 200 - PIECE
    assert np.array_equal(load_z(here / "out-2" / "z.npz")[1], load_z(here / "whole" / "z.npz")[1])


def test_a_stopped_map_goes_on_with_the_same_bits(run: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_second_ctrl_c_stops_at_once_and_keeps_what_was_decoded(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    press(monkeypatch, 20, times=2)
    words = ("--model", models["galerkin"], "--from", run, "--steps", "200", "--decode-every", "10", "--out", "out")
    done = roll(*words, "--json")
    assert done.exit_code == 130, done.output
    told = json.loads(done.stdout)
    assert told["stopped"]
    assert told["steps"] == 10
    assert told["go_on"].startswith("dashi flow rollout --z0 out/z.npz --steps 1")
    with np.load(here / "out" / "decoded.npz") as measured:
        assert measured["step"].tolist()[:2] == [0, 10]
    assert load_z(here / "out" / "z.npz")[1].shape == (2, SCHEMA.size)


def test_a_stopped_rollout_never_takes_the_place_of_a_finished_one(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--model", models["galerkin"], "--from", run, "--decode-every", "10", "--out", "out")
    assert roll(*words, "--steps", "30", "--observer", "snapshots").exit_code == 0
    assert flow_of(here / "out" / "fields.zarr") == windows_from_run(Path(run)).flow  # what its page describes
    before = {path: path.read_bytes() for path in (here / "out").rglob("*") if path.is_file()}
    press(monkeypatch, 10)
    done = roll(*words, "--steps", "500", "--overwrite")
    assert done.exit_code == 130, done.output
    assert "the finished run in out stays as it was" in done.stderr
    assert all(path.read_bytes() == content for path, content in before.items())
    assert read_metrics(here / "out" / "unfinished" / "metrics.json").stopped


def test_without_a_folder_ctrl_c_says_that_nothing_is_kept(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Decoder.decoded

    def decoded(self: Decoder, *values: Any) -> Any:
        if self.snapshots == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return usual(self, *values)

    monkeypatch.setattr(Decoder, "decoded", decoded)
    done = roll("--model", models["galerkin"], "--from", run, "--steps", "200")
    assert done.exit_code == 130, done.output
    assert f"stopped after {PIECE} of 200 steps; nothing is kept without --out" in done.stderr
    assert [*here.iterdir()] == []


@pytest.mark.parametrize("name", ["galerkin", "persistence", "delay", "perfect"])
def test_a_rollout_in_pieces_is_the_rollout(name: str, run: str, models: dict[str, str]) -> None:
    from dashi.flow.proxy.catalogue import load_model

    model, windows = load_model(models[name]), windows_from_run(Path(run))
    with CpuDevice() as cpu:
        z0 = encode(SCHEMA, windows.fields[:, 0], device=cpu)
        whole = model.rollout(z0, 7, device=cpu)
        parts = [*model.pieces(z0, 7, device=cpu, most=3)]
    assert [part.shape[1] for part in parts] == [3, 3, 1]
    assert model.has_hidden_state == (name in ("delay", "perfect"))
    # Pieces round the modes of `numpy` once more each: a few units in the last place of float32.
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole[:, 1:], rtol=1e-5, atol=1e-6)


def test_a_z_that_blows_up_ends_a_model_and_keeps_what_came_before(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dashi.flow.proxy._persistence import Persistence

    usual = Persistence.advance

    def advance(self: Persistence, *given: Any, **named: Any) -> Any:
        made = usual(self, *given, **named)
        made[:, 30:] = np.inf
        return made

    monkeypatch.setattr(Persistence, "advance", advance)
    words = ("--model", models["persistence"], "--from", run, "--decode-every", "10", "--out", "out")
    assert "not finite after frame 30" in refused(*words)
    kept = read_metrics(here / "out" / "metrics.json")
    assert (kept.stopped, kept.steps, kept.decode_snapshots) == (True, 29, 3)
    assert load_z(here / "out" / "z.npz")[1].shape == (2, SCHEMA.size)


def test_what_is_refused_is_refused_before_the_first_step(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("something was rolled out")

    monkeypatch.setattr("dashi.flow.proxy.model_operator.rollout", never)
    monkeypatch.setattr("dashi.lab.decoded_rollouts.rollout", never)
    model = ("--model", models["galerkin"], "--from", run)
    fit = ("--fit-from", run, "--k-cut", "3")
    assert "decodes and 0 hashes would take about" in refused(*model, "--steps", str(10**12))
    assert "would take more than anything holds" in refused(*model, "--steps", str(10**60))
    assert "hashes would take about" in refused(*fit, "--hash-every", "1", "--steps", str(10**12))
    with monkeypatch.context() as small:
        small.setattr(capacity.shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
        told = refused(*model, "--observer", "snapshots", "--out", "out")
    assert "11 decoded fields of 16 x 16 would take about 66 KiB; out is on a disk with 4 KiB free" in told
    (here / "file").write_text("mine")
    assert "file is no folder. Fix: choose another place." in refused(*model, "--out", "file/out")
    assert refused(*model, "--trace", ".") == ". cannot be written: it is a folder. Fix: name a file."
    assert refused(*fit, "--ridge=-1") == ("--ridge is -1. Fix: use a finite number, 0 or more; 1e-6 is the default.")
    assert "Fix: use a larger --ridge (1e-6 is the default)" in refused(*fit, "--ridge", "0")
    assert refused(*fit, "--residual", "seeded", "--seed=-1").startswith("seed is -1. Fix: use a whole number")
    null = dashi("flow", "rollout", *model, "--device", "null", "--out", "out", "--json")
    assert "the null device computes nothing" in null.stdout
    assert {path.name for path in here.iterdir()} == {"file"}


def test_options_that_would_change_nothing_are_refused(run: str, models: dict[str, str]) -> None:
    model = ("--model", models["galerkin"], "--from", run)
    assert refused(*model, "--k-cut", "3") == "--k-cut goes with --fit-from. Fix: leave --k-cut away."
    assert refused(*model, "--seed", "2").startswith("--seed goes with a residual, and there is none.")
    assert refused(*model, "--statistics", "x").startswith("--statistics goes with --residual statistics.")
    assert refused(*model, "--n", "64").startswith("--n goes with --compat v4;")
    assert refused("--compat", "v4", *model).startswith("--compat v4 has a setting of its own, and --model changes")


def test_files_that_are_something_else_are_told_as_such(run: str, models: dict[str, str], here: Path) -> None:
    (here / "empty.npz").write_bytes(b"")
    model = models["galerkin"]
    assert refused("--model", "empty.npz", "--from", run).endswith(
        "Fix: name a file of `dashi flow fit`, or of save_model."
    )
    assert refused("--model", model, "--z0", model).endswith("name a file of save_z, such as the z.npz of a run.")
    words = ("--model", model, "--from", run, "--residual", "statistics", "--statistics", model)
    assert refused(*words).endswith("spectrum is missing. Fix: name a file of save_statistics.")
    other = str(here / "other")
    simulate = "flow simulate --n 32 --device cpu --fast --steps 4 --frame-every 2 --out"
    assert dashi(*simulate.split(), other).exit_code == 0
    told = refused("--model", model, "--from", other)
    assert "has 32 x 32 points in a box of 6.28319, the model is for 16 x 16" in told
    assert "Fix: start from a run on the grid of the model, or fit a model to this one" in told


def test_steps_on_the_numpy_device_take_some_time(run: str, here: Path) -> None:
    done = roll("--fit-from", run, "--k-cut", "3", "--steps", "8", "--observer", "snapshots", "--out", "out")
    assert done.exit_code == 0, done.output
    assert read_metrics(here / "out" / "metrics.json").ns_per_step > 0
    assert " 0.00 us per step" not in done.stdout


@pytest.mark.parametrize("observer", ["metrics", "snapshots", "visualize"])
def test_bytes_that_measure_the_cost_of_a_residual_are_counted(run: str, here: Path, observer: str) -> None:
    words = ("--fit-from", run, "--k-cut", "3", "--steps", "4", "--decode-every", "4", "--observer", observer)
    read = [
        json.loads(roll(*words, *more, "--out", "out", "--overwrite", "--json").stdout)["decode_bytes_read"]
        for more in ((), ("--residual", "seeded"))
    ]
    # Once more: the measures, the field, the mask and the lowpass field of both members.
    assert read[1] - read[0] == 2 * (28 + N * N * 4 + N * N + N * N * 4)


def test_the_help_promises_no_certificate_of_a_model(run: str, models: dict[str, str], here: Path) -> None:
    told = " ".join(dashi("flow", "rollout", "--help").stdout.split())
    assert "A model has a rollout of its own, and no certificate." in told
    assert roll("--model", models["galerkin"], "--from", run, "--steps", "2", "--out", "out").exit_code == 0
    assert not (here / "out" / "certificate.json").exists()
    assert roll("--fit-from", run, "--k-cut", "3", "--steps", "2", "--out", "fitted").exit_code == 0
    assert (here / "fitted" / "certificate.json").exists()
