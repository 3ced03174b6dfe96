"""Claims about jobs that are seen while they go on: the same files and hashes, and a view of what there was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import lab
from dashi.core.operators.affine import Linear
from dashi.errors import InputError
from dashi.flow import Flow
from dashi.flow.proxy import Schema
from dashi.flow.proxy.files import save_z
from dashi.report import LiveView

FLOW = Flow(n=16, nu=0.01, dt=0.01)
SCHEMA = Schema(16, 3)
WHERE_AND_WHEN = {"metrics.json", ".dashi-run"}


def contents(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name not in WHERE_AND_WHEN]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.name != "zarr.json"}


@pytest.mark.parametrize("host_fft", [True, False])
def test_a_simulation_that_is_seen_leaves_the_same_files(here: Path, host_fft: bool) -> None:
    asked: dict[str, Any] = {"steps": 12, "frame_every": 4, "device": "cpu", "host_fft": host_fft}
    plain = dashi.flow.simulate(FLOW, out="plain", **asked)
    view = LiveView()
    run = dashi.flow.simulate(FLOW, out="seen", live=view, **asked)
    assert contents(here / "plain") == contents(here / "seen")
    assert (run.hashes, {*run.records}) == (plain.hashes, {*plain.records})
    assert [one.name for one in run.observers] == [one.name for one in plain.observers]
    state = view.state()
    assert (state.state, state.done, state.total) == ("over", 12, 12)
    assert (state.field, state.field_step, state.sheet) == ("vorticity", 12, "energy spectrum")
    assert state.sheet_rows > 10


def test_a_simulation_without_frames_is_seen_on_a_stride_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.lab._live._PAUSE", 0.0)
    view = LiveView()
    plain = dashi.flow.simulate(FLOW, steps=8, device="cpu")
    run = dashi.flow.simulate(FLOW, steps=8, device="cpu", live=view)
    assert run.hashes == plain.hashes
    assert "live field" not in run.records
    assert view.state().field_step == 8
    field = view._field
    assert field is not None
    np.testing.assert_array_equal(field[2], dashi.flow.to_field(run.state)[0])


def test_a_run_that_is_seen_goes_on_from_its_checkpoint_unseen(here: Path) -> None:
    rng = np.random.default_rng(2)
    turn, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    asked: dict[str, Any] = {"device": "cpu", "hash_every": 5, "sheet_every": 5, "bands": 4}
    whole = dashi.rollout(Linear(turn), rng.standard_normal(12), 40, **asked)
    start = whole.request.z0
    view = LiveView()
    first = dashi.rollout(Linear(turn), start, 20, out="run", checkpoint_every=10, live=view, **asked)
    assert first.resume(40).hashes == whole.hashes
    state = view.state()
    assert (state.sheet, state.sheet_rows, state.sheet_step) == ("band energies", 21, 20)
    assert not list(here.glob("run/*live*"))


@pytest.mark.parametrize(("observer", "decode_device"), [("metrics", None), ("metrics", "cpu"), ("snapshots", None)])
def test_decodes_are_seen_and_not_counted(
    here: Path, observer: str, decode_device: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashi.lab._live._PAUSE", 0.0)
    rng = np.random.default_rng(3)
    save_z(here / "z0.npz", SCHEMA, rng.standard_normal((2, SCHEMA.size)))
    np.savez(here / "A.npz", A=np.linalg.qr(rng.standard_normal((SCHEMA.size, SCHEMA.size)))[0])
    asked = lab.FollowRequest(
        z0="z0.npz", A="A.npz", steps=20, decode_every=5, stage_times=False, observer=observer,
        decode_device=decode_device,
    )  # fmt: skip
    plain = lab.follow(asked, device="cpu", out="plain")
    view = LiveView()
    run = lab.follow(asked, device="cpu", out="seen", live=view)
    assert contents(here / "plain") == contents(here / "seen")
    for name in ("decode_snapshots", "decode_bytes_read"):
        assert getattr(run.metrics, name) == getattr(plain.metrics, name)
    state = view.state()
    assert (state.field, state.field_step) == ("decoded vorticity", 20)
    assert state.sheet == "band energies"


def test_looks_of_its_own_are_dispatches_of_the_metrics(vulkan: Any) -> None:
    runs = [
        dashi.flow.simulate(FLOW, steps=20, device="vulkan:0", live=view, initial_options={"peak": 2.0})
        for view in (None, LiveView())
    ]  # fmt: skip
    plain, seen = (run.metrics.hotloop_dispatches for run in runs)
    assert plain < seen
    assert runs[0].hashes == runs[1].hashes


def test_what_is_no_view_is_refused() -> None:
    with pytest.raises(InputError, match=r"`live=` is 'page'\. Fix: pass a dashi\.report\.LiveView, or leave it away"):
        dashi.flow.simulate(FLOW, steps=1, device="cpu", live="page")  # pyright: ignore[reportArgumentType]
