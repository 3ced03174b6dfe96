"""How many workgroups of a device run at the same time. No driver says so, and a wrong guess hangs: it is tried, in a
child process, once for each driver, and never on a processor, whose workgroups run one after another."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from dashi._cache import cache_folder, read_number, write_cache
from dashi.runtime.info import DeviceInfo

_CHILD: Final = "from dashi.runtime._residence_trial import child; child()"
TIMEOUT: Final = 60.0
MOST: Final = 4096
NEEDED: Final = frozenset({"memory_model", "atomics_int64", "int64"})


def known_groups(info: DeviceInfo) -> int | None:
    """Workgroups of any size that run at the same time, as far as it is known without a trial: what an earlier trial
    left on disk, 0 where none is possible; None where one is due."""
    # A program packed into one file is its own interpreter: starting it again would start the program.
    if not info.is_hardware or not info.features >= NEEDED or not sys.executable or getattr(sys, "frozen", False):
        return 0
    return read_number(_file(info), 0, MOST)


def resident_groups(info: DeviceInfo) -> int:
    """Workgroups of any size that are known to run at the same time, one per multiprocessor; 0 if that is not known.
    Tried where it must be, and remembered on disk."""
    known = known_groups(info)
    if known is None:
        known = _ask(info.spec)
        write_cache(_file(info), str(known).encode())
    return known


def _file(info: DeviceInfo) -> Path:
    return cache_folder() / "probes" / f"{info.uuid}-{info.driver_version}-resident.bin"


def _ask(spec: str) -> int:
    """What the child finds; 0 if it crashes or hangs."""
    paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "DASHI_VALIDATION": "0"}
    with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, spec],
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT,
            check=True,
        )
        return int(done.stdout.split()[-1])
    return 0
