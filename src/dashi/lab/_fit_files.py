"""A fit on disk: beside its place as soon as the model is fitted, in its place when all is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

from dashi.core.rollouts._interrupt import deferred_interrupt
from dashi.errors import FileError
from dashi.flow.evaluation._fits import Fit, save_fit
from dashi.io._parts import remove_stale_parts


class FitFile:
    """Writes a fit as it grows. What cannot be written is tried again with what comes next, and told at the end: it
    does not end the fit. `out` only ever holds a fit that was finished; without it nothing is written."""

    def __init__(self, out: Path | None) -> None:
        self.out = out
        self.path: Path | None = None
        """Where the fit lies; none before it is written."""
        self._failure: FileError | None = None

    def grow(self, fit: Fit) -> None:
        """Writes what is there so far, and that it is not finished."""
        if self.out is not None:
            self._write(self.path or _free(self.out), replace(fit, finished=False))

    def finish(self, fit: Fit) -> None:
        """Writes all of it to its place, and removes what was written along the way."""
        if self.out is None:
            return
        aside = self.path
        with deferred_interrupt():  # it is short, and then there is nothing left to stop
            self._write(self.out, fit)
            if self.path == self.out and aside is not None:
                with contextlib.suppress(OSError):
                    aside.unlink()

    def _write(self, path: Path, fit: Fit) -> None:
        try:
            save_fit(path, fit)
        except FileError as error:
            self._failure = error
        else:
            self.path, self._failure = path, None

    @property
    def failure(self) -> FileError | None:
        """What went wrong and what there is all the same, where something could not be written."""
        if self._failure is None:
            return None
        there = f"{self.path} holds what was written before" if self.path else "the model is in no file"
        return FileError(
            f"{self._failure.what} Scores are there all the same; {there}.",
            f"{self._failure.fix.rstrip('.')}; then fit it again.",
        )


def _free(out: Path) -> Path:
    """Where this fit goes until it is finished: beside those that were stopped; what was half written goes away."""
    for path in _beside(out):
        with contextlib.suppress(OSError):
            remove_stale_parts(path)
        if not path.exists():
            return path
    raise AssertionError  # there is always another number


def _beside(out: Path) -> Iterator[Path]:
    """Where a fit that is not finished may go."""
    for number in count(1):
        yield out.with_name(f"{out.stem}.stopped{'' if number == 1 else f'-{number}'}{out.suffix}")
