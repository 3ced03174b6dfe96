"""Every program on a page runs and prints what the page says; following a page does what it promises."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from dashi import kernels

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    file: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(page.read_text())]


def programs() -> list[tuple[str, str, str]]:
    """Python blocks of all pages with the text block that follows, if one does."""
    entries: list[tuple[str, str, str]] = []
    for page in PAGES:
        listed = blocks(page)
        for number, block in enumerate(listed):
            if block.language == "python" and not block.file and "soft_threshold" not in block.text:
                following = listed[number + 1] if number + 1 < len(listed) else Block("", "", "")
                expected = following.text if following.language == "text" else ""
                entries.append((f"{page.name}-{number}", block.text, expected))
    return entries


def run(*command: str, folder: Path, source: Path = ROOT) -> str:
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


LONG = ("lab.examine(", "lab.demo(", "measure().rows", '"slaved": {')
"""What takes programs seconds that quick tests spend on the same: every device tried, the demo, v4, a closure."""


def marks(text: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if any(call in text for call in LONG) else []


@pytest.mark.usefixtures("vulkan_session")  # the pages show what a Vulkan device prints
@pytest.mark.parametrize(
    ("text", "expected"),
    [pytest.param(text, expected, id=name, marks=marks(text)) for name, text, expected in programs()],
)
def test_the_programs_on_the_pages_print_what_the_pages_say(text: str, expected: str, tmp_path: Path) -> None:
    printed = run(sys.executable, "-c", text, folder=tmp_path)
    assert not expected or printed == expected


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
