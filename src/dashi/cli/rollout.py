"""The rollout of `dashi demo`: its operator, its recorded program, and the folder it is kept in."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.errors import InputError
from dashi.runtime.array import Array
from dashi.runtime.device import Device, Program, Step
from dashi.types import Array as HostArray

CHUNK: Final = 100
"""Steps that are recorded as one program. Even, so that the state is back in the first of its two arrays."""

TRACE: Final = 384
"""Steps whose states are kept for the picture."""


@dataclass(frozen=True)
class Hash:
    """The hash of the state after so many steps."""

    step: int
    digest: str


@dataclass(frozen=True)
class Track:
    """What a rollout leaves behind; `states` and `norms` only where they were asked for. `stopped`: by Ctrl-C, after
    fewer steps than were asked for."""

    steps: int
    seconds: float
    hashes: tuple[Hash, ...]
    states: HostArray
    norms: tuple[float, ...]
    stopped: bool = False

    @property
    def us_per_step(self) -> float:
        return self.seconds / max(1, self.steps) * 1e6


def operator(n: int) -> HostArray:
    """An orthogonal matrix, rounded to fp32: a wave in a ring of n sites.

    Every pair (0, 1), (2, 3), ... is rotated by the angle whose cosine is 3/5, then every pair (1, 2), ... (n-1, 0).
    Only products and sums of doubles make it, so it has the same bits on every machine.
    """
    matrix = np.eye(n)
    for first in (0, 1):
        left, right = np.arange(first, n, 2), np.arange(first + 1, n + 1, 2) % n
        a, b = matrix[:, left].copy(), matrix[:, right].copy()
        matrix[:, left] = 0.6 * a - 0.8 * b
        matrix[:, right] = 0.8 * a + 0.6 * b
    return matrix.astype(np.float32)


def start(n: int) -> HostArray:
    """Two smooth bumps of different widths."""
    site = np.arange(n, dtype=np.float64)
    wide, narrow = (site - n // 4) / 6.0, (site - 2 * n // 3) / 2.5
    return (1.0 / (1.0 + wide * wide) ** 2 - 0.6 / (1.0 + narrow * narrow) ** 2).astype(np.float32)


def roll_out(device: Device, n: int, steps: int, advance: Callable[[int], None], *, keep: bool = False) -> Track:
    """Steps of z' = z A, recorded once and submitted again and again; the state is hashed after every CHUNK steps.

    Ctrl-C ends it after the chunk that is under way; what was finished is kept.
    """
    matrix = device.array(operator(n))
    state = (device.array(start(n)), device.empty(n, np.float32))
    digest = device.empty(4, np.uint32)
    hashes: list[Hash] = []
    norms: list[float] = []
    # The picture shows single steps; they are computed apart, outside the measured run.
    states = np.array([start(n), *(_trace(device, matrix, n, min(steps, TRACE)) if keep else ())])
    seconds, done = 0.0, 0
    try:
        with contextlib.ExitStack() as stack:
            programs = {
                count: stack.enter_context(_record(device, matrix, state, digest, count))
                for count in {min(steps, CHUNK), steps % CHUNK} - {0}
            }
            while done < steps:
                count = min(steps - done, CHUNK)
                began = time.perf_counter()
                programs[count].run()
                seconds += time.perf_counter() - began
                done += count
                if device.info.type != "null":
                    hashes.append(Hash(done, np.asarray(digest.numpy()).astype("<u4").tobytes().hex()))
                    if keep:
                        norms.append(_norm(state[count % 2].numpy()))
                advance(count)
    except KeyboardInterrupt:
        done = hashes[-1].step if hashes else 0
    return Track(done, seconds, tuple(hashes), states, tuple(norms), stopped=done < steps)


def _record(device: Device, matrix: Array, state: tuple[Array, Array], digest: Array, count: int) -> Program:
    there = device.bind("gemv", state[0], matrix, out=state[1])
    back = device.bind("gemv", state[1], matrix, out=state[0])
    moves: list[Step] = [(there, back)[i % 2] for i in range(count)]
    return device.program([*moves, device.bind("hash_state", state[count % 2], out=digest)], label="rollout")


def _trace(device: Device, matrix: Array, n: int, count: int) -> list[Any]:
    """The state after each of the first steps."""
    state = device.array(start(n))
    seen: list[Any] = []
    for _ in range(count):
        state = device.run("gemv", state, matrix)
        seen.append(state.numpy())
    return seen


def _norm(values: HostArray) -> float:
    wide = values.astype(np.float64)
    return float(np.sqrt(np.sum(wide * wide)))


@contextlib.contextmanager
def run_folder(out: Path) -> Generator[Path]:
    """A folder to fill, which becomes `out` when all is in it: whoever looks sees the old one or the new one."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        _require_ours(out)
        made = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise _unwritable(out, error) from error
    try:
        yield made
        os.chmod(made, 0o777 & ~_umask())  # temporary folders are private; this one becomes an ordinary one
        _put(made, out)
    except OSError as error:
        raise _unwritable(out, error) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _require_ours(out: Path) -> None:
    """What is replaced must be an earlier run, or empty."""
    if out.exists() and not (out.is_dir() and ((out / "summary.json").is_file() or not any(out.iterdir()))):
        raise InputError(f"{out} is there already and is not the folder of a run.", "choose another with --out.")


def _put(made: Path, out: Path) -> None:
    if not out.exists():
        os.rename(made, out)
        return
    # A folder that holds files cannot be renamed over: it steps aside for an instant.
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}-old-", dir=out.parent))
    os.rename(out, old / "run")
    os.rename(made, out)
    shutil.rmtree(old, ignore_errors=True)


def _unwritable(out: Path, error: OSError) -> InputError:
    why = error.strerror or str(error)
    return InputError(f"the run folder {out} cannot be written: {why}.", "choose another with --out, or make room.")
