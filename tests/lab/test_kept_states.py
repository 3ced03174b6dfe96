"""States that runs keep on the way: asked for in three jobs, written as they come, and there after any end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import lab
from dashi.core.certificates._certificate import Certificate, read_certificate
from dashi.core.certificates._certify import certify_folder
from dashi.core.operators.affine import Affine
from dashi.core.rollouts._state_files import StateFiles, state_digest
from dashi.core.rollouts.run import Run
from dashi.errors import DashiError, FileError, InputError, Interrupted, NonFiniteError
from dashi.flow import Flow
from dashi.flow.equations import Stochastic
from dashi.io._run_folder import CHECKPOINT
from dashi.lab import rollouts
from dashi.lab._kept_states import claimed_stride, remove_other_states

FullDisk = Callable[[int], AbstractContextManager[list[Path]]]
D = 8
FLOW = Flow(n=16, nu=0.01, dt=0.01)


@pytest.fixture(autouse=True)
def _inputs(write_inputs: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder; and many small files, whose durability is not what is tested here."""
    write_inputs(D)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def roll(out: str | None = "run", *, resume: bool = False, **asked: Any) -> Run:
    plain: dict[str, Any] = {"z0": "z0.npz", "A": "A.npz", "steps": 20, "hash_every": 2, "states_every": 4}
    return lab.rollout(lab.RolloutRequest(**{**plain, **asked}), device="cpu", out=out, resume=resume)


def solve(out: str | None = "run", *, resume: bool = False, **asked: Any) -> Run:
    plain: dict[str, Any] = {"flow": FLOW, "steps": 8, "initial_options": {"peak": 2}, "frame_every": 2}
    request = lab.SimulateRequest(**{**plain, "hash_every": 2, "states_every": 2, **asked})
    return lab.simulate(request, device="cpu", out=out, resume=resume)


def follow(out: str | None = "run", **asked: Any) -> Run:
    if not Path("flow").exists():
        lab.simulate(
            lab.SimulateRequest(flow=FLOW, steps=6, frame_every=2, initial_options={"peak": 2}, host_fft=True),
            device="cpu", out="flow",
        )  # fmt: skip
    plain: dict[str, Any] = {"fit_from": "flow", "k_cut": 3.0, "steps": 8, "decode_every": 4, "stage_times": False}
    return lab.follow(
        lab.FollowRequest(**{**plain, "hash_every": 2, "states_every": 2, **asked}), device="cpu", out=out
    )  # fmt: skip


JOBS: dict[str, Callable[..., Run]] = {"rollout": roll, "simulate": solve, "follow": follow}


def kept_by(folder: str | Path = "run") -> Certificate:
    """The certificate of a folder, once its states are what it says."""
    certificate = read_certificate(Path(folder) / "certificate.json")
    assert certificate.states is not None
    for one in certificate.states.files:
        assert state_digest(np.load(Path(folder) / one.file), certificate.states.bits) == one.digest
    names = {Path(one.file).name for one in certificate.states.files}
    assert {path.name for path in (Path(folder) / "states").iterdir()} == names
    return certificate


