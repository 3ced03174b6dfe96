"""`run_filament`: vortex atoms that move, with their invariants, hashes and a certificate in a run folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.metrics._document import build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.rollouts import rollout as engine
from dashi.core.rollouts._checkpoint import read_checkpoint, write_checkpoint
from dashi.core.rollouts.run import Run
from dashi.errors import FileError, InputError, Interrupted, NonFiniteError
from dashi.filament._atoms_json import read_document, write_document
from dashi.filament._invariants import Invariants
from dashi.filament.atoms import Atoms, write_atoms
from dashi.filament.events import Ledger
from dashi.io import _run_folder as run_folder
from dashi.io._run_names import ATOM_EVENTS, ATOMS
from dashi.io.arrays import write_arrays
from dashi.io.metrics import Metrics, write_metrics
from dashi.lab._arguments import require_request
from dashi.lab._job import (
    AnyPath,
    Job,
    as_path,
    interrupted_with,
    require_gpu_used,
    require_results,
    to_go_on,
    until_interrupted,
)
from dashi.lab._run_job import FinishedJob, without_last_looks
from dashi.lab.events import SILENT, Events
from dashi.lab.filament_setup import FilamentRequest, FilamentSetup, check_filament_request, filament_setup
from dashi.runtime.device import Device

COMMAND: Final = "filament run"
_FILES: Final = (run_folder.METRICS, run_folder.STATE, run_folder.CERTIFICATE, run_folder.INPUTS, ATOMS, ATOM_EVENTS)


@dataclass(frozen=True, eq=False)
class FilamentRun:
    """Atoms after a run, what they kept, and what happened to them."""

    run: Run
    atoms: Atoms
    """The last atoms; in a periodic box their centres are in [0, box)."""
    first: Invariants
    last: Invariants
    ledger: Ledger

    @property
    def metrics(self) -> Metrics:
        return self.run.metrics

    @property
    def hash(self) -> str | None:
        """The hash of the last state that was hashed; of a whole run, its last."""
        return self.run.hashes[-1].digest if self.run.hashes else None

    @property
    def invariants(self) -> tuple[Invariants, ...]:
        """Looks at the invariants, in the order of steps."""
        return self.run.records.get("invariants", ())

    def __repr__(self) -> str:
        return f"<FilamentRun: {len(self.atoms)} atoms after {self.run.steps} steps, hash {self.hash}>"

    def document(self) -> dict[str, Any]:
        """What `dashi filament run --json` prints."""
        return {
            "atoms": self.atoms.document()["atoms"],
            "quantum": self.atoms.quantum,
            "invariants": {"first": self.first.document(), "last": self.last.document()},
            **self.ledger.document(),
            "hash": self.hash,
            "steps": self.run.steps,
            "time": self.run.time,
            "device": self.metrics.op_device,
            "folder": str(self.run.folder) if self.run.folder else None,
        }


@interrupted_with(FilamentRun)
def run_filament(
    request: FilamentRequest, *, device: str | Device = "auto", out: AnyPath | None = None, resume: bool = False,
    overwrite: bool = False, events: Events = SILENT,
) -> FilamentRun:  # fmt: skip
    """Moves vortex atoms by so many steps on a device.

    With `out` the folder keeps the last atoms, state, metrics and a certificate, and checkpoints where they are asked
    for; `resume` goes on from one, with the hashes of a run that was never stopped. Values that are not finite are a
    NonFiniteError. Ctrl-C raises Interrupted, whose `partial` is the FilamentRun so far, which the folder keeps.
    """
    require_request(request, FilamentRequest)
    job = Job(
        command=COMMAND, request=request, device=device, out=as_path(out), resume=resume, overwrite=overwrite,
        events=events,
    )  # fmt: skip
    return _run_filament(job, request)


def _run_filament(job: Job, request: FilamentRequest, so_far: Run | None = None) -> FilamentRun:
    check_filament_request(request, job.out)
    job.require_place()
    with job.timed("encode", "reading"):
        setup = filament_setup(request)
    if so_far is not None and so_far.job is not None:
        setup.journal.update(so_far.job.setup.journal)
    with job.place() as placed, job.open_folder(setup.settings(request), files=_FILES) as folder:
        require_results(placed)
        resumed = _resumed(job, request, setup, folder) if folder and job.resume else so_far
        with to_go_on(folder):
            run = _roll_out(job, request, setup, placed, folder, resumed)
            after = setup.atoms_of(run.state[0], run.steps)
            ledger = _closed_books(setup, after, run.steps)
            atoms = after.wrapped()
            digest = certify_folder(run, folder, setup.operator, setup.state) if folder else None
            metrics = build_metrics(COMMAND, run, placed, job.stages, certificate=digest)
            place = _leave(folder, run, atoms, ledger, metrics, digest) if folder else None
    require_gpu_used(request, metrics)
    finished = FinishedJob(
        request=request, metrics=metrics, folder=place, out=job.out, setup=setup,
        certificates={place / run_folder.CERTIFICATE: digest} if place and digest else {},
        go_on=partial(_resume, device=job.device), to_certify="run with `out=`.",
    )  # fmt: skip
    first, last = setup.measured(setup.state[0], 0), setup.measured(run.state[0], run.steps)
    result = FilamentRun(replace(run, job=finished), atoms, first, last, ledger)
    if run.stopped:
        raise Interrupted(result)
    return result


def _roll_out(
    job: Job, request: FilamentRequest, setup: FilamentSetup, placed: Placement, folder: Path | None,
    resumed: Run | None,
) -> Run:  # fmt: skip
    done = resumed.steps if resumed else 0
    name = placed.device.info.name
    job.events.remark(f"{request.steps - done} steps of {len(setup.atoms)} atoms, way {request.way}, on {name}")

    def keep(run: Run) -> None:
        assert folder is not None
        write_document(folder / ATOM_EVENTS, setup.ledger(run.steps).document())
        write_checkpoint(folder / run_folder.CHECKPOINT, setup.identity, run)

    every = request.checkpoint_every if folder else None
    with job.timed("rollout", "atoms", request.steps - done, "steps") as advance:
        try:
            run, _ = until_interrupted(
                lambda: engine.rollout(
                    setup.operator, setup.state, request.steps, device=placed.device, observers=setup.observers,
                    hash_every=setup.strides.hash, keep_every=every or 0, keep=keep if every else None,
                    progress=advance, resume=resumed,
                )
            )  # fmt: skip
        except NonFiniteError as error:
            error.fix = f"use a smaller dt than {request.dt:g}, or atoms that are not on top of each other."
            raise
    if run.stopped and folder:
        keep(run)
    return run


def _resumed(job: Job, request: FilamentRequest, setup: FilamentSetup, folder: Path) -> Run:
    """The part of the run that the folder's checkpoint holds."""
    run = read_checkpoint(
        folder / run_folder.CHECKPOINT, setup.identity, setup.operator, setup.resumable, setup.state.shape,
        what="other atoms, dt, nu, way or strides",
    )  # fmt: skip
    if run.steps > request.steps:
        raise InputError(f"{run.steps} steps are done already, {request.steps} asked for.", "ask for more `steps=`.")
    job.events.remark(f"going on after {run.steps} steps")
    for event in Ledger.from_document(read_document(folder / ATOM_EVENTS)).events:
        setup.journal[event.step] = (*setup.journal.get(event.step, ()), event)
    return run


