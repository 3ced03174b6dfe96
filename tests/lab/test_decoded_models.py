"""Claims about models that are rolled out and decoded: what Ctrl-C leaves, how it goes on, what is refused first."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.core.rollouts.observer import Values
from dashi.core.rollouts.run import Run
from dashi.errors import DashiError, Interrupted
from dashi.flow import Flow
from dashi.flow._fields import read_line
from dashi.flow.decode.observer import DecodeRecord, Decodes
from dashi.flow.proxy.catalogue import model_class, save_model
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.files import load_z
from dashi.flow.proxy.model_operator import PIECE
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows.recorded import windows_from_run
from dashi.io.metrics import read_metrics
from dashi.lab import _capacity as capacity
from dashi.lab.decoded_rollouts import remaining_request
from dashi.report.measures import flow_of
from dashi.runtime._cpu_device import CpuDevice

N = 16
SCHEMA = Schema(N, 3)


def follow(out: str | None = None, *, device: str = "cpu", overwrite: bool = False, **asked: Any) -> Run:
    request = lab.FollowRequest(**{"stage_times": False, **asked})
    return lab.follow(request, device=device, out=out, overwrite=overwrite)


def stopped(out: str | None = None, **asked: Any) -> Run:
    """A rollout that Ctrl-C ends, as far as it came."""
    with pytest.raises(Interrupted) as stop:
        follow(out, **asked)
    partial = stop.value.partial
    assert isinstance(partial, Run)
    return partial


def refused(out: str | None = None, **asked: Any) -> str:
    with pytest.raises(DashiError) as error:
        follow(out, **asked)
    return str(error.value)


def simulate(out: Path, n: int = N, steps: int = 12, **asked: Any) -> None:
    flow = Flow(n, nu=0.01, dt=0.01)
    request = lab.SimulateRequest(flow=flow, steps=steps, frame_every=2, host_fft=True, **asked)
    lab.simulate(request, device="cpu", out=out)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A short run of two members."""
    out = tmp_path_factory.mktemp("flow") / "run"
    simulate(out, seeds=(0, 1), initial_options={"peak": 2})
    return str(out)


