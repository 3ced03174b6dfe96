"""`dashi flow`: the spectral reference solver, and models of what it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dashi.cli import _annihilate, flow_benchmark, flow_comparisons, flow_evaluate, flow_fit, flow_rollout
from dashi.cli import flow_options as o
from dashi.cli.help import App
from dashi.cli.live import Live, watched
from dashi.cli.merge import print_merged
from dashi.cli.options import Json, OneDevice, Overwrite, StatesBits, StatesEvery, TraceFile, example, typed
from dashi.cli.output import print_facts, print_json, remark
from dashi.cli.shard_options import Jobs, ShardText, require_no_live, require_no_resume, require_out, shard_of
from dashi.cli.signals import stopped_lines
from dashi.errors import InputError

if TYPE_CHECKING:
    from dashi.core.rollouts.run import Run

app = App("flow", "Two-dimensional flow: the reference solver, and models of it.")


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
    host_fft: o.HostFft = False,
    out: o.Out = None,
    states_every: StatesEvery = None,
    states_bits: StatesBits = None,
    resume: o.Resume = False,
    overwrite: Overwrite = False,
    shard: ShardText = None,
    jobs: Jobs = None,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    trace: TraceFile = None,
    live: Live = None,
    json: Json = False,
) -> None:
    """Solve two-dimensional incompressible flow in a periodic box, from an initial condition, for so many steps.

    Prints energy, enstrophy and a hash of the last state. With --out the fields stream to fields.zarr (xarray opens
    it), which `dashi flow fit --from` and `dashi flow rollout --from` take; a run that was stopped or killed goes on
    with --resume, with the same hashes. A portable run (any but --host-fft) has the same hashes on every device: `dashi
    verify` repeats its certificate anywhere. A time step that is too long is an error that says which one is not. With
    --shard it advances some of the members, and goes on by itself where it was stopped; with --jobs several processes
    do that, and their shards are merged. Exit code 3 on errors, 130 if stopped.
    """
    from dashi import lab
    from dashi.lab._job import until_interrupted

    for name, stride in (("look_every", look_every), ("frame_every", frame_every), ("hash_every", hash_every)):
        if stride == 0:
            raise InputError(f"`{name}=` is 0.", "use 1 or more.")
    if members < 1:
        raise InputError(f"--members is {members}.", "use 1 or more.")
    request = lab.SimulateRequest(
        flow=o.flow_of(flow, seed), steps=steps, seeds=range(seed, seed + members), initial=flow.initial,
        initial_options=o.named_numbers("--set", flow.options), look_every=look_every, frame_every=frame_every,
        hash_every=hash_every, states_every=states_every, states_bits=states_bits,
        fields=tuple(field or ("vorticity",)), transfer=transfer, host_fft=host_fft,
        allow_fallback=allow_fallback, require_gpu=require_gpu, trace=trace, command_line=typed(),
        shard=shard_of(shard),
    )  # fmt: skip
    require_no_live(jobs, live=live is not None)
    with watched(live) as (view, events):
        if jobs is not None:
            require_no_resume(jobs, resume=resume)
            merged = lab.run_jobs(
                request, jobs, device=device, out=require_out(out), overwrite=overwrite, events=events
            )
            print_merged(merged, as_json=json)
            return
        run, stopped = until_interrupted(
            lambda: lab.simulate(
                request, device=device, out=out, resume=resume, overwrite=overwrite, events=events, live=view
            )
        )
    print_run(run, as_json=json)
    if stopped:
        remark(*stopped_lines(out, run.folder))
        raise KeyboardInterrupt


def print_run(run: Run, *, as_json: bool) -> None:
    """A table for people; with --json the metrics document and the last look."""
    from dashi.flow._diagnostics import courant

    last, metrics, flow = run.diagnostics[-1] if run.diagnostics else None, run.metrics, run.request.seeded_flow
    if as_json:
        document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
        document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
        document["folder"] = str(run.folder) if run.folder else None
        if last is not None:
            document["energy"], document["enstrophy"] = last.energy.tolist(), last.enstrophy.tolist()
            document["courant"] = courant(flow, last)
        print_json(document)
        return
    rows = {
        "flow": f"{flow.n} x {flow.n}, {len(run.state)} member(s), {flow.scheme}, {flow.dtype}",
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "time": f"{run.time:g} after {run.steps} steps{', stopped' if run.stopped else ''}; "
        f"{metrics.ns_per_step / 1000:.1f} us per step",
        "energy": ", ".join(f"{v:.6g}" for v in last.energy.tolist()[:4]) if last else "",
        "enstrophy": ", ".join(f"{v:.6g}" for v in last.enstrophy.tolist()[:4]) if last else "",
        "courant": f"{courant(flow, last):.3g} (up to {flow.courant_limit:g})" if last else "",
        "hash": metrics.hashes[-1].hash if metrics.hashes else "none",
        "portable": "" if metrics.portable else "no: these hashes hold on this machine alone",
        "folder": str(run.folder or ""),
    }
    print_facts(rows)


for _part in (flow_fit, flow_rollout, flow_evaluate, flow_benchmark, flow_comparisons, _annihilate):
    _part.register(app)
