"""Claims about what a simulation leaves on disk: xarray opens it, damage is told, killed runs go on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.core.rollouts._checkpoint import read_checkpoint, write_checkpoint
from dashi.core.rollouts._observers import Hashes
from dashi.errors import FileError
from dashi.flow import Flow, ensemble
from dashi.flow._diagnostics import Diagnostics
from dashi.flow._fields import FieldStore, Variable, read_frame
from dashi.flow._operator import Vorticity
from dashi.flow.simulation import simulate
from dashi.runtime import open_device
from dashi.runtime._cpu_device import CpuDevice

BASE = ["flow", "simulate", "--n", "16", "--nu", "0.01", "--set", "peak=2", "--device", "cpu"]


def dashi(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments])


def hashes(folder: Path) -> list[Any]:
    return json.loads((folder / "metrics.json").read_text())["hashes"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with everything in it."""
    out = tmp_path_factory.mktemp("flow") / "run"
    more = ["--steps", "8", "--members", "2", "--seed", "5", "--field", "vorticity", "--field", "pressure"]
    strides = ["--look-every", "2", "--frame-every", "4", "--hash-every", "4", "--transfer"]
    found = dashi(*BASE, *more, *strides, "--out", str(out))
    assert found.exit_code == 0, found.output
    return out