def _resume(run: Run, steps: int, *, device: str | Device, overwrite: bool = False, events: Events = SILENT) -> Run:
    """Goes on with a run up to so many steps in all, in its folder or in memory."""
    assert run.job is not None
    setup: FilamentSetup = run.job.setup
    every = setup.strides
    request: FilamentRequest = replace(run.request, steps=steps, hash_every=every.hash, look_every=every.look)
    job = Job(
        command=COMMAND, request=request, device=device, out=run.out, resume=run.out is not None,
        overwrite=overwrite, events=events,
    )  # fmt: skip
    if run.out is None:
        return _run_filament(job, request, without_last_looks(run)).run
    if not run.stopped:  # its events stay where they are
        run_folder.reopen_run(run.out, COMMAND, lambda file: write_checkpoint(file, setup.identity, run))
    return _run_filament(job, request).run


def _closed_books(setup: FilamentSetup, after: Atoms, last: int) -> Ledger:
    """The ledger of a run; quanta that atoms lost and no account received are a defect, which ends it."""
    ledger = setup.ledger(last)
    before, now = ((atoms.signed_quanta, atoms.total_quanta) for atoms in (setup.atoms, after))
    missing = ledger.unattributed(before, now)
    if missing != (0, 0):
        raise FileError(
            f"the books do not close: {missing[0]} signed quanta and {missing[1]} of magnitude went nowhere.",
            "start anew in another folder; if it happens again, report it.",
        )
    return ledger


def _leave(folder: Path, run: Run, atoms: Atoms, ledger: Ledger, metrics: Metrics, digest: str | None) -> Path:
    """Writes what is left to write; where the run lies."""
    written = {run_folder.METRICS, run_folder.STATE, ATOMS, ATOM_EVENTS}
    write_arrays(folder / run_folder.STATE, {"z": run.state[0], "step": np.array(run.steps, np.int64)})
    write_atoms(folder / ATOMS, atoms)
    write_document(folder / ATOM_EVENTS, ledger.document())
    if digest:
        written |= {run_folder.CERTIFICATE, run_folder.INPUTS}
    write_metrics(folder / run_folder.METRICS, metrics)
    return run_folder.close_run(folder, written, finished=not run.stopped)
