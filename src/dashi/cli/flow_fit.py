"""`dashi flow fit`: a model of proxies from simulated or recorded flow, with its baselines, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dashi.cli import flow_options as o
from dashi.cli.completion import complete_models
from dashi.cli.help import DATA, MODEL, OUTPUT
from dashi.cli.options import Json, OneDevice, example, whole

TrainSteps = Annotated[
    int, typer.Option("--train-steps", parser=whole, rich_help_panel=DATA, help="Steps of dt of a training window.")
]
TrainSeed = Annotated[
    int | None,
    typer.Option(
        "--train-seed",
        parser=whole,
        rich_help_panel=DATA,
        help="The first seed; the others follow, then those for validation. Default: 0.",
    ),
]
Seeds = Annotated[
    int,
    typer.Option(
        "--seeds",
        parser=whole,
        rich_help_panel=DATA,
        help="How many seeds to train on. With --from the default is all but those below.",
    ),
]
ValidationSeeds = Annotated[
    int,
    typer.Option(
        "--validation-seeds",
        parser=whole,
        rich_help_panel=DATA,
        help="How many seeds to choose on; of a record with one seed, how many windows.",
    ),
]
WindowsEach = Annotated[
    int | None,
    typer.Option(
        "--windows",
        parser=whole,
        rich_help_panel=DATA,
        help="Windows of each seed, one after another. Default: 1, with --from all there are.",
    ),
]
SpinUp = Annotated[
    int | None,
    typer.Option(
        "--spin-up",
        parser=whole,
        rich_help_panel=DATA,
        help="Steps before the first window. Default: 100, with --from none.",
    ),
]
FrameEvery = Annotated[
    int,
    typer.Option(
        "--frame-every", parser=whole, rich_help_panel=DATA, help="Steps between frames; with --from, the record's."
    ),
]
From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        rich_help_panel=DATA,
        metavar="RUN",
        help="A run of `dashi flow simulate --out`, or a NetCDF file, instead of a simulation. A run knows its flow; "
        "of a file, say --nu, --dt and what else it was made with.",
    ),
]
ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        rich_help_panel=MODEL,
        metavar="NAME",
        autocompletion=complete_models,
        help="galerkin (the equation itself on the modes of z, with an eddy viscosity), slaved (the same, and small "
        "scales that follow at once), truncation (the same, without either); ridge, delay, dmd (linear maps fitted to "
        "frames); damped and persistence (each mode decays, or stays); perfect (the full solver).",
    ),
]
ModelOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        rich_help_panel=MODEL,
        metavar="NAME=VALUE",
        help="An option of the model, such as factor=1 of galerkin or delays=3 of delay. Repeatable.",
    ),
]
KCut = Annotated[
    float,
    typer.Option("--k-cut", rich_help_panel=MODEL, help="z holds all modes up to this wave number: 1 to (n - 1) / 3."),
]
Anchors = Annotated[
    int,
    typer.Option(
        "--anchors",
        parser=whole,
        rich_help_panel=MODEL,
        help="z also holds so many of the strongest modes up to 1.5 times k-cut.",
    ),
]
Baseline = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline",
        rich_help_panel=MODEL,
        metavar="MODEL",
        autocompletion=complete_models,
        help="A model to compare with. Default: persistence, damped, dmd, truncation. Repeatable.",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", rich_help_panel=OUTPUT, metavar="FILE", help="The file to write, such as model.npz.")
]


@dataclass(frozen=True, kw_only=True)
class FitRequest(o.FlowOptions):
    """What was asked for on the command line."""

    train_steps: int
    train_seed: int | None
    seeds: int
    validation_seeds: int
    windows: int | None
    spin_up: int
    frame_every: int
    source: Path | None
    variable: tuple[str, ...]
    dims: tuple[str, ...]
    model: str
    model_options: tuple[str, ...]
    k_cut: float
    anchors: int
    baselines: tuple[str, ...]
    given: Mapping[str, str]
    """The parameters that stand on the command line, and how each is written there."""
    device: str
    fast: bool
    out: Path
    allow_fallback: bool
    require_gpu: bool
    json: bool

    @property
    def seed(self) -> int:
        """Of the forcing, which every simulated seed replaces by its own."""
        return self.train_seed or 0


@o.takes_flow(n=64, scheme=o.Scheme.etdrk4)
def fit(
    context: typer.Context,
    out: Out,
    train_steps: TrainSteps = 200,
    train_seed: TrainSeed = None,
    seeds: Seeds = 2,
    validation_seeds: ValidationSeeds = 1,
    windows: WindowsEach = None,
    spin_up: SpinUp = None,
    frame_every: FrameEvery = 10,
    source: From = None,
    variable: o.Variable = None,
    dims: o.Dims = None,
    model: ModelName = "galerkin",
    option: ModelOption = None,
    k_cut: KCut = 8.0,
    anchors: Anchors = 0,
    baseline: Baseline = None,
    flow: o.FlowOptions = o.DEFAULTS,
    device: OneDevice = "auto",
    fast: o.Fast = False,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    json: Json = False,
) -> None:
    """Fit a model of a flow to simulated or recorded data, with the baselines that it will be compared with.

    The model advances z, a short vector of the flow's large scales (all modes up to --k-cut), on its own. What must be
    chosen is chosen on validation seeds. The file remembers which data were seen, so that `dashi flow evaluate` refuses
    to score on them. Prints a table of scores on the data seen.

    Ctrl-C keeps the model once it is fitted, beside an earlier one and never in its place. Exit code 3 on errors, 130
    if stopped.
    """
    from dashi.cli.flow_fit_job import FitJob

    spun = (0 if source else 100) if spin_up is None else spin_up
    request = FitRequest(
        **vars(flow), train_steps=train_steps, train_seed=train_seed, seeds=seeds, validation_seeds=validation_seeds,
        windows=windows, spin_up=spun, frame_every=frame_every, source=source,
        variable=tuple(variable or ()), dims=tuple(dims or ()), model=model,
        model_options=tuple(option or ()), k_cut=k_cut, anchors=anchors, baselines=tuple(baseline or ()),
        given=o.given_options(context), device=device, fast=fast, out=out, allow_fallback=allow_fallback,
        require_gpu=require_gpu, json=json,
    )  # fmt: skip
    FitJob(request).do()


def register(app: typer.Typer) -> None:
    """Adds the command."""
    line = "dashi flow fit --n 64 --set peak=3 --train-steps 100 --train-seed 1 --out runs/model.npz"
    app.command("fit", epilog=example(line), short_help="Fit a model to simulated or recorded data.")(fit)
