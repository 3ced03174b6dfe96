"""`dashi rollout`: very many steps of an operator, observed, certified, checkpointed."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli.help import DEVICE, OPERATOR, OUTPUT, RUN, START
from dashi.cli.live import Live, watched
from dashi.cli.options import (
    Json,
    OneDevice,
    OpDevice,
    Overwrite,
    RunType,
    StatesBits,
    StatesEvery,
    example,
    typed,
    whole,
)
from dashi.cli.output import error_document, print_error, print_facts, print_json, remark
from dashi.cli.signals import stopped_lines
from dashi.errors import FileError

if TYPE_CHECKING:
    from dashi.core.rollouts.run import Run
    from dashi.io.metrics import Metrics

_EXAMPLE = (
    "dashi demo --rollout --steps 100 && dashi rollout --z0 runs/demo-rollout/inputs.npz --A "
    "runs/demo-rollout/inputs.npz --steps 1000 --hash-every 100 --certificate certificate.json"
)


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("rollout", epilog=example(_EXAMPLE))(rollout)


class Psi(StrEnum):
    """Admissible nonlinearities."""

    none = "none"
    squash = "squash"
    softplus = "softplus"
    clamp = "clamp"


class AnyStrategy(StrEnum):
    """How steps run, or the choice of the program."""

    auto = "auto"
    stepwise = "stepwise"
    workgroup = "workgroup"
    tagged = "tagged"


Z0 = Annotated[
    Path,
    typer.Option(
        "--z0",
        rich_help_panel=START,
        metavar="FILE",
        help="Initial state(s): .npz, key z0, (D,) or (M, D) for an ensemble.",
    ),
]
Matrix = Annotated[
    Path | None,
    typer.Option("--A", rich_help_panel=OPERATOR, metavar="FILE", help="The matrix of z' = z A: .npz, key A."),
]
Bias = Annotated[
    Path | None,
    typer.Option("--b", rich_help_panel=OPERATOR, metavar="FILE", help="The b of z' = psi(z A + b): .npz, key b."),
]
Nonlinear = Annotated[Psi, typer.Option("--psi", rich_help_panel=OPERATOR, help="The nonlinearity.")]
Alpha = Annotated[float, typer.Option("--alpha", rich_help_panel=OPERATOR, help="The alpha of squash, tanh(alpha x).")]
Low = Annotated[float, typer.Option("--low", rich_help_panel=OPERATOR, help="The lower end of clamp.")]
High = Annotated[float, typer.Option("--high", rich_help_panel=OPERATOR, help="The upper end of clamp.")]
OperatorFile = Annotated[
    Path | None,
    typer.Option(
        "--operator",
        rich_help_panel=OPERATOR,
        metavar="FILE",
        help="An operator of any kind as one .npz, instead of --A.",
    ),
]
Steps = Annotated[int, typer.Option("--steps", parser=whole, rich_help_panel=RUN, help="How many steps.")]
DType = Annotated[RunType | None, typer.Option("--dtype", rich_help_panel=RUN, help="Default: the type of z0.")]
HashEvery = Annotated[
    int | None,
    typer.Option(
        "--hash-every", parser=whole, rich_help_panel=RUN, help="Hash the state every so many steps. Default: 1000."
    ),
]
ObserveEvery = Annotated[
    int | None,
    typer.Option(
        "--observe-every",
        parser=whole,
        rich_help_panel=RUN,
        help="Norms, ratio, defect, non-finite values. Default: 200 times.",
    ),
]
SheetEvery = Annotated[
    int | None,
    typer.Option(
        "--sheet-every",
        parser=whole,
        rich_help_panel=RUN,
        help="Band energies. Default: as observed with --out, else never.",
    ),
]
Bands = Annotated[
    int | None,
    typer.Option(
        "--bands", parser=whole, rich_help_panel=RUN, help="Bands of the sheet. Default: 16, or D if that is less."
    ),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        "--certificate", rich_help_panel=OUTPUT, metavar="FILE", help="Write a certificate that `dashi verify` repeats."
    ),
]
MetricsFile = Annotated[
    Path | None, typer.Option("--metrics", rich_help_panel=OUTPUT, metavar="FILE", help="Write the metrics document.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", rich_help_panel=OUTPUT, metavar="FOLDER", help="The run folder: metrics, certificate, state, sheet."
    ),
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option(
        "--checkpoint-every",
        parser=whole,
        rich_help_panel=OUTPUT,
        help="Keep a checkpoint in the run folder every so many steps.",
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", rich_help_panel=OUTPUT, help="Go on from the checkpoint in the run folder.")
]
Strategy = Annotated[
    AnyStrategy,
    typer.Option("--strategy", rich_help_panel=DEVICE, help="How steps run; every strategy gives the same bits."),
]
NoPortable = Annotated[
    bool,
    typer.Option(
        "--no-portable", rich_help_panel=DEVICE, help="Products in the device's own order (BLAS on cpu): not portable."
    ),
]
Fallback = Annotated[
    bool,
    typer.Option(
        "--allow-fallback/--strict",
        rich_help_panel=DEVICE,
        help="Run elsewhere if the device is not there, and book it; or fail.",
    ),
]
RequireGpu = Annotated[
    bool,
    typer.Option("--require-gpu", rich_help_panel=DEVICE, help="Fail unless a Vulkan device that is no CPU steps."),
]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", rich_help_panel=RUN, help="Do not stop at values that are not finite.")
]


def rollout(
    z0: Z0,
    steps: Steps,
    A: Matrix = None,  # noqa: N803 - the operator is called A in the equation, in files and on the command line
    b: Bias = None,
    psi: Nonlinear = Psi.none,
    alpha: Alpha = 1.0,
    low: Low = -1.0,
    high: High = 1.0,
    operator: OperatorFile = None,
    dtype: DType = None,
    hash_every: HashEvery = None,
    observe_every: ObserveEvery = None,
    sheet_every: SheetEvery = None,
    bands: Bands = None,
    certificate: CertificateFile = None,
    metrics: MetricsFile = None,
    out: Out = None,
    checkpoint_every: CheckpointEvery = None,
    states_every: StatesEvery = None,
    states_bits: StatesBits = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: OneDevice = "auto",
    op_device: OpDevice = None,
    strategy: Strategy = AnyStrategy.auto,
    no_portable: NoPortable = False,
    allow_fallback: Fallback = False,
    require_gpu: RequireGpu = False,
    keep_going: KeepGoing = False,
    live: Live = None,
    json: Json = False,
) -> None:
    """Roll out z' = z A, z' = psi(z A + b), or any operator: from z0, for so many steps.

    A state is a row, so z' = z A. The state is hashed on the device every so many steps; a portable run has the same
    hashes on every device, and `dashi verify` repeats a certificate anywhere. Prints what became of the state and how
    it ran; with --json the metrics document and the names of the files. Ctrl-C keeps what was finished; with --out and
    --checkpoint-every even a run that was killed goes on with --resume. Exit code 3 if a value is not finite.
    """
    from dashi import lab
    from dashi.lab._job import until_interrupted

    request = lab.RolloutRequest(
        z0=z0, steps=steps, operator=operator, A=A, b=b, psi=psi, alpha=alpha, low=low, high=high, dtype=dtype,
        portable=not no_portable, hash_every=hash_every, observe_every=observe_every, sheet_every=sheet_every,
        bands=bands, checkpoint_every=checkpoint_every, states_every=states_every,
        states_bits=states_bits, certificate=certificate, metrics=metrics, strategy=strategy,
        stop_on_nonfinite=not keep_going, allow_fallback=allow_fallback, require_gpu=require_gpu, command_line=typed(),
    )  # fmt: skip
    where = partial(lab.rollout, device=op_device or device, out=out, resume=resume, overwrite=overwrite)
    unwritten: FileError | None = None
    stopped = False
    try:
        with watched(live) as (view, events):
            result, stopped = until_interrupted(lambda: where(request, events=events, live=view))
    except FileError as error:
        if error.result is None:
            raise
        result, unwritten = error.result, error
    print_report(result, metrics, unwritten, as_json=json)
    if unwritten:
        print_error(unwritten, as_json=False)  # with --json it is in the document: there is only one
        raise typer.Exit(3)
    if stopped:
        remark(*stopped_lines(out, result.folder))
        raise KeyboardInterrupt


def print_report(
    run: Run, metrics_file: Path | None, unwritten: FileError | None = None, *, as_json: bool = False
) -> None:
    """A table for people; with --json the metrics document, the names of the files, and why one is missing."""
    metrics = run.metrics
    if as_json:
        document = _document(run, metrics_file)
        if unwritten:
            document["error"] = error_document(unwritten)
        print_json(document)
        return
    verdict = metrics.verdict
    facts = {
        "verdict": verdict.sentence if verdict else "",
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "steps": _steps(run, metrics),
        "time": f"{metrics.ns_per_step / 1000:.3f} us per step ({metrics.steps_per_s:,.0f} steps/s)",
        "strategy": f"{run.strategy}: {run.reason}",
        "hash": metrics.hashes[-1].hash if metrics.hashes else "none",
        "portable": "" if metrics.portable else "no: these hashes hold on this device alone",
        "fell back": "; ".join(f"{f.name}: {f.used} instead of {f.requested} ({f.reason})" for f in metrics.perf_flags),
        "certificate": ", ".join(str(file) for file in run.certificates),
        "folder": str(run.folder or ""),
    }
    print_facts(facts)


def _steps(run: Run, metrics: Metrics) -> str:
    shape = " x ".join(str(n) for n in metrics.state_shape or ())
    many = f"{metrics.states} states of " if metrics.states != 1 else ""
    stopped = ", stopped" if run.stopped else ""
    return f"{metrics.steps} of {metrics.operator}, {many}{shape}, {metrics.dtype}{stopped}"


def _document(run: Run, metrics_file: Path | None) -> dict[str, Any]:
    metrics = run.metrics
    document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
    document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
    document["certificate"] = next((str(file) for file in run.certificates), None)
    document["metrics"] = str(metrics_file) if metrics_file else None
    document["folder"] = str(run.folder) if run.folder else None
    return document
