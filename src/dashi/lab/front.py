"""The front door: jobs as plain functions of keywords, which build the frozen request and do the job.

    run = dashi.flow.simulate(flow, seeds=[1, 2], steps=4000, out="runs/k", frame_every=100, hash_every=400)
    fit = dashi.flow.fit("galerkin", flow, train=range(1, 5), validate=[5], k_cut=8, out="runs/model.npz")
    scores = dashi.flow.evaluate(fit, seeds=[100, 101], perturb={"nu": 0.004}, out="runs/scores")

`dashi.flow` has them under these names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dashi.core.rollouts.observer import Observer
from dashi.core.rollouts.run import Run
from dashi.errors import InputError
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.io._shards import Shard
from dashi.lab import decoded_rollouts, evaluations, fits, simulations
from dashi.lab._arguments import number_pairs, several
from dashi.lab._job import AnyPath
from dashi.lab._seeds import frozen_seeds
from dashi.lab.decoded_setup import FollowRequest
from dashi.lab.evaluation_plans import EvaluateRequest
from dashi.lab.evaluations import ModelScores
from dashi.lab.events import SILENT, Events
from dashi.lab.fit_setup import FitRequest
from dashi.lab.fits import FittedModel
from dashi.lab.simulation_setup import SimulateRequest
from dashi.report.live import LiveView
from dashi.runtime.device import Device


def simulate(
    flow: Flow,
    states: Floats | None = None,
    steps: int = 1000,
    *,
    seeds: Sequence[int] | int = (0,),
    initial: str | Path = "random",
    initial_options: Mapping[str, Any] | None = None,
    look_every: int | None = None,
    frame_every: int | None = None,
    hash_every: int | None = None,
    fields: Sequence[str] = ("vorticity",),
    states_every: int | None = None,
    states_bits: int | None = None,
    transfer: bool = False,
    host_fft: bool = False,
    observers: Sequence[Observer[Any]] = (),
    device: str | Device = "auto",
    out: AnyPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    shard: Shard | None = None,
    events: Events = SILENT,
    live: LiveView | None = None,
) -> Run:
    """Solves a flow for so many steps of dt, from `states` (`ensemble`, `from_field`) or from an initial condition with
    a seed for each member; a single number is one seed.

    Strides are in steps; None chooses (100 looks, 10 frames, 10 hashes) and 0 is never. With `out` the run has a
    folder: `run.fields` reads its frames, `run.certificate.verify()` repeats it, `run.resume(steps)` goes on.
    `states_every` keeps states there, which the certificate names by digests of `states_bits` bits (128, or 256): what
    lies between them can be verified apart. `observers` look besides, and change no bit; a `live` view shows the run
    while it goes on. `shard` takes some of the members, into a folder for `lab.merge`. Ctrl-C raises Interrupted, whose
    `partial` is the run so far.
    """
    request = SimulateRequest(
        flow=flow, steps=steps, seeds=frozen_seeds("seeds", seeds), initial=initial,
        initial_options=initial_options or {}, states=states, look_every=look_every,
        frame_every=frame_every, hash_every=hash_every, fields=several("fields", fields),
        states_every=states_every, states_bits=states_bits,
        transfer=transfer, host_fft=host_fft, observers=several("observers", observers), shard=shard,
    )  # fmt: skip
    return simulations.simulate(
        request, device=device, out=out, resume=resume, overwrite=overwrite, events=events, live=live
    )


def fit(
    model: str = "galerkin",
    flow: Flow | None = None,
    *,
    source: AnyPath | None = None,
    train: Sequence[int] | int | None = None,
    validate: Sequence[int] | int = 1,
    train_steps: int = 200,
    frame_every: int | None = None,
    windows: int | None = None,
    spin_up: int | None = None,
    initial: str | None = None,
    initial_options: Mapping[str, Any] | None = None,
    variables: Sequence[str] = (),
    dims: Mapping[str, str] | None = None,
    k_cut: float = 8.0,
    anchors: int = 0,
    options: Mapping[str, Any] | None = None,
    baselines: Sequence[str] = (),
    host_fft: bool = False,
    device: str | Device = "auto",
    out: AnyPath | None = None,
    events: Events = SILENT,
) -> FittedModel:
    """Fits a model of a flow's large scales to simulated windows of some seeds, or to the record in `source`, with the
    baselines that it will be compared with.

    `train` and `validate` name seeds, or say how many; `options` are the model's own. `out` is the file to write,
    which `evaluate` reads. Ctrl-C raises Interrupted; once the model is fitted, `partial` is the FittedModel.
    """
    request = FitRequest(
        model=model, flow=flow, source=source, train=train, validate=validate, train_steps=train_steps,
        frame_every=frame_every, windows=windows, spin_up=spin_up, initial=initial,
        initial_options=initial_options or {}, variables=several("variables", variables), dims=dims or {}, k_cut=k_cut,
        anchors=anchors, model_options=options or {}, baselines=several("baselines", baselines), host_fft=host_fft,
    )  # fmt: skip
    return fits.fit(request, device=device, out=out, events=events)


def evaluate(
    model: FittedModel | AnyPath,
    *,
    seeds: Sequence[int] | int | None = None,
    steps: int | None = None,
    windows: int | None = None,
    start: int | None = None,
    source: AnyPath | None = None,
    variables: Sequence[str] = (),
    dims: Mapping[str, str] | None = None,
    perturb: Mapping[str, float] | Sequence[tuple[str, float]] = (),
    perfect: bool = False,
    residual: bool = False,
    allow_overlap: bool = False,
    host_fft: bool = False,
    device: str | Device = "auto",
    out: AnyPath | None = None,
    overwrite: bool = False,
    shard: Shard | None = None,
    events: Events = SILENT,
) -> ModelScores:
    """Rolls a fitted model and its baselines out from starts that they never saw, and scores them against what the
    flow did: `print(scores.table())`.

    `seeds` names seeds, or says how many that training did not see; `source` is a record to score on instead.
    `perturb` has parameters (nu, drag, cs, dt, n, force_wavenumber, ...) of other flows to score on too. `shard` takes
    some of the seeds, into a folder for `lab.merge`. Ctrl-C raises Interrupted, whose `partial` is the scores so far.
    """
    request = EvaluateRequest(
        model=_file_of(model), seeds=seeds, steps=steps, windows=windows, start=start, source=source,
        variables=several("variables", variables), dims=dims or {}, perturb=number_pairs("perturb", perturb),
        perfect=perfect, residual=residual, allow_overlap=allow_overlap, host_fft=host_fft, shard=shard,
    )  # fmt: skip
    return evaluations.evaluate(request, device=device, out=out, overwrite=overwrite, events=events)


def follow(
    model: FittedModel | AnyPath | None = None,
    steps: int = 100,
    *,
    start: Run | AnyPath | None = None,
    fit_from: Run | AnyPath | None = None,
    device: str | Device = "auto",
    out: AnyPath | None = None,
    overwrite: bool = False,
    events: Events = SILENT,
    live: LiveView | None = None,
    **request: Any,
) -> Run:
    """Advances z, a flow's large scales, by a fitted model from the first frame of a run, and decodes it to fields on
    a stride; or by a matrix that is fitted to a run (`fit_from`). Further keywords are the fields of FollowRequest."""
    asked = FollowRequest(
        model=None if model is None else _file_of(model), steps=steps, start=_folder_of(start),
        fit_from=_folder_of(fit_from), **request,
    )  # fmt: skip
    return decoded_rollouts.follow(asked, device=device, out=out, overwrite=overwrite, events=events, live=live)


def _file_of(model: FittedModel | AnyPath) -> AnyPath:
    if not isinstance(model, FittedModel):
        return model
    if model.path is None:
        raise InputError("this fit is in no file.", "fit with `out=`, or pass the path of a fit.")
    return model.path


def _folder_of(run: Run | AnyPath | None) -> AnyPath | None:
    if not isinstance(run, Run):
        return run
    if run.folder is None:
        raise InputError("this run has no folder.", "simulate with `out=`, or pass the folder of a run.")
    return run.folder
