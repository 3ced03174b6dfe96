"""`--trace FILE`: what a command did when, for https://ui.perfetto.dev."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli.help import OUTPUT

if TYPE_CHECKING:
    from dashi.core.metrics.document import Stages
    from dashi.runtime.device import Device

TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        rich_help_panel=OUTPUT,
        metavar="FILE",
        help="A trace of stages and device queues, for ui.perfetto.dev.",
    ),
]


@contextmanager
def traced(file: Path | None, device: Device, stages: Stages) -> Generator[None]:
    """While it lasts, stages and submissions are noted; written at the end, whatever the end is."""
    if file is None:
        yield
        return
    from dashi.core.traces.queue import watch
    from dashi.core.traces.trace import Trace, write_trace
    from dashi.io.files import require_writable

    require_writable(file)
    stages.trace = trace = Trace()
    try:
        with watch(device, trace):
            yield
    finally:
        stages.trace = None
        write_trace(file, trace.spans)
