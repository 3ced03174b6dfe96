"""`dashi <noun> <verb>`. Exit codes: 0 well, 1 a check failed, 2 wrong usage, 3 an error with a fix, 130 stopped by
Ctrl-C, 143 by SIGTERM, 129 by SIGHUP."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from dashi.cli import (
    bench,
    demo,
    devices,
    filament,
    flow,
    graph,
    kernels,
    merge,
    report,
    rollout,
    sheet,
    stream,
    verify,
)
from dashi.cli.help import App, Group
from dashi.cli.options import remembered, wants_json
from dashi.cli.output import begin, has_printed, print_error, print_json, printable, remark
from dashi.cli.signals import Ending, ended_in_order
from dashi.errors import DashiError, OutOfMemoryError

ERROR: Final = 3


class _Root(Group):
    """Remembers what was typed; turns errors that have a fix, and Ctrl-C, into lines for people and an exit code."""

    ending: Ending

    def main(self, args: Sequence[str] | None = None, *more: Any, **named: Any) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        with remembered(words), ended_in_order() as self.ending:
            return super().main(words, *more, **named)

    def invoke(self, ctx: Any) -> Any:
        begin()
        try:
            return super().invoke(ctx)
        except DashiError as error:
            print_error(error, wants_json(ctx))
            raise typer.Exit(ERROR) from error
        except MemoryError as error:
            text = f"this takes more memory than there is: {error}".rstrip(": ")
            print_error(OutOfMemoryError(f"{text}.", "use smaller sizes."), wants_json(ctx))
            raise typer.Exit(ERROR) from error
        except KeyboardInterrupt as stop:
            remark("stopped")
            if wants_json(ctx) and not has_printed():
                print_json({"stopped": True})
            raise typer.Exit(self.ending.exit_code) from stop


class _Printable(logging.Formatter):
    """Lines of the log; what a terminal would obey in them is shown, not done."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


app = App(
    "dashi",
    cls=_Root,
    rich_markup_mode=None,  # plain help: it starts in half the time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _part in (devices, kernels, graph, bench, sheet, flow, filament, stream):
    app.add_typer(_part.app)
for _part in (devices, demo, rollout, report, verify, merge):
    _part.register(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        import dashi

        sys.stdout.write(f"dashi {dashi.__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Vulkan compute kernels with the same bits on every device.

    Data goes to stdout, progress and remarks to stderr. Tables fit the terminal; elsewhere they have 120 columns, or
    as many as COLUMNS says, and programs read --json. Exit codes: 0 well, 1 a check failed, 2 wrong usage,
    3 an error (with its fix), 130 stopped by Ctrl-C (143 by SIGTERM, 129 by SIGHUP, which do the same).
    """
    log = logging.getLogger("dashi")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Printable())
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)

    def restore() -> None:
        log.removeHandler(handler)
        log.setLevel(level)

    context.call_on_close(restore)


def main() -> None:
    """The program `dashi`."""
    app()
