"""`follow`: steps of z on the device by a model, a matrix or an operator, decoded on a stride."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.metrics._document import build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.observations.verdict import verdict
from dashi.core.operators.operator import Operator
from dashi.core.rollouts._observers import StateCopies
from dashi.core.rollouts.observer import Observer
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
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import Z
from dashi.io._writer import Writer
from dashi.io.metrics import Metrics, PerfFlag, write_metrics
from dashi.lab._arguments import require_request
from dashi.lab._decode_places import DecodePlaces, place_decode
from dashi.lab._job import AnyPath, Job, as_path, interrupted_with, require_results, until_interrupted
from dashi.lab._kept_states import require_states_room, state_files
from dashi.lab._live import LiveDecodes, decodes_seen, live_stride, sheet_observers
from dashi.lab._run_job import FinishedJob
from dashi.lab.decoded_setup import FollowRequest, FollowSetup, check_follow, files_of, make_setup, settings_of
from dashi.lab.events import SILENT, Advance, Events
from dashi.report.live import LiveView
from dashi.runtime.device import Device

COMMAND: Final = "flow rollout"
_PAUSE: Final = 5.0
"""Seconds between two z of a model on disk."""
_MOST_WAIT: Final = 8
"""Decodes that wait to be written."""
_GROWS: Final = "look at the map's spectral radius: above 1, what it advances grows. What was decoded is kept."


def remaining_request(run: Run) -> FollowRequest | None:
    """The request that does the steps which a stopped rollout of `follow` did not; None where that takes more than the
    files in its folder."""
    request, folder = _request_of(run), run.folder
    if not run.stopped or folder is None or not run.steps or run.steps >= request.steps:
        return None
    if request.residual == "statistics" and request.statistics is None:
        return None
    left = request.steps - run.steps
    more = replace(request, z0=folder / Z, start=None, fit_from=None, steps=left)
    if request.states_every is not None and request.states_every > left:
        more = replace(more, states_every=None, states_bits=None)
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
    events: Events = SILENT, live: LiveView | None = None,
) -> Run:  # fmt: skip
    """Advances z by a model, a matrix or an operator, and decodes it to fields on a stride. What the observer asks for
    is read back, counted, and nothing else.

    With `out`: metrics, the last z, what was measured of decoded fields, the fields (snapshots) or pictures (visualize)
    and, without a model, a certificate. Values that are not finite are a NonFiniteError whose `result` is the
    Run until then. Ctrl-C raises Interrupted, whose `partial` is the Run so far. A `live` view shows decoded fields, of
    decodes of its own where the observer brings none back, and the energies of bands of z; no hash or
    certificate knows of it.
    """
    require_request(request, FollowRequest)
    job = Job(
        command=COMMAND, request=request, device=device, out=as_path(out), overwrite=overwrite, events=events,
        live=live,
    )  # fmt: skip
    check_follow(request, job.out)
    job.require_place()
    with ExitStack() as stack:
        placed = stack.enter_context(job.place(queues=1 if request.decode_device is None else 2))
        places = stack.enter_context(place_decode(job, placed, request.decode_device, request.fft_device))
        with job.timed("learn" if request.fit_from else "encode", "preparing"):
            setup = make_setup(request, placed.device, job.out)
        _require_device(request, setup, placed)
        require_states_room(job.out, request, setup.z0)
        settings, members = request.settings, len(setup.z0)
        make_decoder = partial(
            Decoder, setup.schema, places.decode.device, settings=settings, members=members,
            statistics=setup.statistics, queue=places.queue, fft_device=places.fft_elsewhere,
        )  # fmt: skip
        decoder = stack.enter_context(make_decoder())
        run_settings = settings_of(request, setup) if job.out else None
        folder = stack.enter_context(job.open_folder(run_settings, files=files_of(request)))
        album = Album(folder, setup.schema, members, settings, setup.interval, setup.flow) if folder else None
        work = _FollowWork(job, request, setup, placed, places, decoder)
        if live is not None and request.observer != "snapshots":
            # Its own, so that nothing of it is counted as the run's.
            work.live_decoder = stack.enter_context(make_decoder())
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
        self, job: Job, request: FollowRequest, setup: FollowSetup, placed: Placement, places: DecodePlaces,
        decoder: Decoder,
    ) -> None:  # fmt: skip
        self.job, self.request, self.setup, self.placed, self.decoder = job, request, setup, placed, decoder
        self.places = places
        self._waited = 0.0
        """Seconds that the steps waited for decodes."""
        self._written = 0.0
        """Seconds in which decodes were put on disk."""
        self.live_decoder: Decoder | None = None
        """Decodes for a live view, where the observer brings no fields back."""
        self._cost: tuple[float, float] | None = None
        """Errors of the first field with the residual and without it."""

    def run(self, album: Album | None) -> tuple[Run, NonFiniteError | None]:
        """The rollout with its decodes, as far as it came, and the error that ended it."""
        request, setup, info, events = self.request, self.setup, self.placed.device.info, self.job.events
        decodes_on = self.places.decode.device.info
        if request.stage_times and decodes_on.type != "null":
            with events.progress("measuring the stages of a decode", None, ""):
                self.decoder.calibrate(2 if decodes_on.type in ("software", "reference") else 16)
        schema = setup.schema
        events.remark(
            f"{request.steps} steps of {setup.kind}, D = {schema.size}, decoded to {schema.n} x {schema.n} after every "
            f"{request.decode_every}, on {info.name}"
        )
        if self.places.beside:
            events.remark(f"decoded beside the steps, by {self.places.beside} ({decodes_on.name})")
        if self.places.fft_elsewhere:
            fft = self.places.fft.device.info
            events.remark(f"the transforms of decodes are those of {fft.spec} ({fft.name}), to and fro by the host")
        if request.observer == "none":
            events.remark(NOTHING)
        self._measure_residual()
        if album:
            # So that no z of an earlier run lies there; it is not just removed, since a run may start from it.
            save_z(album.folder / Z, schema, setup.z0)
        with Writer(most_pieces=_MOST_WAIT, name="dashi album") as writer, self._rollout_timed() as advance:

            def snapshot(step: int, decoded: Decoded) -> None:
                if album is not None:  # without a run folder it has been counted, and is gone
                    writer.put(partial(self._keep, album, step, decoded), _size(decoded))

            shown = decodes_seen(self.job.live, snapshot)
            decodes = Decodes(self.decoder, request.decode_every, request.observer, shown)
            try:
                return until_interrupted(lambda: self._rollout(decodes, album, writer, advance))[0], None
            except NonFiniteError as error:
                if not isinstance(setup.advances, Model):
                    error.fix = _GROWS
                return error.rollout, error
            finally:
                self._waited = decodes.waited

    def _rollout_timed(self) -> AbstractContextManager[Advance]:
        return self.job.timed("rollout", "rollout", self.request.steps, "steps")

    def _keep(self, album: Album, step: int, decoded: Decoded) -> None:
        """Puts what was decoded on disk, beside the steps."""
        began = time.perf_counter()
        album.add(step, decoded)
        self._written += time.perf_counter() - began

    def _rollout(self, decodes: Decodes, album: Album | None, writer: Writer, advance: Advance) -> Run:
        request, advances, z0 = self.request, self.setup.advances, self.setup.z0
        if not isinstance(advances, Model):
            files = state_files(album.folder if album else None, request.states_every or 0, request.states_bits)
            return rollout(
                advances, z0, request.steps, device=self.placed.device,
                observers=[decodes, *files, *self._watching(advances)],
                hash_every=request.hash_stride, observe_every=max(1, request.steps // 200), progress=advance,
            )  # fmt: skip
        operator = ModelOperator(advances, request.steps, self.placed.device, z0.dtype)
        schema = self.setup.schema

        def keep(run: Run) -> None:
            """Keeps the last z on disk, after the decodes until then: a run that is killed leaves it."""
            assert album is not None
            decodes.wait()
            writer.put(partial(save_z, album.folder / Z, schema, run.state))

        last = [StateCopies(PIECE, keep, pause=lambda: _PAUSE)] if album else []
        return operator.rollout(z0, observers=[decodes, *last, *self._watching(operator)], progress=advance)

    def _watching(self, operator: Operator) -> list[Observer[Any]]:
        """What looks for a live view besides."""
        view, steps = self.job.live, self.request.steps
        sheet = sheet_observers(view, operator, steps)
        if view is None or self.live_decoder is None:
            return sheet
        return [*sheet, LiveDecodes(self.live_decoder, live_stride(steps), view)]

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
        # A model's seconds are its own; on the device of the steps decodes run between them.
        apart = isinstance(self.setup.advances, Model) or self.places.beside is not None
        beside = 0.0 if apart else decode_seconds
        steps, seconds = run.steps, max(run.seconds - beside, 0.0) or run.seconds
        more = {
            "decode_observer": self.request.observer, "decode_dtype": decoder.settings.dtype,
            "decode_residual": decoder.settings.residual, "decode_gate": decoder.settings.gate,
            "decode_residual_error": self._cost[0] if self._cost else None,
            "decode_lowpass_error": self._cost[1] if self._cost else None,
            "decode_snapshots": decodes.count, "decode_dispatches": decoder.dispatches(self.request.observer),
            "decode_beside": self.places.beside,
            "decode_wait_seconds": None if self.places.beside is None else self._waited,
            "decode_bytes_read": decoder.bytes_read, "decode_stage_ns": stage_ns or None,
            "steps_per_s": steps / seconds if seconds else 0.0, "ns_per_step": seconds / steps * 1e9 if steps else 0.0,
            "stage_seconds": self.job.stages.seconds().model_copy(
                update={
                    "rollout": seconds, "decode": decode_seconds, "plot": self._written,
                    **_stage_seconds(stage_ns, decodes.count),
                }
            ),
        }  # fmt: skip
        return build_metrics(
            self.job.command, run, placed, self.job.stages, verdict=judged, certificate=digest,
            parts={"decode": self.places.decode, "fft": self.places.fft}, flags=self._flags, more=more,
        )  # fmt: skip

    @property
    def _flags(self) -> list[PerfFlag]:
        """Fallbacks of the decode and of its transforms; those of the steps are told with their placement."""
        of_steps = self.placed.flags
        parts = (self.places.decode, self.places.fft)
        return [*{flag.name: flag for at in parts for flag in at.flags if flag not in of_steps}.values()]


def _size(decoded: Decoded) -> int:
    """Bytes of what a decode left."""
    return sum(one.nbytes for one in (decoded.fields, decoded.mask, decoded.images) if one is not None)


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
