"""`dashi flow rollout`: steps of z on the device, decoded on a stride, observed as asked for."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from dashi.cli import flow_options as o
from dashi.cli.flow_rollout_report import print_rollout, resume_command, stopped_lines
from dashi.cli.help import COMPAT, DECODE, DEVICE, OPERATOR, OUTPUT, RUN, START
from dashi.cli.live import Live, watched
from dashi.cli.options import (
    Json,
    OneDevice,
    OpDevice,
    Overwrite,
    RunType,
    StatesBits,
    StatesEvery,
    TraceFile,
    complete_devices,
    example,
    typed,
    whole,
)
from dashi.cli.output import remark
from dashi.errors import InputError

Value = TypeVar("Value")
_OF_V4 = {"compat", "n", "steps", "seed", "device", "json", "out", "overwrite", "allow_fallback", "require_gpu"}
_EXAMPLE = (
    "dashi flow simulate --n 64 --steps 200 --frame-every 10 --out runs/frames && dashi flow rollout "
    "--fit-from runs/frames --steps 40 --decode-every 10 --observer metrics --out runs/rollout"
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


Z0 = Annotated[
    Path | None,
    typer.Option(
        "--z0", rich_help_panel=START, metavar="FILE", help="z with its schema, (D,) or (members, D): a file of save_z."
    ),
]
Matrix = Annotated[
    Path | None,
    typer.Option("--A", rich_help_panel=OPERATOR, metavar="FILE", help="The matrix of z' = z A: .npz, key A."),
]
OperatorFile = Annotated[
    Path | None,
    typer.Option(
        "--operator",
        rich_help_panel=OPERATOR,
        metavar="FILE",
        help="An operator of any kind as one .npz, instead of --A.",
    ),
]
ModelFile = Annotated[
    Path | None,
    typer.Option(
        "--model",
        rich_help_panel=OPERATOR,
        metavar="FILE",
        help="A model of `flow fit`, instead of --A; steps are its frames.",
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(
        "--from",
        rich_help_panel=START,
        metavar="RUN",
        help="With --model: start at the first frame of a run, not at --z0.",
    ),
]
FitFrom = Annotated[
    Path | None,
    typer.Option(
        "--fit-from",
        rich_help_panel=OPERATOR,
        metavar="RUN",
        help="Fit A to the frames of a run of `flow simulate`; start at its first.",
    ),
]
KCut = Annotated[
    float,
    typer.Option("--k-cut", rich_help_panel=OPERATOR, help="With --fit-from: modes up to this wave number are in z."),
]
Anchors = Annotated[
    int,
    typer.Option(
        "--anchors",
        parser=whole,
        rich_help_panel=OPERATOR,
        help="With --fit-from: z also holds so many strong modes up to 1.5 times k-cut.",
    ),
]
Ridge = Annotated[
    float, typer.Option("--ridge", rich_help_panel=OPERATOR, help="With --fit-from: the penalty of the fit, 0 or more.")
]
Steps = Annotated[
    int | None,
    typer.Option(
        "--steps",
        parser=whole,
        rich_help_panel=RUN,
        help="How many steps of z; with --model, of its frames. Default: 100.",
    ),
]
DecodeEvery = Annotated[
    int,
    typer.Option(
        "--decode-every",
        parser=whole,
        rich_help_panel=DECODE,
        help="Decode z0, and z after every so many steps, to a field.",
    ),
]
DecodeDevice = Annotated[
    str | None,
    typer.Option(
        "--decode-device",
        rich_help_panel=DEVICE,
        metavar="DEVICE",
        help="Decode beside the steps, on this device; on that of the steps, by a queue of its own. The files are the "
        "same. Default with --op-device: --device.",
        autocompletion=complete_devices,
    ),
]
FFTDevice = Annotated[
    str | None,
    typer.Option(
        "--fft-device",
        rich_help_panel=DEVICE,
        metavar="DEVICE",
        help="Compute the Fourier transforms of decodes on this device. Default: where they are decoded.",
        autocompletion=complete_devices,
    ),
]
ObserverName = Annotated[
    Observers,
    typer.Option(
        "--observer",
        rich_help_panel=DECODE,
        help="What comes back of decoded fields: nothing, energies and counts, the fields, or pictures; the last two "
        "need --out.",
    ),
]
ResidualName = Annotated[
    Residuals,
    typer.Option(
        "--residual",
        rich_help_panel=DECODE,
        help="What is put where z holds no modes: nothing, or random modes of the right energy.",
    ),
]
GateName = Annotated[
    Gates,
    typer.Option(
        "--gate",
        rich_help_panel=DECODE,
        help="Where the residual is let through: on the mask, with its signs, or everywhere.",
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", parser=whole, rich_help_panel=DECODE, help="Of the residual. Default: 0.")
]
StatisticsFile = Annotated[
    Path | None,
    typer.Option(
        "--statistics",
        rich_help_panel=DECODE,
        metavar="FILE",
        help="For --residual statistics: a file of save_statistics. Default: those of the run of --from or --fit-from.",
    ),
]
DType = Annotated[RunType, typer.Option("--dtype", rich_help_panel=RUN, help="The element type of z and of fields.")]
HashEvery = Annotated[
    int | None,
    typer.Option(
        "--hash-every",
        parser=whole,
        rich_help_panel=RUN,
        help="Hash the state on this stride; not with --model. Default: 10 times.",
    ),
]
StageTimes = Annotated[
    bool,
    typer.Option(
        "--stage-times/--no-stage-times",
        rich_help_panel=DECODE,
        help="Measure the stages of a decode, apart, before the run.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        rich_help_panel=OUTPUT,
        metavar="DIR",
        help="The run folder to write: the last z, measures, fields or pictures.",
    ),
]
Compat = Annotated[
    str | None,
    typer.Option(
        "--compat",
        rich_help_panel=COMPAT,
        metavar="VERSION",
        help="v4: the old code's rollout, held to its numbers; with --n, --steps and --seed alone.",
    ),
]
Points = Annotated[
    int | None,
    typer.Option("--n", parser=whole, rich_help_panel=COMPAT, help="With --compat v4: points along each side."),
]


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi flow`."""
    told = "Advance z by a model or a matrix, and decode it."
    app.command("rollout", epilog=example(_EXAMPLE), short_help=told)(rollout)


