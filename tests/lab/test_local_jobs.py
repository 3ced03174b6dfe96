"""Claims about shards in processes of their own: the bytes of one process, errors with their shard, nobody left."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.lab.conftest import Heard

from dashi import lab
from dashi.errors import DashiError, FileError, InputError, Interrupted, NoResultError, ShardError
from dashi.flow import Flow
from dashi.lab.shards import local_jobs
from dashi.lab.shards._shard_job import run_shard
from dashi.lab.shards.comparison import compared

FLOW = Flow(16, nu=0.01, dt=0.02)
LONG = pytest.mark.long


def simulation(**more: Any) -> lab.SimulateRequest:
    asked: dict[str, Any] = {
        "flow": FLOW, "steps": 20, "seeds": range(3), "host_fft": True, "initial_options": {"peak": 3.0}
    }  # fmt: skip
    return lab.SimulateRequest(**{**asked, **more})


def children() -> list[str]:
    """The processes that run shards now, of this one."""
    found = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if "dashi.lab.shards._child" in line and f"{os.getpid()} " in line]


def test_jobs_leave_the_bytes_of_one_process_and_no_shards(tmp_path: Path, heard: Heard) -> None:
    merged = lab.run_jobs(simulation(), 2, out=tmp_path / "a", device="cpu", events=heard)
    lab.simulate(simulation(), out=tmp_path / "b", device="cpu")
    assert compared(merged.out) == compared(tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert {"shard 1/2 is finished", "shard 2/2 is finished"} <= set(heard.remarks)
    assert ("shards", 40, 40) in heard.parts
    assert not children()


def test_modules_of_the_working_folder_are_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("numpy.py").write_text("open('executed', 'w').close()")
    lab.run_jobs(simulation(steps=2), 1, out=tmp_path / "a", device="cpu")
    assert not Path("executed").exists()


def test_a_process_that_is_stopped_at_once_says_so() -> None:
    program = (
        "import threading; from dashi.lab.shards import _child\n"
        "def start(thread): raise KeyboardInterrupt\n"
        "threading.Thread.start = start; _child.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps(None), capture_output=True, check=True)
    assert json.loads(done.stdout) == {"end": "stopped"}


def in_this_process(monkeypatch: pytest.MonkeyPatch, heard: Heard) -> None:
    """Shards run here, one after another."""

    def run(work: Any, _: Any) -> None:
        for job in work:
            run_shard(job, heard)

    monkeypatch.setattr(local_jobs, "_run", run)


def test_shards_of_another_setting_are_replaced_if_that_is_asked(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_this_process(monkeypatch, heard)
    left = tmp_path / "a-shards"
    for index, steps in ((1, 20), (2, 10)):
        lab.simulate(
            simulation(steps=steps, shard=lab.Shard(index, 2)), device="cpu", out=left / f"{index}-of-2"
        )  # fmt: skip
    with pytest.raises(FileError, match=r"2-of-2 holds a finished run .* with other settings .*`overwrite=True`"):
        lab.run_jobs(simulation(), 2, out=tmp_path / "a", device="cpu")
    lab.run_jobs(simulation(), 2, out=tmp_path / "a", device="cpu", overwrite=True)
    assert sum("shard 1/2 in" in remark and "is finished already" in remark for remark in heard.remarks) == 2
    assert not any("shard 2/2 in" in remark for remark in heard.remarks)
    lab.simulate(simulation(), out=tmp_path / "b", device="cpu")
    assert compared(tmp_path / "a") == compared(tmp_path / "b")
    assert not left.exists()


def test_what_is_no_shard_of_ours_is_not_replaced(
    tmp_path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_this_process(monkeypatch, heard)
    mine = tmp_path / "a-shards" / "1-of-2" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(FileError, match="is there already and is not the folder of a run"):
        lab.run_jobs(simulation(), 2, out=tmp_path / "a", device="cpu", overwrite=True)
    assert mine.read_text() == "mine"


def saying(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """The process of the second shard runs this instead; that of the first waits until it is asked to stop."""

    def start(job: Any, _: int) -> Any:
        first = 'import sys; sys.stdin.read(); print(\'{"end": "stopped"}\')'
        program = [sys.executable, "-I", "-S", "-c", first if job.request.shard.index == 1 else words]
        return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    monkeypatch.setattr(local_jobs, "_start", start)


def failed(kind: str) -> str:
    """A program that says that its shard failed, after other words."""
    end = json.dumps({"end": "failed", "kind": kind, "what": "w.", "fix": "f."})
    return f"print('noise'); print({end!r})"


ENDS: dict[str, tuple[str, type[DashiError], str]] = {
    "an error": (failed("FileError"), FileError, r"^shard 2/2: w\. Fix: f\.$"),
    "an error of no known kind": (failed("os"), DashiError, r"^shard 2/2: w\. Fix: f\.$"),
    "killed": (
        "import os; os.kill(os.getpid(), 9)", ShardError, "the process of shard 2/2 was ended by SIGKILL, before its",
    ),
    "its own end": ("raise SystemExit(7)", ShardError, "the process of shard 2/2 ended with exit code 7, before its"),
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_how_a_shard_ended_is_told_and_the_others_are_stopped(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, kind, said = ENDS[end]
    saying(monkeypatch, words)
    with pytest.raises(kind, match=said) as caught:
        lab.run_jobs(simulation(), 2, out=tmp_path / "a", device="cpu")
    assert type(caught.value) is kind
    assert not (tmp_path / "a").exists()


@LONG
def test_an_error_of_a_child_has_its_kind_and_its_shard(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^shard [12]/2: dt = 3 is too long after step 0.* Fix: use dt = ") as caught:
        lab.run_jobs(simulation(flow=replace(FLOW, dt=3.0)), 2, out=tmp_path / "a", device="cpu")
    assert type(caught.value) is InputError
    assert not children()
    assert not (tmp_path / "a").exists()


@LONG
def test_a_child_of_another_device_has_a_kind_too(tmp_path: Path) -> None:
    with pytest.raises(NoResultError, match=r"^shard [12]/2: the null device computes nothing"):
        lab.run_jobs(simulation(host_fft=False), 2, out=tmp_path / "a", device="null")


@pytest.mark.parametrize(
    ("more", "jobs", "said"),
    [
        ({}, 0, "`jobs=` is 0. Fix: use 1 to 4096 processes."),
        ({}, 5000, "`jobs=` is 5000. Fix: use 1 to 4096 processes."),
        ({"shard": lab.Shard(1, 2)}, 2, "`jobs=` makes shards itself, and `shard=` names one."),
        ({"trace": "t"}, 2, "`trace=` is of one process, and `jobs=` starts several."),
        ({"steps": 0}, 2, "`steps=` is 0."),
        (
            {"host_fft": False, "hash_every": 5, "states_every": 10},
            2,
            (
                "`jobs=` makes shards, and a shard keeps no states on the way. "
                "Fix: leave `states_every=` away, or run the whole without `jobs=`."
            ),
        ),
    ],
)
def test_what_cannot_be_shared_out_is_told_before_a_process(
    tmp_path: Path, more: dict[str, Any], jobs: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_jobs, "_start", lambda *_: pytest.fail("a process was started"))
    with pytest.raises(InputError) as caught:
        lab.run_jobs(simulation(**more), jobs, out=tmp_path / "a", device="cpu")
    assert said in str(caught.value)
    assert not [*tmp_path.iterdir()]


def test_a_place_that_is_not_free_is_told_before_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_jobs, "_start", lambda *_: pytest.fail("a process was started"))
    lab.simulate(simulation(steps=10), device="cpu", out=tmp_path / "a")
    with pytest.raises(FileError, match="holds a finished run of `dashi flow simulate` with other settings"):
        lab.run_jobs(simulation(), 2, out=tmp_path / "a", device="cpu")


@LONG
def test_a_killed_process_is_told_and_the_same_again_is_the_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = local_jobs._start

    def killed(job: Any, jobs: int) -> Any:
        child = real(job, jobs)
        if job.request.shard.index == 2:
            child.kill()
        return child

    monkeypatch.setattr(local_jobs, "_start", killed)
    with pytest.raises(ShardError, match=r"the process of shard 2/2 was ended by SIGKILL, before its work was done"):
        lab.run_jobs(simulation(), 2, out=tmp_path / "a", device="cpu")
    monkeypatch.undo()
    lab.run_jobs(simulation(), 2, out=tmp_path / "a", device="cpu")
    lab.simulate(simulation(), out=tmp_path / "b", device="cpu")
    assert compared(tmp_path / "a") == compared(tmp_path / "b")
    assert not children()


@LONG
def test_ctrl_c_leaves_no_process_and_the_same_again_goes_on(tmp_path: Path, heard: Heard) -> None:
    asked = simulation(flow=Flow(64, dt=0.005), steps=6000, frame_every=100, hash_every=500, seeds=range(2))
    checkpoints = [tmp_path / "a-shards" / name / "checkpoint.npz" for name in ("1-of-2", "2-of-2")]
    ended = threading.Event()

    def press() -> None:
        while not ended.wait(0.01):
            if all(path.exists() for path in checkpoints):
                os.kill(os.getpid(), signal.SIGINT)
                return

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        with pytest.raises(Interrupted):
            lab.run_jobs(asked, 2, out=tmp_path / "a", device="cpu")
    finally:
        ended.set()
        pressing.join()
    assert not children()
    assert not (tmp_path / "a").exists()
    assert sorted(path.name for path in (tmp_path / "a-shards").iterdir()) == ["1-of-2", "2-of-2"]
    lab.run_jobs(asked, 2, out=tmp_path / "a", device="cpu", events=heard)
    assert any(remark.startswith("going on after") for remark in heard.remarks)
    lab.simulate(asked, out=tmp_path / "b", device="cpu")
    assert compared(tmp_path / "a") == compared(tmp_path / "b")


@LONG
def test_children_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    text = (
        "from dashi import lab; from dashi.flow import Flow\n"
        "request = lab.SimulateRequest(flow=Flow(64, dt=0.005), steps=10**6, seeds=range(2), host_fft=True)\n"
        f"lab.run_jobs(request, 2, out={str(tmp_path / 'a')!r}, device='cpu')\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", text])

    def running() -> list[str]:
        found = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in found.splitlines()]
        return [
            pid for pid, above, words in rows if "shards._child" in words and (above == str(parent.pid) or pid in mine)
        ]

    mine: set[str] = set()
    try:
        _until(lambda: len(running()) == 2 and (tmp_path / "a-shards" / "2-of-2" / ".dashi-run").exists())
        mine |= set(running())
    finally:
        parent.kill()
        parent.wait()
    _until(lambda: not running())


def _until(holds: Any, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)
