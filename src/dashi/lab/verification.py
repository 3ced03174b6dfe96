"""Verifying a certificate as a job: the run is repeated on a device, or on two, and every hash is compared. Where
states were kept on the way, what lies between them is repeated apart: by several processes at the same time, or a
sample of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dashi import kernels
from dashi.core.certificates._certificate import Certificate, read_certificate
from dashi.core.certificates._certified_run import CertifiedRun, joined
from dashi.core.certificates._segments import (
    CertifiedSegment,
    draw_segments,
    missed_with_probability,
    segments_of,
)
from dashi.core.certificates._verify import Check, Divergence, bisect_divergence
from dashi.core.operators.operator import Operator
from dashi.errors import InputError
from dashi.io._run_folder import CERTIFICATE
from dashi.io._run_reading import named_file
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Job, Request, interrupted_with
from dashi.lab._segment_farm import Errand, check_apart
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table
from dashi.runtime.device import Device
from dashi.types import HostArray

_MOST_JOBS: Final = 1024
_SEED_BITS: Final = 53
"""So many that a seed is a number of JSON everywhere."""


@dataclass(frozen=True, kw_only=True)
class VerifyRequest(Request):
    """A certificate to verify. Nothing is written, so there is nothing to resume."""

    certificate: AnyPath
    """The file, or the run folder that it lies in."""
    against: str | Device | None = None
    """Another device to repeat it on; where the two differ, the first step that they do differently is looked for."""
    inputs: AnyPath | None = None
    """A folder in which the input files are looked for, by name, and kept states in its folder `states`."""
    jobs: int | None = None
    """Processes that repeat segments at the same time; one for each of the devices, else 1, which is this process."""
    devices: tuple[str, ...] = ()
    """Names of devices, which the processes have in turn, instead of the one that the job is given."""
    sample: int | None = None
    """How many segments are repeated, drawn by a seed; all of them where None."""
    sample_seed: int | None = None
    """Seed of the sample; one that nobody knows beforehand where None."""


@dataclass(frozen=True, eq=False)
class Verification:
    """What came of it."""

    file: Path
    certificate: Certificate
    checks: tuple[Check, ...]
    """One for each device."""
    divergence: Divergence | None
    """The first step that the two devices do differently, where there are two and it was found."""
    segments: int = 1
    """Parts of the run, between states that were kept."""
    repeated: int = 1
    """How many of them were to be repeated: those of the sample, or all."""
    verified: int = 1
    """How many of them came out as claimed, in order, up to the first that did not."""
    sample_seed: int | None = None
    """The seed that drew them; None without a sample."""

    @property
    def same(self) -> bool:
        """Whether every hash that was claimed came again, everywhere."""
        return not any(check.difference for check in self.checks)

    @property
    def finite(self) -> bool:
        """Whether the states hold no NaN or infinities, of which nothing follows."""
        return all(check.finite for check in self.checks)

    @property
    def missed_with_probability(self) -> float:
        """How likely a fault that lies in one segment alone was missed: 0 where all were repeated."""
        return missed_with_probability(self.segments, self.repeated)

    @property
    def sentences(self) -> list[str]:
        """A sentence for each device, and one about where the two diverge."""
        sentences = [_sentence(check) + (self._apart() if check.difference is None else "") for check in self.checks]
        return [*sentences, *self._about_divergence()]

    @property
    def remarks(self) -> list[str]:
        """What a reader of a certificate that verifies should know all the same."""
        lines: list[str] = []
        if not self.finite:
            lines.append(
                "the states hold NaN or infinities: the hashes repeat, but the run means nothing from there on"
            )
        unknown = sorted({name.split("/")[0] for name in self.certificate.kernels} - set(kernels.names()))
        if unknown:
            lines.append(f"the certificate names kernels that this dashi does not have: {', '.join(unknown)}")
        if self.sample_seed is not None:
            lines.append(
                f"{self.repeated} of {self.segments} segments were drawn, by the seed {self.sample_seed}: a fault in "
                f"one segment alone is missed with probability {self.missed_with_probability:.3g}"
            )
        return lines

    def __repr__(self) -> str:
        return f"<Verification of {self.file}: {'; '.join(self.sentences)}>"

    def _repr_html_(self) -> str:
        rows = [(check.name, check.device, check.steps, check.hashes, _verdict(check)) for check in self.checks]
        title = f"{self.file}: {'the same' if self.same else 'NOT the same'}"
        return html_table(("device", "spec", "steps", "hashes", "result"), rows, title)

    def _apart(self) -> str:
        """The number of segments that this is true of, where there is more than one."""
        if self.segments == 1:
            return ""
        part = "" if self.repeated == self.segments else f"{self.repeated} of "
        return f", in {part}{self.segments} segments"

    def _about_divergence(self) -> list[str]:
        differences = [check.difference for check in self.checks if check.difference]
        if len(self.checks) < 2 or not differences:
            return []
        at = self.divergence
        if at:
            values = [f"{value!r} (bits {bits})" for value, bits in zip(at.values, at.bits, strict=True)]
            return [f"the two devices part at step {at.step}: component {at.index} is {' and '.join(values)}"]
        if len(differences) == 2 and differences[0] == differences[1]:
            return ["both devices give the same hash there, which is not the one claimed"]
        return ["step by step, both devices did that interval alike: the difference does not repeat"]


@interrupted_with(Verification)
def verify(request: VerifyRequest, *, device: str | Device = "auto", events: Events = SILENT) -> Verification:
    """Repeats a certified run in order and compares every hash, up to the first that differs: `Verification.same`.
    Raises where it cannot be repeated: an edited certificate, missing or other inputs or states.

    With `jobs`, processes repeat segments between kept states at the same time, and what they find is what one would
    find; with `sample`, only so many segments are repeated.
    """
    require_request(request, VerifyRequest)
    devices = _devices(request, device)
    path = Path(request.certificate)
    file = path / CERTIFICATE if path.is_dir() else path
    claimed = read_certificate(named_file(file))
    inputs = None if request.inputs is None else Path(request.inputs)
    all_segments = segments_of(claimed)
    seed = _seed(request)
    chosen = [all_segments[at] for at in draw_segments(len(all_segments), request.sample, seed or 0)]
    run = CertifiedRun.open(claimed, file.parent, inputs)
    if run.states is not None:
        with events.progress("kept states", len(chosen), "states") as advance:
            run.states.require(chosen, advance)
    jobs = min(request.jobs or len(devices), len(chosen))
    divergence: Divergence | None = None
    if jobs > 1:
        checks = [_check_apart(request, run, chosen, devices, jobs, file.parent, events)]
    else:
        with Job(command="verify", request=request, device=devices[0]).place() as first:
            checks = [_check(run, chosen, first.device, events)]
            if request.against is not None:
                with Job(command="verify", request=request, device=request.against).place() as second:
                    checks.append(_check(run, chosen, second.device, events))
                    divergence = _divergence(checks, run.operator, run.z0, (first.device, second.device), events)
    verified = min(_verified(check, chosen) for check in checks)
    return Verification(
        file, claimed, tuple(checks), divergence, len(all_segments), len(chosen), verified, seed
    )  # fmt: skip


def _devices(request: VerifyRequest, device: str | Device) -> Sequence[str | Device]:
    """Where it is repeated; refuses what does not go together."""
    jobs, names = request.jobs, request.devices
    if jobs is not None and not 1 <= jobs <= _MOST_JOBS:
        raise InputError(f"`jobs=` is {jobs}.", f"use 1 to {_MOST_JOBS}.")
    if any(not isinstance(name, str) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance] - callers' own
        raise InputError(f"`devices=` is {names!r:.80}.", 'name devices: `devices=["vulkan:0", "vulkan:1"]`.')
    if jobs is not None and jobs < len(names):
        raise InputError(f"`jobs={jobs}` uses {jobs} of {len(names)} devices.", f"use `jobs={len(names)}`, or more.")
    if request.sample is None and request.sample_seed is not None:
        raise InputError("`sample_seed=` draws a sample, and none is asked for.", "give `sample=` too.")
    apart = (jobs or len(names)) > 1
    if request.against is not None and (apart or request.sample is not None):
        raise InputError(
            "`against=` repeats the whole run on two devices.", "leave `jobs=` and `sample=` away, or that."
        )
    if request.trace is not None and apart:
        raise InputError("a trace is of one process.", "leave `trace=` away, or `jobs=`.")
    if apart and not names and not isinstance(device, str):
        raise InputError(
            "several processes open devices of their own.", "name a device instead of passing an open one."
        )
    return names or (device,)


def _seed(request: VerifyRequest) -> int | None:
    """The seed of the sample, if there is one."""
    if request.sample is None:
        return None
    return secrets.randbits(_SEED_BITS) if request.sample_seed is None else request.sample_seed


def _check(run: CertifiedRun, segments: Sequence[CertifiedSegment], device: Device, events: Events) -> Check:
    """Repeats segments in their order, up to the first that differs."""
    steps = sum(segment.steps for segment in segments)
    events.remark(f"repeating {steps} steps of {run.operator.kind} on {device.info.name}")
    checks: list[Check] = []
    with events.progress(device.info.spec, steps, "steps") as advance:
        for segment in segments:
            checks.append(run.check(segment, device, advance))
            if checks[-1].difference is not None:
                break
    return joined(checks)


def _check_apart(
    request: VerifyRequest, run: CertifiedRun, segments: Sequence[CertifiedSegment],
    devices: Sequence[str | Device], jobs: int, folder: Path, events: Events,
) -> Check:  # fmt: skip
    """Repeats segments in processes, up to the first that differs."""
    names = [str(name) for name in devices]
    steps = sum(segment.steps for segment in segments)
    events.remark(
        f"repeating {steps} steps of {run.operator.kind} in {len(segments)} segments, {jobs} at the same time, on "
        f"{', '.join(names)}"
    )
    errand = Errand(
        certificate=run.certificate.model_dump(mode="json", exclude_unset=True), folder=str(folder),
        inputs=None if request.inputs is None else os.fspath(request.inputs), allow_fallback=request.allow_fallback,
        require_gpu=request.require_gpu,
    )  # fmt: skip
    with events.progress(f"{jobs} processes", steps, "steps") as advance:
        return joined(check_apart(errand, segments, names, jobs, advance))


def _verified(check: Check, segments: Sequence[CertifiedSegment]) -> int:
    """How many segments came out as claimed, before the first that did not."""
    if check.difference is None:
        return len(segments)
    return sum(segment.last <= check.steps for segment in segments)


def _divergence(
    checks: list[Check], operator: Operator, z0: HostArray, devices: tuple[Device, Device], events: Events
) -> Divergence | None:
    """The step where the devices diverge, in the first interval that they did not do alike."""
    differences = [check.difference for check in checks if check.difference]
    earliest = min(differences, key=lambda d: d.last, default=None)
    if earliest is None or (len(differences) == 2 and differences[0] == differences[1]):
        return None
    events.remark(f"looking for the step, between {earliest.first} and {earliest.last}")
    return bisect_divergence(operator, z0, (earliest.first, earliest.last), devices)[1]


def _verdict(check: Check) -> str:
    at = check.difference
    return "all are the same" if at is None else f"differs between step {at.first} and step {at.last}"


def _sentence(check: Check) -> str:
    at = check.difference
    if at is None:
        return f"{check.name}: all {check.hashes} hashes are the same"
    return (
        f"{check.name}: DIFFERS between step {at.first} and step {at.last}: the hash is {at.found}, "
        f"claimed is {at.claimed} ({check.hashes} hashes before it are the same)"
    )
