"""A program: runs a command again and again in children that are killed, each before another file-system operation.

    python killed_at.py CASE VARIANT STEP [FIRST]

Tries every STEP-th operation, from number FIRST on (1), so that several processes can share a sweep. Whatever the child
left, whoever reads it sees one whole run, and the same command, run again, is not refused, gives the same results and
leaves nothing but them. Prints what did not hold, as JSON.

It is a program of its own because it forks: nothing here opens a device that does not outlive that, or starts threads.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.core.certificates._certificate import read_certificate
from dashi.core.observations import png  # noqa: F401 - the same
from dashi.core.rollouts._state_files import state_digest
from dashi.flow.evaluation._fits import load_fit
from dashi.flow.evaluation.files import load_evaluation
from dashi.io._run_mark import MARK
from dashi.io._run_reading import is_unfinished, run_file
from dashi.io._whole_folder import Owner, whole_folder
from dashi.io.metrics import read_metrics
from dashi.lab import (  # noqa: F401 - imported once, before the forks
    decoded_rollouts,
    evaluations,
    fits,
    rollouts,
    simulations,
)
from dashi.lab.demos import wave  # noqa: F401 - the same

_ENDED = 7
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_EVENTS = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate", "os.symlink", "os.link")
PART = (
    "flow simulate --n 8 --set peak=2 --steps 4 --frame-every 2 --look-every 2 --hash-every 2 --members 3 --device cpu"
)
FIT = "--n 16 --train-steps 8 --frame-every 2 --spin-up 2 --k-cut 3 --seeds 1 --set peak=2 --baseline persistence"


@dataclass(frozen=True)
class Case:
    """A command, what must be there before it, and what it may leave besides its results."""

    before: tuple[str, ...]
    command: str
    other: str
    """What is added to the command for a finished run with other settings."""
    out: str
    may_stay: tuple[str, ...] = ()
    digest: Callable[[Path], Any] = lambda out: run_digest(out)
    """Of the results, found as readers find them."""


def run_digest(out: Path) -> Any:
    """The hashes of a run, which its metrics and its certificate must agree on; None where there is no finished run."""
    if not run_file(out, "metrics.json").exists() or is_unfinished(out):
        return None
    hashes = [one.hash for one in read_metrics(run_file(out, "metrics.json")).hashes]
    certificate = read_certificate(run_file(out, "certificate.json"))
    assert hashes == [one.hash for one in certificate.hashes], "two runs are mixed"
    for record in certificate.states.files if certificate.states else ():
        states = np.load(run_file(out, "states") / Path(record.file).name)
        assert state_digest(states, 128) == record.digest, "states of two runs are mixed"
    return hashes


def score_digest(out: Path) -> Any:
    file = run_file(out, "evaluation.json")
    if not file.exists() or is_unfinished(out):
        return None
    seeds = load_evaluation(run_file(out, "evaluation-test.npz")).seeds
    assert f"--eval-seed {seeds[0]} " in json.loads(file.read_text())["command"], "two evaluations are mixed"
    return seeds


def in_place(out: Path) -> Path:
    """A folder that is replaced as a whole; it may have stepped aside, from where the next run brings it back."""
    return out if out.exists() else next(iter(out.parent.glob(f".{out.name}-old-*/{out.name}")), out)


def demo_digest(out: Path) -> Any:
    file = in_place(out) / "summary.json"
    return json.loads(file.read_text())["hash"] if file.exists() else None


def fit_digest(out: Path) -> Any:
    """What was fitted to what; times that it took are in the file too."""
    if not out.exists():
        return None
    fit = load_fit(out)
    assert fit.training is not None
    return fit.finished, fit.training.seeds, fit.training.energy, [*fit.models]


def file_digest(out: Path) -> Any:
    return out.read_bytes() if out.exists() else None


def whole(*words: str) -> None:
    """What `dashi flow rollout --compat v4` does with its folder."""
    text = words[1] if len(words) > 1 else "same"
    owner = Owner("whole", {"metrics.json", "state.npz"}, settings={"text": text}, overwrite="--overwrite" in words)
    with whole_folder(Path("run"), owner) as folder:
        for name in ("metrics.json", "state.npz"):
            (folder / name).write_text(text)


CASES = {
    "rollout": Case(
        (), "rollout --z0 z0.npz --A A.npz --steps 8 --hash-every 2 --sheet-every 2 --checkpoint-every 4 --device cpu "
        "--states-every 2 --certificate c.json --metrics m.json --out run", "--b b.npz", "run",
    ),
    "simulate": Case(
        (), "flow simulate --n 8 --set peak=2 --steps 4 --frame-every 2 --look-every 2 --device cpu --out run "
        "--states-every 2", "--seed 3", "run",
    ),
    "shard": Case((), f"{PART} --shard 2/2 --out run", "--seed 3", "run"),
    "merge": Case(
        (f"{PART} --shard 1/2 --out a", f"{PART} --shard 2/2 --out b"), "merge a b --out run", "--overwrite", "run",
        digest=lambda out: run_digest(in_place(out)),
    ),
    "decode": Case(
        ("flow simulate --n 16 --set peak=2 --steps 6 --frame-every 2 --host-fft --device cpu --out flow",),
        "flow rollout --fit-from flow --k-cut 2 --steps 2 --decode-every 2 --no-stage-times --device cpu "
        "--observer visualize --out run", "--ridge 0.5", "run",
    ),
    "beside": Case(
        ("flow simulate --n 16 --set peak=2 --steps 6 --frame-every 2 --host-fft --device cpu --out flow",),
        "flow rollout --fit-from flow --k-cut 2 --steps 2 --decode-every 2 --no-stage-times --device cpu "
        "--decode-device cpu --observer snapshots --out run", "--ridge 0.5", "run",
    ),
    "evaluate": Case(
        (f"flow fit {FIT} --validation-seeds 0 --host-fft --device cpu --out m.npz",),
        "flow evaluate m.npz --seeds 1 --eval-steps 8 --device cpu --host-fft --out run", "--eval-seed 40", "run",
        digest=score_digest,
    ),
    "fit": Case(
        (), f"flow fit {FIT} --validation-seeds 0 --host-fft --device cpu --out m.npz", "--train-seed 5", "m.npz",
        ("m.stopped*.npz",), fit_digest,
    ),
    "demo": Case(
        (), "demo --rollout --steps 100 --device cpu --out run", "--steps 200", "run", ("run-unfinished*",),
        demo_digest,
    ),
    "sheet": Case((), "sheet view sheet.npy --device cpu --out s.png", "--scale linear", "s.png", (), file_digest),
    "whole": Case((), "whole", "other", "run", (), lambda out: file_digest(in_place(out) / "metrics.json")),
}  # fmt: skip


def call(words: list[str]) -> Any:
    """The command in this process: its exit code, and what it said."""
    if words[0] == "whole":
        try:
            whole(*words)
        except Exception:
            return 3, traceback.format_exc()
        return 0, ""
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


def child(folder: Path, action: Callable[[], int]) -> int:
    """What an action gives in a child that works in a folder; -9 if it was killed."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        os.chdir(folder)
        code = action()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def dies_before(number: int) -> None:
    """Kills this process before the file-system operation of that number in its folder."""
    here, done = os.getcwd(), 0

    def hook(event: str, words: tuple[Any, ...]) -> None:
        nonlocal done
        if event == "open":
            path, _, flags = words
            if not isinstance(path, str | bytes) or not flags & _WRITES:
                return
        elif event not in _EVENTS:
            return
        relative = words[-1] if event in ("os.remove", "os.rmdir") else -1
        place = os.path.abspath(os.fsdecode(words[0])) if isinstance(words[0], str | bytes) else here
        if relative == -1 and not place.startswith(here):
            return
        done += 1
        if done == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def good(words: list[str]) -> Callable[[], int]:
    def action() -> int:
        code, said = call(words)
        if code:
            print(words, said, file=sys.stderr)
        return code

    return action


