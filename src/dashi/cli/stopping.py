"""Lines for whoever pressed Ctrl-C."""

from __future__ import annotations

from pathlib import Path

from dashi.cli.options import typed
from dashi.io._run_folder import CHECKPOINT


def stopped_lines(out: Path | None, left: Path | None) -> list[str]:
    """Where the run lies, what stays as it was, and how to go on."""
    if out is None or left is None:
        return ["nothing is kept without --out"]
    stays = f"; the finished run in {out} stays as it was" if left != out else ""
    lines = [f"what was done is in {left}{stays}"]
    if (left / CHECKPOINT).is_file() and typed():
        lines.append(f"go on: {typed()}{'' if '--resume' in typed().split() else ' --resume'}")
    return lines
