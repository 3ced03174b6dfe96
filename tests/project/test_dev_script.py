"""The entry script says what is wrong, and works from anywhere."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = (
    "sh",
    "dirname",
    "readlink",
    "cat",
    "cksum",
    "rm",
    "rmdir",
    "mkdir",
    "cp",
    "grep",
    "id",
    "mktemp",
    "tail",
    "date",
)

# A Python that makes environments with a copy of itself in them, and writes down what pip is asked to do.
PYTHON = """
case "$*" in
    *'version_info <'*) ;;
    *'import ensurepip, venv'*) exit {without_ensurepip} ;;
    *'print('*) echo python3.11-venv ;;
    --version) echo Python 3.11.0 ;;
    '-m venv'*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
    *'-m pytest'*) echo "pytest: $*" ;;
    *install*) printf '%s\\n' "$*" >>'{log}'; exit {offline} ;;
    '-m sphinx'*) printf '%s\\n' "$*" >>'{log}'; exit {warns} ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the project's shell, without its .venv, at a path with spaces."""
    folder = tmp_path / "a path with spaces"
    shutil.copytree(ROOT / "requirements", folder / "requirements")
    for name in ("dev", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def dev(
    checkout: Path, *arguments: str, path: Path | None = None, cwd: Path | str = "/"
) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path) if path else "/usr/bin:/bin", "DASHI_NO_APT": "1", "HOME": str(checkout)}
    command = ["/bin/sh", str(checkout / "dev"), *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)


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
    assert not [
        name for name in ("setup", "demo", "test", "test --long", "check", "docs") if f"\n  {name} " not in done.stdout
    ]


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


def machine(folder: Path, *, ensurepip: bool = True, network: bool = True, warns: bool = False) -> Path:
    """Tools and a Python; `pip.log` in the folder has what pip was asked to do."""
    path = tools(folder)
    log = folder / "pip.log"
    fake_python(
        path, PYTHON.format(log=log, without_ensurepip=int(not ensurepip), offline=int(not network), warns=int(warns))
    )
    return path


def test_setup_ends_with_the_line_that_makes_dashi_a_command(checkout: Path, tmp_path: Path) -> None:
    path = machine(tmp_path / "tools")
    ready = "Ready. This line makes `dashi` a command of your shell:\n\n    . "
    done = dev(checkout, "setup", path=path, cwd=checkout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{ready}.venv/bin/activate\n")
    assert dev(checkout, "setup", path=path).stdout == f'{ready}"{checkout}/.venv/bin/activate"\n'


def test_setup_takes_the_other_dashi_out_before_ours_comes_in(checkout: Path, tmp_path: Path) -> None:
    path = machine(tmp_path / "tools")
    assert dev(checkout, "setup", path=path).returncode == 0
    pinned, other, ours = (path / "pip.log").read_text().splitlines()
    assert pinned.endswith("install --require-hashes --only-binary :all: -r requirements/dev.txt")
    assert other.endswith("uninstall --yes dashi")
    assert ours.endswith("install --no-deps --no-build-isolation --editable .")


def test_tests_end_with_the_ten_slowest(checkout: Path, tmp_path: Path) -> None:
    done = dev(checkout, "test", "--long", "-x", path=machine(tmp_path / "tools"))
    assert "pytest: -m pytest --durations=10 --durations-min=1 -m long -x" in done.stdout, done.stderr


def test_link_to_the_script_means_the_folder_of_the_script(checkout: Path, tmp_path: Path) -> None:
    path = machine(tmp_path / "tools")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "bin").mkdir(parents=True)
    (elsewhere / ".venv").mkdir()
    (elsewhere / ".venv" / "mine").touch()
    (elsewhere / "real").symlink_to(checkout / "dev")
    (elsewhere / "bin" / "dev").symlink_to("../real")
    done = dev(elsewhere / "bin", "setup", path=path)
    assert done.returncode == 0, done.stderr
    assert (checkout / ".venv" / "bin" / "python").is_file()
    assert [*(elsewhere / ".venv").iterdir()] == [elsewhere / ".venv" / "mine"]


@pytest.mark.parametrize("command", ["setup", "demo", "test"])
def test_environment_that_others_made_stays(checkout: Path, tmp_path: Path, command: str) -> None:
    path = machine(tmp_path / "tools")
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to(path / "python3")
    done = dev(checkout, command, path=path)
    assert done.returncode == 1
    assert done.stderr == (
        f"dev: {checkout}/.venv is there already, and was not made by ./dev.\n"
        "Fix: move it away (mv .venv .venv-mine), then ./dev setup\n"
    )
    assert [*(checkout / ".venv").rglob("*")] == [checkout / ".venv" / "bin", checkout / ".venv" / "bin" / "python"]


@pytest.mark.parametrize("left", [(), ("dashi-made", "half"), ("dashi-place", "of another place")])
def test_environment_of_a_stopped_or_moved_setup_is_made_anew(
    checkout: Path, tmp_path: Path, left: tuple[str, ...]
) -> None:
    path = machine(tmp_path / "tools")
    (checkout / ".venv").mkdir()
    for name in left:
        (checkout / ".venv" / name).touch()
    done = dev(checkout, "setup", path=path)
    assert done.returncode == 0, done.stderr
    names = {file.name for file in (checkout / ".venv").iterdir()}
    assert names >= {"bin", "dashi-made", "dashi-place", "dashi-stamp"}
    assert not names & {"half", "of another place"}


def test_without_ensurepip_the_pinned_pip_is_taken(checkout: Path, tmp_path: Path) -> None:
    path = machine(tmp_path / "tools", ensurepip=False)
    done = dev(checkout, "setup", path=path)
    assert done.returncode == 0, done.stderr
    first = (path / "pip.log").read_text().splitlines()[0]
    assert first.endswith("install --require-hashes --only-binary :all: -r requirements/pip.txt")
    assert "--hash=sha256:" in (ROOT / "requirements" / "pip.txt").read_text()


def test_without_a_network_the_main_job_says_what_it_needs(checkout: Path, tmp_path: Path) -> None:
    done = dev(checkout, "demo", path=machine(tmp_path / "tools", network=False))
    assert done.returncode == 1
    assert done.stderr == (
        "dev: pip could not install requirements/dev.txt (its message is above), and nothing of dashi runs without "
        "NumPy.\nFix: check the network and pip's settings (pip config list), then ./dev setup. Without a network: on "
        "a machine that has one, pip download --require-hashes --only-binary :all: -d wheels -r requirements/dev.txt; "
        "here, PIP_NO_INDEX=1 PIP_FIND_LINKS=/path/wheels ./dev setup\n"
    )


def test_docs_builds_the_site_anew_and_says_where_to_open_it(checkout: Path, tmp_path: Path) -> None:
    path = machine(tmp_path / "tools")
    gone = checkout / "build" / "docs" / "gone.html"
    gone.parent.mkdir(parents=True)
    gone.touch()
    done = dev(checkout, "docs", path=path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"Open this in a browser:\n\n    file://{checkout}/build/docs/index.html\n")
    assert not gone.exists()
    words = (path / "pip.log").read_text().splitlines()[-1]
    assert "--fail-on-warning" in words.split()
    assert words.endswith("docs build/docs")


def test_docs_with_a_warning_fails(checkout: Path, tmp_path: Path) -> None:
    done = dev(checkout, "docs", path=machine(tmp_path / "tools", warns=True))
    assert done.returncode == 1
    assert done.stderr.endswith(
        "dev: the documentation site was not built (what is wrong is above).\n"
        "Fix: mend the pages or docstrings, then ./dev docs\n"
    )
