"""Verifying a certificate as a job: the run is repeated on a device, or on two, and every hash is compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dashi import kernels
from dashi.core.certificates._certificate import Certificate, read_certificate
from dashi.core.certificates._verify import Check, Divergence, bisect_divergence, check
from dashi.core.certificates.inputs import certified_inputs
from dashi.core.operators.operator import Operator
from dashi.io._run_folder import CERTIFICATE
from dashi.io._run_reading import named_file
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Job, Request, interrupted_with
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table
from dashi.runtime.device import Device
from dashi.types import HostArray


@dataclass(frozen=True, kw_only=True)
class VerifyRequest(Request):
    """A certificate to verify. Nothing is written, so there is nothing to resume."""

    certificate: AnyPath
    """The file, or the run folder that it lies in."""
    against: str | Device | None = None
    """Another device to repeat it on; where the two differ, the first step that they do differently is looked for."""
    inputs: AnyPath | None = None
    """A folder in which the input files are looked for, by name."""


@dataclass(frozen=True, eq=False)
class Verification:
    """What came of it."""

    file: Path
    certificate: Certificate
    checks: tuple[Check, ...]
    """One for each device."""
    divergence: Divergence | None
    """The first step that the two devices do differently, where there are two and it was found."""

    @property
    def same(self) -> bool:
        """Whether every hash that was claimed came again, everywhere."""
        return not any(check.difference for check in self.checks)

    @property
    def finite(self) -> bool:
        """Whether the states hold no NaN or infinities, of which nothing follows."""
        return all(check.finite for check in self.checks)

    @property
    def sentences(self) -> list[str]:
        """A sentence for each device, and one about where the two diverge."""
        return [*map(_sentence, self.checks), *self._about_divergence()]

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
        return lines

    def __repr__(self) -> str:
        return f"<Verification of {self.file}: {'; '.join(self.sentences)}>"

    def _repr_html_(self) -> str:
        rows = [(check.name, check.device, check.steps, check.hashes, _verdict(check)) for check in self.checks]
        title = f"{self.file}: {'the same' if self.same else 'NOT the same'}"
        return html_table(("device", "spec", "steps", "hashes", "result"), rows, title)

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
    Raises where it cannot be repeated: an edited certificate, missing or other inputs."""
    require_request(request, VerifyRequest)
    path = Path(request.certificate)
    file = path / CERTIFICATE if path.is_dir() else path
    claimed = read_certificate(named_file(file))
    inputs = None if request.inputs is None else Path(request.inputs)
    operator, z0 = certified_inputs(claimed, file.parent, inputs)
    divergence: Divergence | None = None
    with Job(command="verify", request=request, device=device).place() as first:
        checks = [_check(claimed, operator, z0, first.device, events)]
        if request.against is not None:
            with Job(command="verify", request=request, device=request.against).place() as second:
                checks.append(_check(claimed, operator, z0, second.device, events))
                divergence = _divergence(checks, operator, z0, (first.device, second.device), events)
    return Verification(file, claimed, tuple(checks), divergence)


def _check(claimed: Certificate, operator: Operator, z0: HostArray, device: Device, events: Events) -> Check:
    events.remark(f"repeating {claimed.steps} steps of {claimed.operator.kind} on {device.info.name}")
    with events.progress(device.info.spec, claimed.steps, "steps") as advance:
        return check(claimed, operator, z0, device, progress=advance)


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
