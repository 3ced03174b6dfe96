"""`dashi bench flow`: what a step of the spectral solver takes, beside torch and JAX."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli import bench_report
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.cli.progress import progress
from dashi.errors import NoResultError

if TYPE_CHECKING:
    from dashi.flow.peers import Peer
    from dashi.runtime.device import Device


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi bench`."""
    app.command("flow", epilog=example("dashi bench flow --n 64"))(flow)


def flow(
    device: OneDevice = "auto",
    n: Annotated[list[int] | None, typer.Option("--n", help="Points along a side. May be given several times.")] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="float32 or float64.")] = "float32",
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="NAME", help="torch or jax: the same on CUDA. May be given several times."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Keep the results there, as JSON and Markdown.")
    ] = None,
    json: Json = False,
) -> None:
    """What a step of RK4 takes: four stages of four inverse and one forward transform, dealiased.

    States are resident; two steps are compared with float64 first, and a wrong result gives exit code 1. Times are
    medians on the device's own clock. On the device cpu the solver's --fast mode runs in turns with a plain solver by
    SciPy (NumPy where that is not installed).
    """
    import dashi
    from dashi.flow import bench, peers

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take the memory of the whole GPU
    beside = [peers.load(name) for name in peer or ()]
    with dashi.open(device, validation=False) as opened:
        if opened.info.type == "null":
            raise NoResultError("the null device computes nothing.", "name another: --device auto, cpu or vulkan:0.")
        sizes = n or [*(bench.SIZES if opened.info.is_hardware else bench.SMALL)]
        date = datetime.now(UTC).isoformat(timespec="seconds")
        document = bench_report.heading(opened.info, date, shlex.join(["dashi", *sys.argv[1:]]), dashi.__version__)
        document["peers"] = {p.name: p.version for p in beside}
        document["rows"] = rows = list[dict[str, Any]]()
        with progress("measuring", len(sizes), "sizes") as advance:
            for size in sizes:
                rows.append(_row(opened, size, dtype, beside))
                advance(1)
    cells = _cells(document)
    if save is not None:
        bench_report.save(document, save, _page(document, cells), "flow-")
    if json:
        print_json(document)
    else:
        first, *rest = cells
        table = new_table(*first)
        for line in rest:
            add_row(table, *line)
        print_table(table)
    if any(not row.get("good", True) for row in rows):
        raise typer.Exit(1)


def _row(device: Device, size: int, dtype: str, beside: list[Peer]) -> dict[str, Any]:
    from dashi.flow import bench

    if device.info.type == "reference":
        return asdict(bench.beside_plain(size, dtype))
    found = asdict(bench.measure(device, size, dtype))
    problem, states = bench.bench_flow(size, dtype)
    steps = max(2, min(50, 8_000_000 // (size * size)))
    return {**found, "peers_us": {p.name: p.us_per_step(problem, states, steps) for p in beside}}


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


def _page(document: dict[str, Any], cells: list[list[str]]) -> str:
    """The results as Markdown."""
    taken = (
        "RK4, dealiased, four inverse and one forward transform in each of four stages; medians, states resident.",
        "us/step is the portable class; in the device class nothing is flushed.",
    )
    return bench_report.page("A step of the flow solver", taken, document, cells)
