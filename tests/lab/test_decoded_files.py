"""Claims about rollouts that are decoded: what they leave in their folder, what they read back, what they refuse."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashi import lab
from dashi.core.rollouts.run import Run
from dashi.errors import DashiError, DeviceNotFoundError, Interrupted
from dashi.flow import Flow
from dashi.flow._fields import read_frame
from dashi.flow.decode import Decoder, load_statistics, save_statistics
from dashi.flow.decode._album import Album
from dashi.flow.decode.statistics import fit_statistics
from dashi.flow.proxy.catalogue import load_model, model_class, save_model
from dashi.flow.proxy.encode import encode
from dashi.flow.proxy.files import load_z, save_z
from dashi.flow.proxy.lowpass import decode as lowpass
from dashi.flow.proxy.schema import Schema
from dashi.flow.windows.recorded import windows_from_run
from dashi.io.metrics import Metrics, read_metrics
from dashi.runtime._cpu_device import CpuDevice
from dashi.runtime._vulkan_device import VulkanDevice

N = 16


def follow(out: str | None = None, *, device: str = "cpu", overwrite: bool = False, **asked: Any) -> Run:
    events = asked.pop("events", lab.SILENT)
    request = lab.FollowRequest(**{"stage_times": False, **asked})
    return lab.follow(request, device=device, out=out, overwrite=overwrite, events=events)


def good(out: str | None = None, **asked: Any) -> Metrics:
    return follow(out, **asked).metrics


def bad(out: str | None = None, **asked: Any) -> str:
    with pytest.raises(DashiError) as error:
        follow(out, **asked)
    return str(error.value)


def simulate(out: Path | str, *, overwrite: bool = False, **asked: Any) -> None:
    flow = Flow(N, nu=0.01, dt=0.01)
    request = lab.SimulateRequest(flow=flow, initial_options={"peak": 2}, steps=12, **asked)
    lab.simulate(request, device="cpu", out=out, overwrite=overwrite)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short run of two members to fit."""
    out = tmp_path_factory.mktemp("flow") / "run"
    simulate(out, seeds=(0, 1), frame_every=2)
    return out


@pytest.fixture
def inputs(here: Path) -> dict[str, Any]:
    """A z with its schema, and a rotation of it."""
    schema = Schema(N, 3)
    field = np.random.default_rng(0).standard_normal((N, N))
    with CpuDevice() as cpu:
        save_z(here / "z0.npz", schema, encode(schema, field, device=cpu))
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((schema.size, schema.size)))
    np.savez(here / "A.npz", A=turn)
    save_statistics(here / "statistics.npz", fit_statistics(schema, field))
    return {"z0": "z0.npz", "A": "A.npz"}


FIT: dict[str, Any] = {"k_cut": 3.0, "steps": 8, "decode_every": 4}


def test_a_map_is_fitted_rolled_out_decoded_and_certified(run: Path, here: Path) -> None:
    result = good("out", fit_from=run, **FIT, observer="metrics")
    assert result.decode_snapshots == 3
    assert result.states == 2
    assert result.decode_bytes_read == 3 * 2 * 28
    assert (result.decode_dtype, result.decode_residual, result.decode_gate) == ("float32", "none", "support")
    metrics = read_metrics(here / "out" / "metrics.json")
    assert metrics.command == "flow rollout"
    assert metrics.decode_observer == "metrics"
    assert metrics.certificate_digest
    with np.load(here / "out" / "decoded.npz") as measured:
        assert measured["step"].tolist() == [0, 4, 8]
        assert measured["energy"].shape == (3, 2)
        assert measured["bands"].shape == (3, 2, 3)
        assert np.allclose(measured["bands"].sum(axis=-1), measured["energy"])
        assert ((measured["support"] > 0) & (measured["support"] < 1)).all()
    assert lab.verify(lab.VerifyRequest(certificate=Path("out/certificate.json")), device="cpu").same
    schema, z = load_z(here / "out" / "z.npz")
    assert (schema.n, z.shape) == (N, (2, schema.size))


