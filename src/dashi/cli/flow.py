"""`dashi flow`: the spectral reference solver, and models of what it makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dashi.cli import flow_evaluate, flow_fit, flow_parity, flow_rollout
from dashi.cli import flow_options as o
from dashi.cli.help import App
from dashi.cli.options import Json, OneDevice, Overwrite, example
from dashi.cli.tracing import TraceFile

app = App("flow", "Two-dimensional flow: the reference solver, and models of it.")


@dataclass(frozen=True, kw_only=True)
class Request(o.FlowOptions):
    """What was asked for on the command line."""

    steps: int
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
    overwrite: bool
    allow_fallback: bool
    require_gpu: bool
    trace: Path | None
    json: bool


@app.callback()
def _flow() -> None:
    """Keeps `simulate` a word of its own."""


@app.command(
    "simulate",
    epilog=example("dashi flow simulate --n 64 --steps 200 --out runs/flow-64"),
    short_help="Solve a flow from an initial condition.",
)
@o.takes_flow()
def simulate(
    flow: o.FlowOptions = o.DEFAULTS,
    steps: o.Steps = 1000,
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
    overwrite: Overwrite = False,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    trace: TraceFile = None,
    json: Json = False,
) -> None:
    """Solve two-dimensional incompressible flow in a periodic box, from an initial condition, for so many steps.

    Prints energy, enstrophy and a hash of the last state. With --out the fields stream to fields.zarr (xarray opens
    it), which `dashi flow fit --from` and `dashi flow rollout --from` take; a run that was stopped or killed goes on
    with --resume, with the same hashes. A portable run (any but --fast) has the same hashes on every device: `dashi
    verify` repeats its certificate anywhere. A time step that is too long is an error that says which one is not. Exit
    code 3 on errors, 130 if stopped.
    """
    from dashi.cli.flow_job import Job

    request = Request(
        **vars(flow), steps=steps, seed=seed, members=members, look_every=look_every, frame_every=frame_every,
        hash_every=hash_every, fields=tuple(field or ("vorticity",)), transfer=transfer, device=device, fast=fast,
        out=out, resume=resume, overwrite=overwrite, allow_fallback=allow_fallback, require_gpu=require_gpu,
        trace=trace, json=json,
    )  # fmt: skip
    Job(request).do()


for _part in (flow_fit, flow_rollout, flow_evaluate, flow_parity):
    _part.register(app)
