"""`dashi kernels ... --folder`: a kernel's folder or one that holds several; folders whose code ends the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashi.cli.main import app
from dashi.kernels import _compiler as compiler
from dashi.kernels import _scaffold as scaffold

needs_compiler = pytest.mark.skipif(not compiler.available(), reason="the extra `compile` is not installed")


def call(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@needs_compiler
def test_the_folder_that_new_was_given_builds_and_checks_all_that_it_holds(here: Path) -> None:
    for name in ("wave", "gauss"):
        assert call("kernels", "new", name, "--folder", "mine").exit_code == 0
    assert call("kernels", "build", "--folder", "mine").exit_code == 0
    for words, kernels in (
        (("--folder", "mine"), ["gauss", "wave"]),
        (("wave", "--folder", "mine"), ["wave"]),
        (("wave", "add", "--folder", "mine"), ["wave", "add"]),
        (("--folder", "mine/gauss"), ["gauss"]),
    ):
        checked = call("kernels", "check", "--quick", "--device", "null", "--json", *words)
        assert checked.exit_code == 0, checked.output
        assert [row["kernel"] for row in json.loads(checked.stdout)["results"]] == kernels


def test_a_kernel_that_ends_the_program_does_not_pass_its_check(here: Path) -> None:
    folder = scaffold.new("quits", here)
    (folder / "kernel.py").write_text("raise SystemExit(0)\n")
    done = call("kernels", "check", "--folder", str(folder), "--device", "cpu")
    assert done.exit_code == 3
    assert "does not import: SystemExit: 0" in done.stderr
