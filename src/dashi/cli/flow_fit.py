"""`dashi flow fit`: a model of proxies from simulated or recorded flow, with its baselines, in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli import flow_options as o
from dashi.cli.flow_evaluate import print_scores
from dashi.cli.help import DATA, MODEL, OUTPUT, PARTS
from dashi.cli.options import Json, OneDevice, complete_models, example, whole
from dashi.cli.output import print_facts, print_json, print_outcome, remark
from dashi.cli.shard_options import ShardText, shard_of
from dashi.errors import FileError, InputError, Interrupted

if TYPE_CHECKING:
    from dashi.lab import FitRequest
    from dashi.lab.fits import FittedModel

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
        "scales that follow at once), trained-eddy (galerkin, its viscosity trained as slaved is), truncation (the "
        "same, without either); ridge, delay, dmd (linear maps fitted to frames); damped and persistence (each mode "
        "decays, or stays); perfect (the full solver), restarted (the same, reduced to z at every frame).",
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


OverwriteShard = Annotated[
    bool,
    typer.Option("--overwrite", rich_help_panel=PARTS, help="Replace the shard of another fit in --out."),
]


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
    host_fft: o.HostFft = False,
    shard: ShardText = None,
    overwrite: OverwriteShard = False,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    json: Json = False,
) -> None:
    """Fit a model of a flow to simulated or recorded data, with the baselines that it will be compared with.

    The model advances z, a short vector of the flow's large scales (all modes up to --k-cut), on its own. What must be
    chosen is chosen on validation seeds. The file remembers which data were seen, so that `dashi flow evaluate` refuses
    to score on them. Prints a table of scores on the data seen.

    With --shard it simulates the data of some of the seeds into a folder, and `dashi merge` of all of them fits the
    model. Ctrl-C keeps the model once it is fitted, beside an earlier one and never in its place. Exit code 3 on
    errors, 130 if stopped.
    """
    from dashi import lab

    for name, count, least in (("--seeds", seeds, 1), ("--validation-seeds", validation_seeds, 0)):
        if count < least:
            raise InputError(f"{name} is {count}.", f"use {least} or more.")
    named, first = o.given_options(context), train_seed or 0
    simulated, forced = source is None, o.named_numbers("--force", flow.force)
    train: range | int | None = range(first, first + seeds)
    if not simulated and train_seed is None:
        train = seeds if "seeds" in named else None
    request = lab.FitRequest(
        model=model, flow=o.flow_of(flow, first), source=source,
        stated=frozenset(o.FLOW).intersection(named) | {f"force_{name}" for name in forced},
        variables=tuple(variable or ()), dims=o.axis_names(dims or ()), train=train,
        validate=range(first + seeds, first + seeds + validation_seeds) if simulated else validation_seeds,
        train_steps=train_steps, frame_every=frame_every if simulated or "frame_every" in named else None,
        windows=windows, spin_up=spin_up, initial=flow.initial if simulated or "initial" in named else None,
        initial_options=o.named_numbers("--set", flow.options), k_cut=k_cut, anchors=anchors,
        model_options=model_options(option or ()), baselines=tuple(baseline or ()), host_fft=host_fft,
        allow_fallback=allow_fallback, require_gpu=require_gpu, shard=shard_of(shard),
    )  # fmt: skip
    if request.shard is not None:
        _make_data(request, out, device, overwrite=overwrite, as_json=json)
        return
    if overwrite:
        raise InputError("--overwrite is for the folder of a shard.", "leave it away: a file of a model is replaced.")
    _fit(request, out, device, as_json=json)


def _make_data(request: FitRequest, out: Path, device: str, *, overwrite: bool, as_json: bool) -> None:
    from dashi import lab
    from dashi.cli.progress import Shown

    data = lab.fit_data(request, device=device, out=out, overwrite=overwrite, events=Shown())
    facts = {"shard": str(data.shard), "windows": data.windows, "folder": str(data.folder)}
    if as_json:
        print_json(facts)
    else:
        print_facts({name: str(value) for name, value in facts.items()})


def _fit(request: FitRequest, out: Path, device: str, *, as_json: bool) -> None:
    from dashi import lab
    from dashi.cli.progress import Shown

    failure: FileError | None = None
    stopped = False
    try:
        result = lab.fit(request, device=device, out=out, events=Shown())
    except Interrupted as stop:
        result, stopped = stop.partial, True
        _remark_stopped(result, out)
        if result is None:
            if as_json:
                print_json({"file": None, "model": request.model, "stopped": True})
            raise
    except FileError as error:
        if error.result is None:
            raise
        result, failure = error.result, error
        if result.stopped:
            _remark_stopped(result, out)
    _print_fit(result, failure, as_json=as_json)
    if stopped:
        raise KeyboardInterrupt


def _remark_stopped(result: FittedModel | None, out: Path) -> None:
    if result is None:
        remark("nothing was written: the model was not fitted yet")
    elif result.path is not None:
        stays = f"; {out} stays as it was" if out.exists() else ""
        remark(f"the model is whole and in {result.path}{stays}; for all baselines and scores, fit it again")


def _print_fit(result: FittedModel, failure: FileError | None, *, as_json: bool) -> None:
    """The scores, then what could not be written: with --json in the same document, since there is only one."""
    if not as_json:
        print_scores(result.table())
        if failure is not None:
            raise failure
        if not result.stopped:
            remark(f"wrote {result.path}")
        return
    from dashi.flow.evaluation.files import document

    fit = result.fit
    facts: dict[str, Any] = {
        "file": str(result.path) if result.path else None,
        "model": fit.model.name,
        "story": fit.model.description,
        "numbers": fit.model.state_size,
        "stopped": result.stopped,
        "baselines": list(fit.baselines),
        "seeds": list(fit.training.seeds) if fit.training else [],
        "validation_seeds": list(fit.training.validation_seeds) if fit.training else [],
        "evaluations": [document(one) for one in fit.evaluations],
    }
    print_outcome(facts, failure)


def model_options(texts: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE pairs of --option; what is not a number is a word."""
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier() or not value:
            raise InputError(f"--option {text} is not NAME=VALUE.", "write for instance --option factor=1.")
        if name in options:
            raise InputError(f"--option {name} is given twice.", "leave one of them away.")
        try:
            options |= o.named_numbers("--option", (text,))
        except InputError:
            options[name] = value
    return options


def register(app: typer.Typer) -> None:
    """Adds the command."""
    line = "dashi flow fit --n 64 --set peak=3 --train-steps 100 --train-seed 1 --out runs/model.npz"
    app.command("fit", epilog=example(line), short_help="Fit a model to simulated or recorded data.")(fit)
