"""The work of `dashi flow simulate`: initial states, device, run, and the files that it leaves."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.cli.flow import Request
from dashi.cli.flow_setup import (
    faster_choice,
    flow_of,
    require_fields,
    resumed_strides,
    settings_of,
    states_of,
    strides_of,
)
from dashi.cli.options import typed
from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.progress import phase, progress
from dashi.cli.stopping import stopped_lines, until_stopped
from dashi.cli.tracing import traced
from dashi.core.certificates.certify import certify_folder
from dashi.core.metrics.document import Stages, build_metrics
from dashi.core.metrics.placement import Placement, place
from dashi.core.rollouts.checkpoint import identity, read_checkpoint
from dashi.core.rollouts.observers import Hashes
from dashi.core.rollouts.run import Run
from dashi.errors import FileError, InputError
from dashi.flow.diagnostics import Diagnostics, courant
from dashi.flow.equations import Flow
from dashi.flow.grid import Floats
from dashi.flow.operator import Vorticity
from dashi.flow.simulation import simulate
from dashi.flow.trajectory import Recording, Trajectory, kept_strides
from dashi.io import run_folder
from dashi.io.arrays import write_arrays
from dashi.io.metrics import Metrics, write_metrics
from dashi.io.run_names import FIELDS

COMMAND: Final = "flow simulate"
_FILES: Final = (FIELDS, run_folder.METRICS, run_folder.STATE, run_folder.CERTIFICATE, run_folder.INPUTS)


class Job:
    """One call of the command."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.stages = Stages()
        self.flow = flow_of(request)
        self.every = strides_of(request)
        require_fields(request.fields)

    def do(self) -> None:
        """Everything, from the initial states to what is printed."""
        request = self.request
        with self.stages.time("encode"), progress("initial conditions", request.members, "members") as advance:
            states = states_of(request, self.flow, advance)
        with (
            place(request.device, allow_fallback=request.allow_fallback, require_gpu=request.require_gpu) as placed,
            traced(request.trace, placed.device, self.stages),
            run_folder.open_run(
                request.out,
                request.resume,
                COMMAND,
                typed(),
                files=_FILES,
                settings=settings_of(request, self.flow, self.every, states),
                overwrite=request.overwrite,
            ) as folder,
        ):
            if folder and request.resume:
                self.every = resumed_strides(request, kept_strides(folder / run_folder.CHECKPOINT))
            with phase("preparing"):
                every = self.every
                belongs = identity(
                    Vorticity(self.flow), states, strides=[every.look, every.frame, every.hash], fast=request.fast,
                    fields=list(request.fields), transfer=request.transfer,
                )  # fmt: skip
                resumed = self._resumed(folder, belongs, states)
            with to_go_on(folder):
                run = self._run(placed, folder, states, belongs, resumed)
                # Within it, so that a trace that cannot be written takes nothing else with it.
                with phase("writing"):
                    digest = certify_folder(run, folder, Vorticity(self.flow), states) if folder else None
                    metrics = build_metrics(COMMAND, run, placed, self.stages, certificate=digest, parts=["fft"])
                    left = self._leave(folder, run, metrics, digest)
            print_report(request, self.flow, run, metrics, left)
        if run.stopped:
            remark(*stopped_lines(request.out, left))
            raise KeyboardInterrupt

    def _resumed(self, folder: Path | None, belongs: str, states: Floats) -> Run | None:
        if folder is None or not self.request.resume:
            return None
        looking = [Diagnostics(self.flow, self.every.look, transfer=self.request.transfer), Hashes(self.every.hash)]
        kept = read_checkpoint(
            folder / run_folder.CHECKPOINT, belongs, Vorticity(self.flow), looking, states.shape,
            what="another flow, start, fields or strides",
        )  # fmt: skip
        if kept.steps > self.request.steps:
            raise InputError(
                f"{kept.steps} steps are done already, {self.request.steps} asked for.", "ask for more with --steps."
            )
        remark(f"going on after {kept.steps} steps")
        return kept

    def _run(self, placed: Placement, folder: Path | None, states: Floats, belongs: str, resumed: Run | None) -> Run:
        request, flow = self.request, self.flow
        trajectory = self._trajectory(placed, folder, len(states))
        if trajectory is not None and resumed is not None:
            trajectory.require_frames(resumed.steps)

        start = resumed.steps if resumed else 0
        remark(f"{request.steps - start} steps of {flow.n} x {flow.n}, {flow.dtype}, on {placed.device.info.name}")
        hint = faster_choice(placed.device.info, fast=request.fast)
        if hint:
            remark(hint)
        recording = Recording(trajectory, folder / run_folder.CHECKPOINT, belongs) if trajectory and folder else None
        every = self.every
        with (
            self.stages.time("sim"),
            progress("flow", request.steps - start, "steps") as advance,
            recording or nullcontext(),
        ):
            run, _ = until_stopped(
                lambda: simulate(
                    flow, states, request.steps, device=placed.device, look_every=every.look, frame_every=every.frame,
                    hash_every=every.hash, fields=request.fields, transfer=request.transfer, host_fft=request.fast,
                    frame=recording.frame if recording else None, keep=recording.keep if recording else None,
                    keep_every=every.frame, keep_pause=recording.pause if recording else None, progress=advance,
                    resume=resumed,
                )
            )  # fmt: skip
            if recording is not None and placed.device.info.type != "null":
                recording.finish(run)
        return run

    def _trajectory(self, placed: Placement, folder: Path | None, members: int) -> Trajectory | None:
        if folder is None:
            return None
        import dashi

        request = self.request
        seeds = [request.seed + j for j in range(members)]
        provenance: dict[str, Any] = {
            "source": f"dashi {dashi.__version__}",
            "device": placed.device.info.name,
            "initial": request.initial,
            "initial_options": ", ".join(request.options),
            "portable": "no" if request.fast else "yes",
        }
        return Trajectory(
            folder / FIELDS, self.flow, seeds, request.fields, self.every, transfer=request.transfer,
            provenance=provenance, resume=request.resume,
        )  # fmt: skip

    def _leave(self, folder: Path | None, run: Run, metrics: Metrics, digest: str | None) -> Path | None:
        """Writes what is left to write; where the run lies."""
        if folder is None:
            return None
        written = {run_folder.METRICS, run_folder.STATE}
        write_arrays(folder / run_folder.STATE, {"z": run.state, "step": np.array(run.steps, np.int64)})
        if digest:
            written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
        write_metrics(folder / run_folder.METRICS, metrics)
        return run_folder.close_run(folder, written, finished=not run.stopped)


