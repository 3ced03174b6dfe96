"""`dashi flow evaluate`: a fitted model on data that it never saw, beside its baselines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dashi.cli import flow_options as o
from dashi.cli.options import Json, OneDevice, Overwrite, example
from dashi.errors import InputError

_OF_V4 = {"compat", "n", "eval_steps", "eval_seed", "device", "json", "allow_fallback", "require_gpu"}
ModelFile = Annotated[Path | None, typer.Argument(metavar="MODEL", help="A file of `dashi flow fit`.")]
EvalSteps = Annotated[
    int | None,
    typer.Option(
        "--eval-steps", "--steps", help="Steps of a window. Default: twice those of training; with --from, all."
    ),
]
EvalSeed = Annotated[
    int | None,
    typer.Option(
        "--eval-seed", "--seed", help="The first seed; others follow. Default: the first unseen; with --from, all."
    ),
]
Seeds = Annotated[int | None, typer.Option("--seeds", help="How many seeds. Default: 2; with --from, all.")]
WindowsEach = Annotated[
    int | None,
    typer.Option("--windows", help="Windows of each seed, one after another. Default: 1; with --from, all there are."),
]
Start = Annotated[
    int | None,
    typer.Option("--start", help="The step where the first window starts. Default: after the spin-up; with --from, 0."),
]
NoTrain = Annotated[
    bool, typer.Option("--no-train", help="Says that nothing is fitted here, which is always so: the file has it all.")
]
From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="RUN",
        help="A run of `dashi flow simulate --out`, a NetCDF file or a Zarr store: no simulation.",
    ),
]
Perturb = Annotated[
    list[str] | None,
    typer.Option("--perturb", metavar="NAME=VALUE", help="Also on a flow with another nu, cs, dt or n. Repeatable."),
]
Perfect = Annotated[bool, typer.Option("--perfect", help="Also the full solver, from the start that z holds.")]
Residual = Annotated[
    bool, typer.Option("--residual", help="Also with drawn fine structure (docs/decode.md), by its spectrum alone.")
]
AllowOverlap = Annotated[bool, typer.Option("--allow-overlap", help="Score on data that were trained on, and say so.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Keep the scores: evaluation-*.npz, .json.")]
Compat = Annotated[
    str | None, typer.Option("--compat", metavar="v4", help="Instead, the numbers of an earlier code (docs/v4.md).")
]
CompatSize = Annotated[int | None, typer.Option("--n", help="With --compat v4: points along a side.")]


@dataclass(frozen=True)
class EvaluateRequest:
    """What was asked for on the command line."""

    model: Path
    eval_steps: int | None
    eval_seed: int | None
    no_train: bool
    seeds: int | None
    windows: int | None
    start: int | None
    source: Path | None
    perturb: tuple[str, ...]
    perfect: bool
    residual: bool
    allow_overlap: bool
    device: str
    fast: bool
    out: Path | None
    overwrite: bool
    allow_fallback: bool
    require_gpu: bool
    json: bool


def evaluate(
    context: typer.Context,
    model: ModelFile = None,
    eval_steps: EvalSteps = None,
    eval_seed: EvalSeed = None,
    no_train: NoTrain = False,
    seeds: Seeds = None,
    windows: WindowsEach = None,
    start: Start = None,
    source: From = None,
    perturb: Perturb = None,
    perfect: Perfect = False,
    residual: Residual = False,
    allow_overlap: AllowOverlap = False,
    device: OneDevice = "auto",
    fast: o.Fast = False,
    out: Out = None,
    overwrite: Overwrite = False,
    compat: Compat = None,
    n: CompatSize = None,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    json: Json = False,
) -> None:
    """Roll a model and its baselines out on their own from unseen starts, and score them against what the flow did.

    Scores on training data, kept with the model, are shown beside. Data that were seen are refused unless told. Times
    are flow times until correlation falls below 0.9, 0.8 and 0.5; docs/evaluation.md explains every column. Ctrl-C
    keeps what is finished. Exit code 3 on errors, 130 if stopped.
    """
    if compat is not None:
        from dashi.cli.flow_v4 import run_v4

        given = [option for name, option in o.given_options(context).items() if name not in _OF_V4]
        if given:
            raise InputError(
                f"--compat v4 has a setting of its own, and {given[0]} changes none of it.",
                f"leave {', '.join(given)} away.",
            )
        run_v4(
            "evaluate", compat=compat, n=n, steps=eval_steps, seed=eval_seed, device=device, json=json,
            allow_fallback=allow_fallback, require_gpu=require_gpu,
        )  # fmt: skip
        return
    if n is not None:
        raise InputError(
            "--n goes with --compat v4; otherwise the grid is that of the model.",
            f"leave it away, or score on another grid too with --perturb n={n}.",
        )
    if model is None:
        raise typer.BadParameter("name a file of `dashi flow fit`.", param_hint="MODEL")
    from dashi.cli.flow_evaluate_job import EvaluateJob

    request = EvaluateRequest(
        model=model, eval_steps=eval_steps, eval_seed=eval_seed, no_train=no_train, seeds=seeds, windows=windows,
        start=start, source=source, perturb=tuple(perturb or ()), perfect=perfect, residual=residual,
        allow_overlap=allow_overlap, device=device, fast=fast, out=out, overwrite=overwrite,
        allow_fallback=allow_fallback, require_gpu=require_gpu, json=json,
    )  # fmt: skip
    EvaluateJob(request).do()


def register(app: typer.Typer) -> None:
    """Adds the command."""
    fit = "dashi flow fit --n 32 --k-cut 5 --train-steps 100 --out runs/small.npz"
    line = f"{fit} && dashi flow evaluate runs/small.npz --eval-steps 100 --no-train --out runs/small"
    app.command("evaluate", epilog=example(line))(evaluate)
