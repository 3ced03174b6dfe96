"""Options that mean the same in every command, declared once."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Generator, Sequence
from contextvars import ContextVar
from typing import Annotated, Final

import typer

_JSON: Final = "dashi.json"
_LINE: Final[ContextVar[str]] = ContextVar("dashi_line", default="")
_DEVICE_HELP: Final = "auto, cpu, null, vulkan:0 or vulkan:part-of-name."


def _remember(context: typer.Context, value: bool) -> bool:
    """Errors must know it too, wherever they are caught: the meta dictionary is shared by nested commands."""
    if value:
        context.meta[_JSON] = True
    return value


def wants_json(context: typer.Context) -> bool:
    """Whether the command that runs was given --json."""
    return bool(context.meta.get(_JSON, False))


@contextlib.contextmanager
def remembered(words: Sequence[str]) -> Generator[None]:
    """Keeps what was typed while it runs, for whoever wants to repeat it."""
    token = _LINE.set(shlex.join(["dashi", *words]))
    try:
        yield
    finally:
        _LINE.reset(token)


def typed() -> str:
    """The command line that runs, as it was typed; empty where there is none."""
    return _LINE.get()


def example(line: str) -> str:
    """The epilog of a command's help: one example that works as printed."""
    # The mark says that the lines are not to be wrapped.
    return f"\b\nExample:\n  {line}"


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.", is_eager=True, callback=_remember)]
OneDevice = Annotated[str, typer.Option("--device", metavar="DEVICE", help=_DEVICE_HELP)]
Devices = Annotated[
    list[str] | None, typer.Option("--device", metavar="DEVICE", help=f"{_DEVICE_HELP} May be given several times.")
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace a run of another command or with other settings in --out."),
]
