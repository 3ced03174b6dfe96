"""Files that others read: the workflow for projects of users, forms for issues, hooks, the citation."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from dashi.cli.main import app

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / "docs" / "ci" / "gpu-tests-without-a-gpu.yml"
OWN = ROOT / ".github" / "workflows" / "test.yml"
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"
INSTALLS = ("sudo ", "python -m pip ")
"""What a machine without a network cannot do."""


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


def job(workflow: Path) -> dict[str, Any]:
    (only,) = read(workflow)["jobs"].values()
    return only


def scripts() -> list[tuple[str, dict[str, str]]]:
    """The lines of the workflow that need no network, with the environment of each."""
    whole = job(WORKFLOW)
    steps = [(step["run"], {**whole["env"], **step.get("env", {})}) for step in whole["steps"] if "run" in step]
    return [
        (line, environment)
        for text, environment in steps
        for line in text.splitlines()
        if not line.startswith(INSTALLS)
    ]


@pytest.mark.parametrize("file", [WORKFLOW, OWN], ids=lambda file: file.name)
def test_workflow_has_what_is_run_and_where(file: Path) -> None:
    # YAML 1.1 takes the word `on` for true.
    assert read(file)[True] == ["push", "pull_request"]
    assert read(file)["permissions"] == {"contents": "read"}
    whole = job(file)
    assert whole["runs-on"].startswith("ubuntu-")
    assert [step for step in whole["steps"] if ("run" in step) == ("uses" in step)] == []


def test_own_workflow_runs_the_commands_that_guard_main() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("./dev ")]
    assert job(OWN)["strategy"]["matrix"]["command"] == commands


def test_workflow_for_users_types_commands_that_the_program_understands() -> None:
    typed = [part.strip() for line, _ in scripts() for part in re.split(r";|\bdo\b", line)]
    commands = [shlex.split(part)[1:] for part in typed if part.startswith("dashi ")]
    assert [words[0] for words in commands] == ["doctor", "devices", "kernels", "kernels", "verify"]
    for words in commands:
        command: Any = get_command(app)
        context: Any = None
        # Folders and files are there when the shell has put their names in.
        left = [str(ROOT) if "$" in word else word for word in words]
        while hasattr(command, "resolve_command"):
            context = command.make_context("dashi", left, parent=context)
            _, command, left = command.resolve_command(context, context._protected_args + context.args)
        command.make_context("dashi", left, parent=context)


@pytest.mark.long
@pytest.mark.usefixtures("vulkan_session")
def test_workflow_for_users_passes_in_a_project_that_has_kernels_certificates_and_tests(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "gpu-tests-without-a-gpu.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "test_mine.py").write_text(program)
    shutil.copytree(ROOT / "src" / "dashi" / "kernels" / "elementwise" / "relu", tmp_path / "kernels" / "my_relu")
    # Scripts call `dashi` and `python` by name, as in an environment that was activated.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}
    make = (
        "mkdir certificates; python -c \"import numpy as np; np.savez('certificates/in.npz', A=np.eye(4)[::-1].copy(), "
        'z0=np.arange(4.0))"; cd certificates; '
        "dashi rollout --z0 in.npz --A in.npz --steps 100 --hash-every 50 --device cpu --certificate run.json"
    )
    for line, more in [(make, {}), *scripts()]:
        done = subprocess.run(
            ["bash", "-e", "-c", line], cwd=tmp_path, env=environment | more, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_form_for_issues_is_one_that_can_be_filled_in(file: Path) -> None:
    form = read(file)
    assert form.keys() == {"name", "description", "labels", "body"}
    assert {part["type"] for part in form["body"]} <= {"markdown", "input", "textarea", "dropdown", "checkboxes"}
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert all(part["attributes"]["label"] for part in asked)
    assert len({part["id"] for part in asked}) == len(asked)
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_reports_of_defects_ask_for_what_the_doctor_says() -> None:
    assert [file.stem for file in FORMS if "`dashi doctor --json`" in file.read_text()] == ["bug", "difference"]
    assert [file.stem for file in FORMS] == ["bug", "difference", "feature"]


def test_hooks_run_tools_of_the_environment_and_fetch_nothing() -> None:
    (local,) = read(HOOKS)["repos"]
    assert local["repo"] == "local"
    assert {hook["language"] for hook in local["hooks"]} == {"system"}
    for hook in local["hooks"]:
        program = Path(shlex.split(hook["entry"])[0])
        assert program.parent == Path(".venv/bin")
        assert (Path(sys.executable).parent / program.name).is_file(), program


def test_hook_that_lints_finds_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import os\n")
    entry = next(hook["entry"] for hook in read(HOOKS)["repos"][0]["hooks"] if hook["id"] == "ruff-check")
    program, *words = shlex.split(entry)
    command = [str(Path(sys.executable).parent / Path(program).name), *words, "wrong.py"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 1


def test_citation_is_whole_and_of_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert citation["authors"] == [{"name": "The dashi developers"}]


@pytest.mark.parametrize("file", [WORKFLOW, OWN, HOOKS, *FORMS, ROOT / "CITATION.cff"], ids=lambda file: file.name)
def test_no_file_names_a_host(file: Path) -> None:
    assert "://" not in file.read_text()
