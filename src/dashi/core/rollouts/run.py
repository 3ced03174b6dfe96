"""`Run`: what a rollout leaves, of whatever operator, and whoever asked for it.

`dashi.core.rollout` gives the run alone. A job (`dashi.rollout`, `dashi.flow.simulate`, `dashi.lab`) adds what it
knows: the request, metrics, files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dashi.core.observations.observation import Hash, Observation, SheetRow
from dashi.core.operators.operator import OperatorFacts
from dashi.core.rollouts._fingerprint import Used, fingerprints
from dashi.core.rollouts._job import CertificateFile, RunJob
from dashi.core.rollouts._run_html import run_html
from dashi.core.rollouts.observer import Observer
from dashi.errors import InputError
from dashi.io.metrics import Metrics
from dashi.runtime.info import DeviceInfo


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Run:
    """The states after `steps` steps, what was observed on the way, and how it ran."""

    operator: OperatorFacts
    """What advanced the states."""
    steps: int
    state: npt.NDArray[Any]
    """The last states, (m, *shape)."""
    records: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    """What the observers left, by their names, in the order of steps."""
    observers: tuple[Observer[Any], ...] = ()
    """Observers of the run, with their strides."""
    device: DeviceInfo | None = None
    """Where it ran; None for a run that was read from a checkpoint and has not gone on."""
    strategy: str = "stepwise"
    reason: str = ""
    """Why that strategy."""
    seconds: float = 0.0
    """From the first submission to the end of the last."""
    timed_from: int = 0
    """The step from which `seconds` and `dispatches` count: that of the checkpoint that a run went on from."""
    dispatches: int = 0
    """Compute dispatches that were executed in the loop."""
    reruns: int = 0
    """Blocks that were repeated step by step, because a poll of the tagged kernel ran out."""
    stopped: bool = False
    """Before all steps were done: by Ctrl-C, or since a value was no longer finite."""
    used: tuple[Used, ...] = ()
    """The kernels that were recorded, for their fingerprints."""
    job: RunJob | None = None
    """The job that left it; None where there was none."""

    def __repr__(self) -> str:
        where = f" on {self.device.name}" if self.device else ""
        stopped = ", stopped" if self.stopped else ""
        last = f", hash {self.hashes[-1].digest}" if self.hashes else ""
        folder = f", in {self.folder}" if self.folder else ""
        return (
            f"<Run of {self.operator.kind}: {self.steps} steps of {len(self.state)} state(s){where}{last}{stopped}"
            f"{folder}>"
        )

    @property
    def request(self) -> Any:
        """The frozen request that the job was asked."""
        return self._job("request").request

    @property
    def metrics(self) -> Metrics:
        """The truth about where and how it ran."""
        return self._job("metrics").metrics

    @property
    def folder(self) -> Path | None:
        """Where the run lies; None without `out=`. One that was stopped beside a finished one lies in a folder within
        `out`."""
        return self.job.folder if self.job else None

    @property
    def out(self) -> Path | None:
        """The folder that was asked for."""
        return self.job.out if self.job else None

    @property
    def certificates(self) -> Mapping[Path, str]:
        """Digests of the certificates that were written, by file: the one asked for first, then that of the folder."""
        return self.job.certificates if self.job else {}

    @property
    def certificate(self) -> CertificateFile:
        """The certificate that was written: the one asked for, or that of the folder. Raises InputError where there is
        none."""
        return self._job("certificate").certificate()

    @property
    def fields(self) -> Any:
        """Frames and series as an xarray Dataset that reads from the run folder as it is used."""
        return self._job("fields").fields()

    def resume(self, steps: int, **options: Any) -> Run:
        """Goes on with this run up to `steps` steps in all, in the same folder, from its last state, with the bits of a
        run that was never interrupted. `options` are `device`, `overwrite` and `events`."""
        if not isinstance(steps, int | np.integer):  # pyright: ignore[reportUnnecessaryIsInstance] - callers' own
            raise InputError(f"`steps=` is {steps!r:.80}.", "pass a whole number, that of all steps together.")
        if steps <= self.steps:
            raise InputError(f"{self.steps} steps are done already, {steps} asked for.", "ask for more with `steps=`.")
        return self._job("resume()").resume(self, steps, **options)

    def _job(self, what: str) -> RunJob:
        if self.job is None:
            raise InputError(
                f"this run is of no job, which would give it {what}.",
                "use dashi.rollout or dashi.flow.simulate; dashi.core.rollout goes on with `resume=run`.",
            )
        return self.job

    @property
    def time(self) -> float:
        """Time since the start, in the operator's own unit; the number of steps where it has none."""
        return self.steps * self.operator.time_step

    @cached_property
    def kernels(self) -> Mapping[str, str]:
        """SHA-256 of the SPIR-V of the kernels that were recorded, by "kernel/shader.dtype"."""
        return fingerprints(self.used)

    @property
    def portable(self) -> bool:
        """Whether every backend gives the same bits."""
        return self.operator.portable

    @property
    def seconds_per_step(self) -> float:
        """Seconds of a step, of those that `seconds` counts; 0 where there are none."""
        return self.seconds / (self.steps - self.timed_from) if self.steps > self.timed_from else 0.0

    @property
    def hashes(self) -> tuple[Hash, ...]:
        """Digests of all states (`hash_every`)."""
        return self.records.get("hashes", ())

    @property
    def observations(self) -> tuple[Observation, ...]:
        """Norms, ratios and defects (`observe_every`)."""
        return self.records.get("observations", ())

    @property
    def diagnostics(self) -> tuple[Any, ...]:
        """Energy, spectra and the largest speed of a flow (`look_every`)."""
        return self.records.get("diagnostics", ())

    @property
    def sheet(self) -> npt.NDArray[Any]:
        """Band energies, a row for each of `sheet_steps`; the mean over an ensemble (`sheet_every`)."""
        rows: tuple[SheetRow, ...] = self.records.get("sheet", ())
        width = rows[0].energies.shape[-1] if rows else 0
        return np.array([row.energies for row in rows]).reshape(len(rows), width)

    @property
    def sheet_steps(self) -> tuple[int, ...]:
        """The steps of the rows of the sheet."""
        return tuple(row.step for row in self.records.get("sheet", ()))

    @property
    def hash_every(self) -> int:
        """The stride of the hashes; 0 where there are none."""
        return self.stride("hashes")

    def stride(self, name: str) -> int:
        """Steps between two looks of the observer of that name; 0 where it did not look."""
        return next((one.every for one in self.observers if one.name == name), 0)

    def _repr_html_(self) -> str:
        return run_html(self)