def test_the_observer_none_reads_nothing_back_and_says_so_once(run: Path, heard: Any) -> None:
    assert good(fit_from=run, **FIT, observer="none", stage_times=True, events=heard).decode_bytes_read == 0
    assert sum("nothing is read back" in line for line in heard.remarks) == 1


def test_the_observer_none_measures_no_cost_of_a_residual(
    run: Path, heard: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.lab.decoded_rollouts.residual_cost", pytest.fail)
    told = good(fit_from=run, **FIT, observer="none", residual="seeded", events=heard)
    assert told.decode_bytes_read == 0
    assert told.decode_residual_error is None
    assert any("what the residual costs is not measured" in line for line in heard.remarks)


def test_a_fast_simulation_says_so(here: Path) -> None:
    for host_fft, way, reason in ((False, "stepwise", "dispatches"), (True, "fast", "own transforms")):
        simulate("again", overwrite=True, host_fft=host_fft)
        kept = read_metrics(here / "again" / "metrics.json")
        assert kept.way == way
        assert reason in (kept.way_reason or "")


def test_snapshots_are_fields_that_follow_from_z(run: Path, here: Path) -> None:
    good("out", fit_from=run, **FIT, observer="snapshots")
    first, mask = (read_frame(here / "out" / "fields.zarr", name, 0) for name in ("vorticity", "mask"))
    assert first.shape == mask.shape == (2, N, N)
    truth = read_frame(run / "fields.zarr", "vorticity", 0)
    schema, _ = load_z(here / "out" / "z.npz")
    hats = [np.fft.rfft2(one) / N**2 for one in (first, truth)]
    held = tuple(schema.low.T)
    assert np.abs(hats[0][:, held[0] % N, held[1]] - hats[1][:, held[0] % N, held[1]]).max() < 1e-6
    assert set(np.unique(mask)) <= {-1, 0, 1}


def test_xarray_opens_snapshots(run: Path, here: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    good("out", fit_from=run, **FIT, observer="snapshots")
    with xarray.open_zarr(here / "out" / "fields.zarr") as data:
        assert dict(data.sizes) == {"time": 3, "member": 2, "y": N, "x": N}
        assert data.step.values.tolist() == [0, 4, 8]
        np.testing.assert_allclose(data.time, np.array([0, 4, 8]) * 0.02)


def test_pictures_and_a_film_are_made(run: Path, here: Path) -> None:
    good("out", fit_from=run, **FIT, observer="visualize", residual="seeded")
    made = sorted(path.name for path in (here / "out" / "pictures").iterdir())
    assert made == ["step-00000000.png", "step-00000004.png", "step-00000008.png"]
    assert (here / "out" / "film.png").read_bytes().startswith(b"\x89PNG")
    # Another observer in the same folder leaves nothing of the first behind.
    good("out", fit_from=run, **FIT, observer="metrics", overwrite=True)
    assert not (here / "out" / "pictures").exists()
    assert not (here / "out" / "film.png").exists()


@pytest.mark.parametrize("residual", ["seeded", "statistics"])
def test_what_a_residual_costs_is_measured(run: Path, residual: str) -> None:
    result = good(fit_from=run, **FIT, residual=residual, gate="open")
    assert result.decode_residual_error is not None
    assert result.decode_lowpass_error is not None
    assert result.decode_residual_error > result.decode_lowpass_error > 0


def test_a_residual_whose_cost_is_not_known_is_remarked_on(inputs: dict[str, Any], heard: Any) -> None:
    good(**inputs, steps=1, residual="seeded", events=heard)
    assert any("a residual raises the error of fields" in line for line in heard.remarks)


@pytest.mark.parametrize("residual", ["none", "seeded", "statistics"])
def test_a_z_and_a_matrix_from_files_run_too(inputs: dict[str, Any], residual: str) -> None:
    more = {"statistics": "statistics.npz"} if residual == "statistics" else {}
    told = good(**inputs, **more, steps=6, decode_every=3, residual=residual)
    assert told.decode_residual == residual
    assert told.decode_snapshots == 3
    assert load_statistics(Path("statistics.npz")).k_cut == 3


def test_stage_times_are_in_the_metrics(inputs: dict[str, Any]) -> None:
    result = good(**inputs, steps=2, residual="seeded", stage_times=True)
    assert set(result.decode_stage_ns or ()) == {
        "scatter", "ifft_lp", "smooth", "threshold", "majority", "synth", "ifft_resid", "combine", "decode",
    }  # fmt: skip
    assert {"scatter", "ifft_lp", "mask", "synth", "ifft_resid", "combine"} <= set(
        result.model_dump(exclude_none=True)["stage_seconds"]
    )


@pytest.fixture(scope="module")
def model(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model fitted to the run, as `flow fit` keeps it."""
    windows = windows_from_run(run)
    path = tmp_path_factory.mktemp("model") / "model.npz"
    with CpuDevice() as cpu:
        save_model(path, model_class("galerkin").fit(Schema(N, 3), windows, windows, device=cpu))
    return path


def test_a_fitted_model_is_rolled_out_and_decoded(run: Path, model: Path, here: Path) -> None:
    told = good("out", model=model, start=run, steps=5, decode_every=2, observer="snapshots")
    assert (told.operator, told.decode_snapshots, told.states) == ("galerkin", 3, 2)
    assert told.certificate_digest is None
    loaded_model = load_model(model)
    windows = windows_from_run(run)
    with CpuDevice() as cpu:
        z = encode(loaded_model.schema, windows.fields[:, 0].astype(np.float32), device=cpu)
        film = loaded_model.rollout(z, 5, device=cpu)
        expected = lowpass(loaded_model.schema, film[:, 4].astype(np.float32), device=cpu)
    assert np.array_equal(read_frame(here / "out" / "fields.zarr", "vorticity", 2), expected)
    # It goes on from where it ended.
    assert good(model=model, z0="out/z.npz", steps=1).states == 2
    assert "is laid out for n = 16, k_cut = 2" in bad(model=model, z0=other_z(here), steps=1)


def test_a_model_says_which_way_it_took(run: Path, model: Path) -> None:
    reason = good(model=model, start=run, steps=2).way_reason
    assert "numpy: its own transforms are far faster" in (reason or "")


def test_a_model_of_the_host_never_passes_for_one_of_the_device(
    run: Path, model: Path, here: Path, vulkan: VulkanDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = windows_from_run(run)
    with CpuDevice() as cpu:
        save_model(here / "damped.npz", model_class("damped").fit(Schema(N, 3), windows, windows, device=cpu))
    asked: dict[str, Any] = {"start": run, "steps": 3, "device": vulkan.info.spec}
    damped, galerkin = good(model="damped.npz", **asked), good(model=model, **asked)
    assert (damped.hotloop_dispatches, damped.op_backend_used, damped.op_device_type) == (0, "cpu", "reference")
    assert "by NumPy on the host" in (damped.way_reason or "")
    assert damped.decode_backend_used == galerkin.op_backend_used == vulkan.info.spec
    # Three frames of two steps, at least a dispatch each; decodes are counted elsewhere.
    assert (galerkin.hotloop_dispatches or 0) >= 3
    assert "by measure" in (galerkin.way_reason or "")
    monkeypatch.setattr("dashi.core.metrics._placement.is_gpu", lambda _: True)
    with pytest.raises(
        DeviceNotFoundError, match="no step was executed on a GPU: the model's own rollout, by NumPy on"
    ):
        follow(model="damped.npz", **asked, require_gpu=True)


def other_z(here: Path) -> str:
    schema = Schema(N, 2)
    save_z(here / "other.npz", schema, np.zeros(schema.size))
    return "other.npz"


def test_files_that_do_not_fit_are_refused_by_what_is_wrong(inputs: dict[str, Any], here: Path) -> None:
    assert bad(**inputs, residual="statistics").endswith("give `statistics=`, or start from a run.")
    np.savez(here / "B.npz", A=np.eye(3))
    assert "the operator advances states of shape (3,)" in bad(z0="z0.npz", A="B.npz")
    assert "there is no" in bad(fit_from="nowhere", **FIT)
    arrays = dict(np.load(here / "z0.npz"))
    np.savez(here / "old.npz", **{**arrays, "schema_version": np.array(7)})
    assert "holds z of schema version 7" in bad(z0="old.npz", A="A.npz")
    arrays["z"][0] = np.nan
    np.savez(here / "nan.npz", **arrays)
    assert "not finite" in bad(z0="nan.npz", A="A.npz")


def test_a_map_that_blows_up_is_an_error_that_keeps_what_was_done(inputs: dict[str, Any], here: Path) -> None:
    d = Schema(N, 3).size
    np.savez(here / "A.npz", A=np.diag(np.full(d, 1e20)))
    message = bad("out", **inputs, steps=20, decode_every=1)
    assert "not finite after step 2" in message
    assert "Fix: look at the map's spectral radius" in message
    assert "stop_on_nonfinite" not in message  # a parameter of another job
    kept = read_metrics(here / "out" / "metrics.json")
    assert kept.stopped
    assert kept.decode_snapshots


def stopped(monkeypatch: pytest.MonkeyPatch, out: str, **asked: Any) -> None:
    """A rollout that Ctrl-C stops after the decode of step 4."""
    usual = Album.add

    def add(self: Album, step: int, decoded: Any) -> None:
        usual(self, step, decoded)
        if step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(Album, "add", add)
        with pytest.raises(Interrupted):
            follow(out, **asked, steps=4000, decode_every=2)


def test_a_map_that_blows_up_leaves_no_z_of_an_earlier_run(
    inputs: dict[str, Any], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = load_z(here / "z0.npz")[1]
    stopped(monkeypatch, "out", **inputs)
    assert not np.allclose(load_z(here / "out" / "z.npz")[1].ravel(), start.ravel())
    np.savez(here / "A.npz", A=np.diag(np.full(start.shape[-1], 1e20)))
    assert "not finite after step 2" in bad("out", **inputs, steps=20, decode_every=1)
    assert np.array_equal(load_z(here / "out" / "z.npz")[1].ravel(), start.ravel().astype(np.float32))


def test_ctrl_c_keeps_what_was_finished(inputs: dict[str, Any], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped(monkeypatch, "out", **inputs)
    kept = read_metrics(here / "out" / "metrics.json")
    assert kept.stopped
    assert 4 <= kept.steps < 4000
    with np.load(here / "out" / "decoded.npz") as measured:
        assert measured["step"].tolist()[:3] == [0, 2, 4]


def test_parity_holds_and_a_decode_with_other_bits_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    request = lab.ParityRequest(n=16, k_cut=3.0, anchors=2, seeds=2)
    parity = lab.compare_decodes(request, device="cpu")
    assert parity.same
    assert [(one.residual, one.seed) for one in parity.fields] == [
        (residual, seed) for residual in ("none", "seeded", "statistics") for seed in (0, 1)
    ]
    for one in parity.fields:
        if one.residual != "none":
            assert np.allclose(one.synthesised, one.wanted, rtol=1e-5)
            assert one.error > one.lowpass_error
    usual = Decoder.decode

    def spoilt(self: Decoder, *given: Any, **named: Any) -> Any:
        made = usual(self, *given, **named)
        noise = np.float32(1e-4 * np.random.default_rng().random())
        return made and replace(made, fields=np.asarray(made.fields) + noise)

    monkeypatch.setattr(Decoder, "decode", spoilt)
    assert not lab.compare_decodes(replace(request, residuals=("none",)), device="cpu").same
