"""Segments that are repeated apart: by several processes with the result of one, or a sample of them."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

import dashi
from dashi import lab
from dashi.core.certificates._certificate import document_digest
from dashi.core.certificates._segments import draw_segments
from dashi.core.rollouts._state_files import state_digest, state_name
from dashi.errors import (
    CertificateError,
    DashiError,
    DeviceNotFoundError,
    FileError,
    InputError,
    Interrupted,
    NoResultError,
    WorkerError,
)
from dashi.lab import _segment_farm as farm
from dashi.lab import _segment_worker as worker

D, STEPS, HASHED, EVERY = 8, 40, 5, 10
SEGMENTS = STEPS // EVERY


@pytest.fixture(autouse=True)
def _certified(write_inputs: Callable[[int], None]) -> None:
    """The folder of a run with four segments, and another that starts elsewhere."""
    write_inputs(D)
    roll("run")


def roll(out: str, **asked: Any) -> None:
    plain: dict[str, Any] = {"z0": "z0.npz", "A": "A.npz", "steps": STEPS, "hash_every": HASHED, "states_every": EVERY}
    lab.rollout(lab.RolloutRequest(**{**plain, **asked}), device="cpu", out=out)


def verify(out: str = "run", *, device: Any = "cpu", **asked: Any) -> lab.Verification:
    return lab.verify(lab.VerifyRequest(certificate=out, **asked), device=device)


def edit(change: Callable[[dict[str, Any]], Any], *, sign: bool = True) -> None:
    """Changes the certificate and, as its maker could, gives it a new digest."""
    file = Path("run/certificate.json")
    document = json.loads(file.read_text())
    change(document)
    if sign:
        document["digest"] = document_digest(document)
    file.write_text(json.dumps(document))


def state_file(step: int, out: str = "run") -> Path:
    return Path(out, "states", state_name(step))


def forge(step: int, values: Any) -> None:
    """Puts other states after a step, and makes all that the certificate says of them fit."""
    np.save(state_file(step), values)
    digest = state_digest(values, 128)

    def change(document: dict[str, Any]) -> None:
        document["states"]["files"][step // EVERY - 1]["digest"] = digest
        document["hashes"][step // HASHED - 1]["hash"] = digest

    edit(change)


def processes() -> set[int]:
    """Children of this process that are there."""
    found = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(word) for file in found for word in file.read_text().split()}


class ThreadWorker:
    """A worker of the farm whose process is a thread: it runs what a process runs, and starts at once."""

    def __init__(self, device: str, jobs: int, answers: SimpleQueue[tuple[Any, Any]]) -> None:
        self.device, self.asked, self._answers = device, None, answers
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def begin(self, errand: farm.Errand) -> None:
        self._lines.put(json.dumps({**vars(errand), "device": self.device}).encode())

    def ask(self, at: int, segment: Any) -> None:
        self.asked = at
        self._lines.put(json.dumps({"segment": segment.number}).encode())

    def kill(self) -> None:
        self._lines.put(b"")

    def wait(self) -> None:
        self._thread.join()

    def write(self, answer: bytes) -> None:
        self._answers.put((self, json.loads(answer)))

    def flush(self) -> None:
        pass

    def _run(self) -> None:
        pipe: Any = self
        try:
            worker._work(self._lines, pipe)  # pyright: ignore[reportPrivateUsage]
        except DashiError as error:
            self._answers.put((self, worker._error_answer(error)))  # pyright: ignore[reportPrivateUsage]
        except json.JSONDecodeError:  # killed
            pass


@pytest.fixture(params=["threads", pytest.param("processes", marks=pytest.mark.long)])
def apart(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In threads instead of processes, which are quicker to start; with `--long` in processes too."""
    if request.param == "threads":
        monkeypatch.setattr(farm, "_Worker", ThreadWorker)


# What several processes find is what one finds


def shown(result: lab.Verification) -> tuple[Any, ...]:
    return result.checks, result.segments, result.repeated, result.verified, result.sentences


def test_two_processes_find_what_one_does() -> None:
    before = processes()
    one, two = verify(), verify(jobs=2)
    assert shown(one) == shown(two)
    assert (two.same, two.segments, two.verified, two.missed_with_probability) == (True, SEGMENTS, SEGMENTS, 0)
    assert two.sentences[0].endswith(": all 8 hashes are the same, in 4 segments")
    assert processes() == before


