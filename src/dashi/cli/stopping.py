"""Runs that Ctrl-C stopped: what was finished of them, what is told, and how they can go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dashi.cli.options import typed
from dashi.errors import Interrupted
from dashi.io.run_folder import CHECKPOINT

Result = TypeVar("Result")


def until_stopped(work: Callable[[], Result]) -> tuple[Result, bool]:
    """The result of work, and whether Ctrl-C came: then it is what was finished, which the command keeps and tells
    before it ends. Raises Interrupted where that is nothing."""
    try:
        return work(), False
    except Interrupted as stop:
        if stop.partial is None:
            raise
        return stop.partial, True


def stopped_lines(out: Path | None, left: Path | None) -> list[str]:
    """Lines for whoever pressed Ctrl-C: where the run lies, what stays as it was, and how to go on."""
    if out is None or left is None:
        return ["nothing is kept without --out"]
    stays = f"; the finished run in {out} stays as it was" if left != out else ""
    lines = [f"what was done is in {left}{stays}"]
    if (left / CHECKPOINT).is_file() and typed():
        lines.append(f"go on: {typed()}{'' if '--resume' in typed().split() else ' --resume'}")
    return lines
