"""The documentation site, built as `./dev docs` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site. A warning is an error: a link that leads nowhere, a page that is in no list."""
    folder = tmp_path_factory.mktemp("site")
    words = f"--quiet --fail-on-warning --keep-going --builder html --doctree-dir {folder}/doctrees docs {folder}/html"
    done = subprocess.run([sys.executable, "-m", "sphinx", *words.split()], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"