@contextmanager
def to_go_on(folder: Path | None) -> Generator[None]:
    """What cannot be written, on a full disk for instance, ends a run that can go on: that is told too."""
    try:
        yield
    except FileError as error:
        if folder is None or not (folder / run_folder.CHECKPOINT).is_file() or "--resume" in error.fix:
            raise
        raise FileError(error.what, f"{error.fix.rstrip('.')}; then go on with --resume.") from error


def print_report(request: Request, flow: Flow, run: Run, metrics: Metrics, folder: Path | None) -> None:
    """A table for people; with --json the metrics document and the last look."""
    looks = run.records.get(Diagnostics.name, ())
    last = looks[-1] if looks else None
    if request.json:
        document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
        document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
        document["folder"] = str(folder) if folder else None
        if last is not None:
            document["energy"], document["enstrophy"] = last.energy.tolist(), last.enstrophy.tolist()
            document["courant"] = courant(flow, last)
        print_json(document)
        return
    rows = {
        "flow": f"{flow.n} x {flow.n}, {len(run.state)} member(s), {flow.scheme}, {flow.dtype}",
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "time": f"{run.time:g} after {run.steps} steps{', stopped' if run.stopped else ''}; "
        f"{metrics.ns_per_step / 1000:.1f} us per step",
        "energy": ", ".join(f"{v:.6g}" for v in last.energy.tolist()[:4]) if last else "",
        "enstrophy": ", ".join(f"{v:.6g}" for v in last.enstrophy.tolist()[:4]) if last else "",
        "courant": f"{courant(flow, last):.3g} (up to {flow.courant_limit:g})" if last else "",
        "hash": metrics.hashes[-1].hash if metrics.hashes else "none",
        "portable": "" if run.portable else "no: these hashes hold on this machine alone",
        "folder": str(folder or ""),
    }
    table = new_table("", "")
    for name, value in rows.items():
        if value:
            add_row(table, name, value)
    print_table(table)
