"""What a job says while it works: remarks for people, and how far it has come. Silent unless somebody listens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

Advance = Callable[[int], None]


class Events(Protocol):
    """A listener. The command line prints; a notebook may draw; `SILENT` does nothing."""

    def remark(self, *lines: str) -> None:
        """Lines for people, about what is done and why."""
        ...

    def progress(self, title: str, total: int | None, unit: str) -> AbstractContextManager[Advance]:
        """Work begins that counts its units; call what it gives with the number of units finished. The total is None
        where nobody knows it beforehand, the unit empty where nothing is counted."""
        ...


class Silent:
    """Events that nobody listens to."""

    def remark(self, *lines: str) -> None:
        pass

    def progress(self, title: str, total: int | None, unit: str) -> AbstractContextManager[Advance]:
        return nullcontext(no_progress)


def no_progress(amount: int) -> None:
    """Counts nothing."""


SILENT: Final = Silent()