def test_xarray_opens_a_run_with_coordinates_and_units(run: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    with xarray.open_zarr(run / "fields.zarr") as data:
        assert dict(data.sizes) == {"time": 3, "member": 2, "y": 16, "x": 16, "time_look": 5, "wavenumber": 8}
        assert data.vorticity.dims == ("time", "member", "y", "x")
        assert data.vorticity.units == "1/T"
        assert data.member.values.tolist() == [5, 6]
        np.testing.assert_allclose(data.time, [0, 0.04, 0.08])
        assert data.attrs["flow_n"] == 16
        assert data.attrs["portable"] == "yes"
        energy = data.energy.isel(time_look=-1).values
        assert (energy > 0).all()
        np.testing.assert_allclose(data.energy_spectrum.isel(time_look=-1).sum("wavenumber"), energy, rtol=1e-12)
        w = data.vorticity.isel(time=-1).values.astype(np.float64)
        np.testing.assert_allclose((w * w).mean(axis=(1, 2)) / 2, data.enstrophy.isel(time_look=-1), rtol=1e-6)
        assert data.energy_transfer.dims == ("time_look", "member", "wavenumber")


def test_a_run_is_verified_on_every_backend(run: Path) -> None:
    for device in ("cpu", "vulkan:0"):
        if device != "cpu":
            open_device(device).close()
        found = dashi("verify", str(run / "certificate.json"), "--device", device)
        assert found.exit_code == 0, found.output


def test_the_last_frame_of_a_run_starts_another(run: Path, tmp_path: Path) -> None:
    result = dashi(*BASE[:6], "--device", "cpu", "--initial", str(run / "fields.zarr"), "--steps", "1", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["states"] == 2
    np.save(tmp_path / "field.npy", read_frame(run / "fields.zarr")[0])
    result = dashi(*BASE[:6], "--device", "cpu", "--initial", str(tmp_path / "field.npy"), "--steps", "1", "--json")
    assert json.loads(result.stdout)["energy"][0] == document["energy"][0]


def test_a_damaged_store_is_told(run: Path, tmp_path: Path) -> None:
    store = tmp_path / "fields.zarr"
    shutil.copytree(run / "fields.zarr", store)
    chunk = store / "vorticity/c/2/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-8])
    with pytest.raises(FileError, match="damaged or cut short"):
        read_frame(store)
    meta = store / "vorticity/zarr.json"
    good = json.loads(meta.read_text())
    for bad in (
        {**good, "shape": [1, 1 << 50, 2, 2]},
        {**good, "data_type": "object"},
        {**good, "codecs": [{"name": "zstd"}]},
        {**good, "shape": ["x", 2, 16, 16]},
        {**good, "shape": 3},
        {},
    ):
        meta.write_text(json.dumps(bad))
        with pytest.raises(FileError):
            read_frame(store)
    meta.write_text("{")
    with pytest.raises(FileError, match="no metadata"):
        read_frame(store)
    with pytest.raises(FileError, match="there is no file"):
        read_frame(tmp_path / "nothing.zarr")


def test_what_is_no_store_is_not_removed(tmp_path: Path) -> None:
    precious = tmp_path / "fields.zarr"
    precious.mkdir()
    (precious / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="no Zarr group"):
        FieldStore(precious, {"x": Variable(("x",), "float64", (2,), {})}, {})
    assert (precious / "notes.txt").read_text() == "mine"


def test_a_full_disk_is_told_and_leaves_whole_frames(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = FieldStore(tmp_path / "s.zarr", {"w": Variable(("y", "x"), "float64", (2, 2), {}, "time")}, {})
    store.frame("w", 0, np.ones((2, 2)))
    store.commit()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    store.frame("w", 1, np.ones((2, 2)))
    for durable in (store.make_durable, store.commit):  # it counts only once it is on the disk
        with pytest.raises(FileError, match="No space left on device"):
            durable()
    monkeypatch.undo()
    shape = json.loads((tmp_path / "s.zarr/w/zarr.json").read_text())["shape"]
    assert shape == [1, 2, 2]
    assert not list((tmp_path / "s.zarr").rglob("*.part"))


def test_a_killed_run_goes_on_to_the_same_hashes_and_frames(tmp_path: Path) -> None:
    strides = ["--steps", "60", "--look-every", "5", "--frame-every", "5", "--hash-every", "5"]
    forced = ["--forcing", "stochastic", "--force", "low=2", "--force", "high=4"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert dashi(*BASE, *strides, *forced, "--out", str(whole)).exit_code == 0
    command = [sys.executable, "-m", "dashi", *BASE, *strides, *forced, "--out", str(killed)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        frames = killed / "fields.zarr/vorticity/c"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (killed / "checkpoint.npz").exists():
            time.sleep(0.01)
        while time.monotonic() < deadline and len(list(frames.glob("*"))) < 3:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    refused = dashi(*BASE, *strides, *forced, "--out", str(killed))
    assert refused.exit_code == 3
    assert "--resume" in refused.output
    other = dashi(*BASE, *strides, *forced, "--dt", "0.005", "--out", str(killed), "--resume")
    assert other.exit_code == 3
    found = dashi(*BASE, *strides, *forced, "--out", str(killed), "--resume")
    assert found.exit_code == 0, found.output
    assert hashes(killed) == hashes(whole)
    assert not (killed / "checkpoint.npz").exists()
    for name in ("vorticity", "energy", "time", "energy_spectrum"):
        ours, theirs = (sorted((p / "fields.zarr" / name).rglob("[0-9]*")) for p in (killed, whole))
        assert [p.relative_to(killed) for p in ours] == [p.relative_to(whole) for p in theirs]
        assert all(a.read_bytes() == b.read_bytes() for a, b in zip(ours, theirs, strict=True) if a.is_file())


def test_a_damaged_checkpoint_is_told(tmp_path: Path) -> None:
    flow = Flow(n=16, dtype="float64")
    states = ensemble(flow, "random", [0], peak=2)
    with CpuDevice() as cpu:
        run = simulate(flow, states, 2, device=cpu, look_every=1, hash_every=1, host_fft=True)
    file = tmp_path / "checkpoint.npz"
    write_checkpoint(file, "mine", run)
    asked: Any = (Vorticity(flow), (Diagnostics(flow, 1), Hashes(1)), states.shape)
    back = read_checkpoint(file, "mine", *asked)
    assert (back.steps, back.hashes) == (2, run.hashes)
    np.testing.assert_array_equal(
        back.records["diagnostics"][1].energy_spectrum, run.records["diagnostics"][1].energy_spectrum
    )
    with pytest.raises(FileError, match="of a run with another flow"):
        read_checkpoint(file, "other", *asked, what="another flow")
    good = dict(np.load(file))
    bad: dict[str, Any] = {"state": good["state"][:, :3], "step": np.array(-1)}
    bad |= {"diagnostics.speed": good["diagnostics.speed"][:1], "hashes.digest": good["hashes.digest"][:1]}
    bad |= {"diagnostics.energy_spectrum": good["diagnostics.energy_spectrum"][0]}
    for name, values in bad.items():
        np.savez(file, **{**good, name: values})
        with pytest.raises(FileError, match="damaged"):
            read_checkpoint(file, "mine", *asked)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(FileError):
        read_checkpoint(file, "mine", *asked)


def test_the_null_device_leaves_no_frames(tmp_path: Path) -> None:
    arguments = ["--n", "16", "--steps", "4", "--device", "null", "--out", str(tmp_path / "run"), "--json"]
    found = dashi("flow", "simulate", *arguments)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["hash"] is None


def test_bad_requests_are_errors_with_a_fix() -> None:
    for bad in (
        ["--n", "17"],
        ["--dt", "5"],
        ["--set", "peak"],
        ["--set", "peak=x"],
        ["--force", "rate=1"],
        ["--forcing", "kolmogorov", "--force", "colour=1"],
        ["--initial", "chaos"],
        ["--initial", "missing.npy"],
        ["--steps", "0"],
        ["--members", "0"],
        ["--resume"],
        ["--field", "speed"],
    ):
        found = dashi("flow", "simulate", "--n", "16", "--steps", "2", "--device", "cpu", *bad)
        assert found.exit_code == 3, (bad, found.output)
        assert "Fix:" in found.output
