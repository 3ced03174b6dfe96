"""`dashi flow rollout`: steps of z on the device, decoded on a stride, observed as asked for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dashi.cli.options import Json, OneDevice, example
from dashi.cli.rollout_options import RunType
from dashi.cli.tracing import TraceFile

_EXAMPLE = (
    "dashi flow simulate --n 64 --steps 200 --frame-every 10 --out runs/flow && dashi flow rollout "
    "--fit-from runs/flow --steps 40 --decode-every 10 --observer metrics --out runs/rollout"
)


class Observers(StrEnum):
    """What comes back of decoded fields."""

    none = "none"
    metrics = "metrics"
    snapshots = "snapshots"
    visualize = "visualize"


class Residuals(StrEnum):
    """What is put where z holds no modes."""

    none = "none"
    seeded = "seeded"
    statistics = "statistics"


class Gates(StrEnum):
    """Where the residual is let through."""

    support = "support"
    signed = "signed"
    open = "open"


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    z0: Path | None
    matrix: Path | None
    operator: Path | None
    model: Path | None
    start: Path | None
    fit_from: Path | None
    k_cut: float
    anchors: int
    ridge: float
    steps: int
    decode_every: int
    observer: str
    residual: str
    gate: str
    seed: int
    statistics: Path | None
    dtype: str
    hash_every: int | None
    stage_times: bool
    device: str
    out: Path | None
    allow_fallback: bool
    require_gpu: bool
    trace: Path | None
    json: bool


Z0 = Annotated[
    Path | None, typer.Option("--z0", metavar="FILE", help="z with its schema, (D,) or (members, D): a file of save_z.")
]
Matrix = Annotated[Path | None, typer.Option("--A", metavar="FILE", help="The matrix of z' = z A: .npz, key A.")]
OperatorFile = Annotated[
    Path | None, typer.Option("--operator", metavar="FILE", help="An operator of any kind as one .npz, instead of --A.")
]
ModelFile = Annotated[
    Path | None,
    typer.Option("--model", metavar="FILE", help="A model of `flow fit`, instead of --A; steps are its frames."),
]
Start = Annotated[
    Path | None,
    typer.Option("--from", metavar="RUN", help="With --model: start at the first frame of a run, not at --z0."),
]
FitFrom = Annotated[
    Path | None,
    typer.Option(
        "--fit-from", metavar="RUN", help="Fit A to the frames of a run of `flow simulate`; start at its first."
    ),
]
KCut = Annotated[float, typer.Option("--k-cut", help="With --fit-from: modes up to this wave number are in z.")]
Anchors = Annotated[int, typer.Option("--anchors", help="With --fit-from: strongest modes of the mid band besides.")]
Ridge = Annotated[float, typer.Option("--ridge", help="With --fit-from: the penalty of the fit.")]
Steps = Annotated[int | None, typer.Option("--steps", help="How many steps of z. Default: 100.")]
DecodeEvery = Annotated[int, typer.Option("--decode-every", help="Decode z after every so many steps, and z0.")]
ObserverName = Annotated[Observers, typer.Option("--observer", help="What comes back of decoded fields.")]
ResidualName = Annotated[Residuals, typer.Option("--residual", help="What is put where z holds no modes.")]
GateName = Annotated[Gates, typer.Option("--gate", help="Where the residual is let through: by the mask, or anywhere.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of the residual. Default: 0.")]
StatisticsFile = Annotated[
    Path | None,
    typer.Option(
        "--statistics", metavar="FILE", help="Of save_statistics, for that residual; --fit-from fits its own."
    ),
]
DType = Annotated[RunType, typer.Option("--dtype", help="The element type of z and of fields.")]
HashEvery = Annotated[int | None, typer.Option("--hash-every", help="Hash the state. Default: 10 times.")]
StageTimes = Annotated[
    bool, typer.Option("--stage-times/--no-stage-times", help="Measure the stages of a decode, apart, before the run.")
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="The run folder: metrics, certificate, decoded fields or pictures."),
]
Fallback = Annotated[bool, typer.Option("--allow-fallback", help="Run elsewhere if the device is not there.")]
RequireGpu = Annotated[bool, typer.Option("--require-gpu", help="Fail unless it runs on a GPU.")]
Compat = Annotated[
    str | None, typer.Option("--compat", help="v4: the old code's rollout, held to its numbers; other options rest.")
]
Points = Annotated[int | None, typer.Option("--n", help="With --compat v4: points along each side.")]


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi flow`."""
    app.command("rollout", epilog=example(_EXAMPLE))(rollout)


def rollout(
    z0: Z0 = None,
    A: Matrix = None,  # noqa: N803 - the operator is called A in the equation, in files and on the command line
    operator: OperatorFile = None,
    model: ModelFile = None,
    start: Start = None,
    fit_from: FitFrom = None,
    k_cut: KCut = 8.0,
    anchors: Anchors = 0,
    ridge: Ridge = 1e-6,
    steps: Steps = None,
    decode_every: DecodeEvery = 10,
    observer: ObserverName = Observers.metrics,
    residual: ResidualName = Residuals.none,
    gate: GateName = Gates.support,
    seed: Seed = None,
    statistics: StatisticsFile = None,
    dtype: DType = RunType.float32,
    hash_every: HashEvery = None,
    stage_times: StageTimes = True,
    device: OneDevice = "auto",
    out: Out = None,
    allow_fallback: Fallback = False,
    require_gpu: RequireGpu = False,
    compat: Compat = None,
    n: Points = None,
    trace: TraceFile = None,
    json: Json = False,
) -> None:
    """Roll out z' = z A, or a model that was fitted, from a z or the start of a run, and decode it on a stride.

    Steps and decodes stay on the device; what comes back is what the observer asks for, and it is counted. Prints the
    times of steps and decodes, with --json the metrics document. With --out: metrics.json, certificate.json,
    decoded.npz, and fields.zarr (snapshots) or pictures (visualize). Ctrl-C keeps what was finished. A map fitted to
    one run (--fit-from) memorises it: `dashi flow evaluate` shows what generalises.
    """
    if compat is not None:
        from dashi.cli.flow_v4 import run_v4

        run_v4(
            "rollout", compat=compat, n=n, steps=steps, seed=seed, device=device, json=json, out=out,
            allow_fallback=allow_fallback, require_gpu=require_gpu,
        )  # fmt: skip
        return
    from dashi.cli.flow_rollout_job import Job

    request = Request(
        z0=z0, matrix=A, operator=operator, model=model, start=start, fit_from=fit_from, k_cut=k_cut,
        anchors=anchors, ridge=ridge, steps=100 if steps is None else steps, decode_every=decode_every,
        observer=observer, residual=residual,
        gate=gate, seed=seed or 0, statistics=statistics, dtype=dtype, hash_every=hash_every, stage_times=stage_times,
        device=device, out=out, allow_fallback=allow_fallback, require_gpu=require_gpu, trace=trace, json=json,
    )  # fmt: skip
    Job(request).do()