@pytest.mark.parametrize("name", JOBS)
def test_every_job_that_is_certified_keeps_states(name: str) -> None:
    run = JOBS[name]()
    certificate = kept_by()
    assert certificate.states is not None
    every = certificate.states.every
    assert [one.step for one in certificate.states.files] == [*range(every, run.steps + 1, every)]
    assert run.request.states_every == every
    result = lab.verify(lab.VerifyRequest(certificate="run"), device="cpu")
    assert (result.same, result.segments, result.verified) == (True, run.steps // every, run.steps // every)


def test_a_flow_with_kicks_is_repeated_from_its_states() -> None:
    """The number of the step, which decides the kicks, is in the states."""
    solve(flow=Flow(n=16, nu=0.01, dt=0.01, forcing=Stochastic()), seeds=(1, 2))
    assert lab.verify(lab.VerifyRequest(certificate="run"), device="cpu").verified == 4


@pytest.mark.parametrize("name", JOBS)
def test_states_change_no_hash(name: str) -> None:
    assert JOBS[name]("with").hashes == JOBS[name]("without", states_every=None).hashes
    assert not Path("without/states").exists()


def test_states_are_the_same_on_every_device(vulkan: Any) -> None:
    roll("cpu", states_bits=256)
    request = lab.RolloutRequest(
        z0="z0.npz", A="A.npz", steps=20, hash_every=2, states_every=4, states_bits=256
    )  # fmt: skip
    lab.rollout(request, device=vulkan, out="vulkan")
    assert kept_by("vulkan").states == kept_by("cpu").states
    assert kept_by("vulkan").float_rules
    assert lab.verify(lab.VerifyRequest(certificate="cpu"), device=vulkan).verified == 5


def test_the_front_doors_keep_states_too() -> None:
    dashi.rollout(
        dashi.Linear(np.eye(2)), np.ones(2), 10, hash_every=1, states_every=5, states_bits=256, device="cpu", out="a"
    )
    dashi.flow.simulate(FLOW, steps=4, hash_every=2, states_every=2, device="cpu", out="b", initial_options={"peak": 2})
    dashi.flow.follow(
        start=None, fit_from=follow("c").request.fit_from, k_cut=3.0, steps=4, states_every=2, device="cpu", out="d"
    )
    assert [len(kept_by(folder).states.files) for folder in "abd"] == [2, 2, 2]  # pyright: ignore[reportOptionalMemberAccess]
    assert json.loads(Path("a/certificate.json").read_text())["states"]["bits"] == 256


def test_a_certificate_beside_the_folder_names_its_states_too(heard: Any) -> None:
    def certify(file: str) -> list[str]:
        request = lab.RolloutRequest(
            z0="z0.npz", A="A.npz", steps=20, hash_every=2, states_every=4, certificate=file
        )  # fmt: skip
        lab.rollout(request, device="cpu", out="run", events=heard)
        states = read_certificate(Path(file)).states
        assert states is not None
        return [one.file for one in states.files]

    assert certify("c.json")[0] == "run/states/000000000004.npy"
    assert certify("c.json")[0] == "run/states/000000000004.npy"  # it worked aside, and took its place
    assert lab.verify(lab.VerifyRequest(certificate="c.json"), device="cpu").verified == 5
    assert certify("elsewhere/c.json")[0] == "../run/states/000000000004.npy"
    assert heard.remarks[-1].startswith("elsewhere/c.json: z0, A, states not in its folder")
    with pytest.raises(DashiError, match="the certificate names a state outside of its folder"):
        lab.verify(lab.VerifyRequest(certificate="elsewhere/c.json"), device="cpu")


def test_an_ensemble_is_kept_as_a_whole() -> None:
    roll(z0="many.npz")
    assert np.load("run/states/000000000004.npy").shape == (3, D)
    kept_by()


def test_hashes_are_taken_where_states_are_kept() -> None:
    assert roll("a", hash_every=None, steps=20, states_every=6).hash_every == 6  # the usual stride is 20
    assert claimed_stride(2000, None, 1000) == 1000
    assert claimed_stride(300, None, 1000) == 300
    assert claimed_stride(None, None, 1000) == 1000
    assert claimed_stride(None, 7, 1000) == 7


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no folder": ({"out": None}, "states are kept in a run folder. Fix: name one with `out=`."),
    "a stride of 0": ({"states_every": 0}, "`states_every=` is 0. Fix: give a stride of 1 or more"),
    "more than all": (
        {"states_every": 21}, "`states_every=` is 21, and there are 20 steps. Fix: keep states more often.",
    ),
    "no hash": (
        {"states_every": 5},
        "`hash_every=` 2: a state is kept where no hash is. Fix: keep states after a multiple of 2 steps.",
    ),
    "other bits": ({"states_bits": 64}, "`states_bits=` is 64. Fix: use 128, or 256."),
    "bits alone": (
        {"states_every": None, "states_bits": 256}, "`states_bits=` is of kept states, and none are kept. Fix: give",
    ),
    "not portable": (
        {"portable": False}, "a run that is not portable has no certificate, and kept states are for that.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused_before_anything_is_written(name: str) -> None:
    asked, text = REFUSED[name]
    with pytest.raises(DashiError) as refused:
        roll(**asked)
    assert text in str(refused.value)
    assert not Path("run").exists()


def test_flows_refuse_the_same() -> None:
    with pytest.raises(DashiError, match="a run that is not portable has no certificate"):
        solve(host_fft=True)
    with pytest.raises(DashiError, match=r"`hash_every=` 0: a state is kept where no hash is. Fix: leave `hash_every="):
        solve(hash_every=0)
    with pytest.raises(DashiError, match=r"a model is not hashed, so `states_every=` changes nothing"):
        lab.follow(lab.FollowRequest(model="m.npz", start="flow", states_every=2), device="cpu", out="run")


def test_a_shard_refuses_them() -> None:
    with pytest.raises(InputError) as refused:
        solve(seeds=range(2), shard=lab.Shard(1, 2))
    assert str(refused.value) == (
        "a shard keeps no states on the way. Fix: leave `states_every=` away, or run the whole without `shard=`."
    )
    assert not Path("run").exists()


def test_more_states_than_the_disk_holds_are_refused_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 100})())
    with pytest.raises(DashiError, match=r"5 kept states would take about .* Fix: use a larger `states_every=`."):
        roll()


