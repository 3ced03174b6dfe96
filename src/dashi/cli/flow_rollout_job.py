"""The work of `dashi flow rollout`: device, operator, run, and the files that it leaves."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.cli.flow_rollout import Request
from dashi.cli.flow_rollout_report import Told, go_on, print_report, stopped_lines
from dashi.cli.flow_rollout_setup import COMMAND, Setup, Z, check_request, files_of, make_setup, settings_of
from dashi.cli.options import typed
from dashi.cli.output import remark
from dashi.cli.progress import phase, progress
from dashi.cli.stopping import until_stopped
from dashi.cli.tracing import traced
from dashi.core.certificates.certify import certify_folder
from dashi.core.metrics.document import Stages, build_metrics
from dashi.core.metrics.placement import Placement, place
from dashi.core.observations.verdict import verdict
from dashi.errors import DeviceNotFoundError, NonFiniteError, NoResultError
from dashi.flow.decode import Decoder
from dashi.flow.decode.album import Album
from dashi.flow.decode.decoder import NOTHING
from dashi.flow.decode.harness import (
    HOST_REASON,
    DecodedRun,
    follow_and_decode,
    residual_cost,
    roll_and_decode,
)
from dashi.flow.proxy.files import save_z
from dashi.flow.proxy.model import ON_HOST, Model
from dashi.flow.proxy.schema import Schema
from dashi.io import run_folder
from dashi.io.metrics import Metrics, StageSeconds, write_metrics

_PAUSE: Final = 5.0
"""Seconds between two z of a model on disk."""
_GROWS: Final = "look at the map's spectral radius: above 1, what it advances grows. What was decoded is kept."


class Job:
    """One call of the command."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.stages = Stages()
        self.failure: NonFiniteError | None = None
        self.cost: tuple[float, float] | None = None
        """Errors of the first field with the residual and without it."""

    def do(self) -> None:
        """Everything, from the inputs to what is printed."""
        request = self.request
        settings = check_request(request)
        with ExitStack() as stack:
            placed = stack.enter_context(
                place(request.device, allow_fallback=request.allow_fallback, require_gpu=request.require_gpu)
            )
            stack.enter_context(traced(request.trace, placed.device, self.stages))
            with self.stages.time("learn" if request.fit_from else "encode"), phase("preparing"):
                setup = make_setup(request, placed.device)
            self._require_device(setup, placed)
            members = len(setup.z0)
            decoder = stack.enter_context(
                Decoder(setup.schema, placed.device, settings=settings, members=members, statistics=setup.statistics)
            )
            folder = stack.enter_context(
                run_folder.open_run(
                    request.out,
                    False,
                    COMMAND,
                    typed(),
                    files=files_of(request),
                    settings=settings_of(request, setup) if request.out else None,
                    overwrite=request.overwrite,
                )
            )
            album = Album(folder, setup.schema, members, settings, setup.interval, setup.flow) if folder else None
            run = self._run(setup, placed, decoder, album)
            digest = None
            if folder is not None and not isinstance(setup.advances, Model):
                digest = certify_folder(run.rollout, folder, setup.advances, setup.z0)
            metrics = self._metrics(placed, decoder, run, digest)
            # Within the trace, so that one that cannot be written takes nothing else with it.
            left = self._leave(folder, setup, run, metrics, digest, album)
        if self.failure:
            raise self.failure
        if request.require_gpu and not metrics.gpu_hotloop_active:
            raise _no_gpu(metrics.way_reason or "")
        further = go_on(request, setup, run.rollout, left)
        print_report(Told(request, setup, run, metrics, left, further))
        if run.rollout.stopped:
            remembers = isinstance(setup.advances, Model) and setup.advances.has_hidden_state
            remark(*stopped_lines(request, run.rollout, left, further, remembers=remembers))
            raise KeyboardInterrupt

    def _require_device(self, setup: Setup, placed: Placement) -> None:
        """Refuses a model that would not run on the device that was asked for, before it runs elsewhere."""
        model = setup.advances
        if not isinstance(model, Model):
            return
        if placed.device.info.type == "null":
            raise NoResultError(
                "the null device computes nothing, and a model brings its z to the host.",
                "use --device auto, cpu or vulkan:0.",
            )
        if self.request.require_gpu and model.where(placed.device, len(setup.z0)) == ON_HOST:
            raise _no_gpu(HOST_REASON)

    def _run(self, setup: Setup, placed: Placement, decoder: Decoder, album: Album | None) -> DecodedRun:
        request, info = self.request, placed.device.info
        if request.stage_times and info.type != "null":
            with phase("measuring the stages of a decode"):
                decoder.calibrate(2 if info.type in ("software", "reference") else 16)
        remark(
            f"{request.steps} steps of {setup.kind}, D = {setup.schema.size}, decoded to {setup.schema.n} x "
            f"{setup.schema.n} after every {request.decode_every}, on {info.name}"
        )
        if request.observer == "none":
            remark(NOTHING)
        if decoder.settings.draws and request.observer == "none":
            remark("what the residual costs is not measured: that would read fields back")
        elif decoder.settings.draws and setup.truth is not None:
            with phase("measuring what the residual costs"):
                self.cost = residual_cost(decoder, setup.z0, setup.truth)
        elif decoder.settings.draws:
            remark("a residual raises the error of fields: `dashi flow parity` shows by how much")
        kept = _Kept(album.folder, setup.schema, setup.z0) if album else None
        hashes = request.hash_every or max(1, request.steps // 10)
        with self.stages.time("rollout"), progress("rollout", request.steps, "steps") as advance:
            asked: dict[str, Any] = {
                "decode_every": request.decode_every, "observer": str(request.observer),
                "snapshot": album.add if album else None, "progress": advance,
            }  # fmt: skip
            try:
                advances, z0, looks = setup.advances, setup.z0, max(1, request.steps // 200)
                if isinstance(advances, Model):
                    keep = kept.keep if kept else None
                    work = partial(follow_and_decode, advances, z0, request.steps, decoder, keep=keep, **asked)
                else:
                    work = partial(
                        roll_and_decode, advances, z0, request.steps, decoder, hash_every=hashes, observe_every=looks,
                        **asked,
                    )  # fmt: skip
                return until_stopped(work)[0]
            except NonFiniteError as error:
                # What came before is kept, and told, before the error is.
                self.failure = error
                if not isinstance(setup.advances, Model):
                    error.fix = _GROWS
                return DecodedRun.of(error.rollout)

    def _metrics(
        self, placed: Placement, decoder: Decoder, run: DecodedRun, digest: str | None
    ) -> Metrics:  # fmt: skip
        rolled = run.rollout
        judged = verdict(rolled.observations) if rolled.observations else None
        stage_ns = dict(decoder.stage_ns)
        steps, seconds = rolled.steps, run.step_seconds
        told = {
            "decode_observer": str(self.request.observer), "decode_dtype": decoder.settings.dtype,
            "decode_residual": decoder.settings.residual, "decode_gate": decoder.settings.gate,
            "decode_residual_error": self.cost[0] if self.cost else None,
            "decode_lowpass_error": self.cost[1] if self.cost else None,
            "decode_snapshots": run.snapshots, "decode_dispatches": decoder.dispatches(str(self.request.observer)),
            "decode_bytes_read": decoder.bytes_read, "decode_stage_ns": stage_ns or None,
            "steps_per_s": steps / seconds if seconds else 0.0, "ns_per_step": seconds / steps * 1e9 if steps else 0.0,
            "stage_seconds": _seconds(self.stages.seconds(), stage_ns, run),
        }  # fmt: skip
        return build_metrics(
            COMMAND, rolled, placed, self.stages, verdict=judged, certificate=digest, parts=["decode", "fft"], more=told
        )

    def _leave(
        self,
        folder: Path | None,
        setup: Setup,
        run: DecodedRun,
        metrics: Metrics,
        digest: str | None,
        album: Album | None,
    ) -> Path | None:
        """Writes what is left to write; where the run lies."""
        if folder is None or album is None:
            return None
        album.close()
        written = {run_folder.METRICS}
        if digest:
            written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
        if np.isfinite(np.asarray(run.rollout.state)).all():
            save_z(folder / Z, setup.schema, run.rollout.state)
        write_metrics(folder / run_folder.METRICS, metrics)
        finished = not run.rollout.stopped and self.failure is None
        return run_folder.close_run(folder, written, finished=finished)


class _Kept:
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
        "use a model that has kernels (galerkin, slaved, ridge), or leave --require-gpu away.",
    )


def _seconds(told: StageSeconds, stage_ns: dict[str, float], run: DecodedRun) -> StageSeconds:
    """Wall time of steps and decodes apart, and of the parts of decodes on the device."""
    parts = {
        "scatter": ("scatter",), "ifft_lp": ("ifft_lp",), "mask": ("smooth", "threshold", "majority"),
        "synth": ("synth",), "ifft_resid": ("ifft_resid",), "combine": ("combine",),
    }  # fmt: skip
    known = {
        name: sum(stage_ns[stage] for stage in stages) * 1e-9 * run.snapshots
        for name, stages in parts.items()
        if all(stage in stage_ns for stage in stages)
    }
    apart = {"rollout": run.step_seconds, "decode": run.decode_seconds, "plot": run.looking}
    return told.model_copy(update={**apart, **known})
