"""What commands print: data on stdout, everything else on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import typer

from dashi.cli.flags import in_flags
from dashi.errors import DashiError
from dashi.io._files import unwritable

if TYPE_CHECKING:
    from rich.console import Console

    from dashi.cli.tables import TextTable


_RED: Final = "1;31"
_PRINTED: Final[ContextVar[bool]] = ContextVar("dashi_printed", default=False)


_OBEYED: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Beyond those below a space, what terminals and editors obey instead of showing it: control characters, marks that
turn the direction of text around, separators of lines; and halves of surrogate pairs, which cannot be written."""
_CONTROLS: Final = re.compile(f"[\x00-\x08\x0b-\x1f]|{_OBEYED.pattern}")


def printable(text: str) -> str:
    """Text from anywhere, safe to print: control characters become their escapes. Tabs and ends of lines stay;
    `one_line` escapes those too."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """A name from a file, safe to print, on one line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _indented(text: str) -> str:
    """Further lines begin with spaces: what comes from a file cannot pass for a line of the program's own."""
    return printable(text).replace("\n", "\n  ")


def begin() -> None:
    """A command begins: it has printed nothing yet."""
    _PRINTED.set(False)


def has_printed() -> bool:
    """Whether the command that runs has printed its document: there is only one."""
    return _PRINTED.get()


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    _PRINTED.set(True)
    text = json.dumps(document, indent=2, ensure_ascii=False)
    with _on_stdout():
        # JSON escapes what is below a space; what else a terminal obeys is in strings alone, and is escaped there.
        sys.stdout.write(_OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
        sys.stdout.flush()


@contextlib.contextmanager
def _on_stdout() -> Generator[None]:
    """A full disk behind `> file`, or a reader that went away, is an error with a fix like any other."""
    try:
        yield
    except OSError as error:
        # What is left in the buffer would be written at exit, and fail once more.
        with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise unwritable("what is printed", error) from error


def print_error(error: DashiError, as_json: bool) -> None:
    """What happened and the fix, on stderr; with --json also as a document on stdout."""
    what, fix = _indented(in_flags(error.what)), _indented(in_flags(error.fix))
    sys.stderr.write(f"{_coloured('error:', _RED)} {what}\nFix: {fix}\n")
    if as_json:
        print_json({"error": error_document(error)})


def _coloured(word: str, colour: str) -> str:
    """A word in a colour where stderr is a terminal that shows it, and nobody asked for none (NO_COLOR)."""
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return word
    return f"\x1b[{colour}m{word}\x1b[0m"


def error_document(error: DashiError) -> dict[str, str]:
    """What happened and the fix, as documents have it."""
    return {"type": type(error).__name__, "what": in_flags(error.what), "fix": in_flags(error.fix)}


def print_outcome(document: dict[str, Any], failure: DashiError | None) -> None:
    """The document of a command with --json; what went wrong is in it too, since there is only one, and ends it."""
    print_json(document if failure is None else {**document, "error": error_document(failure)})
    if failure is not None:
        print_error(failure, as_json=False)
        raise typer.Exit(3)


def remark(*lines: str) -> None:
    """Lines for people, on stderr."""
    sys.stderr.write("".join(f"{_indented(line)}\n" for line in lines))
    sys.stderr.flush()


_PIPED_WIDTH: Final = 120


def console() -> Console:
    """Where tables go: stdout. Not on a terminal, lines have 120 columns, or as many as COLUMNS says."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console(highlight=False)
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and int(columns) else _PIPED_WIDTH
    return Console(width=width, highlight=False, color_system=None)


def print_table(table: TextTable) -> None:
    """A table on stdout that fits its width, without spaces at the ends of lines."""
    from dashi.cli.tables import print_fitted

    where = console()
    with _on_stdout():
        with where.capture() as captured:
            print_fitted(table, where)
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
        sys.stdout.flush()


def print_text(text: str) -> None:
    """A line of data on stdout."""
    with _on_stdout():
        sys.stdout.write(f"{printable(text)}\n")
        sys.stdout.flush()


def new_table(*headings: str, keys: int = 1) -> TextTable:
    """An empty table in the house's style, without lines; its first columns are keys that name a row. Headings that
    are all empty are not shown."""
    from dashi.cli.tables import TextTable

    return TextTable(headings, keys)


def add_row(table: TextTable, *cells: str) -> None:
    """A row of plain text: brackets are brackets, not markup; and what a terminal would obey is shown, not done."""
    from rich.text import Text

    table.add_row(*(Text(printable(cell)) for cell in cells))


def print_rows(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table of plain text."""
    table = new_table(*headings)
    for row in rows:
        add_row(table, *row)
    print_table(table)


def print_facts(facts: Mapping[str, str]) -> None:
    """A table of names and what is known of them; what is empty is left away."""
    print_rows(("", ""), [(name, text) for name, text in facts.items() if text])


def step_time(ns: float) -> str:
    """What a step takes: three digits, however short it is; milliseconds and seconds where it is long."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns / 1000:.3g} us"
