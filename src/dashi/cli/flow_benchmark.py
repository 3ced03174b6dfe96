"""`dashi flow benchmark`: models and coarse solvers beside numbers that others have published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashi.cli import flow_options as o
from dashi.cli.options import Json, OneDevice, Overwrite, example, typed
from dashi.cli.output import print_json, print_rows, remark
from dashi.cli.progress import Shown

Name = Annotated[str, typer.Argument(metavar="NAME", help="The benchmark: kochkov.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small, easy and few: it shows that all of it runs.")]
TruthFile = Annotated[
    Path | None,
    typer.Option("--truth", metavar="FILE", help="The truth.npz of an earlier run, instead of making it again."),
]
TruthOnly = Annotated[
    bool,
    typer.Option("--truth-only", help="Make the truth and its certificate, for a later --truth, and score nobody."),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="A folder for the truth, its certificate and all scores.")
]


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi flow`."""
    line, summary = "dashi flow benchmark kochkov --quick --out runs/kochkov", "Score models beside published numbers."
    app.command("benchmark", epilog=example(line), short_help=summary)(benchmark)


def benchmark(
    name: Name,
    quick: Quick = False,
    truth: TruthFile = None,
    truth_only: TruthOnly = False,
    device: OneDevice = "auto",
    out: Out = None,
    overwrite: Overwrite = False,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    json: Json = False,
) -> None:
    """Make a truth, and score models and coarse solvers that start from it, coarsened.

    kochkov is the Kolmogorov flow of Kochkov and others (2021): nu 1e-3, force sin(4 y), drag 0.1, 16 trajectories
    after 40 units of time, by the spectral solver on 1024 x 1024 points; vorticity is compared on 64 x 64. The score is
    the time when the mean correlation over trajectories falls below 0.95, 0.8 and 0.5. That is work for a GPU; --quick
    runs all of it on flows so small that its numbers mean nothing. The truth is the same to the last bit wherever it is
    made; with --out it is left with its certificate. Exit code 3 on errors, 130 if stopped.
    """
    from dashi import lab
    from dashi.lab.flow_benchmark import HEADINGS

    request = lab.BenchmarkRequest(
        name=name, setting="quick" if quick else "full", truth=truth, truth_only=truth_only,
        allow_fallback=allow_fallback, require_gpu=require_gpu, command_line=typed(),
    )  # fmt: skip
    scores = lab.benchmark_flow(request, device=device, out=out, overwrite=overwrite, events=Shown())
    if json:
        print_json(scores.document())
        return
    if scores.scores:
        print_rows(HEADINGS, scores.rows())
    remark(f"truth: {scores.truth.operator}, last states {scores.truth.hash}")
    if quick:
        remark("these are small and easy flows: the numbers mean nothing")
    if out:
        remark(f"left in {out}")
