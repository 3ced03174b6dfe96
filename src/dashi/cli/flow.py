"""`dashi flow`: the spectral reference solver, and models of what it makes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import typer

from dashi.cli import flow_evaluate, flow_fit, flow_parity, flow_rollout
from dashi.cli import flow_options as o
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.tracing import TraceFile

app = typer.Typer(
    name="flow", help="Two-dimensional flow: the reference solver, and models of it.", no_args_is_help=True
)


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    n: int
    steps: int
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
    seed: int
    members: int
    look_every: int | None
    frame_every: int | None
    hash_every: int | None
    fields: tuple[str, ...]
    transfer: bool
    device: str
    fast: bool
    out: Path | None
    resume: bool
    allow_fallback: bool
    require_gpu: bool
    trace: Path | None
    json: bool


@app.callback()
def _flow() -> None:
    """Keeps `simulate` a word of its own."""


@app.command("simulate", epilog=example("dashi flow simulate --n 64 --steps 200 --out runs/flow"))
def simulate(
    n: o.N = 128,
    steps: o.Steps = 1000,
    dt: o.Dt = 0.01,
    nu: o.Nu = 2e-3,
    drag: o.Drag = 0.0,
    length: o.Length = None,
    smagorinsky: o.Smagorinsky = 0.0,
    scheme: o.SchemeName = o.Scheme.rk4,
    dtype: o.DType = o.RunType.float32,
    forcing: o.Forcing = o.Force.none,
    force: o.ForceOption = None,
    initial: o.Initial = "random",
    options: o.InitialOption = None,
    seed: o.Seed = 0,
    members: o.Members = 1,
    look_every: o.LookEvery = None,
    frame_every: o.FrameEvery = None,
    hash_every: o.HashEvery = None,
    field: o.Field = None,
    transfer: o.Transfer = False,
    device: OneDevice = "auto",
    fast: o.Fast = False,
    out: o.Out = None,
    resume: o.Resume = False,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    trace: TraceFile = None,
    json: Json = False,
) -> None:
    """Solve two-dimensional incompressible flow in a periodic box, from an initial condition, for so many steps.

    With --out the fields stream to fields.zarr (xarray opens it), and a run that was stopped or killed goes on with
    --resume, with the same hashes. A portable run has the same hashes on every device: `dashi verify` repeats its
    certificate anywhere. A time step that is too long is an error that says which one is not. Exit code 3 on errors.
    """
    from dashi.cli.flow_job import Job

    request = Request(
        n=n, steps=steps, dt=dt, nu=nu, drag=drag, length=2 * math.pi if length is None else length,
        smagorinsky=smagorinsky, scheme=scheme, dtype=dtype, forcing=forcing, force=tuple(force or ()),
        initial=initial, options=tuple(options or ()), seed=seed, members=members, look_every=look_every,
        frame_every=frame_every, hash_every=hash_every, fields=tuple(field or ("vorticity",)), transfer=transfer,
        device=device, fast=fast, out=out, resume=resume, allow_fallback=allow_fallback, require_gpu=require_gpu,
        trace=trace, json=json,
    )  # fmt: skip
    Job(request).do()


for _part in (flow_fit, flow_evaluate, flow_parity, flow_rollout):
    _part.register(app)
