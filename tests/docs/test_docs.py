"""Every program on a page runs and prints what the page says; following a page does what it promises."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from dashi import kernels
from dashi.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = ("soft_threshold", 'dashi.report.write("runs/scores")')
"""Text of programs that tests of their own run."""
_BLOCK = re.compile(r"^```(\w*)(?: file=(\S+))?( long)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    file: str
    long: str
    """Not empty for a program that takes so long that only the long tests run it: ```python long."""
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(page.read_text())]


def programs() -> list[Any]:
    """Python blocks of all pages with the text block that follows, if one does."""
    entries: list[Any] = []
    for page in PAGES:
        listed = blocks(page)
        for number, block in enumerate(listed):
            if block.language == "python" and not block.file and not any(text in block.text for text in ELSEWHERE):
                following = listed[number + 1] if number + 1 < len(listed) else Block("", "", "", "")
                expected = following.text if following.language == "text" else ""
                marks = [pytest.mark.long] if block.long else []
                entries.append(pytest.param(block.text, expected, id=f"{page.name}-{number}", marks=marks))
    return entries


def run(*command: str, folder: Path, source: Path = ROOT) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.usefixtures("vulkan_session")  # the pages show what a Vulkan device prints
@pytest.mark.parametrize(("text", "expected"), programs())
def test_the_programs_on_the_pages_print_what_the_pages_say(text: str, expected: str, tmp_path: Path) -> None:
    printed = run(sys.executable, "-c", text, folder=tmp_path)
    assert not expected or printed == expected


def commands(command: Any, words: tuple[str, ...] = ("dashi",)) -> list[str]:
    """Every command of the program as it is typed, without its options."""
    if not hasattr(command, "commands"):
        return [" ".join(words)]
    return [line for name, inner in command.commands.items() for line in commands(inner, (*words, name))]


def test_every_command_is_on_the_page_that_has_it_in_python() -> None:
    page = (ROOT / "docs" / "commands.md").read_text().replace("\n", " ")
    missing = [line for line in commands(get_command(app)) if not re.search(rf"`{line}[ `]", page)]
    assert not missing, "show how Python does it (docs/commands.md)"


def test_the_programs_on_the_page_of_commands_use_public_names_alone() -> None:
    for block in blocks(ROOT / "docs" / "commands.md"):
        assert not re.search(r"(?:import|from) [\w. ]*\b_|\w\._[a-z]", block.text), block.text


STUDY = """
run = dashi.flow.simulate(flow, seeds=[1, 2], steps=4000, out="runs/k", frame_every=100, hash_every=400)
run.certificate.verify(device="cpu"); run.fields
run = run.resume(steps=8000)
fit = dashi.flow.fit("galerkin", flow, train=range(1, 5), validate=[5], k_cut=8, out="runs/model.npz")
scores = dashi.flow.evaluate(fit, seeds=[100, 101], perturb={"nu": 0.004}, out="runs/scores")
print(scores.table()); dashi.report.write("runs/scores")
run = dashi.rollout(dashi.Linear(A), z0, 100_000, hash_every=1000, out="runs/turn")
dashi.verify("runs/turn", device="vulkan:0", against="cpu")
"""
"""The program that the front door was made for. Its numbers are for a GPU: the page has smaller ones."""
LEFT_BY_THE_STUDY = """
assert run.certificate.verify(device="cpu").same
assert [table.title for table in scores.table()][-2:] == ["windows: test (2)", "windows: test nu=0.004 (2)"]
whole = dashi.verify("runs/k", device="cpu")
assert (whole.same, whole.certificate.steps) == (True, 80)
assert dashi.verify("runs/turn", device="vulkan:0", against="cpu").same
import pathlib
assert "Correlation against time" in pathlib.Path("runs/scores/report.html").read_text()
"""


def study() -> str:
    """The program of the page on Python that does whole jobs."""
    return next(block.text for block in blocks(ROOT / "docs" / "python.md") if "dashi.flow.evaluate(" in block.text)


def test_the_page_on_python_has_the_study_statement_by_statement() -> None:
    def without_numbers(text: str) -> list[str]:
        return [re.sub(r"\b\d+\b", "N", ast.unparse(statement)) for statement in ast.parse(text).body]

    on_the_page = without_numbers(study())
    assert on_the_page[0] == "import dashi"
    assert [statement for statement in on_the_page if statement in without_numbers(STUDY)] == without_numbers(STUDY)


@pytest.mark.long
@pytest.mark.usefixtures("vulkan_session")
def test_the_study_on_the_page_leaves_what_it_promises(tmp_path: Path) -> None:
    run(sys.executable, "-c", study() + LEFT_BY_THE_STUDY, folder=tmp_path)


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_leads_to_every_page_once() -> None:
    section = (ROOT / "README.md").read_text().split("## Where to go")[1].split("\n## ")[0]
    assert sorted(re.findall(r"\]\(docs/([\w-]+\.md)\)", section)) == sorted(
        p.name for p in (ROOT / "docs").glob("*.md")
    )


@pytest.mark.usefixtures("vulkan_session")
def test_adding_a_kernel_by_the_page_touches_one_new_folder_only(tmp_path: Path) -> None:
    copy = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", ".venv", ".git", ".*_cache")
    shutil.copytree(ROOT, copy, ignore=ignored)
    page = blocks(ROOT / "docs" / "add-a-kernel.md")
    commands = [line for block in page if block.language == "sh" for line in block.text.splitlines()]
    files = {block.file: block.text for block in page if block.file}
    folder = copy / "src" / "dashi" / "kernels" / "elementwise" / "soft_threshold"
    before = snapshot(copy)

    outputs: list[str] = []
    for command in commands:
        assert command.startswith("dashi ")
        outputs.append(run(sys.executable, "-m", *command.split(), folder=copy, source=copy))
        if " new " in command:
            assert {p.name for p in folder.iterdir()} - {"__pycache__"} == {"kernel.comp", "kernel.py"}
            for name, text in files.items():
                (folder / name).write_text(text)
    use, expected = next((b, page[i + 1]) for i, b in enumerate(page) if b.language == "python" and not b.file)
    assert run(sys.executable, "-c", use.text, folder=copy, source=copy) == expected.text

    after = snapshot(copy)
    touched = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert touched
    assert all(folder.relative_to(copy) in path.parents for path in touched), touched
    assert (folder / "spirv" / "index.json").exists()


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_portability_page_counts_and_names_every_kernel_that_is_not_portable() -> None:
    page = (ROOT / "docs" / "portability.md").read_text()
    named = re.findall(r"`(\w+)`", page.split("<!-- not portable -->\n")[1].split("<!-- end -->")[0])
    assert named == [name for name in kernels.names() if not kernels.get(name).portable]
    numbers = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert f"all but {numbers[len(named)]}, which say in their summary why" in page.replace("\n", " ")


@pytest.mark.long  # that the functions keep their bits is a quick test: tests/golden/test_portable_bits.py
def test_the_accuracy_table_is_what_is_measured() -> None:
    from dashi.kernels.portable import _accuracy as accuracy

    page = (ROOT / "docs" / "portability.md").read_text()
    table = page.split("<!-- accuracy -->\n")[1].split("<!-- end -->")[0]
    assert table == accuracy.markdown(accuracy.rows())


def test_the_printed_page_of_kernels_has_a_row_for_each(tmp_path: Path) -> None:
    printed = run(sys.executable, "-m", "dashi", "kernels", "list", "--markdown", folder=tmp_path)
    assert re.findall(r"^\| `(\w+)\(", printed, re.MULTILINE) == sorted(kernels.names(), key=by_family)


def by_family(name: str) -> tuple[str, str]:
    return kernels.get(name).family, name
