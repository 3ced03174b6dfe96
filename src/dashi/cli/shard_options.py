"""Options of commands that are done in parts: --shard and --jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli.help import PARTS
from dashi.cli.options import whole
from dashi.errors import InputError

if TYPE_CHECKING:
    from dashi.lab import Shard

ShardText = Annotated[
    str | None,
    typer.Option(
        "--shard",
        rich_help_panel=PARTS,
        metavar="I/N",
        help="Only part I of N, from 1 on, into a folder for `dashi merge`.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", parser=whole, rich_help_panel=PARTS, metavar="N", help="In N parts, each in a process of its own."
    ),
]


def shard_of(text: str | None) -> Shard | None:
    """The shard that was typed; None where none was."""
    from dashi.lab import Shard

    return None if text is None else Shard.parse(text)


def require_no_resume(jobs: int | None, *, resume: bool) -> None:
    """Refuses to go on where that goes without saying."""
    if jobs is not None and resume:
        raise InputError("--jobs goes on with what was stopped by itself.", "leave --resume away.")


def require_no_live(jobs: int | None, *, live: bool) -> None:
    """Refuses to show what other processes do."""
    if jobs is not None and live:
        raise InputError("--live shows a run of this process, and --jobs starts others.", "leave one of them away.")


def require_out(out: Path | None) -> Path:
    """The folder that shards are merged into."""
    if out is None:
        raise InputError("--jobs merges shards into a folder.", "name it with --out.")
    return out
