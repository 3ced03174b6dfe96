"""What tests of jobs share: somebody who listens to their events."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from dashi.lab.events import Advance


class Heard:
    """Notes what a job says: remarks, and how far each part of its work came."""

    def __init__(self) -> None:
        self.remarks: list[str] = []
        self.parts: list[tuple[str, int | None, int]] = []

    def remark(self, *lines: str) -> None:
        self.remarks += lines

    @contextmanager
    def progress(self, title: str, total: int | None, unit: str) -> Generator[Advance]:
        done = 0

        def advance(amount: int) -> None:
            nonlocal done
            done += amount

        yield advance
        self.parts.append((title, total, done))


@pytest.fixture
def heard() -> Heard:
    return Heard()
