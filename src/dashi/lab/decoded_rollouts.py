"""`follow`: steps of z on the device by a model, a matrix or an operator, decoded on a stride."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.metrics._document import build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.observations.verdict import verdict
from dashi.core.rollouts._observers import StateCopies
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import DeviceNotFoundError, InputError, Interrupted, NonFiniteError
from dashi.flow.decode import Decoded, Decoder
from dashi.flow.decode._album import Album
from dashi.flow.decode.decoder import NOTHING
from dashi.flow.decode.observer import Decodes, DecodeTotals, residual_cost
from dashi.flow.proxy.files import save_z
from dashi.flow.proxy.model import ON_HOST, Model
from dashi.flow.proxy.model_operator import HOST_REASON, PIECE, ModelOperator
from dashi.flow.proxy.schema import Schema
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import Z
from dashi.io.metrics import Metrics, write_metrics
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, require_results, until_interrupted
from dashi.lab._run_job import FinishedJob
from dashi.lab.decoded_setup import FollowRequest, FollowSetup, check_follow, files_of, make_setup, settings_of
from dashi.lab.events import SILENT, Advance, Events
from dashi.runtime.device import Device

COMMAND: Final = "flow rollout"
_PAUSE: Final = 5.0
"""Seconds between two z of a model on disk."""
_GROWS: Final = "look at the map's spectral radius: above 1, what it advances grows. What was decoded is kept."


def remaining_request(run: Run) -> FollowRequest | None:
    """The request that does the steps which a stopped rollout of `follow` did not; None where that takes more than the
    files in its folder."""
    request, folder = _request_of(run), run.folder
    if not run.stopped or folder is None or not run.steps or run.steps >= request.steps:
        return None
    if request.residual == "statistics" and request.statistics is None:
        return None
    more = replace(request, z0=folder / Z, start=None, fit_from=None, steps=request.steps - run.steps)
    if request.fit_from is None:
        return more
    if not (folder / run_folder.INPUTS).is_file():
        return None
    return replace(more, A=folder / run_folder.INPUTS, k_cut=None, anchors=None, ridge=None)


def setup_of(run: Run) -> FollowSetup:
    """What ran in a rollout of `follow`: z and its schema, the operator or model. Raises InputError for other runs."""
    setup: object = run.job.setup if run.job else None
    if not isinstance(setup, FollowSetup):
        raise InputError("this is no decoded rollout.", "pass the run of `dashi.lab.follow`.")
    return setup


def _request_of(run: Run) -> FollowRequest:
    setup_of(run)
    return run.request


@interrupted_with(Run)
def follow(
    request: FollowRequest, *, device: str | Device = "auto", out: AnyPath | None = None, overwrite: bool = False,
    events: Events = SILENT,
) -> Run:  # fmt: skip
    """Advances z by a model, a matrix or an operator, and decodes it to fields on a stride. What the observer asks for
    is read back, counted, and nothing else.

    With `out`: metrics, the last z, what was measured of decoded fields, the fields (snapshots) or pictures (visualize)
    and, without a model, a certificate. Values that are not finite are a NonFiniteError whose `result` is the
    Run until then. Ctrl-C raises Interrupted, whose `partial` is the Run so far.
    """
    require_request(request, FollowRequest)
    job = Job(
        command=COMMAND, request=request, device=device, out=as_path(out), overwrite=overwrite, events=events
    )  # fmt: skip
    check_follow(request, job.out)
    job.require_place()
    with ExitStack() as stack:
        placed = stack.enter_context(job.place())
        with job.timed("learn" if request.fit_from else "encode", "preparing"):
            setup = make_setup(request, placed.device, job.out)
        _require_device(request, setup, placed)
        settings, members = request.settings, len(setup.z0)
        decoder = stack.enter_context(
            Decoder(setup.schema, placed.device, settings=settings, members=members, statistics=setup.statistics)
        )
        run_settings = settings_of(request, setup) if job.out else None
        folder = stack.enter_context(job.open_folder(run_settings, files=files_of(request)))
        album = Album(folder, setup.schema, members, settings, setup.interval, setup.flow) if folder else None
        work = _FollowWork(job, request, setup, placed, decoder)
        run, failure = work.run(album)
        digest = None
        if folder is not None and not isinstance(setup.advances, Model):
            digest = certify_folder(run, folder, setup.advances, setup.z0)
        metrics = work.metrics(run, digest)
        # Within the trace, so that one that cannot be written takes nothing else with it.
        left = _leave(folder, setup, run, metrics, album, finished=failure is None)
    certificates = {left / run_folder.CERTIFICATE: digest} if left and digest else {}
    finished = FinishedJob(
        request=request, metrics=metrics, folder=left, out=job.out, certificates=certificates, setup=setup
    )
    result = replace(run, job=finished)
    if failure is not None:
        failure.result = result
        raise failure
    if request.require_gpu and not metrics.gpu_hotloop_active:
        raise _no_gpu(metrics.way_reason or "")
    if result.stopped:
        raise Interrupted(result)
    return result


def _require_device(request: FollowRequest, setup: FollowSetup, placed: Placement) -> None:
    """Refuses a model that would not run on the device that was asked for, before it runs elsewhere."""
    model = setup.advances
    if not isinstance(model, Model):
        return
    require_results(placed)  # a model brings its z to the host
    if request.require_gpu and model.where(placed.device, len(setup.z0)) == ON_HOST:
        raise _no_gpu(HOST_REASON)


class _FollowWork:
    """One decoded rollout under way."""

    def __init__(
        self, job: Job, request: FollowRequest, setup: FollowSetup, placed: Placement, decoder: Decoder
    ) -> None:
        self.job, self.request, self.setup, self.placed, self.decoder = job, request, setup, placed, decoder
        self._cost: tuple[float, float] | None = None
        """Errors of the first field with the residual and without it."""

    def run(self, album: Album | None) -> tuple[Run, NonFiniteError | None]:
        """The rollout with its decodes, as far as it came, and the error that ended it."""
        request, setup, info, events = self.request, self.setup, self.placed.device.info, self.job.events
        if request.stage_times and info.type != "null":
            with events.progress("measuring the stages of a decode", None, ""):
                self.decoder.calibrate(2 if info.type in ("software", "reference") else 16)
        schema = setup.schema
        events.remark(
            f"{request.steps} steps of {setup.kind}, D = {schema.size}, decoded to {schema.n} x {schema.n} after every "
            f"{request.decode_every}, on {info.name}"
        )
        if request.observer == "none":
            events.remark(NOTHING)
        self._measure_residual()
        if album:
            # So that no z of an earlier run lies there; it is not just removed, since a run may start from it.
            save_z(album.folder / Z, schema, setup.z0)
        decodes = Decodes(self.decoder, request.decode_every, request.observer, album.add if album else _forget)
        with self.job.timed("rollout", "rollout", request.steps, "steps") as advance:
            try:
                return until_interrupted(lambda: self._rollout(decodes, album, advance))[0], None
            except NonFiniteError as error:
                if not isinstance(setup.advances, Model):
                    error.fix = _GROWS
                return error.rollout, error

    def _rollout(self, decodes: Decodes, album: Album | None, advance: Advance) -> Run:
        request, advances, z0 = self.request, self.setup.advances, self.setup.z0
        if not isinstance(advances, Model):
            return rollout(
                advances, z0, request.steps, device=self.placed.device, observers=[decodes],
                hash_every=request.hash_stride, observe_every=max(1, request.steps // 200), progress=advance,
            )  # fmt: skip
        operator = ModelOperator(advances, request.steps, self.placed.device, z0.dtype)
        last = [_last_z(album.folder, self.setup.schema)] if album else []
        return operator.rollout(z0, observers=[decodes, *last], progress=advance)

    def _measure_residual(self) -> None:
        """What a drawn residual costs, where that can be known."""
        setup, events = self.setup, self.job.events
        if not self.decoder.settings.draws:
            return
        if self.request.observer == "none":
            events.remark("what the residual costs is not measured: that would read fields back")
        elif setup.truth is not None:
            with events.progress("measuring what the residual costs", None, ""):
                self._cost = residual_cost(self.decoder, setup.z0, setup.truth)
        else:
            events.remark("a residual raises the error of fields: `dashi flow parity` shows by how much")

    def metrics(self, run: Run, digest: str | None) -> Metrics:
        """The metrics of the rollout and of its decodes."""
        decoder, placed, decodes = self.decoder, self.placed, DecodeTotals.of(run)
        judged = verdict(run.observations) if run.observations else None
        stage_ns = dict(decoder.stage_ns)
        decode_seconds = decodes.count * stage_ns.get("decode", 0.0) * 1e-9
        # A model's seconds are its own; on a device decodes run between the steps.
        beside = 0.0 if isinstance(self.setup.advances, Model) else decode_seconds
        steps, seconds = run.steps, max(run.seconds - beside, 0.0) or run.seconds
        more = {
            "decode_observer": self.request.observer, "decode_dtype": decoder.settings.dtype,
            "decode_residual": decoder.settings.residual, "decode_gate": decoder.settings.gate,
            "decode_residual_error": self._cost[0] if self._cost else None,
            "decode_lowpass_error": self._cost[1] if self._cost else None,
            "decode_snapshots": decodes.count, "decode_dispatches": decoder.dispatches(self.request.observer),
            "decode_bytes_read": decoder.bytes_read, "decode_stage_ns": stage_ns or None,
            "steps_per_s": steps / seconds if seconds else 0.0, "ns_per_step": seconds / steps * 1e9 if steps else 0.0,
            "stage_seconds": self.job.stages.seconds().model_copy(
                update={
                    "rollout": seconds, "decode": decode_seconds, "plot": decodes.looking,
                    **_stage_seconds(stage_ns, decodes.count),
                }
            ),
        }  # fmt: skip
        return build_metrics(
            self.job.command, run, placed, self.job.stages, verdict=judged, certificate=digest,
            parts=["decode", "fft"], more=more,
        )  # fmt: skip


def _forget(_step: int, _decoded: Decoded) -> None:
    """Keeps nothing of what was decoded: without a run folder it has been counted, and is gone."""


def _leave(
    folder: Path | None, setup: FollowSetup, run: Run, metrics: Metrics, album: Album | None, *, finished: bool
) -> Path | None:
    """Writes what is left to write; where the run lies."""
    if folder is None or album is None:
        return None
    album.close()
    written = {run_folder.METRICS}
    if metrics.certificate_digest:
        written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
    if np.isfinite(np.asarray(run.state)).all():
        save_z(folder / Z, setup.schema, run.state)
    write_metrics(folder / run_folder.METRICS, metrics)
    return run_folder.close_run(folder, written, finished=finished and not run.stopped)


def _last_z(folder: Path, schema: Schema) -> StateCopies:
    """Keeps the last z on disk, every few seconds: a model under way that is killed leaves it."""
    return StateCopies(PIECE, lambda run: save_z(folder / Z, schema, run.state), pause=lambda: _PAUSE)


def _no_gpu(reason: str) -> DeviceNotFoundError:
    return DeviceNotFoundError(
        f"no step was executed on a GPU: {reason}.",
        "use a model that has kernels (galerkin, slaved, ridge), or leave `require_gpu=True` away.",
    )


def _stage_seconds(stage_ns: dict[str, float], decodes: int) -> dict[str, float]:
    """Seconds of the parts of all decodes on the device, as `StageSeconds` names them."""
    parts = {
        "scatter": ("scatter",), "ifft_lp": ("ifft_lp",), "mask": ("smooth", "threshold", "majority"),
        "synth": ("synth",), "ifft_resid": ("ifft_resid",), "combine": ("combine",),
    }  # fmt: skip
    return {
        name: sum(stage_ns[stage] for stage in names) * 1e-9 * decodes
        for name, names in parts.items()
        if all(stage in stage_ns for stage in names)
    }