def rollout(
    context: typer.Context,
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
    op_device: OpDevice = None,
    decode_device: DecodeDevice = None,
    fft_device: FFTDevice = None,
    out: Out = None,
    states_every: StatesEvery = None,
    states_bits: StatesBits = None,
    overwrite: Overwrite = False,
    allow_fallback: o.Fallback = False,
    require_gpu: o.RequireGpu = False,
    compat: Compat = None,
    n: Points = None,
    trace: TraceFile = None,
    live: Live = None,
    json: Json = False,
) -> None:
    """Advance z, a flow's large scales, by a model or a matrix, and decode it to fields on a stride.

    Three ways to say what runs: --model FILE (of `dashi flow fit`) with --from RUN or --z0 FILE; --A FILE or --operator
    FILE with --z0 FILE; or --fit-from RUN, which fits a matrix to one run, and so memorises it: `dashi flow evaluate`
    shows what generalises. What the observer asks for is read back, counted, and nothing else.

    Prints times of steps and decodes, with --json the metrics document. With --out: metrics.json, z.npz (the last z),
    decoded.npz, and fields.zarr (snapshots) or pictures (visualize); without --model also certificate.json, which
    `dashi verify` repeats anywhere. A model has a rollout of its own, and no certificate. Ctrl-C keeps what was
    finished, and says how to go on; a second one stops at once. Exit code 3 on errors, 130 if stopped.
    """
    named = o.given_options(context)
    if compat is not None:
        from dashi.cli.flow_comparisons import run_v4

        for option in [option for name, option in named.items() if name not in _OF_V4]:
            raise InputError(
                f"--compat v4 has a setting of its own, and {option} changes none of it.", f"leave {option} away."
            )
        run_v4(
            "rollout", compat=compat, n=n, steps=steps, seed=seed, device=device, json=json, out=out,
            overwrite=overwrite, allow_fallback=allow_fallback, require_gpu=require_gpu,
        )  # fmt: skip
        return
    from dashi import lab
    from dashi.lab._job import until_interrupted

    if n is not None:
        raise InputError("--n goes with --compat v4; otherwise the grid is that of z.", "leave --n away.")

    def asked(name: str, value: Value) -> Value | None:
        """What stands on the command line: a default does not count as asked for."""
        return value if name in named else None

    request = lab.FollowRequest(
        z0=z0, A=A, operator=operator, model=model, start=start, fit_from=fit_from, k_cut=asked("k_cut", k_cut),
        anchors=asked("anchors", anchors), ridge=asked("ridge", ridge), steps=100 if steps is None else steps,
        decode_every=decode_every, decode_device=decode_device or (device if op_device else None),
        fft_device=fft_device,
        observer=str(observer), residual=str(residual), gate=asked("gate", str(gate)),
        seed=seed, statistics=statistics, dtype=str(dtype), hash_every=hash_every, states_every=states_every,
        states_bits=states_bits, stage_times=stage_times,
        allow_fallback=allow_fallback, require_gpu=require_gpu, trace=trace, command_line=typed(),
    )  # fmt: skip
    with watched(live) as (view, events):
        work = partial(lab.follow, device=op_device or device, out=out, overwrite=overwrite, events=events, live=view)
        result, stopped = until_interrupted(lambda: work(request))
    further = resume_command(result, named, device, op_device)
    print_rollout(result, further, as_json=json)
    if stopped:
        remark(*stopped_lines(result, further))
        raise KeyboardInterrupt
