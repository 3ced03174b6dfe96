"""What a job of this package adds to its `Run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashi.core.rollouts.run import Run
from dashi.errors import InputError
from dashi.flow.windows._foreign import open_dataset
from dashi.io._run_names import FIELDS
from dashi.io.metrics import Metrics
from dashi.lab._run_certificates import RunCertificate


@dataclass(frozen=True, eq=False, kw_only=True)
class FinishedJob:
    """A job that left a run."""

    request: Any
    metrics: Metrics
    folder: Path | None = None
    out: Path | None = None
    certificates: Mapping[Path, str] = field(default_factory=dict[Path, str])
    setup: Any = None
    to_certify: str = "roll out with `out=`, by an operator that is portable."
    """What a run without a certificate lacks."""
    go_on: Callable[..., Run] | None = None
    """Is given the run, the steps and options; None where a run of this job does not go on."""

    def certificate(self) -> RunCertificate:
        for file, digest in self.certificates.items():
            return RunCertificate(file, digest)
        raise InputError("this run has no certificate.", self.to_certify)

    def fields(self) -> Any:
        if self.folder is None or not (self.folder / FIELDS).is_dir():
            raise InputError("this run has no frames.", "simulate with `out=` and `frame_every=`.")
        return open_dataset(self.folder / FIELDS)

    def resume(self, run: Run, steps: int, **options: Any) -> Run:
        if self.go_on is None:
            raise InputError(
                "a decoded rollout goes on from its last z, as a rollout of its own.",
                "follow the request `dashi.lab.remaining_request(run)`.",
            )
        return self.go_on(run, steps, **options)


def without_last_looks(run: Run) -> Run:
    """The run without the records that only its last step has: one that goes on has none there."""
    strides = {name: run.stride(name) for name in run.records}
    return replace(
        run,
        records={
            name: tuple(record for record in records if strides[name] and record.step % strides[name] == 0)
            for name, records in run.records.items()
        },
    )