@pytest.mark.usefixtures("apart")
def test_the_first_interval_that_differs_is_named_whoever_finds_it() -> None:
    forge(20, np.ones((1, D), np.float32))  # both segments at it are at fault
    one, two = verify(), verify(jobs=3)
    assert shown(one) == shown(two)
    assert (two.same, two.verified) == (False, 1)
    (check,) = two.checks
    assert (check.hashes, check.steps) == (3, 15)
    assert check.difference is not None
    assert (check.difference.first, check.difference.last) == (15, 20)
    assert "DIFFERS between step 15 and step 20" in two.sentences[0]


def test_a_claim_between_states_that_differs_is_named_too() -> None:
    edit(lambda d: d["hashes"][4].update(hash="ab" * 16))  # after step 25
    result = verify()
    assert (result.same, result.verified, result.checks[0].steps) == (False, 2, 20)


def test_every_certificate_verifies_with_jobs() -> None:
    roll("plain", states_every=None)
    result = verify("plain", jobs=2)
    assert (result.same, result.segments, result.verified) == (True, 1, 1)
    assert result.sentences[0].endswith(": all 8 hashes are the same")


def test_more_processes_than_segments_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start(device: str, *rest: Any) -> ThreadWorker:
        started.append(device)
        return ThreadWorker(device, *rest)

    monkeypatch.setattr(farm, "_Worker", start)
    assert verify(jobs=64, sample=2, sample_seed=1).same
    assert started == ["cpu", "cpu"]


@pytest.mark.long
def test_devices_are_had_in_turn(vulkan: Any) -> None:
    del vulkan
    result = dashi.verify("run", devices=["cpu", "vulkan:0"])
    assert result.same
    assert set(result.checks[0].device.split(", ")) <= {"cpu", "vulkan:0"}
    assert (result.checks[0].hashes, result.verified) == (8, SEGMENTS)


def test_an_open_device_repeats_segments_by_itself() -> None:
    with dashi.open("cpu") as device:
        assert verify(device=device).verified == SEGMENTS
        with pytest.raises(InputError, match=r"several processes open devices of their own. Fix: name a device"):
            verify(device=device, jobs=2)


# Samples


def test_a_sample_repeats_so_many_segments_and_says_what_it_can_miss() -> None:
    result = verify(sample=1, sample_seed=7)
    assert (result.segments, result.repeated, result.verified, result.sample_seed) == (4, 1, 1, 7)
    assert result.missed_with_probability == 0.75
    assert result.checks[0].hashes == EVERY // HASHED
    assert result.sentences[0].endswith(": all 2 hashes are the same, in 1 of 4 segments")
    assert result.remarks == [
        "1 of 4 segments were drawn, by the seed 7: a fault in one segment alone is missed with probability 0.75"
    ]
    assert not verify(sample=4, sample_seed=7).missed_with_probability


