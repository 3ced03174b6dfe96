"""A program: a command that is killed before a file-system operation, at any of them, and what becomes of it.

    python killed_at.py CASE VARIANT STEP [FIRST]   kills a child before every STEP-th operation, from number FIRST on
    python killed_at.py CASE VARIANT states         before every operation, by the folders that kills would leave
    python killed_at.py CASE VARIANT compare        holds those folders to what killed children leave
    python killed_at.py all [CASE...]               every case and variant before every operation; a line for each

Whatever a killed child left, whoever reads it sees one whole run, and the same command, run again, is not refused,
gives the same results and leaves nothing but them. Prints what did not hold, as JSON.

A process that is killed leaves its folder as it is, and nothing else: `states` runs the command once, and copies the
folder before each operation, while no other thread begins one. So a sweep takes one run for each folder, and folders
with the same names and bytes (of operations that changed nothing) are tried once.

It is a program of its own because it forks: nothing here opens a device that does not outlive that, or starts threads.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import typer.testing
from typer.main import get_command
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
VARIANTS = ("fresh", "same", "over")
"""No run before; a finished one of the same settings; one of others."""
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


def before_each(action: Callable[[], None]) -> None:
    """From now on, `action` is called before each file-system operation in the folder of this process."""
    here = os.getcwd()

    def hook(event: str, words: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = words
            if not isinstance(path, str | bytes) or not flags & _WRITES:
                return
        elif event not in _EVENTS:
            return
        relative = words[-1] if event in ("os.remove", "os.rmdir") else -1
        place = os.path.abspath(os.fsdecode(words[0])) if isinstance(words[0], str | bytes) else here
        if relative != -1 or place == here or place.startswith(here + os.sep):
            action()

    sys.addaudithook(hook)


def dies_before(number: int) -> None:
    """Kills this process before the file-system operation of that number in its folder."""
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done == number:
            os.kill(os.getpid(), signal.SIGKILL)

    before_each(count)


def copies_before_each(states: Path) -> None:
    """Copies the folder of this process to `states`/1, 2, ... before each file-system operation in it."""
    here, lock, done, copying = Path.cwd(), threading.Lock(), 0, 0

    def copy() -> None:
        nonlocal done, copying
        if threading.get_ident() == copying:  # taking away what could not be copied are operations, too
            return
        with lock:
            done, copying = done + 1, threading.get_ident()
            for attempt in range(10):  # an operation that another thread has begun may end meanwhile
                try:
                    shutil.copytree(here, states / str(done), symlinks=True)
                    break
                except (OSError, shutil.Error):
                    shutil.rmtree(states / str(done))
                    if attempt == 9:
                        raise
            copying = 0

    before_each(copy)


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


def copied(words: list[str], states: Path) -> Callable[[], int]:
    def action() -> int:
        copies_before_each(states)
        return good(words)()

    return action


def warm(words: list[str]) -> Callable[[], int]:
    """Like `good`; besides, writes the names of all modules that are there in the end to the file `modules`."""

    def action() -> int:
        code = good(words)()
        Path("modules").write_text("\n".join(sys.modules))
        return code

    return action


def tree_digest(folder: Path, contents: bool = True) -> str:
    """Of all names below a folder, and of what files and links hold."""
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        held = b"/"
        if path.is_symlink():
            held = os.fsencode(os.readlink(path))
        elif path.is_file():
            held = path.read_bytes() if contents else b""
        digest.update(repr((str(path.relative_to(folder)), held)).encode())
    return digest.hexdigest()


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


class Sweep:
    """A command of a case, and its results where nothing kills it."""

    def __init__(self, name: str, variant: str, room: Path) -> None:
        self.name, self.case, self.room = name, CASES[name], room
        self.start, self.words = prepared(self.case, variant, room)
        end = room / "end"
        shutil.copytree(self.start, end, symlinks=True)
        assert child(end, warm(self.words)) == 0
        for module in (end / "modules").read_text().split():  # once, and not in every child
            if module not in sys.modules and module.split(".")[0] not in ("__mp_main__", "matplotlib"):
                importlib.import_module(module)
        (end / "modules").unlink()
        self.names, self.new = listed(end, self.case.may_stay), self.case.digest(end / self.case.out)
        self.old = self.case.digest(self.start / self.case.out)

    def wrong(self, work: Path) -> list[str]:
        """What does not hold of the folder that a killed command left: for its readers, and when it is run again."""
        wrong: list[str] = []
        try:
            left = self.case.digest(work / self.case.out)
            if left != self.old and left != self.new:
                wrong.append("whoever reads sees neither the run before nor the new one")
        except Exception as error:
            wrong.append(f"whoever reads fails: {error}")
        resumable = [*work.glob("run/**/checkpoint.npz")] and self.name in ("rollout", "simulate")
        again = [word for word in self.words if not (resumable and word == "--overwrite")]
        if child(work, good([*again, *(["--resume"] if resumable else [])])) != 0:
            wrong.append("the same command is refused")
        elif self.case.digest(work / self.case.out) != self.new:
            wrong.append("other results")
        elif listed(work, self.case.may_stay) != self.names or hidden(work):
            wrong.append(f"left behind: {sorted({*listed(work, self.case.may_stay)} ^ {*self.names}) or hidden(work)}")
        return wrong

    def by_kills(self, step: int, first: int) -> dict[str, Any]:
        """Kills a child before every `step`-th operation: how many there are, and what did not hold."""
        wrong: list[str] = []
        number, tried = first, 0
        while True:
            work = self.room / f"at-{number}"
            shutil.copytree(self.start, work, symlinks=True)
            code = child(work, killed(self.words, number))
            if code != -signal.SIGKILL:
                if code != _ENDED:
                    wrong.append(f"{number}: ended with {code}")
                return {"operations": number, "tried": tried, "wrong": wrong}
            tried += 1
            wrong += [f"{number}: {what}" for what in self.wrong(work)]
            shutil.rmtree(work)
            number += step

    def states(self) -> list[Path]:
        """The folders that children leave which are killed before each operation, in order."""
        work, states = self.room / "work", self.room / "states"
        states.mkdir()
        shutil.copytree(self.start, work, symlinks=True)
        assert child(work, copied(self.words, states)) == 0
        assert self.case.digest(work / self.case.out) == self.new
        shutil.rmtree(work)
        return sorted(states.iterdir(), key=lambda path: int(path.name))

    def by_states(self) -> dict[str, Any]:
        """Tries the folder before every operation, where the command itself ran: folders have one path to all runs."""
        wrong: list[str] = []
        tried: set[str] = set()
        states = self.states()
        for state in states:
            digest = tree_digest(state)
            if digest not in tried:
                tried.add(digest)
                work = state.rename(self.room / "work")
                wrong += [f"{state.name}: {what}" for what in self.wrong(work)]
                shutil.rmtree(work)
        return {"operations": len(states), "tried": len(tried), "wrong": wrong}

    def compared(self) -> dict[str, Any]:
        """Holds each folder to that of a child which is killed there."""
        wrong: list[str] = []
        exact = self.name in ("whole", "sheet")  # nothing in these tells of times or processes
        states = self.states()
        for number, state in enumerate(states, 1):
            work = self.room / "work"
            shutil.copytree(self.start, work, symlinks=True)
            if child(work, killed(self.words, number)) != -signal.SIGKILL:
                wrong.append(f"{number}: not killed")
            names = [[random_part(name) for name in listed(folder, ())] for folder in (work, state)]
            if names[0] != names[1]:
                wrong.append(f"{number}: {sorted({*names[0]} ^ {*names[1]})}")
            elif exact and not any("%" in name for name in names[0]) and tree_digest(work) != tree_digest(state):
                wrong.append(f"{number}: other bytes")
            shutil.rmtree(work)
        return {"operations": len(states), "tried": len(states), "wrong": wrong}


def random_part(name: str) -> str:
    """A name without what is drawn anew for each temporary file."""
    return re.sub(r"-[a-z0-9_]{8}(?=\.part|/|$)", "-%", name)


def sweep_all(names: list[str]) -> None:
    """Every variant of the cases that are named, or of all: a line of JSON for each, and one for their sum."""
    total: dict[str, Any] = {"operations": 0, "tried": 0, "wrong": 0, "seconds": 0.0}
    for name in names or CASES:
        for variant in VARIANTS:
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as room:
                result = Sweep(name, variant, Path(room)).by_states()
            seconds = round(time.monotonic() - began, 1)
            print(json.dumps({"case": name, "variant": variant, **result, "seconds": seconds}), flush=True)
            for key, more in (("operations", result["operations"]), ("tried", result["tried"]),
                              ("wrong", len(result["wrong"])), ("seconds", seconds)):  # fmt: skip
                total[key] += more
    print(json.dumps({"case": "all", **total}), flush=True)


def answer(words: list[str]) -> None:
    """Does what the arguments say, and prints it."""
    if words[0] == "all":
        sweep_all(words[1:])
        return
    with tempfile.TemporaryDirectory() as room:
        sweep = Sweep(words[0], words[1], Path(room))
        if words[2] == "states":
            result = sweep.by_states()
        elif words[2] == "compare":
            result = sweep.compared()
        else:
            result = sweep.by_kills(int(words[2]), int((words[3:] or [1])[0]))
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    os.fsync = lambda _: None  # kill -9 does not lose what the system has
    sys.modules["matplotlib.figure"] = None  # type: ignore[assignment] - pictures are not what this is about
    os.environ["DASHI_CACHE_DIR"] = tempfile.mkdtemp(prefix="dashi-killed-")
    command = get_command(app)  # once, and not in every child
    typer.testing._get_command = lambda _: command  # type: ignore[attr-defined]
    answer(sys.argv[1:])
    shutil.rmtree(os.environ["DASHI_CACHE_DIR"])
