"""`dashi doctor`: what was found, what is missing, and the command that installs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dashi.cli.options import Json, example
from dashi.cli.output import new_table, print_json, print_table, printable
from dashi.cli.progress import Shown

if TYPE_CHECKING:
    from dashi.lab.health import Health

_MARKS: Final = {"ok": "[green]ok[/]", "optional": "[dim]--[/]", "warning": "[yellow]!![/]", "failed": "[red]FAILED[/]"}
_TIMEOUT: Final = 60.0


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("doctor", epilog=example("dashi doctor"))(doctor)


def doctor(
    json: Json = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a driver may take to answer.")] = _TIMEOUT,
) -> None:
    """Say what works here, what is missing, and how to get it.

    Drivers are probed in child processes, so that one which crashes or hangs does no harm. Exit code 0: dashi works,
    if need be on the NumPy device alone; 1: it does not.
    """
    from dashi.lab.health import examine

    health = examine(timeout, events=Shown())
    if json:
        print_json(health.as_json())
    else:
        _print(health)
    if not health.ok:
        raise typer.Exit(1)


def _print(health: Health) -> None:
    from rich.markup import escape

    table = new_table("", "", "", keys=2)
    for part in health.parts:
        fix = f"\n[bold]Fix:[/] {escape(printable(part.fix))}" if part.fix else ""
        table.add_row(_MARKS[part.status], escape(part.name), escape(printable(part.text)) + fix)
    print_table(table)
    sys.stdout.write(f"\n{health.verdict}\n")
