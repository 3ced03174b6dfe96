"""Settings of the whole suite. Fixtures live in the folder that uses them."""

from __future__ import annotations

import os
import tempfile

import hypothesis
import pytest

# Time limits per example would measure the machine's load, not the code.
hypothesis.settings.register_profile("dashi", deadline=None, max_examples=50)
# Continuous integration tries the same examples every time, so that red means the change and not the dice.
hypothesis.settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, database=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dashi")


def pytest_configure(config: pytest.Config) -> None:
    """Gives the suite an empty pipeline cache of its own, which its worker processes share."""
    if "DASHI_CACHE_DIR" not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="dashi-tests-")
        os.environ["DASHI_CACHE_DIR"] = folder.name
        config.add_cleanup(folder.cleanup)
