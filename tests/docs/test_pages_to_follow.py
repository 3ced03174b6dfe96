"""Pages that can be followed: their programs and commands run one after another in one folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "certificates.md"


def follow(page: Path, folder: Path) -> list[str]:
    """What the programs and commands of a page print, from top to bottom."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}
    said: list[str] = []
    for language, text in re.findall(r"^```(python|sh)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        calls = [["-c", text]] if language == "python" else [["-m", *line.split()] for line in text.splitlines()]
        for words in calls:
            done = subprocess.run(
                [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
            said.append(done.stdout)
    return said


def test_following_the_page_on_rollouts_ends_in_a_verified_certificate(tmp_path: Path) -> None:
    assert "all 10 hashes are the same" in follow(ROOT / "docs" / "rollout.md", tmp_path)[-1]


@pytest.mark.long
def test_following_the_page_on_the_sheet_draws_the_run_that_it_makes(tmp_path: Path) -> None:
    said = follow(ROOT / "docs" / "sheet.md", tmp_path)
    assert said[2].startswith("sheet.png: ")
    assert (tmp_path / "sheet.apng").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_following_the_page_on_evaluation_ends_in_a_table_of_unseen_seeds(tmp_path: Path) -> None:
    table = follow(ROOT / "docs" / "evaluation.md", tmp_path)[1]
    assert {"windows: test (4)", "windows: train (4)"} <= set(table.splitlines())
    assert (tmp_path / "runs" / "decaying" / "evaluation-test.npz").is_file()


@pytest.mark.long
def test_following_the_page_on_own_data_scores_what_was_not_seen(tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    assert "test (4)" in follow(ROOT / "docs" / "own-data.md", tmp_path)[-1]


@pytest.mark.long
def test_following_the_tutorial_ends_in_reports(tmp_path: Path) -> None:
    said = follow(ROOT / "docs" / "tutorial.md", tmp_path)
    assert "galerkin holds longest, on seeds [4, 5]" in "".join(said)
    for name in ("runs/demo-quick/report.html", "mine.html", "runs/scores/report.html"):
        assert "Correlation against time" in (tmp_path / name).read_text()


@pytest.mark.long
def test_following_the_page_on_the_report_makes_three(tmp_path: Path) -> None:
    said = follow(ROOT / "docs" / "report.md", tmp_path)
    assert "runs/quick/report.html\n" in said
    assert "example.html\n" in said


def test_following_the_page_makes_and_verifies_the_hash_it_shows(tmp_path: Path) -> None:
    said = follow(PAGE, tmp_path)
    certificate = json.loads((tmp_path / "turn.json").read_text())
    assert certificate["hashes"][-1]["hash"] in PAGE.read_text()
    assert certificate["hashes"] == json.loads((tmp_path / "runs" / "turn" / "certificate.json").read_text())["hashes"]
    assert sum("hashes are the same" in text for text in said) == 4


@pytest.mark.parametrize("field", [
    "schema_version", "operator", "inputs", "hashes", "kernels", "device", "digest", "kind", "float_rules", "states",
    "every", "bits", "files",
])  # fmt: skip
def test_the_page_explains_the_fields(field: str) -> None:
    assert f"`{field}`" in PAGE.read_text()
