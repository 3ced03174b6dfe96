"""`follow`: steps of z on the device by a model, a matrix or an operator, decoded on a stride."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.metrics._document import build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.observations.verdict import verdict
from dashi.core.rollouts.run import Run
from dashi.errors import DeviceNotFoundError, Interrupted, NonFiniteError
from dashi.flow.decode import Decoder
from dashi.flow.decode._album import Album
from dashi.flow.decode._harness import (
    HOST_REASON,
    DecodedRun,
    follow_and_decode,
    residual_cost,
    roll_and_decode,
)
from dashi.flow.decode.decoder import NOTHING
from dashi.flow.proxy.files import save_z
from dashi.flow.proxy.model import ON_HOST, Model
from dashi.flow.proxy.schema import Schema
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import Z
from dashi.io.metrics import Metrics, StageSeconds, write_metrics
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, require_results, until_interrupted
from dashi.lab.decoded_setup import FollowRequest, FollowSetup, check_follow, files_of, make_setup, settings_of
from dashi.lab.events import SILENT, Events
from dashi.runtime.device import Device
from dashi.types import HostArray

COMMAND: Final = "flow rollout"
_PAUSE: Final = 5.0
"""Seconds between two z of a model on disk."""
_GROWS: Final = "look at the map's spectral radius: above 1, what it advances grows. What was decoded is kept."


@dataclass(frozen=True, eq=False)
class DecodedRollout:
    """A rollout of z and its decodes, and what they left."""

    request: FollowRequest
    setup: FollowSetup
    decoded: DecodedRun
    metrics: Metrics
    folder: Path | None
    """Where it lies; one that was stopped beside a finished one lies in a folder within `out`."""
    out: Path | None
    """The folder that was asked for."""

    @property
    def run(self) -> Run:
        """The rollout of z alone."""
        return self.decoded.rollout

    @property
    def schema(self) -> Schema:
        """How z is laid out."""
        return self.setup.schema

    @property
    def z(self) -> HostArray:
        """The last z, (members, D)."""
        return np.asarray(self.run.state)

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C came before all steps were done."""
        return self.run.stopped

    @property
    def has_hidden_state(self) -> bool:
        """Whether the model has more than z, so that going on from the last z is a little different."""
        return isinstance(self.setup.advances, Model) and self.setup.advances.has_hidden_state

    def remaining(self) -> FollowRequest | None:
        """The request that does the steps which a stopped rollout did not; None where that takes more than the files
        in its folder."""
        request, run = self.request, self.run
        if not run.stopped or self.folder is None or not run.steps or run.steps >= request.steps:
            return None
        if request.residual == "statistics" and request.statistics is None:
            return None
        more = replace(request, z0=self.folder / Z, start=None, fit_from=None, steps=request.steps - run.steps)
        if request.fit_from is None:
            return more
        if not (self.folder / run_folder.INPUTS).is_file():
            return None
        return replace(more, A=self.folder / run_folder.INPUTS, k_cut=None, anchors=None, ridge=None)

    def __repr__(self) -> str:
        where = f", folder={str(self.folder)!r}" if self.folder else ""
        return (
            f"DecodedRollout({self.setup.kind}, {len(self.setup.z0)} x {self.schema.size}, {self.run.steps} steps, "
            f"{self.decoded.snapshots} fields{', stopped' if self.stopped else ''}{where})"
        )


