"""Commands that the pages print can be typed as they stand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.core.certificates._certificate import read_certificate, write_certificate

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGSHIP = Path("docs", "benchmarks", "long-rollout")


def lines(page: Path) -> list[str]:
    """Lines of shell blocks, and commands in cells of tables."""
    text = page.read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    typed = [line for block in blocks for line in block.splitlines()]
    cells = [cell for row in re.findall(r"^\|.*\|$", text, re.MULTILINE) for cell in row.split(" | ")]
    typed += [
        found[1] for cell in cells if (found := re.fullmatch(r"`((?:dashi|python) [^`]+)`(?: \|)?", cell.strip()))
    ]
    return [part.strip() for line in typed for part in line.split("&&")]


def commands(program: str) -> list[Any]:
    return [
        pytest.param(words[1:], id=f"{page.name}: {line[:60]}")
        for page in PAGES
        for line in dict.fromkeys(lines(page))
        if (words := shlex.split(line))[:1] == [program]
    ]


@pytest.mark.parametrize("words", commands("dashi"))
def test_the_program_understands_the_commands_on_the_pages(words: list[str]) -> None:
    command: Any = get_command(app)
    context: Any = None
    while hasattr(command, "resolve_command"):
        context = command.make_context("dashi", [*words], parent=context)
        if not context._protected_args + context.args:  # `dashi --version` and the like are done by now
            return
        _, command, words = command.resolve_command(context, context._protected_args + context.args)
    command.make_context("dashi", [*words], parent=context)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_dashi_is_made_a_command_before_it_is_typed(page: str) -> None:
    text = (ROOT / page).read_text()
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    typed = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    first = next(place for place, line in enumerate(typed) if line.startswith("dashi "))
    setup = next(place for place, line in enumerate(typed) if line.startswith("./dev "))
    assert setup < typed.index(". .venv/bin/activate") < first


@pytest.mark.parametrize("words", commands("python"))
def test_scripts_and_files_in_the_commands_on_the_pages_are_there(words: list[str]) -> None:
    for word in words:
        if word.startswith(("benchmarks/", "docs/")):
            assert (ROOT / word).exists()


@pytest.mark.parametrize("page", [Path("README.md"), FLAGSHIP / "README.md"])
def test_the_long_certificate_verifies_by_the_printed_commands(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = lines(ROOT / page)
    make, verify = "python benchmarks/long_rollout.py", f"dashi verify {FLAGSHIP}/certificate.json"
    assert typed.index(verify) == typed.index(make) + 1
    (tmp_path / FLAGSHIP).mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "long_rollout.py").write_bytes((ROOT / "benchmarks" / "long_rollout.py").read_bytes())
    whole = read_certificate(ROOT / FLAGSHIP / "certificate.json")
    # All 300,000 steps take minutes without a GPU: the first thousand of them here.
    first = whole.model_copy(update={"steps": whole.hash_every, "hashes": whole.hashes[:1]})
    write_certificate(tmp_path / FLAGSHIP / "certificate.json", first)
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, *make.split()[1:]], check=True, env=environment, capture_output=True)
    done = CliRunner().invoke(app, [*verify.split()[1:], "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert "all 1 hashes are the same" in done.output
