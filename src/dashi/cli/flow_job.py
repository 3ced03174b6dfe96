"""The work of `dashi flow simulate`: initial states, device, run, and the files that it leaves."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
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
from dashi.core.accounts.account import Stages, account
from dashi.core.accounts.placement import Placement, place
from dashi.core.certificates.certificate import Execution, certify, write_certificate
from dashi.core.certificates.inputs import save_inputs
from dashi.core.rollouts.fingerprint import fingerprints
from dashi.core.rollouts.run import Run
from dashi.errors import FileError, InputError
from dashi.flow.grid import Floats
from dashi.flow.operator import Vorticity
from dashi.flow.simulation import Simulation, courant, simulate
from dashi.flow.trajectory import Trajectory, identity, kept_strides, read_checkpoint, write_checkpoint
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
                self.every = resumed_strides(request, self.every, kept_strides(folder / run_folder.CHECKPOINT))
            with phase("preparing"):
                belongs = identity(
                    self.flow, states, self.every, request.fields, transfer=request.transfer, fast=request.fast
                )
                resumed = self._resumed(folder, belongs, states)
            with to_go_on(folder):
                run = self._run(placed, folder, states, belongs, resumed)
                # Within it, so that a trace that cannot be written takes nothing else with it.
                with phase("writing"):
                    digest = self._certify(placed, folder, states, run)
                    metrics = self._metrics(placed, run, resumed.steps if resumed else 0, digest)
                    left = self._leave(folder, run, metrics, digest)
            print_report(request, run, metrics, left)
        if run.stopped:
            remark(*stopped_lines(request.out, left))
            raise KeyboardInterrupt

    def _resumed(self, folder: Path | None, belongs: str, states: Floats) -> Simulation | None:
        if folder is None or not self.request.resume:
            return None
        kept = read_checkpoint(folder / run_folder.CHECKPOINT, belongs, Simulation(self.flow, 0, states))
        if kept.steps > self.request.steps:
            raise InputError(
                f"{kept.steps} steps are done already, {self.request.steps} asked for.", "ask for more with --steps."
            )
        remark(f"going on after {kept.steps} steps")
        return kept

    def _run(
        self, placed: Placement, folder: Path | None, states: Floats, belongs: str, resumed: Simulation | None
    ) -> Simulation:
        request, flow = self.request, self.flow
        trajectory = self._trajectory(placed, folder, len(states))
        if trajectory is not None and resumed is not None:
            trajectory.require_frames(resumed.steps)

        def keep(run: Simulation, fields: Mapping[str, Floats]) -> None:
            if trajectory is not None and folder is not None and fields:  # the null device has none
                trajectory.add(run, fields)
                write_checkpoint(folder / run_folder.CHECKPOINT, belongs, run, self.every)

        start = resumed.steps if resumed else 0
        remark(f"{request.steps - start} steps of {flow.n} x {flow.n}, {flow.dtype}, on {placed.device.info.name}")
        hint = faster_choice(placed.device.info, fast=request.fast)
        if hint:
            remark(hint)
        with self.stages.time("sim"), progress("flow", request.steps - start, "steps") as advance:
            run, _ = until_stopped(
                lambda: simulate(
                    flow, states, request.steps, device=placed.device, every=self.every, fields=request.fields,
                    frame=keep if trajectory else None, transfer=request.transfer, fast=request.fast,
                    progress=advance, resume=resumed,
                )
            )  # fmt: skip
        if trajectory is not None and folder is not None and placed.device.info.type != "null":
            trajectory.finish(run)
            if run.stopped:
                write_checkpoint(folder / run_folder.CHECKPOINT, belongs, run, self.every)
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

    def _certify(self, placed: Placement, folder: Path | None, states: Floats, run: Simulation) -> str | None:
        hashes = [h for h in run.hashes if not run.stopped or h.step % self.every.hash == 0]
        if folder is None or self.request.fast or not hashes:
            return None
        operator = Vorticity(self.flow)
        sources = save_inputs(folder / run_folder.INPUTS, operator, states)
        steps = hashes[-1].step if run.stopped else run.steps
        done = Execution(placed.device.info, fingerprints(run.used), "stepwise", steps, self.every.hash, hashes)
        file = folder / run_folder.CERTIFICATE
        return write_certificate(file, certify(file, operator, sources, done))

    def _metrics(self, placed: Placement, run: Simulation, first: int, digest: str | None) -> Metrics:
        reason = (
            "SciPy's or NumPy's own transforms, without kernels" if self.request.fast else "a step is a few dispatches"
        )
        rolled = Run(
            run.steps, run.states, run.hashes, way="stepwise", reason=reason,
            seconds=run.seconds, dispatches=run.dispatches, stopped=run.stopped, used=run.used,
        )  # fmt: skip
        made = account(COMMAND, Vorticity(self.flow), rolled, placed, self.stages, first_step=first, certificate=digest)
        used = placed.device.info
        return made.model_copy(
            update={
                "portable": run.portable,
                "way": "fast" if self.request.fast else made.way,
                "fft_backend_requested": placed.requested,
                "fft_backend_used": used.spec,
                "fft_device": used.name,
            }
        )

    def _leave(self, folder: Path | None, run: Simulation, metrics: Metrics, digest: str | None) -> Path | None:
        """Writes what is left to write; where the run lies."""
        if folder is None:
            return None
        written = {run_folder.METRICS, run_folder.STATE}
        write_arrays(folder / run_folder.STATE, {"z": run.states, "step": np.array(run.steps, np.int64)})
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


def print_report(request: Request, run: Simulation, metrics: Metrics, folder: Path | None) -> None:
    """A table for people; with --json the metrics document and the last look."""
    last = run.looks[-1] if run.looks else None
    if request.json:
        document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
        document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
        document["folder"] = str(folder) if folder else None
        if last is not None:
            document["energy"], document["enstrophy"] = last.energy.tolist(), last.enstrophy.tolist()
            document["courant"] = courant(run.flow, last)
        print_json(document)
        return
    rows = {
        "flow": f"{run.flow.n} x {run.flow.n}, {len(run.states)} member(s), {run.flow.scheme}, {run.flow.dtype}",
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "time": f"{run.time:g} after {run.steps} steps{', stopped' if run.stopped else ''}; "
        f"{metrics.ns_per_step / 1000:.1f} us per step",
        "energy": ", ".join(f"{v:.6g}" for v in last.energy.tolist()[:4]) if last else "",
        "enstrophy": ", ".join(f"{v:.6g}" for v in last.enstrophy.tolist()[:4]) if last else "",
        "courant": f"{courant(run.flow, last):.3g} (up to {run.flow.courant_limit:g})" if last else "",
        "hash": metrics.hashes[-1].hash if metrics.hashes else "none",
        "portable": "" if run.portable else "no: these hashes hold on this machine alone",
        "folder": str(folder or ""),
    }
    table = new_table("", "")
    for name, value in rows.items():
        if value:
            add_row(table, name, value)
    print_table(table)
