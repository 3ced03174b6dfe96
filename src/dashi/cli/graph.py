"""`dashi graph`: what the compiler makes of a graph."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from dashi.cli.help import App
from dashi.cli.options import Json, example
from dashi.cli.output import print_json, printable
from dashi.errors import FileError

app = App("graph", "Graphs of tensor ops: what the compiler makes of them.")
_MOST_BYTES: Final = 1 << 26


class AfterPass(StrEnum):
    """The passes of the compiler, in order."""

    rewrite = "rewrite"
    legalize = "legalize"
    fuse = "fuse"
    assign_layouts = "assign_layouts"
    plan_memory = "plan_memory"
    schedule = "schedule"


def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A graph in text form, as print(graph) writes it.")],
    after: Annotated[AfterPass, typer.Option("--after", help="The pass to show the result of.")] = AfterPass.schedule,
    json: Json = False,
) -> None:
    """What becomes of a graph: the text of it after a pass, where its values lie, or the steps and who computes them.

    No device is opened: it is the plan for one that has every feature.
    """
    from dashi.graph import explain as explain_graph
    from dashi.graph import parse_graph
    from dashi.graph.compiler import host_steps

    graph = parse_graph(_text(file))
    shown = explain_graph(graph, after=after.value)
    if json:
        print_json({"graph": graph.name, "after": after.value, "text": shown, "host_steps": host_steps(graph)})
        return
    typer.echo(printable(shown))


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise FileError(f"{file} is larger than {_MOST_BYTES} bytes.", "name a graph in text form.")
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{file} cannot be read: {error}.", "name a graph in text form.") from error


app.command("explain", epilog=example("dashi graph explain model.txt --after fuse"))(explain)
