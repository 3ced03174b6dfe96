"""`dashi rollout`: very many steps of an operator, observed, certified, checkpointed."""

from __future__ import annotations

from functools import partial

import typer

from dashi.cli import rollout_options as o
from dashi.cli.options import Json, OneDevice, Overwrite, example, typed
from dashi.cli.output import print_error, remark
from dashi.cli.progress import Shown
from dashi.cli.stopping import stopped_lines
from dashi.errors import FileError

_EXAMPLE = (
    "dashi demo --rollout --steps 100 && dashi rollout --z0 runs/demo-rollout/inputs.npz --A "
    "runs/demo-rollout/inputs.npz --steps 1000 --hash-every 100 --certificate certificate.json"
)


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
    from dashi import lab
    from dashi.cli.rollout_report import print_report
    from dashi.lab._job import until_interrupted

    request = lab.RolloutRequest(
        z0=z0, steps=steps, operator=operator, A=A, b=b, psi=psi, alpha=alpha, low=low, high=high, portable=not fast,
        dtype=dtype, hash_every=hash_every, observe_every=observe_every, sheet_every=sheet_every, bands=bands,
        checkpoint_every=checkpoint_every, certificate=certificate, metrics=metrics, strategy=way,
        stop_on_nonfinite=not keep_going, allow_fallback=allow_fallback, require_gpu=require_gpu, command_line=typed(),
    )  # fmt: skip
    where = partial(lab.rollout, device=op_device or device, out=out, resume=resume, overwrite=overwrite)
    unwritten: FileError | None = None
    stopped = False
    try:
        result, stopped = until_interrupted(lambda: where(request, events=Shown()))
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