def killed(words: list[str], number: int) -> Callable[[], int]:
    def action() -> int:
        dies_before(number)
        code, said = call(words)
        if code:
            print(said, file=sys.stderr)
        return code or _ENDED

    return action


def listed(folder: Path, may_stay: tuple[str, ...]) -> list[str]:
    """All names below a folder; the first frame of a film stands for how many there are."""
    names = [path.relative_to(folder) for path in folder.rglob("*")]
    return sorted(str(name) for name in names if not any(fnmatchcase(name.parts[0], kind) for kind in may_stay))


def hidden(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob(".*") if path.name != MARK)


def prepared(case: Case, variant: str, room: Path) -> tuple[Path, list[str]]:
    """The folder that a command finds, and its words."""
    start = room / "start"
    start.mkdir()
    rng = np.random.default_rng(5)
    turn, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    np.savez(start / "A.npz", A=turn.astype(np.float32))
    np.savez(start / "b.npz", b=rng.standard_normal(6).astype(np.float32))
    np.savez(start / "z0.npz", z0=rng.standard_normal(6).astype(np.float32))
    np.save(start / "sheet.npy", rng.random((4, 4)).astype(np.float32))
    words = case.command.split()
    first = {"fresh": [], "same": [words], "over": [[*words, *case.other.split()]]}[variant]
    for line in [*(before.split() for before in case.before), *first]:
        assert child(start, good(line)) == 0, line
    overwrites = variant == "over" and words[0] != "sheet" and words[1:2] != ["fit"]
    return start, [*words, *(["--overwrite"] if overwrites else [])]


