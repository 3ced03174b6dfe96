"""Signals that end a command in good order: SIGTERM (Slurm, systemd, containers) and SIGHUP do what Ctrl-C does; and
lines for whoever stopped one."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Final

from dashi.cli.options import typed
from dashi.core.rollouts._interrupt import Interrupting
from dashi.io._run_folder import CHECKPOINT

SHELL: Final = 128
"""A shell adds it to the number of the signal that ended a command; so does its exit code here."""


class Ending(Interrupting):
    """Notes which signal ended a command. Of a terminal that hung up nothing more is written to: that would be an
    error, and what was finished is still to be kept."""

    def __init__(self) -> None:
        super().__init__()
        self._terminals = [number for number in (1, 2) if _is_terminal(number)]

    def note(self, number: int) -> None:
        super().note(number)
        if number == getattr(signal, "SIGHUP", None):
            for terminal in self._terminals:
                with contextlib.suppress(OSError):
                    nowhere = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(nowhere, terminal)
                    os.close(nowhere)

    @property
    def exit_code(self) -> int:
        """129, 130 or 143: of SIGHUP, Ctrl-C and SIGTERM."""
        return SHELL + (self.last or signal.SIGINT)


@contextlib.contextmanager
def ended_in_order() -> Generator[Ending]:
    """Within it those signals interrupt as Ctrl-C does. One that is ignored (nohup) stays so."""
    ending = Ending()
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    before = {number: signal.getsignal(number) for number in numbers}
    held = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    for number in held:
        signal.signal(number, ending)
    try:
        yield ending
    finally:
        for number in held:
            signal.signal(number, before[number])


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def stopped_lines(out: Path | None, left: Path | None) -> list[str]:
    """Where the run lies, what stays as it was, and how to go on."""
    if out is None or left is None:
        return ["nothing is kept without --out"]
    stays = f"; the finished run in {out} stays as it was" if left != out else ""
    lines = [f"what was done is in {left}{stays}"]
    if (left / CHECKPOINT).is_file() and typed():
        lines.append(f"go on: {typed()}{'' if '--resume' in typed().split() else ' --resume'}")
    return lines
