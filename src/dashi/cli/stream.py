"""`dashi stream`: chains of stages over devices, from a YAML file (docs/stream.md)."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli.help import OUTPUT, RUN, App
from dashi.cli.options import DEVICE, Json, Overwrite, TraceFile, complete_devices, example, typed
from dashi.cli.output import print_json, print_rows, remark
from dashi.cli.progress import Shown, progress
from dashi.errors import InputError, Interrupted

if TYPE_CHECKING:
    from dashi.lab import StreamRequest
    from dashi.stream import StreamPlan, StreamRun

app = App("stream", "Chains of stages over devices: plan, explain, run.")
_EXAMPLE = "examples/stream/worked_example.yaml"

File = Annotated[Path, typer.Argument(metavar="FILE", help="A chain of stages in YAML.")]
Bind = Annotated[
    list[str] | None,
    typer.Option("--bind", metavar="NAME=DEVICE", help="Bind a device of the file to one of this machine. Repeatable."),
]
Ranks = Annotated[
    int | None,
    typer.Option("--ranks", metavar="N", help="Start N ranks of this machine, for stages that name nodes."),
]
Measure = Annotated[
    bool, typer.Option("--measure/--no-measure", help="Measure devices whose speed is not known (a second each).")
]


Items = Annotated[
    int | None, typer.Option("--items", metavar="N", min=0, help="Items to send; default: what the source says.")
]
Serial = Annotated[
    str | None,
    typer.Option(
        "--serial",
        metavar="DEVICE",
        help="Run all ops on one device, one after another: hashes to compare with.",
        rich_help_panel=DEVICE,
        autocompletion=complete_devices,
    ),
]


Restarts = Annotated[
    int,
    typer.Option("--restarts", metavar="N", min=0, rich_help_panel=RUN, help="How often a lost device is opened anew."),
]
Elsewhere = Annotated[
    str,
    typer.Option(
        "--elsewhere",
        metavar="DEVICE",
        rich_help_panel=RUN,
        help="Where the stages of a lost device go on after that: a device, or neighbour. Default: the run ends.",
    ),
]
Adapt = Annotated[
    bool,
    typer.Option(
        "--adapt", rich_help_panel=RUN, help="Change windows, codecs (from tier 2 on) and places of ops as times say."
    ),
]
Snapshots = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        metavar="STAGE=N",
        rich_help_panel=OUTPUT,
        help="With --out: keep the State behind a stage every N steps. Repeatable.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", rich_help_panel=OUTPUT, help="The run folder: metrics, hashes, snapshots."),
]
_DIGITS = 18


def bindings(pairs: list[str] | None) -> dict[str, str]:
    """The devices that --bind names."""
    bound: dict[str, str] = {}
    for pair in pairs or ():
        name, sign, device = pair.partition("=")
        if not (name and sign and device):
            raise typer.BadParameter(f"{pair!r} is not NAME=DEVICE; write for instance gpu_weak=vulkan:0.")
        bound[name] = device
    return bound


def plan_of(file: Path, devices: list[str] | None, measure: bool) -> StreamPlan:
    """The plan of a file."""
    from dashi import stream

    return stream.make_plan(stream.load(file, devices=bindings(devices)), measure=measure)


def plan(file: File, devices: Bind = None, measure: Measure = True, json: Json = False) -> None:
    """What would run where, what travels on each link, and the period and latency that this will have.

    Nothing is run. Ops in the stages are checked against the rules; a `chain` is assigned to the stages, at best.
    Exit code 3: a rule is broken, or the file is wrong (with file, line and fix).
    """
    planned = plan_of(file, devices, measure)
    if json:
        print_json(planned.as_json())
        return
    print_rows(planned.HEAD, planned.rows())
    remark(planned.summary, *planned.notes)


def explain(file: File, devices: Bind = None, measure: Measure = True, json: Json = False) -> None:
    """Why ops run where they do: per op every stage with its score or the rule that excludes it, and what links are."""
    planned = plan_of(file, devices, measure)
    if json:
        document = planned.as_json()
        print_json({key: document[key] for key in ("candidates", "links", "notes")})
        return
    explanation = planned.explain()
    print_rows(explanation.HEAD, explanation.rows())
    if explanation.links:
        print_rows(explanation.LINK_HEAD, explanation.link_rows())
    remark(*explanation.notes)


def run(
    file: File,
    items: Items = None,
    devices: Bind = None,
    serial: Serial = None,
    ranks: Ranks = None,
    restarts: Restarts = 0,
    elsewhere: Elsewhere = "",
    adapt: Adapt = False,
    snapshots: Snapshots = None,
    out: Out = None,
    overwrite: Overwrite = False,
    trace: TraceFile = None,
    measure: Measure = True,
    json: Json = False,
) -> None:
    """Send items through the chain on its devices; one hash for each item out.

    The hashes are those of one device (--serial cpu), whatever the windows and links, wherever kernels are portable
    and no codec loses precision; codecs that do are named. Where a device is lost the run ends, or goes on as
    --restarts and --elsewhere say. --out keeps metrics of every stage, which `dashi report` draws. Ctrl-C prints what
    has come out so far. Stages of several nodes are ranks of an MPI job: mpiexec -n N dashi stream run FILE, or
    --ranks N for ranks of this machine.
    """
    from dashi import lab
    from dashi.stream import cluster

    plan = plan_of(file, devices, measure)
    cluster.require_ranks_fit(plan, ranks, serial)
    over_nodes = serial is None and cluster.has_nodes(plan)
    asked = {
        "restarts": restarts, "elsewhere": elsewhere, "adapt": adapt, "snapshots": snapshots, "out": out, "trace": trace
    }  # fmt: skip
    if over_nodes and (name := next((name for name, value in asked.items() if value), "")):
        raise InputError(
            f"`{name}=` is for stages of one machine; those of several nodes go on by themselves where ranks are lost.",
            f"leave `{name}=` away.",
        )
    if ranks is not None:
        words = ["-m", "dashi", "stream", "run", str(file), *_again(items, devices, measure, json)]
        raise typer.Exit(cluster.launch_ranks(ranks, words))
    if not over_nodes:
        request = lab.StreamRequest(
            plan=plan, items=items, serial=serial, restarts=restarts, elsewhere=elsewhere, adapt=adapt,
            snapshots=strides(snapshots), trace=trace, command_line=typed(),
        )  # fmt: skip
        _run_here(request, out, json, overwrite=overwrite)
        return
    count = plan.config.source.items if items is None else items
    stopped: Interrupted | None = None
    shown = nullcontext(None) if cluster.job_rank() else progress("sending", count, "items")
    with shown as advance:
        try:
            done = cluster.run_nodes(plan, count, advance=advance)
        except Interrupted as stop:
            if stop.partial is None:
                raise
            done, stopped = stop.partial, stop
    if done is not None:  # of several ranks one prints
        _print(done, json)
    if stopped is not None:
        raise stopped


def _run_here(request: StreamRequest, out: Path | None, json: bool, *, overwrite: bool) -> None:
    from dashi import lab

    try:
        _print(lab.run_stream(request, out=out, overwrite=overwrite, events=Shown()).run, json)
    except Interrupted as stop:
        if stop.partial is not None:
            _print(stop.partial.run, json)
        raise


def strides(pairs: list[str] | None) -> dict[str, int]:
    """The stages that --snapshot names, each with how often."""
    every: dict[str, int] = {}
    for pair in pairs or ():
        name, _, number = pair.partition("=")
        if not name or not (number or "1").isdecimal() or len(number) > _DIGITS:
            raise typer.BadParameter(f"{pair!r} is not STAGE=N; write for instance gpu0=10.")
        every[name] = int(number or "1")
    return every


def _again(items: int | None, devices: list[str] | None, measure: bool, json: bool) -> list[str]:
    """The options of this command, for every rank."""
    words = [word for pair in devices or () for word in ("--bind", pair)]
    words += [] if items is None else ["--items", str(items)]
    return [*words, *([] if measure else ["--no-measure"]), *(["--json"] if json else [])]


def _print(done: StreamRun, json: bool) -> None:
    if json:
        print_json(done.as_json())
        return
    headings = ("stage", "device", "ops", "items", "device us", "predicted", "link")
    print_rows(headings, [_cells(stage) for stage in done.stages])
    period = "unknown" if done.period is None else f"{done.period * 1e6:.0f} us"
    order = "in order" if done.in_order else "OUT OF ORDER"
    remark(
        f"{done.items} items, {order}; period {period}, predicted {done.predicted_period * 1e6:.0f} us",
        *(f"first hash {done.hashes[0]}, last {done.hashes[-1]}" for _ in done.hashes[:1]),
        *(f"{codec} loses precision on the way" for codec in done.lossy),
        *(event.text for event in done.events),
        *done.notes,
    )


def _cells(stage: Any) -> list[str]:
    link = stage["link"]
    device = "" if stage["device_us"] is None else f"{stage['device_us']:.0f}"
    ops = " ".join([*stage["ops"], *(f"[{name}]" for name in stage["observers"])])
    way = "" if link is None else f"{link['mode']} ({link['way']})" + (", fallback" if link["fallback"] else "")
    return [
        stage["id"], stage["device"], ops, str(stage["items_out"]), device, f"{stage['predicted_us']:.0f}", way,
    ]  # fmt: skip


app.command("plan", epilog=example(f"dashi stream plan {_EXAMPLE}"))(plan)
app.command("explain", epilog=example(f"dashi stream explain {_EXAMPLE}"))(explain)
app.command("run", epilog=example(f"dashi stream run {_EXAMPLE} --items 50"))(run)
