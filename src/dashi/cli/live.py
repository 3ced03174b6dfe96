"""`--live`: a run is seen while it goes on, as a page on this machine or in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli.help import RUN
from dashi.cli.output import remark
from dashi.cli.progress import Shown
from dashi.errors import InputError

if TYPE_CHECKING:
    from dashi.report.live import LiveView


class LiveKind(StrEnum):
    """Where a run is seen."""

    page = "page"
    terminal = "terminal"


Live = Annotated[
    LiveKind | None,
    typer.Option(
        "--live",
        rich_help_panel=RUN,
        metavar="[page|terminal]",
        help="Show the run while it goes on: --live alone serves a page to this machine and prints its address, "
        "--live terminal draws here. No result changes.",
    ),
]


@contextmanager
def watched(kind: LiveKind | None) -> Generator[tuple[LiveView | None, Shown]]:
    """The view that a job is given, or none, and its events; what is seen of it is shown while this lasts."""
    if kind is None:
        yield None, Shown()
        return
    from dashi.report.live import LiveView

    view = LiveView()
    if kind is LiveKind.terminal:
        if not sys.stderr.isatty():
            raise InputError(
                '`live="terminal"` draws on a terminal, and stderr is none.', 'use `live="page"`, or leave it away.'
            )
        yield view, Shown(view)
        return
    from dashi.report.live_page import LivePage

    with LivePage(view) as page:
        remark(f"live: {page.url}")
        yield view, Shown()
