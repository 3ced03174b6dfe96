"""What the processes that a job starts have in common: how they are started, and errors that they hand back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

from dashi import errors
from dashi.errors import DashiError

_ABOVE: Final = str(Path(__file__).parents[2])
_THREADS: Final = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "LP_NUM_THREADS",
)  # fmt: skip
"""Variables that libraries read their number of threads from: those of NumPy's products, and of lavapipe."""

_MALLOC: Final = {"MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TRIM_THRESHOLD_": str(1 << 26)}
"""What glibc itself comes to in a process that has freed a large array. Before that it gives memory back to the system
after every step and takes it again: 80 page faults a step at D = 654."""


def start_child(
    command: Sequence[str], jobs: int, *, failed: type[DashiError], stderr: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Starts Python with these words as one of so many processes, with pipes to it and from it, in a session of its
    own: Ctrl-C is for this process, which stops the others. Where none can be started, it has `failed`."""
    try:
        return subprocess.Popen(
            [sys.executable, *command], env=child_environment(jobs), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=stderr, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise failed(f"a process cannot be started: {error.strerror}.", "use fewer `jobs=`.") from error


def child_environment(jobs: int) -> dict[str, str]:
    """The environment of one of so many processes at the same time: all together have as many threads as there are
    cores, or fewer where the variables here say so; they keep the memory of a step for the next one, and import the
    same dashi."""
    share = max(1, core_count() // jobs)
    paths = [_ABOVE, *filter(None, [os.environ.get("PYTHONPATH")])]
    threads = {name: str(min(share, _whole(os.environ.get(name)) or share)) for name in _THREADS}
    return {**_MALLOC, **os.environ, **threads, "PYTHONPATH": os.pathsep.join(paths)}


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def error_of(name: str, what: str, fix: str) -> DashiError:
    """The error that a process had, by the name of its class; of the base class where no class of that name is made
    of these two."""
    kind: Any = getattr(errors, name, None)
    plain = isinstance(kind, type) and issubclass(kind, DashiError) and kind.__init__ is DashiError.__init__
    return (kind if plain else DashiError)(what, fix)


def _whole(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0
