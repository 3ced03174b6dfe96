"""Windows and macOS: what Linux alone has is not needed. Tried here by hiding it, since no such machine is at hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WITHOUT_POSIX = """
import os, shutil, signal, sys
import numpy, pydantic, rich.console, rich.progress, subprocess, tempfile, typer, zipfile  # these know their system

for name in ("fcntl", "resource", "termios", "pwd", "grp", "tty", "pty", "syslog"):
    sys.modules[name] = None
MISSING = {
    os: "getuid geteuid getgid getegid fork forkpty mkfifo uname getpgid killpg setsid statvfs fchmod fchown chown "
        "sched_getaffinity getloadavg pread pwrite posix_fallocate fdatasync "
        "O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_CLOEXEC",
    signal: "SIGHUP SIGALRM SIGUSR1 SIGUSR2 setitimer alarm pthread_sigmask sigwait SIG_BLOCK",
}
for module, names in MISSING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
shutil._use_fd_functions = False
real_open, real_rename = os.open, os.rename

def open_no_folder(path, flags, mode=0o777):  # Windows opens files alone
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return real_open(path, flags, mode)

def rename_over_nothing(old, new):  # Windows renames to new names alone
    if os.path.lexists(new):
        raise FileExistsError(17, "File exists", str(new))
    real_rename(old, new)

os.open, os.rename = open_no_folder, rename_over_nothing
"""

IMPORT_ALL = """
import pkgutil
import dashi
for module in pkgutil.walk_packages(dashi.__path__, "dashi."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
with dashi.open("cpu") as device:
    print(device.run("axpy", numpy.ones(2, "f4"), numpy.ones(2, "f4"), a=2).numpy().tolist())
"""

COMMANDS = """
import shlex
from dashi.cli.main import main
for line in sys.argv[1:]:
    sys.argv = ["dashi", *shlex.split(line)]
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
"""


def python(code: str, folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-W", "error", "-c", WITHOUT_POSIX + code, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_module_is_imported_and_the_numpy_device_computes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert python(IMPORT_ALL, tmp_path) == "[3.0, 3.0]\n"


def test_a_run_is_written_replaced_and_verified(tmp_path: Path) -> None:
    inputs = 'numpy.savez("in.npz", A=numpy.eye(4, dtype="f4")[::-1].copy(), z0=numpy.arange(4, dtype="f4"))\n'
    run = "rollout --z0 in.npz --A in.npz --steps 100 --hash-every 50 --device cpu --out run"
    said = python(inputs + COMMANDS, tmp_path, f"{run} --certificate run.json", run, "verify run.json --device cpu")
    assert "all 2 hashes are the same" in said
    assert {"metrics.json", "state.npz"} <= {file.name for file in (tmp_path / "run").iterdir()}


@pytest.mark.long
def test_the_main_job_leaves_its_report_and_replaces_an_earlier_one(tmp_path: Path) -> None:
    job = "demo --quick --device cpu --out run"
    python(COMMANDS, tmp_path, job, f"{job} --overwrite")
    assert (tmp_path / "run" / "report.html").is_file()
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
