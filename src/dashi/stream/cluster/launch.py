"""Ranks of this machine: for trying a chain over nodes before there are any."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from dashi.errors import FeatureError, InputError, install_extra

MOST_RANKS = 64


def launch_ranks(ranks: int, arguments: Sequence[str]) -> int:
    """Starts so many ranks of `python ARGUMENTS` on this machine under MPI, with its fault tolerance, and returns the
    job's exit code. What they print is printed; Ctrl-C ends all of them."""
    if not 2 <= ranks <= MOST_RANKS:
        raise InputError(f"`ranks={ranks}` cannot be started.", f"pass 2 to {MOST_RANKS}.")
    command = [*_mpiexec(), "--with-ft", "ulfm", "--oversubscribe", "-n", str(ranks), sys.executable, *arguments]
    environment = dict(os.environ)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # Open MPI asks this of whoever is root; in a container everybody is.
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with subprocess.Popen(command, env=environment) as job:
        try:
            return job.wait()
        except KeyboardInterrupt:
            # It hears of Ctrl-C itself, and passes it on.
            try:
                job.wait(timeout=30)
            except subprocess.TimeoutExpired:
                job.terminate()
            raise


def _mpiexec() -> list[str]:
    beside = Path(sys.executable).with_name("mpiexec")
    place = str(beside) if beside.exists() else shutil.which("mpiexec")
    if place is None:
        raise FeatureError("there is no mpiexec, which starts ranks.", f"{install_extra('cluster')}.")
    return [place]
