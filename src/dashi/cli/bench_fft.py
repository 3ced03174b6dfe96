"""`dashi bench fft`: what Fourier transforms take, beside torch's."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli import bench_report
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.cli.progress import progress
from dashi.errors import InputError, NoResultError

if TYPE_CHECKING:
    from rich.table import Table

    from dashi.fft.bench import BenchCase


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi bench`."""
    app.command("fft", epilog=example("dashi bench fft --case 3"))(fft)


def fft(
    device: OneDevice = "auto",
    case: Annotated[
        list[int] | None,
        typer.Option("--case", help="Only the case of this number, from 0. May be given several times."),
    ] = None,
    tunings: Annotated[bool, typer.Option("--tunings", help="Every tuning, not only the one that is used.")] = False,
    peer: Annotated[
        list[str] | None, typer.Option("--peer", metavar="NAME", help="torch: the same on CUDA, by cuFFT.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Keep the results there, as JSON and Markdown.")
    ] = None,
    json: Json = False,
) -> None:
    """What a Fourier transform takes, on arrays that stay on the device.

    Each is checked against NumPy first: other bits are not timed, and give exit code 1. Times are medians on the
    device's own clock. Software devices measure the cases of 128 x 128 unless told otherwise.
    """
    import dashi
    from dashi.fft import bench, peers

    beside = [peers.load(name) for name in peer or ()]
    with dashi.open(device, validation=False) as opened:
        if opened.info.type == "null":
            raise NoResultError("the null device computes nothing.", "name another: --device auto, cpu or vulkan:0.")
        date = datetime.now(UTC).isoformat(timespec="seconds")
        command = shlex.join(["dashi", *sys.argv[1:]])
        document = bench_report.heading(opened.info, date, command, dashi.__version__)
        document["peers"] = {p.name: p.version for p in beside}
        document["rows"] = rows = list[dict[str, Any]]()
        chosen = _cases(case, hardware=opened.info.is_hardware)
        with progress("measuring", len(chosen), "cases") as advance:
            for one in chosen:
                times = bench.measure(opened, one, bench.tunings_of(one) if tunings else (None,))
                fast = bench.measure_fast(opened, one)
                times += (fast,) if fast else ()
                rows.append(bench.document(one, times, {p.name: p.us(one) for p in beside}))
                advance(1)
    if save is not None:
        bench_report.save(document, save, _page(document), "fft-")
    if json:
        print_json(document)
    else:
        print_table(_table(document))
    if any(t["checked"].startswith("WRONG") for r in rows for t in r["times"]):
        raise typer.Exit(1)


def _cases(numbers: list[int] | None, *, hardware: bool) -> list[BenchCase]:
    from dashi.fft.bench import CASES

    if numbers is None:
        return [c for c in CASES if hardware or c.n == 128]
    if any(not 0 <= n < len(CASES) for n in numbers):
        raise InputError(f"there is no case {max(numbers)}.", f"use 0 to {len(CASES) - 1}.")
    return [CASES[n] for n in numbers]


def _cells(document: dict[str, Any]) -> list[list[str]]:
    peers = list(document["peers"])
    lines = [["case", "tuning", "us", "GB/s", *(f"{p} (us)" for p in peers), "ratio", "checked"]]
    for row in document["rows"]:
        theirs = [row["peers_us"][p] for p in peers]
        for time in row["times"]:
            us = time["us"]
            ratio = f"{us / min(theirs):.2f}" if us and theirs else "-"
            rate = f"{row['bytes'] / us / 1000:.0f}" if us else "-"
            took = f"{us:.2f}" if us else "-"
            said = time["checked"] or time["skipped"]
            lines.append([row["case"], time["tuning"], took, rate, *(f"{t:.2f}" for t in theirs), ratio, said])
    return lines


def _table(document: dict[str, Any]) -> Table:
    first, *rest = _cells(document)
    table = new_table(*first)
    for line in rest:
        add_row(table, *line)
    return table


def _page(document: dict[str, Any]) -> str:
    """The results as Markdown."""
    taken = (
        "Microseconds per transform, medians on the device's own clock, arrays resident; GB/s counts two passes that",
        "read and write everything once.",
    )
    return bench_report.page("Fourier transforms", taken, document, _cells(document))
