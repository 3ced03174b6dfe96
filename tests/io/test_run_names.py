"""Every file of a run folder is declared once, and whoever names one says it through that declaration."""

from __future__ import annotations

import ast
from pathlib import Path

from dashi.io import _run_names as run_names
from dashi.io._run_names import RUN_FILES, RunFile, files_left_by, left_by_runs

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "certificates.md"


def row(file: RunFile) -> str:
    gone = "; gone when the run is finished" if file.is_passing else ""
    return f"| `{file.name}` | {', '.join(file.writers)} | {file.meaning}{gone} |"


def test_the_page_about_run_folders_has_the_table_of_all_files() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    start = lines.index("| file | left by | what it is |") + 2
    assert lines[start : start + len(RUN_FILES)] == [row(file) for file in RUN_FILES]
    assert not lines[start + len(RUN_FILES)].startswith("|")


def test_names_are_declared_once() -> None:
    names = [file.name for file in RUN_FILES]
    assert len(set(names)) == len(names)
    assert all(file.writers and file.meaning for file in RUN_FILES)


def test_no_other_module_spells_the_name_of_a_run_file() -> None:
    names = {file.name for file in RUN_FILES} - {"pictures", "snapshots", "states"}  # which are words too
    elsewhere = {Path(run_names.__file__), ROOT / "src" / "dashi" / "report" / "example.py"}  # a run that never was
    spelled: list[str] = []
    for path in sorted((ROOT / "src" / "dashi").rglob("*.py")):
        text = path.read_text("utf-8")
        if path in elsewhere or not any(f'"{name}"' in text for name in names):
            continue
        constants = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and n.value in names]
        spelled += [f"{path.relative_to(ROOT).as_posix()}: {n.value}" for n in constants]
    assert spelled == []


def test_what_a_command_leaves_is_known_as_left_by_runs() -> None:
    assert files_left_by("demo") >= {"certificate.json", "report.html", "fields.zarr", "evaluation-test.json"}
    assert "checkpoint.npz" not in files_left_by("rollout")
    assert all(left_by_runs(name) for file in RUN_FILES for name in files_left_by(file.writers[0]))
    assert left_by_runs("evaluation-test-nu=0.004.json")
    assert not left_by_runs("thesis.txt")
