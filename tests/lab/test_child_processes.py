"""Processes that a job starts: so many threads each as its cores allow, and errors that come back as they were."""

from __future__ import annotations

import errno
import inspect
import os
from pathlib import Path
from typing import Any

import pytest

import dashi
from dashi import errors, lab
from dashi.errors import DashiError, ShardError, WorkerError
from dashi.flow import Flow
from dashi.lab import _child_processes as children
from dashi.lab._child_processes import child_environment, core_count, error_of


def test_the_threads_of_all_processes_are_as_many_as_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "core_count", lambda: 16)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("MKL_NUM_THREADS", "many")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")

    def threads(jobs: int) -> list[str]:
        environment = child_environment(jobs)
        return [environment[name] for name in names]

    assert threads(1) == ["3", "16", "16"]
    assert threads(4) == ["3", "4", "4"]
    assert threads(16) == ["1", "1", "1"]
    assert threads(100) == ["1", "1", "1"]
    assert core_count() >= 1


def test_memory_of_a_step_is_kept_for_the_next_unless_something_else_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "7")
    environment = child_environment(1)
    assert environment["MALLOC_MMAP_THRESHOLD_"] == str(32 << 20)
    assert environment["MALLOC_TRIM_THRESHOLD_"] == "7"


def test_a_process_imports_the_same_dashi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    above = str(Path(dashi.__file__).parents[1])
    assert child_environment(1)["PYTHONPATH"].split(os.pathsep) == [above, "elsewhere"]


def test_both_farms_share_out_the_cores_and_tell_that_no_process_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, write_inputs: Any
) -> None:
    write_inputs(4)
    lab.rollout(
        lab.RolloutRequest(z0="z0.npz", A="A.npz", steps=12, hash_every=1, states_every=2), device="cpu", out="run"
    )
    monkeypatch.setattr(children, "core_count", lambda: 12)
    for name in ("OMP_NUM_THREADS", "LP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    shares: list[tuple[str, str]] = []

    def start(*_: Any, env: dict[str, str], **__: Any) -> None:
        shares.append((env["OMP_NUM_THREADS"], env["LP_NUM_THREADS"]))
        raise OSError(errno.EAGAIN, "no more of them")

    monkeypatch.setattr(children.subprocess, "Popen", start)
    request = lab.SimulateRequest(flow=Flow(16, nu=0.01, dt=0.02), steps=2, seeds=range(6), host_fft=True)
    said = r"^a process cannot be started: no more of them\. Fix: use fewer `jobs=`\.$"
    with pytest.raises(ShardError, match=said):
        lab.run_jobs(request, 4, out=tmp_path / "a", device="cpu")
    with pytest.raises(WorkerError, match=said):
        lab.verify(lab.VerifyRequest(certificate="run", jobs=6), device="cpu")
    assert shares == [("3", "3"), ("2", "2")]


def test_errors_come_back_as_they_were() -> None:
    kinds = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, DashiError)}
    by_name = {name: error_of(name, "what.", "fix.") for name in kinds}
    assert {str(error) for error in by_name.values()} == {"what. Fix: fix."}
    assert {name: type(error) for name, error in by_name.items()} == kinds


@pytest.mark.parametrize("name", ["", "os", "Interrupted", "nothing", "__all__"])
def test_an_error_of_no_known_name_is_one_all_the_same(name: str) -> None:
    error = error_of(name, "what.", "fix.")
    assert (type(error), error.what, error.fix) == (DashiError, "what.", "fix.")
