"""What `dashi flow rollout` prints at the end, and how one that was stopped goes on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dashi.cli.output import print_facts, print_json

if TYPE_CHECKING:
    from dashi.io.metrics import Metrics
    from dashi.lab.decoded_rollouts import DecodedRollout

_GO_ALONG: Final = (
    "decode_every", "observer", "residual", "gate", "seed", "statistics", "dtype", "hash_every", "stage_times",
    "allow_fallback", "require_gpu",
)  # fmt: skip
"""Options that a rollout which goes on is given again."""


def resume_command(result: DecodedRollout, named: Mapping[str, str], device: str) -> str:
    """The command that does the steps which a stopped run did not; none where that takes more than files in it. `named`
    are the parameters that stand on the command line, and how each is written there."""
    remaining = result.remaining()
    if remaining is None:
        return ""
    words = ["dashi", "flow", "rollout", "--z0", str(remaining.z0), "--steps", str(remaining.steps)]
    for option, file in (("--model", remaining.model), ("--A", remaining.A), ("--operator", remaining.operator)):
        words += [] if file is None else [option, str(file)]
    for name in [name for name in _GO_ALONG if name in named]:
        value: Any = getattr(remaining, name)
        if isinstance(value, bool):
            words.append(named[name] if value else named[name].replace("--", "--no-", 1))
        else:
            words += [named[name], str(value)]
    words += [named["device"], device] if "device" in named else []
    return shlex.join([*words, "--out", f"{result.out}-2"])


def stopped_lines(result: DecodedRollout, further: str) -> list[str]:
    """Lines for whoever pressed Ctrl-C."""
    done = f"stopped after {result.run.steps} of {result.request.steps} steps"
    if result.folder is None:
        return [f"{done}; nothing is kept without --out"]
    stays = f"; the finished run in {result.out} stays as it was" if result.folder != result.out else ""
    lines = [f"{done}; what was done is in {result.folder}{stays}"]
    if further:
        lines.append(f"go on: {further}")
        if result.has_hidden_state:
            lines.append("the model remembers more than its last z, so it goes on a little differently")
    return lines


def print_rollout(result: DecodedRollout, further: str, *, as_json: bool) -> None:
    """A table for people; with --json the metrics document."""
    metrics, schema, decoded = result.metrics, result.schema, result.decoded
    if as_json:
        document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
        document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
        document["folder"] = str(result.folder) if result.folder else None
        if result.stopped:
            document["go_on"] = further or None
        print_json(document)
        return
    from dashi.flow.proxy.model import Model

    stages = metrics.decode_stage_ns or {}
    rows = {
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "way": (metrics.way_reason or "") if isinstance(result.setup.advances, Model) else "",
        "steps": f"{metrics.steps} of {metrics.operator}, {metrics.states} x {schema.size}, {metrics.dtype}"
        f"{', stopped' if result.stopped else ''}; {_microseconds(metrics.ns_per_step)} per step",
        "decode": f"{decoded.snapshots} fields of {schema.n} x {schema.n}, residual {result.request.residual}; "
        f"{decoded.usual * 1000:.3f} ms each, {metrics.decode_dispatches} dispatches",
        "residual": _cost(metrics),
        "verdict": metrics.verdict.sentence if metrics.verdict else "",
        "stages": ", ".join(f"{name} {ns / 1000:.1f} us" for name, ns in stages.items()),
        "read back": _read(result),
        "hash": metrics.hashes[-1].hash if metrics.hashes else "",
        "certificate": metrics.certificate_digest or "",
        "folder": str(result.folder or ""),
    }
    print_facts(rows)


def _microseconds(ns: float) -> str:
    """Three digits, however short a step is."""
    return f"{ns / 1000:.3g} us" if 0 < ns < 1e6 else f"{ns / 1000:.0f} us"


def _read(result: DecodedRollout) -> str:
    besides = (result.metrics.decode_bytes_read or 0) - result.decoded.bytes_read
    more = f", and {besides} to measure what the residual costs" if besides else ""
    return f"{result.decoded.bytes_read} bytes for the observer {result.request.observer}{more}"


def _cost(metrics: Metrics) -> str:
    if metrics.decode_residual_error is None or metrics.decode_lowpass_error is None:
        return ""
    return (
        f"relative error of the first field {metrics.decode_residual_error:.3f} with it, "
        f"{metrics.decode_lowpass_error:.3f} without"
    )
