"""Claims about shards: merged they are the bytes of the whole, in whatever parts; what is finished is not redone."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lab.conftest import Heard

from dashi import lab
from dashi.errors import InputError, Interrupted
from dashi.flow import Flow, Kolmogorov, Stochastic, from_field
from dashi.flow.evaluation import load_evaluation, table
from dashi.io._run_mark import MARK
from dashi.io.metrics import read_metrics
from dashi.lab.shards.comparison import NOT_COMPARED, compared

LONG = pytest.mark.long
FLOW = Flow(16, nu=0.01, dt=0.02)
COUNTS = (1, 2, 3, 7)


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small files: nothing here is about a loss of power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def simulation(**more: Any) -> lab.SimulateRequest:
    asked: dict[str, Any] = {
        "flow": FLOW, "steps": 11, "seeds": range(4, 11), "look_every": 4, "frame_every": 5, "hash_every": 3,
        "initial_options": {"peak": 3.0}, "host_fft": True,
    }  # fmt: skip
    return lab.SimulateRequest(**{**asked, **more})


def merged_simulation(asked: lab.SimulateRequest, room: Path, count: int, device: str = "cpu") -> Path:
    folders = [room / f"{index}-of-{count}" for index in range(1, count + 1)]
    for index, folder in enumerate(folders, start=1):
        lab.simulate(replace(asked, shard=lab.Shard(index, count)), device=device, out=folder)
    return lab.merge(folders[::-1], out=room / f"merged-{count}").out


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, (1, 3)),
        pytest.param({}, COUNTS, marks=LONG),
        ({"flow": replace(FLOW, forcing=Stochastic()), "transfer": True, "fields": ("velocity_x", "pressure")}, (3,)),
        pytest.param(
            {"flow": replace(FLOW, forcing=Kolmogorov(2), dtype="float64"), "seeds": (3, 9, 4, 5, 8, 2, 7)},
            (2,),
            marks=LONG,
        ),
        ({"flow": Flow(8, nu=0.01, dt=0.02), "host_fft": False, "seeds": range(3), "steps": 5}, (2,)),
        ({"frame_every": 0, "hash_every": 20}, (3,)),
        ({"look_every": 0, "hash_every": 0}, (2,)),
    ],
)
def test_a_merge_has_the_bytes_of_the_whole(tmp_path: Path, more: dict[str, Any], counts: tuple[int, ...]) -> None:
    asked = simulation(**more)
    lab.simulate(asked, device="cpu", out=tmp_path / "whole")
    whole = compared(tmp_path / "whole")
    assert {"metrics.json", "state.npz", MARK} <= set(whole)
    for count in counts:
        assert compared(merged_simulation(asked, tmp_path, count)) == whole


@LONG
def test_a_merge_has_the_bytes_of_the_whole_on_vulkan(tmp_path: Path, vulkan: object) -> None:
    asked = simulation(host_fft=False)
    lab.simulate(asked, device="vulkan:0", out=tmp_path / "whole")
    for count in COUNTS:
        merged = merged_simulation(asked, tmp_path, count, "vulkan:0")
        assert compared(merged) == compared(tmp_path / "whole")


def test_portable_shards_of_several_devices_fit_together(tmp_path: Path, vulkan: object) -> None:
    asked = simulation(flow=Flow(8, nu=0.01, dt=0.02), host_fft=False, seeds=range(3), steps=5)
    lab.simulate(asked, device="cpu", out=tmp_path / "whole")
    for index, device in ((1, "cpu"), (2, "vulkan:0")):
        lab.simulate(replace(asked, shard=lab.Shard(index, 2)), device=device, out=tmp_path / str(index))
    merged = lab.merge([tmp_path / "1", tmp_path / "2"], out=tmp_path / "merged")
    assert compared(merged.out) == compared(tmp_path / "whole")
    assert [flag.name for flag in read_metrics(merged.out / "metrics.json").perf_flags] == ["shards"]
    assert lab.verify(lab.VerifyRequest(certificate=merged.out), device="cpu").same


def test_states_that_were_passed_are_shared_out_too(tmp_path: Path) -> None:
    fields = np.random.default_rng(0).standard_normal((5, 16, 16)).astype(np.float32)
    flow = replace(FLOW, forcing=Stochastic(seed=7))
    states = np.stack([from_field(flow, field - field.mean()) for field in fields])
    asked = simulation(flow=flow, states=states.reshape(5, 16, 9, 2), seeds=(0,), initial_options={})
    lab.simulate(asked, device="cpu", out=tmp_path / "whole")
    assert compared(merged_simulation(asked, tmp_path, 2)) == compared(tmp_path / "whole")


def test_states_of_a_file_are_kicked_as_in_the_whole_whatever_the_first_seed_is(tmp_path: Path) -> None:
    fields = np.random.default_rng(0).standard_normal((3, 16, 16)).astype(np.float32)
    np.savez(tmp_path / "start.npz", vorticity=fields - fields.mean((1, 2), keepdims=True))
    asked = simulation(
        flow=replace(FLOW, forcing=Stochastic()), initial=str(tmp_path / "start.npz"), seeds=(7,),
        initial_options={}, host_fft=False, steps=3, hash_every=1, look_every=0, frame_every=0,
    )  # fmt: skip
    lab.simulate(asked, device="cpu", out=tmp_path / "whole")
    assert compared(merged_simulation(asked, tmp_path, 2)) == compared(tmp_path / "whole")


def test_states_of_a_shard_are_on_the_disk_before_a_checkpoint_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable: list[Path] = []
    counted: list[int] = []

    def checkpoint(file: Path, belongs: str, run: Any) -> None:
        states = {path.parts[-5] for path in durable if "states.zarr" in path.parts}
        assert {str(index) for index in range(run.steps // 2)} <= states
        counted.append(run.steps)

    monkeypatch.setattr("dashi.flow._trajectory.PAUSE", 0.0)
    monkeypatch.setattr("dashi.flow._trajectory._SHARE", 0.0)
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
    monkeypatch.setattr("dashi.flow._trajectory.write_checkpoint", checkpoint)
    monkeypatch.setattr("dashi.flow._fields.make_durable", durable.append)
    asked = simulation(steps=8, look_every=0, frame_every=2, hash_every=2, shard=lab.Shard(1, 2))
    lab.simulate(asked, device="cpu", out=tmp_path / "1")
    assert len(counted) >= 2


def test_a_shard_goes_on_by_its_own_request_alone(tmp_path: Path) -> None:
    asked = simulation(shard=lab.Shard(1, 2))
    finished = lab.simulate(asked, device="cpu", out=tmp_path / "1")
    again = lab.simulate(asked, device="cpu", out=tmp_path / "1")
    before = compared(tmp_path / "1")
    for run in (finished, again):
        with pytest.raises(InputError) as caught:
            run.resume(20)
        assert str(caught.value) == (
            "a shard goes on by its own request alone. Fix: simulate anew with more `steps=`, in other folders."
        )
    assert compared(tmp_path / "1") == before


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("fit") / "m.npz"
    asked = lab.FitRequest(
        model="galerkin", flow=FLOW, train=(1, 2), validate=(3,), train_steps=10, frame_every=5, spin_up=0, k_cut=3,
        initial_options={"peak": 2}, baselines=("persistence", "damped"), host_fft=True,
    )  # fmt: skip
    lab.fit(asked, device="cpu", out=out)
    return out


def evaluation(model: Path, **more: Any) -> lab.EvaluateRequest:
    asked = {"model": model, "seeds": range(9, 16), "steps": 20, "host_fft": True}
    return lab.EvaluateRequest(**{**asked, **more})


def merged_evaluation(asked: lab.EvaluateRequest, room: Path, count: int, device: str = "cpu") -> Path:
    folders = [room / f"{index}-of-{count}" for index in range(1, count + 1)]
    for index, folder in enumerate(folders, start=1):
        lab.evaluate(replace(asked, shard=lab.Shard(index, count)), device=device, out=folder)
    return lab.merge(folders[::-1], out=room / f"merged-{count}").out


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({"seeds": (9, 12, 11, 30)}, (1, 3)),
        pytest.param({}, COUNTS, marks=LONG),
        pytest.param({"perturb": (("nu", 0.008), ("n", 24)), "perfect": True, "windows": 2}, (3,), marks=LONG),
        pytest.param({"seeds": (9, 12, 11, 30), "host_fft": False, "steps": 10}, (3,), marks=LONG),
    ],
)
def test_merged_scores_are_those_of_the_whole(
    model: Path, tmp_path: Path, more: dict[str, Any], counts: tuple[int, ...]
) -> None:
    asked = evaluation(model, **more)
    lab.evaluate(asked, device="cpu", out=tmp_path / "whole")
    whole = compared(tmp_path / "whole")
    assert {"evaluation.json", "evaluation-test.npz", "evaluation-test.json", "continuation.npz"} <= set(whole)
    for count in counts:
        merged = merged_evaluation(asked, tmp_path, count)
        assert compared(merged) == whole
        ours, theirs = (load_evaluation(folder / "evaluation-test") for folder in (merged, tmp_path / "whole"))
        # Intervals are drawn over all seeds: not those of any part.
        assert [row.horizons for row in table(ours)] == [row.horizons for row in table(theirs)]


@LONG
def test_windows_of_a_record_are_shared_out(model: Path, tmp_path: Path) -> None:
    lab.simulate(simulation(steps=40, initial_options={"peak": 2}), device="cpu", out=tmp_path / "record")
    asked = evaluation(model, seeds=None, source=tmp_path / "record", steps=10, windows=2, host_fft=False)
    lab.evaluate(asked, device="cpu", out=tmp_path / "whole")
    for count in (2, 5):
        assert compared(merged_evaluation(asked, tmp_path, count)) == compared(tmp_path / "whole")


@LONG
def test_merged_scores_are_those_of_the_whole_on_vulkan(model: Path, tmp_path: Path, vulkan: object) -> None:
    asked = evaluation(model, host_fft=False, perfect=True)
    lab.evaluate(asked, device="vulkan:0", out=tmp_path / "whole")
    for count in COUNTS:
        assert compared(merged_evaluation(asked, tmp_path, count, "vulkan:0")) == compared(tmp_path / "whole")


@LONG
def test_pages_that_are_drawn_of_a_merge_are_those_of_the_whole(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dashi

    pages: dict[str, list[str]] = {}
    for place in ("one", "two"):
        room = tmp_path / place
        room.mkdir()
        monkeypatch.chdir(room)
        for kind, asked in (("flow", simulation()), ("scores", evaluation(model))):
            out = Path(kind)
            if place == "one":
                lab.run_jobs(asked, 2, out=out, device="cpu")
            elif kind == "flow":
                lab.simulate(simulation(), device="cpu", out=out)
            else:
                lab.evaluate(evaluation(model), device="cpu", out=out)
            pages.setdefault(kind, []).append(_without_times(dashi.report.write(out).read_text("utf-8")))
    for ours, theirs in pages.values():
        assert ours == theirs


def _without_times(page: str) -> str:
    """The page without how long it took, how much memory, and when."""
    page = re.sub(r'<th scope="row">wall time</th><td[^>]*>.*?</td>', "", page)
    page = re.sub(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)? UTC)?", "DATE", page)
    return re.sub(r"[\d.,]+ (?:ns|µs|ms|s|min|MiB|GiB)\b", "TIME", page)


def test_a_finished_shard_is_not_run_again(model: Path, tmp_path: Path, heard: Heard) -> None:
    asked = simulation(shard=lab.Shard(2, 3))
    first = lab.simulate(asked, device="cpu", out=tmp_path / "a")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")}
    again = lab.simulate(asked, device="cpu", out=tmp_path / "a", events=heard)
    assert heard.remarks == [f"shard 2/3 in {tmp_path / 'a'} is finished already: nothing is done"]
    assert again.state.tobytes() == first.state.tobytes()
    assert [one.digest for one in again.hashes] == [one.digest for one in first.hashes]
    assert again.folder == tmp_path / "a"
    scored = lab.evaluate(evaluation(model, shard=lab.Shard(1, 2)), device="cpu", out=tmp_path / "b")
    twice = lab.evaluate(evaluation(model, shard=lab.Shard(1, 2)), device="cpu", out=tmp_path / "b", events=heard)
    assert str(twice.table()) == str(scored.table())
    assert heard.remarks[-1] == f"shard 1/2 in {tmp_path / 'b'} is finished already: nothing is done"
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*")} == before


def test_a_shard_that_was_stopped_goes_on_by_itself(tmp_path: Path, heard: Heard) -> None:
    from tests.lab.conftest import Heard as Listener

    class Stopping(Listener):
        def progress(self, title: str, total: int | None, unit: str) -> Any:
            raise_at = 6 if title == "flow" else None
            listener = super().progress(title, total, unit)

            class Watched:
                def __enter__(self) -> Any:
                    advance, done = listener.__enter__(), [0]

                    def counted(amount: int) -> None:
                        advance(amount)
                        done[0] += amount
                        if raise_at and done[0] >= raise_at:
                            raise KeyboardInterrupt

                    return counted

                def __exit__(self, *error: Any) -> Any:
                    return listener.__exit__(*error)

            return Watched()

    asked = simulation(steps=60, frame_every=5, hash_every=5, look_every=20)
    lab.simulate(asked, device="cpu", out=tmp_path / "whole")
    shards = [replace(asked, shard=lab.Shard(index, 2)) for index in (1, 2)]
    lab.simulate(shards[0], device="cpu", out=tmp_path / "1")
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        lab.simulate(shards[1], device="cpu", out=tmp_path / "2", events=Stopping())
    lab.simulate(shards[1], device="cpu", out=tmp_path / "2", events=heard)
    merged = lab.merge([tmp_path / "1", tmp_path / "2"], out=tmp_path / "merged")
    assert compared(merged.out) == compared(tmp_path / "whole")


def test_what_is_compared_sees_every_other_change(tmp_path: Path) -> None:
    lab.simulate(simulation(), device="cpu", out=tmp_path / "a")
    before = compared(tmp_path / "a")
    metrics = json.loads((tmp_path / "a" / "metrics.json").read_text())
    for name in metrics:
        changed = {**metrics, name: "other"}
        (tmp_path / "a" / "metrics.json").write_text(json.dumps(changed))
        assert (compared(tmp_path / "a") == before) == (name in NOT_COMPARED["metrics.json"]), name
    (tmp_path / "a" / "metrics.json").write_text(json.dumps(metrics))
    assert compared(tmp_path / "a") == before
    frame = tmp_path / "a" / "fields.zarr" / "vorticity" / "c" / "0" / "0" / "0" / "0"
    frame.write_bytes(frame.read_bytes()[:-1] + b"\x7f")
    assert [name for name in before if compared(tmp_path / "a")[name] != before[name]] == [
        "fields.zarr/vorticity/c/0/0/0/0"
    ]


def test_what_is_not_compared_is_there_at_all(model: Path, tmp_path: Path) -> None:
    """A name in the list that no file has would hide a mistake."""
    lab.simulate(simulation(host_fft=False, seeds=(1,), steps=2, flow=Flow(8)), device="cpu", out=tmp_path / "a")
    lab.evaluate(evaluation(model, seeds=(9,)), device="cpu", out=tmp_path / "b")
    documents = {
        **{name: tmp_path / "a" / name for name in (MARK, "metrics.json", "certificate.json", "fields.zarr/zarr.json")},
        "evaluation.json": tmp_path / "b" / "evaluation.json",
        "evaluation-*.json": tmp_path / "b" / "evaluation-test.json",
    }
    of_vulkan = {"float_rules"}
    for name, file in documents.items():
        document = json.loads(file.read_text())
        for path in NOT_COMPARED[name]:
            assert path in of_vulkan or _has(document, path.split(".")), (name, path)


def _has(document: Any, path: list[str]) -> bool:
    first, *rest = path
    if first == "*":
        return all(_has(one, rest) for one in document)
    return first in document and (not rest or _has(document[first], rest))