# Stopped and going on


def interrupt_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while the state after a step is written."""
    from dashi.core.rollouts import _state_files as state_files

    real = state_files.write_array

    def write(path: Path, values: Any) -> None:
        real(path, values)
        if path.name == f"{step:012d}.npy":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(state_files, "write_array", write)


@pytest.mark.parametrize("name", ["rollout", "simulate"])
@pytest.mark.parametrize("bits", [128, 256])
def test_a_stopped_run_goes_on_with_the_states_that_are_there(
    name: str, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = JOBS[name]
    job("whole", states_bits=bits)
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)  # blocks of one step
    with monkeypatch.context() as patch:
        interrupt_at(4, patch)
        with pytest.raises(Interrupted):
            job(states_bits=bits)
    stopped = kept_by()
    assert stopped.states is not None
    assert [one.step for one in stopped.states.files][-1] == 4
    before = Path("run/states/000000000004.npy").stat().st_mtime_ns
    job(resume=True, states_bits=None, states_every=None)  # as the run that goes on has them
    assert Path("run/states/000000000004.npy").stat().st_mtime_ns == before
    assert (kept_by().states, kept_by().hashes) == (kept_by("whole").states, kept_by("whole").hashes)
    assert not Path("run", CHECKPOINT).exists()


@pytest.mark.parametrize("change", ["gone", "another"])
def test_a_run_does_not_go_on_over_a_state_that_is_another(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
    with monkeypatch.context() as patch:
        interrupt_at(8, patch)
        with pytest.raises(Interrupted):
            roll()
    file = Path("run/states/000000000004.npy")
    if change == "gone":
        file.unlink()
    else:
        np.save(file, np.load(file) + 1)
    with pytest.raises(
        FileError, match=r"there is no file|is not the state that was written after step 4. Fix: put it"
    ):
        roll(resume=True)


def test_a_run_that_goes_on_keeps_states_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
    with monkeypatch.context() as patch:
        interrupt_at(8, patch)
        with pytest.raises(Interrupted):
            roll()
    with pytest.raises(DashiError, match=r"the run that goes on has `states_every=` 4, not 2. Fix: leave"):
        roll(resume=True, states_every=2)
    with pytest.raises(DashiError, match=r"the run that goes on has `states_bits=` 128, not 256."):
        roll(resume=True, states_bits=256)
    roll(resume=True)
    kept_by()


@pytest.mark.parametrize("name", ["rollout", "simulate"])
def test_a_finished_run_goes_on_and_keeps_more(name: str) -> None:
    run = JOBS[name]()
    longer = run.resume(run.steps + 8)
    states = kept_by().states
    assert states is not None
    assert states.files[-1].step == longer.steps
    JOBS[name]("whole", steps=longer.steps)
    assert kept_by("whole").states == states


def test_a_certificate_names_no_states_where_there_is_no_folder_of_them() -> None:
    run = roll()
    z0 = np.load("run/inputs.npz")["z0"]
    for name in ("none", "linked"):
        Path(name).mkdir()
    Path("linked/states").symlink_to(Path("run/states").absolute())
    for name in ("none", "linked"):
        assert certify_folder(run, Path(name), Affine(np.load("A.npz")["A"]), z0)
        certificate = read_certificate(Path(name, "certificate.json"))
        assert (certificate.schema_version, certificate.states) == (1, None)


def test_states_of_the_run_before_are_replaced_with_it() -> None:
    roll()
    roll()  # in the place of the one before
    kept_by()
    lab.rollout(
        lab.RolloutRequest(z0="z0.npz", A="A.npz", steps=20, hash_every=2), device="cpu", out="run", overwrite=True
    )
    assert not Path("run/states").exists()


def test_what_a_killed_run_kept_beyond_the_end_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def checkpoint(*_: Any) -> None:
        real(*_)
        raise Killed

    real = rollouts.keep_checkpoint
    with monkeypatch.context() as patch:
        patch.setattr(rollouts, "keep_checkpoint", checkpoint)
        patch.setattr("dashi.core.rollouts.rollout.BLOCK_US", 0.0)
        with pytest.raises(Killed):
            roll(checkpoint_every=4)
    np.save("run/states/000000000012.npy", np.ones((1, D), np.float32))  # it was killed after this, say
    roll(resume=True, steps=8)
    assert [path.name for path in sorted(Path("run/states").iterdir())] == ["000000000004.npy", "000000000008.npy"]
    kept_by()


@pytest.mark.parametrize("every", [4, None])
def test_no_file_of_anybody_else_is_removed(every: int | None) -> None:
    run = roll(steps=8)
    foreign = [Path("run/states", name) for name in ("mine.npy", "12.npy", "0000000000012.npy", "notes.txt")]
    for path in foreign:
        path.write_text("mine")
    Path("run/states/000000000016.npy").mkdir()
    Path("run/states/000000000012.npy").write_text("kept by a killed run")
    remove_other_states(Path("run"), run if every else replace(run, observers=()))
    assert all(path.exists() for path in foreign)
    assert Path("run/states/000000000016.npy").is_dir()
    assert Path("run/states/000000000012.npy").exists() == (every is None)


def test_no_state_is_removed_through_a_link() -> None:
    run = roll(steps=8)
    Path("elsewhere").mkdir()
    Path("elsewhere/000000000012.npy").write_text("of another run")
    Path("other").mkdir()
    Path("other/states").symlink_to(Path("elsewhere").absolute())
    remove_other_states(Path("other"), run)
    assert Path("elsewhere/000000000012.npy").exists()


@pytest.mark.parametrize("after", [0, 1, 3, -6, -5, -3, -1])
def test_a_run_on_a_full_disk_is_taken_over_or_goes_on(after: int, full_disk: FullDisk) -> None:
    with full_disk(1 << 30) as written:
        roll("whole", checkpoint_every=8)
    with full_disk(after % len(written)), pytest.raises(FileError, match="No space left on device"):
        roll(checkpoint_every=8)
    roll(checkpoint_every=8, resume=Path("run", CHECKPOINT).exists())
    assert kept_by().states == kept_by("whole").states


def test_states_that_blew_up_are_not_kept() -> None:
    np.savez("A.npz", A=np.eye(D, dtype=np.float32) * np.float32(1e9))
    with pytest.raises(NonFiniteError):
        roll(steps=20, hash_every=1, states_every=1)
    kept_by()


def test_a_run_with_not_a_number_is_kept_if_that_is_asked_for() -> None:
    np.savez("A.npz", A=np.eye(D, dtype=np.float32) * np.float32(1e9))
    roll(steps=20, stop_on_nonfinite=False)
    assert not np.isfinite(np.load("run/states/000000000020.npy")).any()
    result = lab.verify(lab.VerifyRequest(certificate="run"), device="cpu")
    assert (result.same, result.finite, result.verified) == (True, False, 5)


def test_somebody_elses_states_are_not_replaced() -> None:
    roll()
    for path in Path("run").rglob("*"):
        if path.name == ".dashi-run":
            document = json.loads(path.read_text())
            path.write_text(json.dumps({**document, "files": [n for n in document["files"] if n != "states"]}))
    with pytest.raises(FileError, match="run/states is there, and no run left it"):
        roll()


def test_states_come_in_memory_that_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """States of 64 KB each, 13 MB more of them in the second run: however many go by, some blocks' worth is held."""
    import tracemalloc

    monkeypatch.setattr("dashi.core.rollouts._state_files.state_digest", lambda *_: "0" * 32)  # which is slow
    z0, operator = np.ones((1024, 8), np.float64), dashi.Linear(np.eye(8))
    peaks: list[int] = []
    for steps in (50, 250):
        tracemalloc.start()
        dashi.core.rollout(operator, z0, steps, device="cpu", observers=[StateFiles(1, Path(str(steps)))])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert len([*Path(str(steps)).iterdir()]) == steps
    assert peaks[1] < peaks[0] + 2_000_000, peaks
