"""`dashi bench flow`: what a step of the spectral solver takes, beside torch and JAX."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli import bench_fft, bench_report
from dashi.cli.bench_beside import Bench, Peers, Save, bench_device
from dashi.cli.options import Json, OneDevice, example

if TYPE_CHECKING:
    from dashi.bench.fft import BenchCase
    from dashi.bench.peers.flow import Peer
    from dashi.runtime.device import Device


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi bench`."""
    app.command("flow", epilog=example("dashi bench flow --n 64"))(flow)


def flow(
    device: OneDevice = "auto",
    n: Annotated[list[int] | None, typer.Option("--n", metavar="N", help="Points along a side. Repeatable.")] = None,
    dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE", help="float32 or float64.")] = "float32",
    peer: Peers = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """What a step of RK4 takes: four stages of four inverse and one forward transform, dealiased.

    States are resident; two steps are compared with float64 first, and a wrong result gives exit code 1. Times are
    medians on the device's own clock. On the device cpu the solver's --fast mode runs in turns with a plain solver by
    SciPy (NumPy where that is not installed). Unless sizes or float64 are asked for, complex transforms follow on a
    GPU, by torch too if it is a peer (all of them: dashi bench fft). What was measured is kept after each size.
    """
    from dashi.bench import fft as fft_bench
    from dashi.bench import flow as bench
    from dashi.bench.peers import fft as fft_peers
    from dashi.bench.peers import flow as peers

    job = Bench("flow", _tables, _page, save)
    job.require_writable()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take the memory of the whole GPU
    beside = [peers.load(name) for name in peer or ()]
    transforming = [fft_peers.load(p.name) for p in beside if p.name in fft_peers.NAMES]
    with bench_device(device) as (opened, document):
        sizes = n or [*(bench.SIZES if opened.info.is_hardware else bench.SMALL)]
        job.measure(document, beside, sizes, "sizes", lambda size: _row(opened, size, dtype, beside))
        if not n and dtype == "float32" and opened.info.is_hardware:

            def transform(one: BenchCase) -> dict[str, Any]:
                return bench_fft.row(opened, one, transforming)

            job.measure(document, beside, fft_bench.FIELDS, "transforms", transform, into="transforms")
    job.tell(document, json=json)
    if any(not row.get("good", True) for row in document["rows"]) or bench_fft.wrong(document.get("transforms", ())):
        raise typer.Exit(1)


def _row(device: Device, size: int, dtype: str, beside: list[Peer]) -> dict[str, Any]:
    from dashi.bench import flow as bench

    if device.info.type == "reference":
        return asdict(bench.beside_plain(size, dtype))
    found = asdict(bench.measure(device, size, dtype))
    problem, states = bench.bench_flow(size, dtype)
    steps = max(2, min(50, 8_000_000 // (size * size)))
    return {**found, "peers_us": {p.name: p.us_per_step(problem, states, steps) for p in beside}}


def _tables(document: dict[str, Any]) -> list[list[list[str]]]:
    transforms = document.get("transforms")
    return [_cells(document), *([bench_fft.cells(transforms)] if transforms else [])]


def _cells(document: dict[str, Any]) -> list[list[str]]:
    rows = document["rows"]
    if rows and "plain_us" in rows[0]:
        lines = [["n", "dtype", "fast (us/step)", "plain (us/step)", "fast / plain", "library"]]
        for r in rows:
            times = [f"{r['us']:.0f}", f"{r['plain_us']:.0f}", f"{r['ratio']:.2f}"]
            lines.append([str(r["n"]), r["dtype"], *times, r["library"]])
        return lines
    peers = list(document["peers"])
    head = ["n", "dtype", "us/step", "device class", "dispatches", *(f"{p} (us/step)" for p in peers)]
    head += ["error", "checked"]
    return [
        head,
        *(
            [
                str(r["n"]), r["dtype"], f"{r['us']:.1f}", f"{r['fast_us']:.1f}" if r["fast_us"] else "-",
                str(r["dispatches"]),
                *(f"{r['peers_us'][p]:.1f}" for p in peers), f"{r['error']:.1e}", "good" if r["good"] else "WRONG",
            ]
            for r in rows
        ),
    ]  # fmt: skip


def _page(document: dict[str, Any]) -> str:
    """The results as Markdown."""
    taken = (
        "RK4, dealiased, four inverse and one forward transform in each of four stages; medians, states resident.",
        "us/step is the portable class; in the device class nothing is flushed.",
    )
    return bench_report.page("A step of the flow solver", taken, document, _tables(document))
