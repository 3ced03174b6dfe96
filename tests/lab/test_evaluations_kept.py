"""Claims about the folder of an evaluation: nothing finished is lost, nothing of others is touched."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from dashi import lab
from dashi.errors import FileError, Interrupted
from dashi.flow import Flow
from dashi.flow.evaluation import load_evaluation
from dashi.flow.proxy.galerkin._model import Truncation
from dashi.lab import evaluation_plans

FullDisk = Callable[[int], AbstractContextManager[list[Path]]]
NU = (("nu", 0.01),)


def evaluate(model: Path, out: str | None = None, *, overwrite: bool = False, **asked: Any) -> lab.ModelScores:
    request = lab.EvaluateRequest(
        **{"model": model, "first_seed": 9, "seeds": 1, "steps": 40, "host_fft": True, **asked}
    )
    return lab.evaluate(request, device="cpu", out=out, overwrite=overwrite)


def stopped(model: Path, out: str | None = None, **asked: Any) -> lab.ModelScores:
    """An evaluation that Ctrl-C ends: what it has."""
    with pytest.raises(Interrupted) as stop:
        evaluate(model, out, **asked)
    scores = stop.value.partial
    assert isinstance(scores, lab.ModelScores)
    assert scores.stopped
    return scores


def splits(scores: lab.ModelScores) -> list[str]:
    return [one.split for one in scores.evaluations]


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # many small files; no machine is to fail here


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model so small that it is scored in an instant: what is kept of its scores is what this is about."""
    out = tmp_path_factory.mktemp("fit") / "model.npz"
    request = lab.FitRequest(
        flow=Flow(16, nu=5e-3, dt=0.02), train=range(1, 3), validate=range(3, 4), train_steps=40, frame_every=5,
        spin_up=20, initial_options={"peak": 2}, k_cut=3, baselines=("persistence", "truncation"), host_fft=True,
    )  # fmt: skip
    lab.fit(request, device="cpu", out=out)
    return out


def test_a_folder_of_something_else_is_left_alone(fitted: Path, here: Path) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(FileError, match="is not the folder of a run"):
        evaluate(fitted, "mine")
    assert [path.name for path in (here / "mine").iterdir()] == ["letter.txt"]


def test_the_folder_of_another_command_is_left_alone(fitted: Path, here: Path) -> None:
    lab.simulate(lab.SimulateRequest(flow=Flow(16), steps=4, host_fft=True), device="cpu", out="run")
    (here / "demo").mkdir()
    (here / "demo" / "summary.json").write_text("{}")
    for out, whose in (("run", "flow simulate"), ("demo", "demo")):
        before = sorted((here / out).rglob("*"))
        holds = f"{out} holds a run of `dashi {whose}`, and one of `dashi flow evaluate` has a folder"
        with pytest.raises(FileError, match=holds):
            evaluate(fitted, out)
        assert sorted((here / out).rglob("*")) == before


@pytest.mark.parametrize("writes", [1, 6])
def test_a_full_disk_loses_no_scores_and_its_leftovers_are_taken_over(
    fitted: Path, here: Path, full_disk: FullDisk, writes: int
) -> None:
    with full_disk(writes), pytest.raises(FileError, match="No space left on device") as full:
        evaluate(fitted, "s", perturb=NU)
    assert "make room on that disk" in full.value.fix
    assert "which are there all the same" in full.value.what
    scores = full.value.result
    assert isinstance(scores, lab.ModelScores)
    assert splits(scores) == ["train", "validation", "test", "test"]
    written, _, missing = full.value.what.partition("was written to s; not written is ")
    for path in (here / "s").glob("[!.]*"):
        assert (path.name in written) is not (path.name in missing)
    assert "evaluation-test-nu=0.01.npz" in missing
    tables = [one.document()["evaluations"][-1]["table"][0] for one in (evaluate(fitted, "s", perturb=NU), scores)]
    assert tables[0]["horizons"] == tables[1]["horizons"]
    assert load_evaluation(here / "s" / "evaluation-test-nu=0.01.npz").lines
    assert not (here / "s" / "unfinished").exists()


def test_an_evaluation_that_is_stopped_leaves_a_finished_one_as_it_is(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(fitted, "s")
    before = {path: path.read_bytes() for path in (here / "s").iterdir()}

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Truncation, "rollout", stop)
        assert stopped(fitted, "s", first_seed=20, overwrite=True).folder == Path("s/unfinished")
    assert {path: path.read_bytes() for path in (here / "s").iterdir() if path.is_file()} == before
    assert load_evaluation(here / "s" / "unfinished" / "evaluation-test.npz").seeds == (20,)
    other = r"other settings \(first_seed is 9 there, 20 here\). Fix: replace it with `overwrite=True`, or "
    with pytest.raises(FileError, match=other):
        evaluate(fitted, "s", first_seed=20)
    evaluate(fitted, "s", first_seed=20, overwrite=True)
    assert load_evaluation(here / "s" / "evaluation-test.npz").seeds == (20,)
    assert not (here / "s" / "unfinished").exists()


def test_ctrl_c_while_the_last_model_runs_is_not_forgotten(fitted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Truncation.rollout

    def pressed(*words: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return real(*words, **options)

    monkeypatch.setattr(Truncation, "rollout", pressed)
    scores = stopped(fitted, perturb=NU)
    assert splits(scores) == ["train", "validation", "test"]
    assert "truncation" in [line.model for line in scores.evaluations[-1].lines]


def test_what_an_earlier_evaluation_left_goes_when_the_new_one_is_whole(fitted: Path, here: Path) -> None:
    evaluate(fitted, "s", perturb=NU)
    evaluate(fitted, "s", overwrite=True)
    names = {path.name for path in (here / "s").glob("evaluation-*.npz")}
    assert names == {"evaluation-train.npz", "evaluation-validation.npz", "evaluation-test.npz"}


def test_what_a_stopped_evaluation_left_is_not_shown_as_that_of_the_next(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test, drawn = here / "s" / "evaluation-test.npz", here / "s" / "continuation.npz"
    real = evaluation_plans.simulate_windows
    stop_at = "nu="

    def simulated(title: str, *given: Any, **options: Any) -> Any:
        if stop_at in title:
            raise KeyboardInterrupt
        return real(title, *given, **options)

    monkeypatch.setattr(evaluation_plans, "simulate_windows", simulated)
    stopped(fitted, "s", perturb=NU)
    assert load_evaluation(test).seeds == (9,)
    assert drawn.exists()
    stop_at = ""  # at once
    stopped(fitted, "s", perturb=NU, first_seed=20)
    names = {path.name for path in (here / "s").glob("[!.]*")}
    kept = {f"evaluation-{split}{suffix}" for split in ("train", "validation") for suffix in (".npz", ".json")}
    assert names == {*kept, "evaluation.json"}


def test_ctrl_c_keeps_the_models_and_flows_that_are_finished(
    fitted: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Truncation, "rollout", stop)
    names = [line.model for line in stopped(fitted, "s", perturb=NU).evaluations[-1].lines]
    assert names[0] == "galerkin"
    assert "truncation" not in names
    assert load_evaluation(here / "s" / "evaluation-test.npz").stopped
    assert not (here / "s" / "evaluation-test-nu=0.01.npz").exists()
