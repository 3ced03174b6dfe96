"""What `dashi flow rollout` prints at the end, and how one that was stopped goes on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dashi.cli.output import print_facts, print_json, step_time

if TYPE_CHECKING:
    from dashi.core.rollouts.run import Run
    from dashi.io.metrics import Metrics

_GO_ALONG: Final = (
    "decode_every", "decode_device", "fft_device", "observer", "residual", "gate", "seed", "statistics", "dtype",
    "hash_every", "states_every", "states_bits", "stage_times", "allow_fallback", "require_gpu",
)  # fmt: skip
"""Options that a rollout which goes on is given again."""


def resume_command(result: Run, named: Mapping[str, str], device: str, op_device: str | None = None) -> str:
    """The command that does the steps which a stopped run did not; none where that takes more than files in it. `named`
    are the parameters that stand on the command line, and how each is written there."""
    from dashi.lab import remaining_request

    remaining = remaining_request(result)
    if remaining is None:
        return ""
    words = ["dashi", "flow", "rollout", "--z0", str(remaining.z0), "--steps", str(remaining.steps)]
    for option, file in (("--model", remaining.model), ("--A", remaining.A), ("--operator", remaining.operator)):
        words += [] if file is None else [option, str(file)]
    for name in [name for name in _GO_ALONG if name in named]:
        value: Any = getattr(remaining, name)
        if value is None:
            continue  # what goes on has no use for it
        if isinstance(value, bool):
            words.append(named[name] if value else named[name].replace("--", "--no-", 1))
        else:
            words += [named[name], str(value)]
    words += [named["device"], device] if "device" in named else []
    words += [named["op_device"], op_device] if op_device else []
    return shlex.join([*words, "--out", f"{result.out}-2"])


def stopped_lines(result: Run, further: str) -> list[str]:
    """Lines for whoever pressed Ctrl-C."""
    done = f"stopped after {result.steps} of {result.request.steps} steps"
    if result.folder is None:
        return [f"{done}; nothing is kept without --out"]
    stays = f"; the finished run in {result.out} stays as it was" if result.folder != result.out else ""
    lines = [f"{done}; what was done is in {result.folder}{stays}"]
    if further:
        lines.append(f"go on: {further}")
        if _has_hidden_state(result):
            lines.append("the model remembers more than its last z, so it goes on a little differently")
    return lines


def print_rollout(result: Run, further: str, *, as_json: bool) -> None:
    """A table for people; with --json the metrics document."""
    from dashi.flow.proxy.model import Model
    from dashi.lab.decoded_rollouts import setup_of

    metrics, setup = result.metrics, setup_of(result)
    schema = setup.schema
    if as_json:
        document: dict[str, Any] = metrics.model_dump(mode="json", exclude_none=True)
        document["hash"] = metrics.hashes[-1].hash if metrics.hashes else None
        document["folder"] = str(result.folder) if result.folder else None
        if result.stopped:
            document["go_on"] = further or None
        print_json(document)
        return
    stages = metrics.decode_stage_ns or {}
    rows = {
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "way": (metrics.way_reason or "") if isinstance(setup.advances, Model) else "",
        "steps": f"{metrics.steps} of {metrics.operator}, {metrics.states} x {schema.size}, {metrics.dtype}"
        f"{', stopped' if result.stopped else ''}; {step_time(metrics.ns_per_step)} per step",
        "decode": f"{metrics.decode_snapshots} fields of {schema.n} x {schema.n}, residual "
        f"{result.request.residual}; {_each(stages)}{metrics.decode_dispatches} dispatches",
        "decoded by": _decoded_by(metrics),
        "residual": _cost(metrics),
        "verdict": metrics.verdict.sentence if metrics.verdict else "",
        "stages": ", ".join(f"{name} {ns / 1000:.1f} us" for name, ns in stages.items()),
        "read back": _read(result),
        "hash": metrics.hashes[-1].hash if metrics.hashes else "",
        "certificate": metrics.certificate_digest or "",
        "folder": str(result.folder or ""),
    }
    print_facts(rows)


def _decoded_by(metrics: Metrics) -> str:
    """What decoded, and what transformed, where that is not the device of the steps."""
    where = metrics.decode_beside or ""
    waited = f", for which the steps waited {metrics.decode_wait_seconds:.3f} s" if metrics.decode_beside else ""
    apart = metrics.fft_backend_used != metrics.decode_backend_used
    transforms = f"transforms by {metrics.fft_device} ({metrics.fft_backend_used})" if apart else ""
    return "; ".join(part for part in (f"{where}{waited}", transforms) if part)


def _has_hidden_state(result: Run) -> bool:
    """Whether the model has more than z, so that going on from the last z is a little different."""
    from dashi.flow.proxy.model import Model
    from dashi.lab.decoded_rollouts import setup_of

    advances = setup_of(result).advances
    return isinstance(advances, Model) and advances.has_hidden_state


def _each(stages: Mapping[str, float]) -> str:
    """What a decode takes, where that was measured."""
    return f"{stages['decode'] * 1e-6:.3f} ms each, " if "decode" in stages else ""


def _read(result: Run) -> str:
    from dashi.flow.decode.observer import DecodeTotals

    read = DecodeTotals.of(result).bytes_read
    besides = (result.metrics.decode_bytes_read or 0) - read
    more = f", and {besides} to measure what the residual costs" if besides else ""
    return f"{read} bytes for the observer {result.request.observer}{more}"


def _cost(metrics: Metrics) -> str:
    if metrics.decode_residual_error is None or metrics.decode_lowpass_error is None:
        return ""
    return (
        f"relative error of the first field {metrics.decode_residual_error:.3f} with it, "
        f"{metrics.decode_lowpass_error:.3f} without"
    )
