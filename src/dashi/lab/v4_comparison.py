"""`compare_v4`: the numbers of an earlier code, v4, beside ours, and its rollout with a certificate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from dashi.core.certificates._certify import certify_folder
from dashi.core.metrics._document import Stages, build_metrics
from dashi.core.metrics._placement import Placement
from dashi.core.operators.affine import Linear
from dashi.flow.v4.golden import SETTING, Row
from dashi.flow.v4.measure import V4Report, measure
from dashi.io import _run_folder as run_folder
from dashi.io._whole_folder import Owner, require_replaceable, whole_folder
from dashi.io.arrays import write_arrays
from dashi.io.metrics import write_metrics
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Job, Request, as_path
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table
from dashi.runtime.device import Device

_OWNER: Final = Owner(
    "flow rollout --compat v4",
    frozenset({run_folder.CERTIFICATE, run_folder.INPUTS, run_folder.METRICS, run_folder.REPORT, run_folder.STATE}),
)


@dataclass(frozen=True, kw_only=True)
class V4Request(Request):
    """The setting of v4; what is None is as the earlier code had it, which alone has golden numbers."""

    n: int | None = None
    """Points along each side."""
    steps: int | None = None
    seed: int | None = None

    @property
    def setting(self) -> tuple[int, int, int]:
        """Points, steps and seed."""
        usual_n, usual_steps, usual_seed = SETTING
        return (
            usual_n if self.n is None else self.n,
            usual_steps if self.steps is None else self.steps,
            usual_seed if self.seed is None else self.seed,
        )


@dataclass(frozen=True, eq=False)
class V4Comparison:
    """Golden numbers beside ours."""

    report: V4Report
    certificate_digest: str | None = None
    """The digest of the rollout's certificate, where a folder was asked for."""
    folder: Path | None = None

    @property
    def rows(self) -> list[Row]:
        """A row for each number."""
        return list(self.report.rows)

    @property
    def device_rows(self) -> list[Row]:
        """Rows of the numbers that the rollout on the device decides."""
        return [row for row in self.report.rows if row.device is not None]

    @property
    def holds(self) -> bool | None:
        """Whether every golden digit is there; None for a setting that has no golden numbers."""
        return holds(self.rows)

    def __repr__(self) -> str:
        verdict = {True: "every golden digit is there", False: "golden digits are MISSING", None: "no golden numbers"}
        return f"<V4Comparison: {len(self.rows)} numbers, {verdict[self.holds]}>"

    def _repr_html_(self) -> str:
        rows = [
            (row.name, row.golden, f"{row.ours:.9g}", "" if row.device is None else f"{row.device:.9g}")
            for row in self.rows
        ]
        return html_table(("v4", "golden", "ours", "on the device"), rows, "The numbers of v4")


def holds(rows: list[Row]) -> bool | None:
    """Whether every golden digit of these rows is there; None where they have no golden numbers."""
    return all(row.holds for row in rows) if rows[0].golden else None


def compare_v4(
    request: V4Request, *, device: str | Device = "auto", out: AnyPath | None = None, overwrite: bool = False,
    events: Events = SILENT,
) -> V4Comparison:  # fmt: skip
    """Measures the numbers of v4 again: its solver in NumPy, its map on the device. With `out` the rollout leaves a run
    folder with a certificate."""
    require_request(request, V4Request)
    job = Job(
        command=_OWNER.command, request=request, device=device, out=as_path(out), overwrite=overwrite, events=events
    )  # fmt: skip
    n, steps, seed = request.setting
    owner = replace(_OWNER, settings={"n": n, "steps": steps, "seed": seed}, overwrite=overwrite)
    if job.out:
        require_replaceable(job.out, owner)
    with job.place() as placed:
        events.remark(f"v4: {steps} steps of {n} x {n} in NumPy, the map on {placed.device.info.name}")
        with events.progress("v4", steps, "steps") as advance:
            report = measure(n, steps, seed, device=placed.device, progress=advance)
        digest = _leave(report, placed, job.stages, job.out, owner) if job.out else None
    return V4Comparison(report, digest, job.out)


def _leave(report: V4Report, placed: Placement, stages: Stages, out: Path, owner: Owner) -> str | None:
    """Writes the run folder of the rollout; its certificate's digest."""
    run, operator = report.run, Linear(report.A)
    assert run is not None
    with whole_folder(out, owner) as folder:
        digest = certify_folder(run, folder, operator, report.record.z[:1])
        write_arrays(folder / run_folder.STATE, {"z": run.state[0], "step": np.array(run.steps, np.int64)})
        metrics = build_metrics(owner.command, run, placed, stages, certificate=digest)
        write_metrics(folder / run_folder.METRICS, metrics)
    return digest
