"""The page on certificates can be followed: its programs and commands run one after another in one folder."""

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


def test_following_the_page_makes_and_verifies_the_hash_it_shows(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}
    said: list[str] = []
    for language, text in re.findall(r"^```(python|sh)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        calls = [["-c", text]] if language == "python" else [["-m", *line.split()] for line in text.splitlines()]
        for words in calls:
            done = subprocess.run(
                [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
            said.append(done.stdout)
    certificate = json.loads((tmp_path / "turn.json").read_text())
    assert certificate["hashes"][-1]["hash"] in PAGE.read_text()
    assert certificate["hashes"] == json.loads((tmp_path / "runs" / "turn" / "certificate.json").read_text())["hashes"]
    assert sum("hashes are the same" in text for text in said) == 2


@pytest.mark.parametrize("field", ["schema_version", "operator", "inputs", "hashes", "kernels", "device", "digest"])
def test_the_page_explains_the_fields(field: str) -> None:
    assert f"`{field}`" in PAGE.read_text()