@pytest.fixture(scope="module")
def models(run: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Models fitted to it, by name."""
    windows, folder = windows_from_run(Path(run)), tmp_path_factory.mktemp("models")
    by_name: dict[str, str] = {}
    with CpuDevice() as cpu:
        for name in ("galerkin", "persistence", "delay", "perfect"):
            by_name[name] = str(folder / f"{name}.npz")
            save_model(by_name[name], model_class(name).fit(SCHEMA, windows, windows, device=cpu))
    return by_name


def press(monkeypatch: pytest.MonkeyPatch, at: int, times: int = 1) -> None:
    """Ctrl-C, so often, after the decode of that step."""
    usual = Decodes._take

    def take(self: Decodes, step: int, values: Values) -> DecodeRecord:
        record = usual(self, step, values)
        for _ in range(times if step == at else 0):
            signal.raise_signal(signal.SIGINT)
        return record

    monkeypatch.setattr(Decodes, "_take", take)


def test_a_stopped_model_leaves_what_it_did_and_goes_on_with_the_same_bits(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"model": models["galerkin"], "start": run, "steps": 200, "decode_every": 20}
    whole = follow(**asked)
    with monkeypatch.context() as patched:
        press(patched, 20)
        partial = stopped("out", **asked, observer="snapshots")
    assert (partial.steps, partial.folder) == (PIECE, Path("out"))
    kept = read_metrics(here / "out" / "metrics.json")
    assert (kept.stopped, kept.steps, kept.decode_snapshots) == (True, PIECE, 4)
    with np.load(here / "out" / "decoded.npz") as measured:
        assert measured["step"].tolist() == [0, 20, 40, 60]
    assert read_line(here / "out" / "fields.zarr", "step").tolist() == [0, 20, 40, 60]
    remaining = remaining_request(partial)
    assert remaining is not None
    assert remaining.steps == 200 - PIECE
    again = lab.follow(remaining, device="cpu", out="out-2")
    assert np.array_equal(load_z(here / "out-2" / "z.npz")[1], whole.state)
    assert again.steps == 200 - PIECE


def test_a_second_ctrl_c_stops_at_once_and_keeps_what_was_decoded(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    press(monkeypatch, 20, times=2)
    partial = stopped("out", model=models["galerkin"], start=run, steps=200, decode_every=10)
    assert (partial.stopped, partial.metrics.steps) == (True, 10)
    remaining = remaining_request(partial)
    assert remaining is not None
    assert (remaining.z0, remaining.steps) == (Path("out/z.npz"), 190)
    with np.load(here / "out" / "decoded.npz") as measured:
        assert measured["step"].tolist()[:2] == [0, 10]
    assert load_z(here / "out" / "z.npz")[1].shape == (2, SCHEMA.size)


def test_a_stopped_rollout_never_takes_the_place_of_a_finished_one(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"model": models["galerkin"], "start": run, "decode_every": 10}
    follow("out", **asked, steps=30, observer="snapshots")
    assert flow_of(here / "out" / "fields.zarr") == windows_from_run(Path(run)).flow  # what its page describes
    before = {path: path.read_bytes() for path in (here / "out").rglob("*") if path.is_file()}
    press(monkeypatch, 10)
    assert stopped("out", **asked, steps=500, overwrite=True).folder == Path("out/unfinished")
    assert all(path.read_bytes() == content for path, content in before.items())
    assert read_metrics(here / "out" / "unfinished" / "metrics.json").stopped


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
    told = refused("out", model=models["persistence"], start=run, decode_every=10)
    assert "not finite after frame 30" in told
    kept = read_metrics(here / "out" / "metrics.json")
    assert (kept.stopped, kept.steps, kept.decode_snapshots) == (True, 29, 3)
    assert load_z(here / "out" / "z.npz")[1].shape == (2, SCHEMA.size)


def test_what_is_refused_is_refused_before_the_first_step(
    run: str, models: dict[str, str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.flow.proxy.model_operator.rollout", pytest.fail)
    monkeypatch.setattr("dashi.lab.decoded_rollouts.rollout", pytest.fail)
    model: dict[str, Any] = {"model": models["galerkin"], "start": run}
    fit: dict[str, Any] = {"fit_from": run, "k_cut": 3.0}
    assert "decodes and 0 hashes would take about" in refused(**model, steps=10**12)
    assert "would take more than anything holds" in refused(**model, steps=10**60)
    assert "hashes would take about" in refused(**fit, hash_every=1, steps=10**12)
    with monkeypatch.context() as small:
        small.setattr(capacity.shutil, "disk_usage", lambda _: SimpleNamespace(free=4096))
        told = refused("out", **model, observer="snapshots")
    assert "11 decoded fields of 16 x 16 would take about 66 KiB; out is on a disk with 4 KiB free" in told
    (here / "file").write_text("mine")
    assert "file is no folder. Fix: choose another place." in refused("file/out", **model)
    assert refused(**model, trace=".") == ". cannot be written: it is a folder. Fix: name a file."
    assert "Fix: use a larger `ridge=` (1e-6 is the default)" in refused(**fit, ridge=0.0)
    assert refused(**fit, residual="seeded", seed=-1).startswith("seed is -1. Fix: use a whole number")
    assert "the null device computes nothing" in refused("out", **model, device="null")
    assert {path.name for path in here.iterdir()} == {"file"}


def test_files_that_are_something_else_are_told_as_such(run: str, models: dict[str, str], here: Path) -> None:
    (here / "empty.npz").write_bytes(b"")
    model = models["galerkin"]
    assert refused(model="empty.npz", start=run).endswith("Fix: name a file of dashi.flow.fit, or of save_model.")
    assert refused(model=model, z0=model).endswith("name a file of save_z, such as the z.npz of a run.")
    message = refused(model=model, start=run, residual="statistics", statistics=model)
    assert message.endswith("spectrum is missing. Fix: name a file of save_statistics.")
    simulate(here / "other", 32, 4)
    message = refused(model=model, start=here / "other")
    assert "has 32 x 32 points in a box of 6.28319, the model is for 16 x 16" in message
    assert "Fix: start from a run on the grid of the model, or fit a model to this one" in message


def test_steps_on_the_numpy_device_take_some_time(run: str, here: Path) -> None:
    follow("out", fit_from=run, k_cut=3.0, steps=8, observer="snapshots")
    assert read_metrics(here / "out" / "metrics.json").ns_per_step > 0


@pytest.mark.parametrize("observer", ["metrics", "snapshots", "visualize"])
def test_bytes_that_measure_the_cost_of_a_residual_are_counted(run: str, here: Path, observer: str) -> None:
    asked: dict[str, Any] = {"fit_from": run, "k_cut": 3.0, "steps": 4, "decode_every": 4, "observer": observer}
    read = [
        follow("out", **asked, residual=residual, overwrite=True).metrics.decode_bytes_read or 0
        for residual in ("none", "seeded")
    ]
    # Once more: the measures, the field, the mask and the lowpass field of both members.
    assert read[1] - read[0] == 2 * (28 + N * N * 4 + N * N + N * N * 4)


def test_a_model_has_no_certificate_and_a_map_has_one(run: str, models: dict[str, str], here: Path) -> None:
    follow("out", model=models["galerkin"], start=run, steps=2)
    assert not (here / "out" / "certificate.json").exists()
    follow("fitted", fit_from=run, k_cut=3.0, steps=2)
    assert (here / "fitted" / "certificate.json").exists()
