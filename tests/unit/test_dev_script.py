"""The entry script says what is wrong, and works from anywhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "dirname", "cat", "cksum", "rm", "grep", "id", "mktemp", "tail", "date")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the project's shell, without its .venv, at a path with spaces."""
    folder = tmp_path / "a path with spaces"
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    for name in ("dev", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def dev(checkout: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path) if path else "/usr/bin:/bin", "DASHI_NO_APT": "1", "HOME": str(checkout)}
    command = ["/bin/sh", str(checkout / "dev"), *arguments]
    return subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, stdin=subprocess.DEVNULL)


def tools(folder: Path) -> Path:
    folder.mkdir()
    for name in TOOLS:
        found = shutil.which(name, path="/usr/bin:/bin")
        assert found, name
        (folder / name).symlink_to(found)
    return folder


def fake_python(folder: Path, script: str) -> None:
    (folder / "python3").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "python3").chmod(0o755)


def test_help_names_every_command(checkout: Path) -> None:
    done = dev(checkout, "help")
    assert done.returncode == 0
    assert not [name for name in ("setup", "demo", "test", "test --long", "check") if f"\n  {name} " not in done.stdout]


def test_unknown_command_is_refused(checkout: Path) -> None:
    done = dev(checkout, "tset")
    assert done.returncode == 1
    assert done.stderr.endswith("dev: there is no command 'tset'.\nFix: use one of those above.\n")


def test_setup_without_python_says_how_to_get_one(checkout: Path, tmp_path: Path) -> None:
    done = dev(checkout, "setup", path=tools(tmp_path / "tools"))
    assert done.returncode == 1
    assert done.stderr == (
        "dev: no Python 3.11 or newer was found.\n"
        "Fix: install one (Debian 12, Ubuntu 24.04 or newer: apt-get install python3 python3-venv), "
        "or name one: DASHI_PYTHON=/path/python3 ./dev setup\n"
    )


def test_setup_with_an_old_python_says_the_same(checkout: Path, tmp_path: Path) -> None:
    folder = tools(tmp_path / "tools")
    fake_python(folder, "exit 1")
    done = dev(checkout, "setup", path=folder)
    assert done.returncode == 1
    assert done.stderr.startswith("dev: no Python 3.11 or newer was found.\nFix: ")


def test_setup_with_a_python_that_cannot_make_environments_names_the_package(checkout: Path, tmp_path: Path) -> None:
    folder = tools(tmp_path / "tools")
    fake_python(folder, 'case "$2" in *version_info\\ \\<*) ;; *print*) echo python3.11-venv ;; *) exit 1 ;; esac')
    done = dev(checkout, "setup", path=folder)
    assert done.returncode == 1
    assert done.stderr == (
        f"dev: {folder}/python3 cannot make virtual environments: its module ensurepip is missing.\n"
        "Fix: as root, apt-get install python3.11-venv; then ./dev setup\n"
    )
