"""What `dashi flow rollout` prints at the end, and how one that was stopped goes on."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dashi.cli.flow_rollout import Request
from dashi.cli.flow_rollout_setup import Setup, Z
from dashi.cli.output import add_row, new_table, print_json, print_table
from dashi.core.rollouts.run import Run
from dashi.flow.decode.harness import DecodedRun
from dashi.flow.proxy.model import Model
from dashi.io import run_folder
from dashi.io.metrics import Metrics

_GO_ALONG: Final = (
    "decode_every", "observer", "residual", "gate", "seed", "statistics", "dtype", "hash_every", "stage_times",
    "device", "allow_fallback", "require_gpu",
)  # fmt: skip
"""Options that a rollout which goes on is given again."""


@dataclass(frozen=True, eq=False)
class Told:
    """All that there is to tell of a run."""

    request: Request
    setup: Setup
    run: DecodedRun
    metrics: Metrics
    folder: Path | None
    """Where it lies."""
    further: str
    """The command that goes on from its last z, if it was stopped."""


def go_on(request: Request, setup: Setup, run: Run, folder: Path | None) -> str:
    """The command that does the steps which a stopped run did not; none where that takes more than files in it."""
    if not run.stopped or folder is None or not run.steps or run.steps >= request.steps:
        return ""
    if request.residual == "statistics" and request.statistics is None:
        return ""
    words = ["dashi", "flow", "rollout", "--z0", str(folder / Z), "--steps", str(request.steps - run.steps)]
    if request.fit_from is not None:
        if not (folder / run_folder.INPUTS).is_file():
            return ""
        words += ["--A", str(folder / run_folder.INPUTS)]
    for name, file in (("--model", request.model), ("--A", request.matrix), ("--operator", request.operator)):
        words += [] if file is None else [name, str(file)]
    for name in [name for name in _GO_ALONG if name in request.given]:
        value: Any = getattr(request, name)
        option = request.given[name]
        if isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        else:
            words += [option, str(value)]
    assert request.out is not None  # there is a folder
    return shlex.join([*words, "--out", f"{request.out}-2"])


def stopped_lines(request: Request, run: Run, folder: Path | None, further: str, *, remembers: bool) -> list[str]:
    """Lines for whoever pressed Ctrl-C."""
    done = f"stopped after {run.steps} of {request.steps} steps"
    if folder is None:
        return [f"{done}; nothing is kept without --out"]
    stays = f"; the finished run in {request.out} stays as it was" if folder != request.out else ""
    lines = [f"{done}; what was done is in {folder}{stays}"]
    if further:
        lines.append(f"go on: {further}")
        if remembers:
            lines.append("the model remembers more than its last z, so it goes on a little differently")
    return lines


def print_report(told: Told) -> None:
    """A table for people; with --json the metrics document."""
    request, setup, run, metrics = told.request, told.setup, told.run, told.metrics
    if request.json:
        document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
        document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
        document["folder"] = str(told.folder) if told.folder else None
        if run.rollout.stopped:
            document["go_on"] = told.further or None
        print_json(document)
        return
    stages = metrics.decode_stage_ns or {}
    rows = {
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "way": metrics.way_reason if isinstance(setup.advances, Model) else "",
        "steps": f"{metrics.steps} of {metrics.operator}, {metrics.states} x {setup.schema.size}, {metrics.dtype}"
        f"{', stopped' if run.rollout.stopped else ''}; {_microseconds(metrics.ns_per_step)} per step",
        "decode": f"{run.snapshots} fields of {setup.schema.n} x {setup.schema.n}, residual {request.residual}; "
        f"{run.usual * 1000:.3f} ms each, {metrics.decode_dispatches} dispatches",
        "residual": _cost(metrics),
        "verdict": metrics.verdict.sentence if metrics.verdict else "",
        "stages": ", ".join(f"{name} {ns / 1000:.1f} us" for name, ns in stages.items()),
        "read back": _read(request, run, metrics),
        "hash": metrics.hashes[-1].hash if metrics.hashes else "",
        "certificate": metrics.certificate_digest or "",
        "folder": str(told.folder or ""),
    }
    table = new_table("", "")
    for name, value in rows.items():
        if value:
            add_row(table, name, value)
    print_table(table)


def _microseconds(ns: float) -> str:
    """Three digits, however short a step is."""
    return f"{ns / 1000:.3g} us" if 0 < ns < 1e6 else f"{ns / 1000:.0f} us"


def _read(request: Request, run: DecodedRun, metrics: Metrics) -> str:
    total = metrics.decode_bytes_read or 0
    besides = total - run.bytes_read
    more = f", and {besides} to measure what the residual costs" if besides else ""
    return f"{run.bytes_read} bytes for the observer {request.observer}{more}"


def _cost(metrics: Metrics) -> str:
    if metrics.decode_residual_error is None or metrics.decode_lowpass_error is None:
        return ""
    return (
        f"relative error of the first field {metrics.decode_residual_error:.3f} with it, "
        f"{metrics.decode_lowpass_error:.3f} without"
    )
