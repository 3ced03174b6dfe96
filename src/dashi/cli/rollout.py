"""`dashi rollout`: very many steps of an operator, observed, certified, checkpointed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from dashi.cli import rollout_options as o
from dashi.cli.options import Json, OneDevice, Overwrite, example

_EXAMPLE = (
    "dashi demo --rollout --steps 100 && dashi rollout --z0 runs/demo-rollout/inputs.npz --A "
    "runs/demo-rollout/inputs.npz --steps 1000 --hash-every 100 --certificate certificate.json"
)


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    z0: Path
    matrix: Path | None
    bias: Path | None
    psi: str
    alpha: float
    low: float
    high: float
    operator: Path | None
    steps: int
    dtype: str | None
    hash_every: int | None
    observe_every: int | None
    sheet_every: int | None
    bands: int | None
    certificate: Path | None
    metrics: Path | None
    out: Path | None
    checkpoint_every: int | None
    resume: bool
    overwrite: bool
    device: str
    way: str
    fast: bool
    allow_fallback: bool
    require_gpu: bool
    keep_going: bool
    json: bool


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("rollout", epilog=example(_EXAMPLE))(rollout)


def rollout(
    z0: o.Z0,
    steps: o.Steps,
    A: o.Matrix = None,  # noqa: N803 - the operator is called A in the equation, in files and on the command line
    b: o.Bias = None,
    psi: o.Nonlinear = o.Psi.none,
    alpha: o.Alpha = 1.0,
    low: o.Low = -1.0,
    high: o.High = 1.0,
    operator: o.OperatorFile = None,
    dtype: o.DType = None,
    hash_every: o.HashEvery = None,
    observe_every: o.ObserveEvery = None,
    sheet_every: o.SheetEvery = None,
    bands: o.Bands = None,
    certificate: o.CertificateFile = None,
    metrics: o.MetricsFile = None,
    out: o.Out = None,
    checkpoint_every: o.CheckpointEvery = None,
    resume: o.Resume = False,
    overwrite: Overwrite = False,
    device: OneDevice = "auto",
    op_device: o.OpDevice = None,
    way: o.Way = o.AnyWay.auto,
    fast: o.Fast = False,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    keep_going: o.KeepGoing = False,
    json: Json = False,
) -> None:
    """Roll out z' = z A, z' = psi(z A + b), or any operator: from z0, for so many steps.

    A state is a row, so z' = z A. The state is hashed on the device every so many steps; a portable run has the same
    hashes on every device, and `dashi verify` repeats a certificate anywhere. Prints what became of the state and how
    it ran; with --json the metrics document and the names of the files. Ctrl-C keeps what was finished; with --out and
    --checkpoint-every even a run that was killed goes on with --resume. Exit code 3 if a value is not finite.
    """
    from dashi.cli.rollout_job import Job

    request = Request(
        z0=z0, matrix=A, bias=b, psi=psi, alpha=alpha, low=low, high=high, operator=operator,
        steps=steps, dtype=dtype, hash_every=hash_every, observe_every=observe_every, sheet_every=sheet_every,
        bands=bands, certificate=certificate, metrics=metrics, out=out, checkpoint_every=checkpoint_every,
        resume=resume, overwrite=overwrite, device=op_device or device, way=way, fast=fast,
        allow_fallback=allow_fallback, require_gpu=require_gpu, keep_going=keep_going, json=json,
    )  # fmt: skip
    Job(request).do()
