"""`dashi report`: the page of a run, made again from what the run left."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashi.cli.options import Json, example
from dashi.cli.output import one_line, print_json, remark
from dashi.errors import InputError
from dashi.io._run_folder import REPORT


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("report", epilog=example("dashi report --example --out example.html"))(report)


def report(
    run: Annotated[Path | None, typer.Argument(metavar="RUN", help="The folder of a run.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The file to write (default: RUN/report.html).")] = None,
    opened: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    made_up: Annotated[bool, typer.Option("--example", help="A page of made-up numbers, in place of a run.")] = False,
    json: Json = False,
) -> None:
    """Make the report of a run again: one HTML file that needs nothing else and works offline.

    Whatever the folder holds is shown: fields, scores, certificate, sheet, trace, metrics. What is damaged is an
    error, and the old report stays; a file that is no report is never written over. Needs the extra `plot`.
    """
    from dashi.report.page import write_report
    from dashi.report.run import read_run
    from dashi.report.writing import require_place, require_report

    if (run is None) is not made_up:
        raise InputError("a report is of one run, or of the example.", "name a run folder, or give --example.")
    if run is None:
        from dashi.report.example import example_report

        file = out or Path(REPORT)
        require_report(file)
        page = example_report()
    else:
        file = require_place(run, out)
        page = read_run(run)
    remark("drawing the report")
    write_report(file, page)
    if json:
        print_json({"report": str(file), "title": page.title, "summary": page.summary})
    else:
        typer.echo(one_line(str(file)))
    if opened:
        typer.launch(file.absolute().as_uri())
