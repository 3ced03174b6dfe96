"""The work of `dashi flow rollout`: device, operator, run, and the files that it leaves."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from dashi.cli.flow_rollout import Request
from dashi.cli.flow_rollout_setup import Setup, check_request, make_setup
from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.progress import progress
from dashi.cli.tracing import traced
from dashi.core.account import Stages, account
from dashi.core.certificate import Execution, certify, write_certificate
from dashi.core.fingerprint import fingerprints
from dashi.core.inputs import save_inputs
from dashi.core.placement import Placement, place
from dashi.core.rollout import Rollout
from dashi.core.verdict import verdict
from dashi.errors import DeviceNotFoundError, NonFiniteError
from dashi.flow.decode import Decoder, Settings
from dashi.flow.decode.album import Album
from dashi.flow.decode.decoder import NOTHING
from dashi.flow.decode.harness import Run, follow_and_decode, on_host, residual_cost, roll_and_decode
from dashi.flow.proxy.files import save_z
from dashi.flow.proxy.model import Model
from dashi.io import run_folder
from dashi.io.metrics import Metrics, StageSeconds, write_metrics
from dashi.runtime.cpu_device import cpu_info

Z = "z.npz"
"""The last z, with its schema."""


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
        check_request(request)
        with ExitStack() as stack:
            placed = stack.enter_context(
                place(request.device, allow_fallback=request.allow_fallback, require_gpu=request.require_gpu)
            )
            stack.enter_context(traced(request.trace, placed.device, self.stages))
            with self.stages.time("learn" if request.fit_from else "encode"):
                setup = make_setup(request, placed.device)
            settings = Settings(
                residual=str(request.residual), gate=str(request.gate), seed=request.seed, dtype=str(request.dtype)
            )  # fmt: skip
            members = len(setup.z0)
            decoder = stack.enter_context(
                Decoder(setup.schema, placed.device, settings=settings, members=members, statistics=setup.statistics)
            )
            folder = run_folder.open_run(request.out, resume=False) if request.out else None
            album = Album(folder, setup.schema, members, settings, setup.interval) if folder else None
            run = self._run(setup, placed, decoder, album)
            digest = self._certify(setup, placed, folder, run.rollout)
            metrics = self._metrics(setup, placed, decoder, run, digest)
        self._leave(folder, setup, run, metrics, digest, album)
        if self.failure:
            raise self.failure
        if request.require_gpu and not metrics.gpu_hotloop_active:
            raise DeviceNotFoundError(
                f"no step was executed on a GPU: {metrics.way_reason}.", "look at `metrics`: it says what ran where."
            )
        print_report(request, setup, run, metrics)
        if run.rollout.stopped:
            raise KeyboardInterrupt

    def _run(self, setup: Setup, placed: Placement, decoder: Decoder, album: Album | None) -> Run:
        request, info = self.request, placed.device.info
        if request.stage_times and info.type != "null":
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
            self.cost = residual_cost(decoder, setup.z0, setup.truth)
        elif decoder.settings.draws:
            remark("a residual raises the error of fields: `dashi flow parity` shows by how much")
        hashes = request.hash_every or max(1, request.steps // 10)
        with self.stages.time("rollout"), progress("rollout", request.steps, "steps") as advance:
            asked: dict[str, Any] = {
                "decode_every": request.decode_every, "observer": str(request.observer),
                "snapshot": album.add if album else None, "progress": advance,
            }  # fmt: skip
            try:
                if isinstance(setup.advances, Model):
                    return follow_and_decode(setup.advances, setup.z0, request.steps, decoder, **asked)
                looks = max(1, request.steps // 200)
                return roll_and_decode(
                    setup.advances, setup.z0, request.steps, decoder, hash_every=hashes, observe_every=looks, **asked
                )
            except NonFiniteError as error:
                # What came before is kept, and told, before the error is.
                self.failure = error
                return error.rollout

    def _certify(self, setup: Setup, placed: Placement, folder: Path | None, run: Rollout) -> str | None:
        every = self.request.hash_every or max(1, self.request.steps // 10)
        hashes = [h for h in run.hashes if not run.stopped or h.step % every == 0]
        if folder is None or not hashes or isinstance(setup.advances, Model):
            return None
        sources = save_inputs(folder / run_folder.INPUTS, setup.advances, setup.z0)
        steps = hashes[-1].step if run.stopped else run.steps
        done = Execution(placed.device.info, fingerprints(run.used), run.way, steps, every, hashes)
        file = folder / run_folder.CERTIFICATE
        return write_certificate(file, certify(file, setup.advances, sources, done))

    def _metrics(
        self, setup: Setup, placed: Placement, decoder: Decoder, run: Run, digest: str | None
    ) -> Metrics:  # fmt: skip
        rolled = run.rollout
        judged = verdict(rolled.observations) if rolled.observations else None
        made = account(
            "flow rollout", setup, rolled, placed, self.stages, verdict=judged, certificate=digest
        )  # fmt: skip
        used, stage_ns = placed.device.info, dict(decoder.stage_ns)
        steps, seconds = rolled.steps, run.step_seconds
        told = {
            "decode_backend_requested": placed.requested, "decode_backend_used": used.spec, "decode_device": used.name,
            "fft_backend_requested": placed.requested, "fft_backend_used": used.spec, "fft_device": used.name,
            "decode_observer": str(self.request.observer), "decode_dtype": decoder.settings.dtype,
            "decode_residual": decoder.settings.residual, "decode_gate": decoder.settings.gate,
            "decode_residual_error": self.cost[0] if self.cost else None,
            "decode_lowpass_error": self.cost[1] if self.cost else None,
            "decode_snapshots": run.snapshots, "decode_dispatches": decoder.dispatches(str(self.request.observer)),
            "decode_bytes_read": run.bytes_read, "decode_stage_ns": stage_ns or None,
            "steps_per_s": steps / seconds if seconds else 0.0, "ns_per_step": seconds / steps * 1e9 if steps else 0.0,
            "stage_seconds": _seconds(made.stage_seconds, stage_ns, run),
        }  # fmt: skip
        if isinstance(setup.advances, Model) and on_host(placed.device, rolled.dispatches):
            told |= _advanced_by_the_host()
        return made.model_copy(update=told)

    def _leave(
        self, folder: Path | None, setup: Setup, run: Run, metrics: Metrics, digest: str | None, album: Album | None
    ) -> None:
        if folder is None or album is None:
            return
        album.close()
        written = {run_folder.METRICS}
        if digest:
            written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
        if np.isfinite(np.asarray(run.rollout.state)).all():
            save_z(folder / Z, setup.schema, run.rollout.state)
        write_metrics(folder / run_folder.METRICS, metrics)
        run_folder.close_run(folder, written, finished=True)


def _advanced_by_the_host() -> dict[str, Any]:
    """What a document says of the device that advanced the states, where a model has no kernels."""
    info = cpu_info()
    return {
        "op_backend_used": info.spec, "op_device": info.name, "op_device_type": info.type, "device_name": info.name,
        "driver_name": info.driver, "driver_version": info.driver_version,
    }  # fmt: skip


def _seconds(told: StageSeconds, stage_ns: dict[str, float], run: Run) -> StageSeconds:
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


def _cost(metrics: Metrics) -> str:
    if metrics.decode_residual_error is None or metrics.decode_lowpass_error is None:
        return ""
    return (
        f"relative error of the first field {metrics.decode_residual_error:.3f} with it, "
        f"{metrics.decode_lowpass_error:.3f} without"
    )


def print_report(request: Request, setup: Setup, run: Run, metrics: Metrics) -> None:
    """A table for people; with --json the metrics document."""
    if request.json:
        document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
        document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
        document["folder"] = str(request.out) if request.out else None
        print_json(document)
        return
    stages = metrics.decode_stage_ns or {}
    rows = {
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "way": metrics.way_reason if isinstance(setup.advances, Model) else "",
        "steps": f"{metrics.steps} of {metrics.operator}, {metrics.states} x {setup.schema.size}, {metrics.dtype}"
        f"{', stopped' if run.rollout.stopped else ''}; {metrics.ns_per_step / 1000:.2f} us per step",
        "decode": f"{run.snapshots} fields of {setup.schema.n} x {setup.schema.n}, residual {request.residual}; "
        f"{run.usual * 1000:.3f} ms each, {metrics.decode_dispatches} dispatches",
        "residual": _cost(metrics),
        "verdict": metrics.verdict.sentence if metrics.verdict else "",
        "stages": ", ".join(f"{name} {ns / 1000:.1f} us" for name, ns in stages.items()),
        "read back": f"{run.bytes_read} bytes for the observer {request.observer}",
        "hash": metrics.hashes[-1].hash if metrics.hashes else "",
        "certificate": metrics.certificate_digest or "",
        "folder": str(request.out or ""),
    }
    table = new_table("", "")
    for name, value in rows.items():
        if value:
            add_row(table, name, value)
    print_table(table)