def sweep(name: str, variant: str, step: int, first: int, room: Path) -> dict[str, Any]:
    """Tries the operations of a command; how many there are, and what did not hold."""
    case = CASES[name]
    start, words = prepared(case, variant, room)
    end = room / "end"
    shutil.copytree(start, end, symlinks=True)
    assert child(end, good(words)) == 0
    names, new = listed(end, case.may_stay), case.digest(end / case.out)
    old = case.digest(start / case.out)
    wrong: list[str] = []
    number, tried = first, 0
    while True:
        work = room / f"at-{number}"
        shutil.copytree(start, work, symlinks=True)
        code = child(work, killed(words, number))
        if code != -signal.SIGKILL:
            if code != _ENDED:
                wrong.append(f"{number}: ended with {code}")
            return {"operations": number, "tried": tried, "wrong": wrong}
        tried += 1

        def say(what: str, number: int = number) -> None:
            wrong.append(f"{number}: {what}")

        try:
            left = case.digest(work / case.out)
            if left != old and left != new:
                say("whoever reads sees neither the run before nor the new one")
        except Exception as error:
            say(f"whoever reads fails: {error}")
        goes_on = ["--resume"] if [*work.glob("run/**/checkpoint.npz")] and name in ("rollout", "simulate") else []
        again = [word for word in words if not (goes_on and word == "--overwrite")]
        if child(work, good([*again, *goes_on])) != 0:
            say("the same command is refused")
        elif case.digest(work / case.out) != new:
            say("other results")
        elif listed(work, case.may_stay) != names or hidden(work):
            say(f"left behind: {sorted({*listed(work, case.may_stay)} ^ {*names}) or hidden(work)}")
        shutil.rmtree(work)
        number += step


if __name__ == "__main__":
    os.fsync = lambda _: None  # kill -9 does not lose what the system has
    sys.modules["matplotlib.figure"] = None  # type: ignore[assignment] - pictures are not what this is about
    os.environ["DASHI_CACHE_DIR"] = tempfile.mkdtemp(prefix="dashi-killed-")
    with tempfile.TemporaryDirectory() as place:
        step, first = int(sys.argv[3]), int((sys.argv[4:] or [1])[0])
        found = sweep(sys.argv[1], sys.argv[2], step, first, Path(place))
    shutil.rmtree(os.environ["DASHI_CACHE_DIR"])
    json.dump(found, sys.stdout)
