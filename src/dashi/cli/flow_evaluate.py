"""`dashi flow evaluate`: a fitted model on data that it never saw, beside its baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli import flow_options as o
from dashi.cli.help import COMPAT, DATA, MODEL, OUTPUT
from dashi.cli.merge import print_merged
from dashi.cli.options import Json, OneDevice, Overwrite, example, whole
from dashi.cli.output import print_outcome, print_rows, print_text, remark
from dashi.cli.shard_options import Jobs, ShardText, require_out, shard_of
from dashi.errors import DashiError, InputError, Interrupted

if TYPE_CHECKING:
    from dashi.lab._score_tables import ScoreTables
    from dashi.lab.evaluations import ModelScores

_OF_V4 = {"compat", "n", "eval_steps", "eval_seed", "device", "json", "allow_fallback", "require_gpu"}
ModelFile = Annotated[Path | None, typer.Argument(metavar="MODEL", help="A file of `dashi flow fit`.")]
EvalSteps = Annotated[
    int | None,
    typer.Option(
        "--eval-steps",
        "--steps",
        parser=whole,
        rich_help_panel=DATA,
        help="Steps of a window. Default: twice those of training; with --from, all.",
    ),
]
EvalSeed = Annotated[
    int | None,
    typer.Option(
        "--eval-seed",
        "--seed",
        parser=whole,
        rich_help_panel=DATA,
        help="The first seed; others follow. Default: the first unseen; with --from, all.",
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option("--seeds", parser=whole, rich_help_panel=DATA, help="How many seeds. Default: 2; with --from, all."),
]
WindowsEach = Annotated[
    int | None,
    typer.Option(
        "--windows",
        parser=whole,
        rich_help_panel=DATA,
        help="Windows of each seed, one after another. Default: 1; with --from, all there are.",
    ),
]
Start = Annotated[
    int | None,
    typer.Option(
        "--start",
        parser=whole,
        rich_help_panel=DATA,
        help="The step where the first window starts. Default: after the spin-up; with --from, 0.",
    ),
]
NoTrain = Annotated[
    bool,
    typer.Option(
        "--no-train",
        rich_help_panel=MODEL,
        help="Says that nothing is fitted here, which is always so: the file has it all.",
    ),
]
From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        rich_help_panel=DATA,
        metavar="RUN",
        help="A run of `dashi flow simulate --out`, a NetCDF file or a Zarr store: no simulation.",
    ),
]
Perturb = Annotated[
    list[str] | None,
    typer.Option(
        "--perturb",
        rich_help_panel=DATA,
        metavar="NAME=VALUE",
        help="Also on a flow with another nu, drag, cs, dt, n, force_amplitude or force_wavenumber. Repeatable.",
    ),
]
Perfect = Annotated[
    bool, typer.Option("--perfect", rich_help_panel=MODEL, help="Also the full solver, from the start that z holds.")
]
Residual = Annotated[
    bool,
    typer.Option(
        "--residual",
        rich_help_panel=MODEL,
        help="Also with drawn fine structure (random modes of the right energy), by its spectrum alone.",
    ),
]
AllowOverlap = Annotated[
    bool, typer.Option("--allow-overlap", rich_help_panel=DATA, help="Score on data that were trained on, and say so.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", rich_help_panel=OUTPUT, metavar="DIR", help="Keep the scores: evaluation-*.npz, .json."),
]
Compat = Annotated[
    str | None,
    typer.Option("--compat", rich_help_panel=COMPAT, metavar="v4", help="Instead, the numbers of an earlier code, v4."),
]
CompatSize = Annotated[
    int | None, typer.Option("--n", parser=whole, rich_help_panel=COMPAT, help="With --compat v4: points along a side.")
]


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
    variable: o.Variable = None,
    dims: o.Dims = None,
    perturb: Perturb = None,
    perfect: Perfect = False,
    residual: Residual = False,
    allow_overlap: AllowOverlap = False,
    device: OneDevice = "auto",
    host_fft: o.HostFft = False,
    out: Out = None,
    overwrite: Overwrite = False,
    shard: ShardText = None,
    jobs: Jobs = None,
    compat: Compat = None,
    n: CompatSize = None,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    json: Json = False,
) -> None:
    """Roll a model and its baselines out on their own from unseen starts, and score them against what the flow did.

    Scores on training data, kept with the model, are shown beside. Data that were seen are refused unless told. Times
    are flow times until correlation falls below 0.9, 0.8 and 0.5, with an interval of 95 % over seeds. |z| is how many
    numbers a state has; L2 the relative error of the vorticity; dE and dZ the drift of energy and enstrophy; spectrum
    the error of the energy spectrum; admissible the share of frames that are finite and have no more than ten times the
    training data's energy. Ctrl-C keeps what is finished. With --shard it scores on some of the seeds; with --jobs
    several processes do that, and their shards are merged. Exit code 3 on errors, 130 if stopped.
    """
    if compat is not None:
        from dashi.cli.flow_comparisons import run_v4

        others = [option for name, option in o.given_options(context).items() if name not in _OF_V4]
        if others:
            raise InputError(
                f"--compat v4 has a setting of its own, and {others[0]} changes none of it.",
                f"leave {', '.join(others)} away.",
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
    from dashi import lab
    from dashi.cli.progress import Shown

    changes = [pair for text in perturb or () for pair in o.named_numbers("--perturb", (text,)).items()]
    request = lab.EvaluateRequest(
        model=model, steps=eval_steps, seeds=seeds, first_seed=eval_seed, windows=windows, start=start, source=source,
        variables=tuple(variable or ()), dims=o.axis_names(dims or ()), perturb=tuple(changes), perfect=perfect,
        residual=residual, allow_overlap=allow_overlap, host_fft=host_fft, allow_fallback=allow_fallback,
        require_gpu=require_gpu, shard=shard_of(shard),
    )  # fmt: skip
    if jobs is not None:
        merged = lab.run_jobs(request, jobs, device=device, out=require_out(out), overwrite=overwrite, events=Shown())
        print_merged(merged, as_json=json)
        return
    failure: DashiError | None = None
    stopped = False
    try:
        scores = lab.evaluate(request, device=device, out=out, overwrite=overwrite, events=Shown())
    except Interrupted as stop:
        if stop.partial is None:
            raise
        scores, stopped = stop.partial, True
    except DashiError as error:
        if error.result is None:
            raise
        scores, failure = error.result, error
    _print(scores, failure, as_json=json)
    if stopped:
        raise KeyboardInterrupt


def _print(scores: ModelScores, failure: DashiError | None, *, as_json: bool) -> None:
    """The scores, then what went wrong: with --json in the same document, since there is only one."""
    if as_json:
        print_outcome(scores.document(), failure)
        return
    print_scores(scores.table())
    if failure is not None:
        raise failure
    if scores.folder is not None:
        stays = "" if scores.folder == scores.out else f"; {scores.out} stays as it was"
        remark(f"wrote {scores.folder}{stays}")


def print_scores(tables: ScoreTables) -> None:
    """Tables that fit the terminal, one for each set of windows, with a row for each model."""
    from dashi.lab._score_tables import HEADINGS

    for number, scores in enumerate(tables):
        if number:
            print_text("")
        print_text(scores.title)
        print_rows(HEADINGS, scores.rows)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    fit = "dashi flow fit --n 32 --nu 0.005 --dt 0.02 --set peak=2 --k-cut 6 --train-steps 100 --out runs/small.npz"
    line = f"{fit} && dashi flow evaluate runs/small.npz --eval-steps 200 --out runs/scores"
    app.command("evaluate", epilog=example(line))(evaluate)