@interrupted_with(DecodedRollout)
def follow(
    request: FollowRequest, *, device: str | Device = "auto", out: AnyPath | None = None, overwrite: bool = False,
    events: Events = SILENT,
) -> DecodedRollout:  # fmt: skip
    """Advances z by a model, a matrix or an operator, and decodes it to fields on a stride. What the observer asks for
    is read back, counted, and nothing else.

    With `out`: metrics, the last z, what was measured of decoded fields, the fields (snapshots) or pictures (visualize)
    and, without a model, a certificate. Values that are not finite are a NonFiniteError whose `result` is the
    DecodedRollout until then. Ctrl-C raises Interrupted, whose `partial` is the DecodedRollout so far.
    """
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
        decoded, failure = work.run(album)
        digest = None
        if folder is not None and not isinstance(setup.advances, Model):
            digest = certify_folder(decoded.rollout, folder, setup.advances, setup.z0)
        metrics = work.metrics(decoded, digest)
        # Within the trace, so that one that cannot be written takes nothing else with it.
        left = _leave(folder, setup, decoded, metrics, album, finished=failure is None)
    result = DecodedRollout(request, setup, decoded, metrics, left, job.out)
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

    def run(self, album: Album | None) -> tuple[DecodedRun, NonFiniteError | None]:
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
        last = _LastZ(album.folder, schema, setup.z0) if album else None
        with self.job.timed("rollout", "rollout", request.steps, "steps") as advance:
            asked: dict[str, Any] = {
                "decode_every": request.decode_every, "observer": request.observer,
                "snapshot": album.add if album else None, "progress": advance,
            }  # fmt: skip
            advances, z0 = setup.advances, setup.z0
            if isinstance(advances, Model):
                keep = last.keep if last else None
                work = partial(follow_and_decode, advances, z0, request.steps, self.decoder, keep=keep, **asked)
            else:
                work = partial(
                    roll_and_decode, advances, z0, request.steps, self.decoder, hash_every=request.hash_stride,
                    observe_every=max(1, request.steps // 200), **asked,
                )  # fmt: skip
            try:
                return until_interrupted(work)[0], None
            except NonFiniteError as error:
                if not isinstance(advances, Model):
                    error.fix = _GROWS
                return DecodedRun.of(error.rollout), error

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

    def metrics(self, decoded: DecodedRun, digest: str | None) -> Metrics:
        """The metrics of the rollout and of its decodes."""
        run, decoder, placed = decoded.rollout, self.decoder, self.placed
        judged = verdict(run.observations) if run.observations else None
        stage_ns = dict(decoder.stage_ns)
        steps, seconds = run.steps, decoded.step_seconds
        more = {
            "decode_observer": self.request.observer, "decode_dtype": decoder.settings.dtype,
            "decode_residual": decoder.settings.residual, "decode_gate": decoder.settings.gate,
            "decode_residual_error": self._cost[0] if self._cost else None,
            "decode_lowpass_error": self._cost[1] if self._cost else None,
            "decode_snapshots": decoded.snapshots, "decode_dispatches": decoder.dispatches(self.request.observer),
            "decode_bytes_read": decoder.bytes_read, "decode_stage_ns": stage_ns or None,
            "steps_per_s": steps / seconds if seconds else 0.0, "ns_per_step": seconds / steps * 1e9 if steps else 0.0,
            "stage_seconds": _seconds(self.job.stages.seconds(), stage_ns, decoded),
        }  # fmt: skip
        return build_metrics(
            self.job.command, run, placed, self.job.stages, verdict=judged, certificate=digest,
            parts=["decode", "fft"], more=more,
        )  # fmt: skip


def _leave(
    folder: Path | None,
    setup: FollowSetup,
    decoded: DecodedRun,
    metrics: Metrics,
    album: Album | None,
    *,
    finished: bool,
) -> Path | None:
    """Writes what is left to write; where the run lies."""
    if folder is None or album is None:
        return None
    album.close()
    written = {run_folder.METRICS}
    if metrics.certificate_digest:
        written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
    if np.isfinite(np.asarray(decoded.rollout.state)).all():
        save_z(folder / Z, setup.schema, decoded.rollout.state)
    write_metrics(folder / run_folder.METRICS, metrics)
    return run_folder.close_run(folder, written, finished=finished and not decoded.rollout.stopped)


class _LastZ:
    """The last z on disk, every few seconds: a model under way that is killed leaves it. The start is the first, so
    that no z of an earlier run lies there; it is not just removed, since a run may start from it."""

    def __init__(self, folder: Path, schema: Schema, z0: Any) -> None:
        self._folder, self._schema = folder, schema
        save_z(folder / Z, schema, z0)
        self._last = time.monotonic()

    def keep(self, step: int, z: Any) -> None:
        if time.monotonic() - self._last >= _PAUSE:
            save_z(self._folder / Z, self._schema, z)
            self._last = time.monotonic()


def _no_gpu(reason: str) -> DeviceNotFoundError:
    return DeviceNotFoundError(
        f"no step was executed on a GPU: {reason}.",
        "use a model that has kernels (galerkin, slaved, ridge), or leave `require_gpu=True` away.",
    )


def _seconds(stages: StageSeconds, stage_ns: dict[str, float], decoded: DecodedRun) -> StageSeconds:
    """Wall time of steps and decodes apart, and of the parts of decodes on the device."""
    parts = {
        "scatter": ("scatter",), "ifft_lp": ("ifft_lp",), "mask": ("smooth", "threshold", "majority"),
        "synth": ("synth",), "ifft_resid": ("ifft_resid",), "combine": ("combine",),
    }  # fmt: skip
    known = {
        name: sum(stage_ns[stage] for stage in names) * 1e-9 * decoded.snapshots
        for name, names in parts.items()
        if all(stage in stage_ns for stage in names)
    }
    apart = {"rollout": decoded.step_seconds, "decode": decoded.decode_seconds, "plot": decoded.looking}
    return stages.model_copy(update={**apart, **known})
