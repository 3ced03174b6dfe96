"""`dashi bench fft`: what Fourier transforms take, beside torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli import bench_report
from dashi.cli.bench_beside import Bench, CaseNumbers, Save, bench_device, cases_of
from dashi.cli.options import Json, OneDevice, example

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashi.bench.fft import BenchCase
    from dashi.bench.peers.fft import TorchFft
    from dashi.runtime.device import Device


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi bench`."""
    app.command("fft", epilog=example("dashi bench fft --case 3"))(fft)


def fft(
    device: OneDevice = "auto",
    case: CaseNumbers = None,
    tunings: Annotated[bool, typer.Option("--tunings", help="Every tuning, not only the one that is used.")] = False,
    peer: Annotated[
        list[str] | None, typer.Option("--peer", metavar="NAME", help="torch: the same on CUDA, by cuFFT.")
    ] = None,
    save: Save = None,
    json: Json = False,
) -> None:
    """What a Fourier transform takes, on arrays that stay on the device.

    Each is checked against NumPy first: other bits are not timed, and give exit code 1. Times are medians on the
    device's own clock. Software devices measure the cases of 128 x 128 unless told otherwise. What was measured is
    kept after each case.
    """
    from dashi.bench import fft as bench
    from dashi.bench.peers import fft as peers

    job = Bench("fft", _tables, _page, save)
    job.require_writable()
    beside = [peers.load(name) for name in peer or ()]
    with bench_device(device) as (opened, document):
        usual = [c for c in bench.CASES if opened.info.is_hardware or c.n == 128]

        def measured(one: BenchCase) -> dict[str, Any]:
            return row(opened, one, beside, bench.tunings_of(one) if tunings else (None,))

        job.measure(document, beside, cases_of(bench.CASES, case, usual), "cases", measured)
    job.tell(document, json=json)
    if wrong(document["rows"]):
        raise typer.Exit(1)


def row(
    device: Device, one: BenchCase, beside: Sequence[TorchFft], tunings: tuple[str | None, ...] = (None,)
) -> dict[str, Any]:
    """A case in both classes, and by the peers."""
    from dashi.bench import fft as bench

    times = bench.measure(device, one, tunings)
    fast = bench.measure_fast(device, one)
    return bench.document(one, (*times, fast) if fast else times, {p.name: p.us(one) for p in beside})


def wrong(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether some result had other bits."""
    return any(t["checked"].startswith("WRONG") for r in rows for t in r["times"])


def cells(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A table of these rows."""
    peers = list(rows[0]["peers_us"]) if rows else []
    lines = [["case", "tuning", "us", "GB/s", *(f"{p} (us)" for p in peers), "ratio", "checked"]]
    for row in rows:
        theirs = [row["peers_us"][p] for p in peers]
        for time in row["times"]:
            us = time["us"]
            ratio = f"{us / min(theirs):.2f}" if us and theirs else "-"
            rate = f"{row['bytes'] / us / 1000:.0f}" if us else "-"
            took = f"{us:.2f}" if us else "-"
            said = time["checked"] or time["skipped"]
            lines.append([row["case"], time["tuning"], took, rate, *(f"{t:.2f}" for t in theirs), ratio, said])
    return lines


def _tables(document: dict[str, Any]) -> list[list[list[str]]]:
    return [cells(document["rows"])]


def _page(document: dict[str, Any]) -> str:
    """The results as Markdown."""
    taken = (
        "Microseconds per transform, medians on the device's own clock, arrays resident; GB/s counts two passes that",
        "read and write everything once.",
    )
    return bench_report.page("Fourier transforms", taken, document, _tables(document))
