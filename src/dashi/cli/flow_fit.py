"""`dashi flow fit`: a model of proxies from simulated or recorded flow, with its baselines, in one file."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from dashi.cli import flow_options as o
from dashi.cli.options import Json, OneDevice, example

TrainSteps = Annotated[int, typer.Option("--train-steps", help="Steps of a training window.")]
TrainSeed = Annotated[
    int | None, typer.Option("--train-seed", help="The first seed; the others follow, then those for validation.")
]
Seeds = Annotated[int, typer.Option("--seeds", help="How many seeds to train on.")]
ValidationSeeds = Annotated[
    int, typer.Option("--validation-seeds", help="How many seeds to choose on; with one recorded seed, windows.")
]
WindowsEach = Annotated[
    int | None,
    typer.Option("--windows", help="Windows of each seed, one after another. Default: 1, with --from all there are."),
]
SpinUp = Annotated[
    int | None, typer.Option("--spin-up", help="Steps before the first window. Default: 100, with --from none.")
]
FrameEvery = Annotated[int, typer.Option("--frame-every", help="Steps between frames.")]
From = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="RUN", help="A run of `dashi flow simulate --out`, or a NetCDF file: no simulation."
    ),
]
ModelName = Annotated[str, typer.Option("--model", help="The model: galerkin, ridge, delay, ... (docs/proxy.md).")]
ModelOption = Annotated[
    list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="An option of the model. Repeatable.")
]
KCut = Annotated[float, typer.Option("--k-cut", help="The largest wave number that z holds.")]
Anchors = Annotated[int, typer.Option("--anchors", help="The strongest modes of the mid band that z holds too.")]
Baseline = Annotated[
    list[str] | None,
    typer.Option("--baseline", help="Models beside it. Default: persistence, damped, dmd, truncation. Repeatable."),
]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write, such as model.npz.")]


@dataclass(frozen=True)
class FitRequest:
    """What was asked for on the command line."""

    train_steps: int
    train_seed: int | None
    seeds: int
    validation_seeds: int
    windows: int | None
    spin_up: int
    frame_every: int
    source: Path | None
    model: str
    model_options: tuple[str, ...]
    k_cut: float
    anchors: int
    baselines: tuple[str, ...]
    n: int
    dt: float
    nu: float
    drag: float
    length: float
    smagorinsky: float
    scheme: o.Scheme
    dtype: str
    forcing: str
    force: tuple[str, ...]
    initial: str
    options: tuple[str, ...]
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


def fit(
    out: Out,
    train_steps: TrainSteps = 200,
    train_seed: TrainSeed = None,
    seeds: Seeds = 2,
    validation_seeds: ValidationSeeds = 1,
    windows: WindowsEach = None,
    spin_up: SpinUp = None,
    frame_every: FrameEvery = 10,
    source: From = None,
    model: ModelName = "galerkin",
    option: ModelOption = None,
    k_cut: KCut = 8.0,
    anchors: Anchors = 0,
    baseline: Baseline = None,
    n: o.N = 64,
    dt: o.Dt = 0.01,
    nu: o.Nu = 2e-3,
    drag: o.Drag = 0.0,
    length: o.Length = None,
    smagorinsky: o.Smagorinsky = 0.0,
    scheme: o.SchemeName = o.Scheme.etdrk4,
    dtype: o.DType = o.RunType.float32,
    forcing: o.Forcing = o.Force.none,
    force: o.ForceOption = None,
    initial: o.Initial = "random",
    options: o.InitialOption = None,
    device: OneDevice = "auto",
    fast: o.Fast = False,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    json: Json = False,
) -> None:
    """Fit a model that advances z on its own, and the baselines it will be compared with, to the same data.

    What must be chosen is chosen on validation seeds. The file remembers which data were seen, so that `dashi flow
    evaluate` refuses to score on them. Ctrl-C keeps the model if it was fitted. Exit code 3 on errors, 130 if stopped.
    """
    from dashi.cli.flow_fit_job import FitJob

    spun = (0 if source else 100) if spin_up is None else spin_up
    request = FitRequest(
        train_steps=train_steps, train_seed=train_seed, seeds=seeds, validation_seeds=validation_seeds,
        windows=windows, spin_up=spun, frame_every=frame_every, source=source, model=model,
        model_options=tuple(option or ()), k_cut=k_cut, anchors=anchors, baselines=tuple(baseline or ()), n=n, dt=dt,
        nu=nu, drag=drag, length=2 * math.pi if length is None else length, smagorinsky=smagorinsky, scheme=scheme,
        dtype=dtype, forcing=forcing, force=tuple(force or ()), initial=initial, options=tuple(options or ()),
        device=device, fast=fast, out=out, allow_fallback=allow_fallback, require_gpu=require_gpu, json=json,
    )  # fmt: skip
    FitJob(request).do()


def register(app: typer.Typer) -> None:
    """Adds the command."""
    line = "dashi flow fit --n 64 --train-steps 100 --train-seed 1 --out runs/model.npz"
    app.command("fit", epilog=example(line))(fit)
