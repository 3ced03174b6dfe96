"""Benches beside peers: the options they share, the document that they fill, and how it is kept and shown."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from dashi.cli import bench_report
from dashi.cli.completion import complete_peers
from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.cli.progress import progress
from dashi.errors import InputError, NoResultError
from dashi.io._files import require_writable

if TYPE_CHECKING:
    from dashi.runtime.device import Device

Work = TypeVar("Work")
Document = dict[str, Any]
Cells = list[list[str]]

CaseNumbers = Annotated[
    list[int] | None,
    typer.Option("--case", metavar="NUMBER", help="Only the case of this number, from 0. Repeatable."),
]
Peers = Annotated[
    list[str] | None,
    typer.Option(
        "--peer",
        metavar="NAME",
        help="torch or jax: the same on CUDA. May be given several times.",
        autocompletion=complete_peers,
    ),
]
Save = Annotated[
    Path | None, typer.Option("--save", metavar="DIR", help="Keep the results there, as JSON and Markdown.")
]


class Named(Protocol):
    """What the document says of a peer."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...


@contextmanager
def bench_device(spec: str) -> Generator[tuple[Device, Document]]:
    """An open device that computes, and a document that says where, when and by which command it is filled."""
    import dashi

    with dashi.open(spec, validation=False) as device:
        if device.info.type == "null":
            raise NoResultError("the null device computes nothing.", "name another: --device auto, cpu or vulkan:0.")
        date = datetime.now(UTC).isoformat(timespec="seconds")
        yield device, bench_report.heading(device.info, date, shlex.join(["dashi", *sys.argv[1:]]), dashi.__version__)


@dataclass(frozen=True)
class Bench:
    """A bench by its name: how its document becomes tables and a page, and where it is kept, if anywhere."""

    name: str
    tables: Callable[[Document], Sequence[Cells]]
    page: Callable[[Document], str]
    save: Path | None

    def require_writable(self) -> None:
        """Refuses a folder that cannot be written before anything is measured."""
        if self.save is not None:
            require_writable(self.save / f"{self.name}.json")

    def measure(
        self,
        document: Document,
        beside: Sequence[Named],
        work: Sequence[Work],
        noun: str,
        row: Callable[[Work], Document],
        into: str = "rows",
    ) -> None:
        """A row for each piece of work; after each the document is kept, so that Ctrl-C loses none of them."""
        document["peers"] = {peer.name: peer.version for peer in beside}
        document[into] = rows = list[Document]()
        with progress("measuring", len(work), noun) as advance:
            for one in work:
                rows.append(row(one))
                self.keep(document)
                advance(1)

    def keep(self, document: Document) -> None:
        if self.save is not None:
            bench_report.save(document, self.save, self.page(document), f"{self.name}-")

    def tell(self, document: Document, *, json: bool) -> None:
        """For programs as it is, for people as tables."""
        if json:
            print_json(document)
            return
        for first, *rest in self.tables(document):
            table = new_table(*first)
            for line in rest:
                add_row(table, *line)
            print_table(table)


def cases_of(cases: Sequence[Work], numbers: Sequence[int] | None, usual: Sequence[Work]) -> list[Work]:
    """The cases of these numbers; without any, the usual ones."""
    if numbers is None:
        return [*usual]
    wrong = [n for n in numbers if not 0 <= n < len(cases)]
    if wrong:
        raise InputError(f"there is no case {wrong[0]}.", f"use 0 to {len(cases) - 1}.")
    return [cases[n] for n in numbers]
