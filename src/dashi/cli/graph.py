"""`dashi graph`: what the compiler makes of a graph, what it gives, and how fast."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dashi.cli.help import App
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import print_json, print_rows, printable, remark
from dashi.cli.progress import phase, progress
from dashi.errors import FileError, InputError
from dashi.io._files import require_writable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashi.graph import TunedCall

app = App("graph", "Graphs of tensor ops: run, explain, tune.")
_MOST_BYTES: Final = 1 << 26
File = Annotated[Path, typer.Argument(metavar="FILE", help="A graph in text form, as print(graph) writes it.")]


class PipelineClass(StrEnum):
    """What a pipeline promises: the same bits on every device, or what this device does best."""

    portable = "portable"
    device = "device"


Class = Annotated[PipelineClass, typer.Option("--class", help="portable: the same bits on every device.")]


class AfterPass(StrEnum):
    """The passes of the compiler, in order."""

    rewrite = "rewrite"
    legalize = "legalize"
    fuse = "fuse"
    assign_layouts = "assign_layouts"
    cut = "cut"
    choose_products = "choose_products"
    schedule = "schedule"
    plan_memory = "plan_memory"
    record = "record"


def explain(
    file: File,
    after: Annotated[
        AfterPass, typer.Option("--after", metavar="PASS", help=f"The pass to show: {', '.join(AfterPass)}.")
    ] = AfterPass.schedule,
    class_: Class = PipelineClass.portable,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="DEVICE", help="The device that the plan is for. Default: one that has every feature."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """What becomes of a graph: the text of it after a pass, the steps and who computes them, where its values lie, or
    what is recorded, with its barriers.
    """
    import dashi
    from dashi.graph import explain as explain_graph
    from dashi.graph import parse_graph
    from dashi.graph.compiler import host_steps

    graph = parse_graph(_text(file))
    with dashi.open(device) if device else nullcontext() as opened:
        shown = explain_graph(graph, after=after.value, device=opened, class_=class_.value)
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


def run(
    file: File,
    inputs: Annotated[
        Path | None, typer.Option("--inputs", metavar="NPZ", help="Values of inputs by name. Others are random.")
    ] = None,
    params: Annotated[
        Path | None, typer.Option("--params", metavar="NPZ", help="Values of params by name. Others are random.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="NPZ", help="Where to write the results.")] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of random values.")] = 0,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Runs that are timed.")] = 3,
    class_: Class = PipelineClass.portable,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """Compiles a graph and runs it: shapes and hashes of its results, and what a run takes.

    In the class portable the hashes are the same on every device. Debug switches: DASHI_GRAPH_DEBUG.
    """
    import dashi
    from dashi.graph import parse_graph, run_graph
    from dashi.io.arrays import read_arrays, write_arrays

    graph = parse_graph(_text(file))
    fed = read_arrays(inputs) if inputs else {}
    stored = read_arrays(params) if params else {}
    if out is not None:
        require_writable(out)
        if any(out.exists() and read.exists() and out.samefile(read) for read in (file, inputs, params) if read):
            raise InputError(f"{out} is what is read, and the results would replace it.", "name another file as --out.")
    with dashi.open(device) as opened, phase("compiling and running"):
        name = opened.info.name
        done = run_graph(graph, opened, fed, params=stored, class_=class_.value, repeats=repeats, seed=seed)
    if out is not None:
        write_arrays(out, done.outputs)
    if json:
        print_json({"device": name, "graph": graph.name, **done.as_dict()})
        return
    document = done.as_dict()
    rows = [
        (title, f"{about['dtype']} {about['shape']}", about["hash"]) for title, about in document["outputs"].items()
    ]
    print_rows(("result", "type", "hash"), rows)
    remark(f"{document['ms']:.3f} ms a run on {name}, compiled in {done.compile_ms:.0f} ms", str(done.report))


def tune(
    file: File,
    class_: Class = PipelineClass.portable,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """Measures the tunings of a graph's kernels on this device, shape by shape, and keeps the fastest for compiles.

    What is kept lies in the cache folder (DASHI_CACHE_DIR). Results do not depend on it: the bits of each tuning are
    compared, and one that differs is left out. Each call is shown when it is measured; Ctrl-C keeps and prints those
    that there are.
    """
    from dataclasses import asdict

    import dashi
    from dashi.graph import parse_graph
    from dashi.graph import tune as tune_graph

    graph = parse_graph(_text(file))
    with dashi.open(device, validation=False) as opened:
        name = opened.info.name
        tuned: list[TunedCall] = []
        stopped = False
        if not opened.info.spec.startswith("vulkan:"):
            remark(f"{name} has nothing to tune: only Vulkan devices run shaders")
        else:
            try:
                with progress("tuning", None, "calls") as advance:

                    def show(call: TunedCall) -> None:
                        tuned.append(call)
                        remark(f"{call.kernel} {call.call}: {call.best or 'none of its tunings'}")
                        advance(1)

                    tune_graph(graph, opened, class_=class_.value, on_call=show)
            except KeyboardInterrupt:
                stopped = True
    if json:
        print_json({"device": name, "graph": graph.name, "tuned": [asdict(call) for call in tuned]})
    else:
        _print_tuned(tuned)
    if stopped:
        raise KeyboardInterrupt


def _print_tuned(tuned: Sequence[TunedCall]) -> None:
    rows = [
        (
            f"{call.kernel} {call.call}",
            str(call.steps),
            call.best or "",
            ", ".join(f"{tuning} {call.us[tuning]:.1f}" for tuning in sorted(call.us, key=lambda k: call.us[k])),
            "; ".join(call.notes),
        )
        for call in tuned
    ]
    print_rows(("call", "steps", "fastest", "us by tuning", "note"), rows)


app.command("run", epilog=example("dashi graph run model.txt --inputs values.npz"))(run)
app.command("tune", epilog=example("dashi graph tune model.txt"))(tune)