def test_a_seed_that_nobody_knows_is_drawn_and_told() -> None:
    seeds = {verify(sample=2).sample_seed for _ in range(3)}
    assert len(seeds) == 3
    assert all(isinstance(seed, int) and 0 <= seed < 1 << 53 for seed in seeds)
    seed = seeds.pop()
    assert verify(sample=2, sample_seed=seed).sample_seed == seed


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("apart")
def test_a_sample_finds_a_fault_if_and_only_if_it_draws_it(jobs: int) -> None:
    edit(lambda d: d["hashes"][4].update(hash="ab" * 16))  # in the third segment
    for seed in range(6 // jobs):
        drawn = 2 in draw_segments(SEGMENTS, 2, seed)
        assert verify(jobs=jobs, sample=2, sample_seed=seed).same is not drawn


def test_states_that_no_drawn_segment_touches_are_not_read() -> None:
    seed = next(seed for seed in range(100) if draw_segments(SEGMENTS, 1, seed) == (0,))
    state_file(40).unlink()
    state_file(20).write_bytes(b"")
    assert verify(sample=1, sample_seed=seed).same
    with pytest.raises(FileError, match="the state after step 20 cannot be used"):
        verify(sample=4, sample_seed=seed)


# What is refused

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no job": ({"jobs": 0}, "`jobs=` is 0. Fix: use 1 to 1024."),
    "very many": ({"jobs": 10**6}, "`jobs=` is 1000000. Fix: use 1 to 1024."),
    "fewer jobs than devices": (
        {"jobs": 1, "devices": ("cpu", "null")}, "`jobs=1` uses 1 of 2 devices. Fix: use `jobs=2`, or more.",
    ),
    "a device that is no name": ({"devices": (7,)}, "Fix: name devices: `devices="),
    "a seed alone": ({"sample_seed": 7}, "`sample_seed=` draws a sample, and none is asked for. Fix: give `sample=`"),
    "a sample too large": ({"sample": 5}, "`sample=` is 5, and the certificate has 4 segments. Fix: ask for 1 to 4"),
    "two ways": ({"against": "cpu", "jobs": 2}, "`against=` repeats the whole run on two devices. Fix: leave `jobs="),
    "a sample against": ({"against": "cpu", "sample": 1}, "`against=` repeats the whole run on two devices."),
    "a trace": ({"jobs": 2, "trace": "t.json"}, "a trace is of one process. Fix: leave `trace=` away, or `jobs=`."),
    "text": ({"jobs": "2"}, "`jobs=` is '2', and not a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused(name: str) -> None:
    asked, text = REFUSED[name]
    with pytest.raises(InputError) as refused:
        verify(**asked)
    assert text in str(refused.value)


FAULTS: dict[str, tuple[Callable[[], Any], type[DashiError], str]] = {
    "an edited state": (
        lambda: np.save(state_file(20), np.load(state_file(20)) + np.float32(1e-6)), CertificateError,
        "is not the state after step 20 of this certificate: its digest is other",
    ),
    "an edited digest": (
        lambda: edit(lambda d: d["states"]["files"][1].update(digest="ab" * 16)), CertificateError,
        "the digest of the state after step 20 is not its hash",
    ),
    "an edited digest, and its hash": (
        lambda: edit(lambda d: (
            d["states"]["files"][1].update(digest="ab" * 16), d["hashes"][3].update(hash="ab" * 16),
        )), CertificateError, "is not the state after step 20 of this certificate: its digest is other",
    ),
    "an edited hash, unsigned": (
        lambda: edit(lambda d: d["hashes"][3].update(hash="ab" * 16), sign=False), CertificateError,
        "was changed after it was made",
    ),
    "a swapped pair of states": (
        lambda: swap(state_file(20), state_file(30)), CertificateError, "is not the state after step 20 of this",
    ),
    "a swapped pair of records": (
        lambda: edit(lambda d: swap_files(d["states"]["files"])), CertificateError, "is not the state after step 20 of",
    ),
    "a state of another run": (
        lambda: (roll("other", z0="other.npz"), state_file(20).write_bytes(state_file(20, "other").read_bytes())),
        CertificateError, "is not the state after step 20 of this certificate",
    ),
    "a missing file": (lambda: state_file(20).unlink(), FileError, "the state after step 20 is not there"),
    "the missing last file": (lambda: state_file(40).unlink(), FileError, "the state after step 40 is not there"),
    "all files missing": (
        lambda: Path("run/states").rename("gone"), FileError, "the state after step 10 is not there",
    ),
}  # fmt: skip


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def swap_files(records: list[dict[str, Any]]) -> None:
    records[1]["file"], records[2]["file"] = records[2]["file"], records[1]["file"]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_states_that_are_not_those_of_the_certificate_are_found_and_named(fault: str, jobs: int) -> None:
    np.savez("other.npz", z0=np.ones(D, np.float32))
    spoil, kind, text = FAULTS[fault]
    spoil()
    with pytest.raises(kind) as refused:
        verify(jobs=jobs)
    assert text in str(refused.value)
    assert " Fix: " in str(refused.value)


def test_a_state_of_another_run_that_is_claimed_is_found_by_repeating() -> None:
    np.savez("other.npz", z0=np.ones(D, np.float32))
    roll("other", z0="other.npz")
    forge(20, np.load(state_file(20, "other")))
    result = verify()
    assert (result.same, result.verified) == (False, 1)


@pytest.mark.usefixtures("apart")
def test_a_state_that_changes_meanwhile_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever repeats a segment holds its states to the certificate once more."""
    from dashi.core.certificates import _kept_states as kept_states

    def require(self: Any, *_: Any) -> None:
        np.save(state_file(20), np.zeros((1, D), np.float32))

    monkeypatch.setattr(kept_states.KeptStateReader, "require", require)
    for jobs in (1, 2):
        with pytest.raises(CertificateError, match="is not the state after step 20 of this certificate"):
            verify(jobs=jobs)


@pytest.mark.usefixtures("apart")
def test_verifying_writes_nothing() -> None:
    def there() -> dict[Path, tuple[bytes, int]]:
        return {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in Path().rglob("*") if p.is_file()}

    before = there()
    verify(jobs=2, sample=3)
    assert there() == before


# Processes that end


@pytest.mark.usefixtures("apart")
def test_errors_of_a_process_are_those_of_the_library() -> None:
    with pytest.raises(NoResultError, match="gave no hashes to compare"):
        verify(device="null", jobs=2)


@pytest.mark.long
def test_a_device_that_is_not_there_is_told_as_without_processes() -> None:
    with pytest.raises(DeviceNotFoundError, match=r"Fix: "):
        verify(device="vulkan:77", jobs=2)


def spoiled(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """Processes that do something else."""
    monkeypatch.setattr(farm, "_COMMAND", ("-c", words))


def test_a_process_that_dies_is_an_error_that_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    before = processes()
    spoiled(monkeypatch, "import os; input(); input(); os.kill(os.getpid(), 9)")
    with pytest.raises(
        WorkerError, match=r"steps 0 to 10 on cpu was killed by signal 9. Fix: run it again, with fewer"
    ):
        verify(jobs=2)
    spoiled(monkeypatch, "import sys; sys.exit('no room left')")
    with pytest.raises(WorkerError, match=r"ended with exit code 1 \(no room left\)"):
        verify(jobs=2)
    assert processes() == before


def test_a_process_that_has_no_place_for_its_words_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(farm.tempfile, "TemporaryFile", full)
    said = r"^a process cannot be started: No space left on device\. Fix: use fewer `jobs=`\.$"
    with pytest.raises(WorkerError, match=said):
        verify(jobs=2)


@pytest.mark.long
def test_what_a_process_prints_besides_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled(
        monkeypatch,
        "import runpy, dashi.core.certificates._certified_run as r; real = r.CertifiedRun.check\n"
        "def check(*words): print('hello'); return real(*words)\n"
        "r.CertifiedRun.check = check; runpy.run_module('dashi.lab._segment_worker', run_name='__main__')",
    )
    assert verify(jobs=2).same


def slow(steps: int) -> None:
    """A run that takes long to repeat: what its certificate claims is made up."""
    values, half = np.load(state_file(10)), steps // 2
    claims, records = list[Any](), list[Any]()
    for step in (half, steps):
        np.save(state_file(step), values)
        digest = state_digest(values, 128)
        claims.append({"step": step, "hash": digest})
        records.append({"step": step, "file": f"states/{state_name(step)}", "digest": digest})
    states = {"every": half, "bits": 128, "files": records}
    edit(lambda d: d.update(steps=steps, hash_every=half, hashes=claims, states=states))


def test_ctrl_c_ends_processes_that_answer_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = processes()
    spoiled(monkeypatch, "import time; time.sleep(600)")
    interrupted_after(0.3)
    assert processes() == before


@pytest.mark.long
def test_ctrl_c_leaves_no_process_behind() -> None:
    slow(40_000_000)
    before = processes()
    interrupted_after(2.5)
    assert processes() == before


def interrupted_after(seconds: float) -> None:
    """Ctrl-C comes while two processes verify."""
    threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(Interrupted):
        verify(jobs=2)
    assert time.monotonic() - began < 60


@pytest.mark.long
def test_processes_end_with_whoever_asked_them_also_when_that_is_killed() -> None:
    slow(40_000_000)
    words = "import dashi; dashi.verify('run', jobs=2, device='cpu')"
    parent = subprocess.Popen([sys.executable, "-c", words], stderr=subprocess.DEVNULL)
    children: set[int] = set()
    deadline = time.monotonic() + 60
    while len(children) < 2 and time.monotonic() < deadline:
        found = Path(f"/proc/{parent.pid}/task").glob("*/children")
        children = {int(word) for file in found for word in file.read_text().split()}
        time.sleep(0.05)
    assert len(children) == 2
    time.sleep(1)
    parent.kill()
    parent.wait()
    while any(alive(pid) for pid in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in children)


def alive(pid: int) -> bool:
    """Whether a process is there, and not merely waited for by nobody."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.usefixtures("apart")
def test_progress_counts_the_steps_of_all(heard: Any) -> None:
    request = lab.VerifyRequest(certificate="run", jobs=2)
    lab.verify(request, device="cpu", events=heard)
    assert ("2 processes", STEPS, STEPS) in heard.parts
    assert ("kept states", SEGMENTS, SEGMENTS) in heard.parts
    assert heard.remarks == ["repeating 40 steps of linear in 4 segments, 2 at the same time, on cpu"]
