"""The script that measures what is promised of a GPU: commands that there are, in parts of less than ten minutes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "hardware.sh"
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="there is no clone")


def listed() -> dict[str, tuple[int, list[str]]]:
    done = subprocess.run(["sh", str(SCRIPT), "--list"], capture_output=True, text=True, check=True, timeout=60)
    rows = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert len({name.partition("/")[2] for name, _, _ in rows}) == len(rows)
    return {name: (int(seconds), command.split()) for name, seconds, command in rows}


def test_each_part_takes_less_than_ten_minutes() -> None:
    parts: dict[str, int] = {}
    for name, (seconds, _) in listed().items():
        part = name.partition("/")[0]
        parts[part] = parts.get(part, 0) + seconds
    assert {"base", "flows"} <= {*parts}
    assert max(parts.values()) < 600


def test_every_command_is_one_that_there_is() -> None:
    for name, (_, typed) in listed().items():
        words = typed[2:] if typed[0] == "env" else typed
        if words[0] == "dashi":
            done = CliRunner().invoke(app, [*words[1:], "--help"])
            assert done.exit_code == 0, (name, done.output)
        elif words[1:3] == ["-m", "pytest"]:
            assert all((ROOT / word).exists() for word in words if word.startswith(("tests/", "validation/")))
        else:
            text = (ROOT / words[1]).read_text()
            assert all(f'"{word}"' in text for word in words if word.startswith("--")), name


def test_output_and_exit_codes_are_kept(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for program, code in (("dashi", 3), ("python", 0)):
        (tmp_path / "bin" / program).write_text(f'#!/bin/sh\necho {program} "$@"\nexit {code}\n')
        (tmp_path / "bin" / program).chmod(0o755)
    out = tmp_path / "out"
    done = subprocess.run(
        ["sh", str(SCRIPT), "vulkan:0", str(out), "host", "feeds"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
    )
    assert [line.rpartition(",")[0] for line in done.stdout.splitlines()] == [
        "host: exit code 3",
        "feeds: exit code 0",
    ]
    assert (out / "summary.txt").read_text() == done.stdout
    assert (out / "host.txt").read_text() == "dashi bench host --device vulkan:0 --json\n"
    assert sorted(file.name for file in out.iterdir()) == ["feeds.txt", "host.txt", "summary.txt"]
