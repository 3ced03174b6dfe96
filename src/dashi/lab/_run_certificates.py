"""The certificate of a run, as its result has it: a file that any device can repeat."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dashi.core.certificates._certificate import Certificate, read_certificate
from dashi.lab.events import SILENT, Events
from dashi.lab.verification import Verification, VerifyRequest, verify
from dashi.runtime._notebook import html_facts
from dashi.runtime.device import Device


@dataclass(frozen=True)
class RunCertificate:
    """A certificate file, and its digest."""

    path: Path
    digest: str

    def __repr__(self) -> str:
        return f"<RunCertificate {self.path}: {self.digest}>"

    def _repr_html_(self) -> str:
        claims = self.read()
        facts = [
            ("file", self.path), ("digest", self.digest), ("operator", claims.operator.kind), ("steps", claims.steps),
            ("hashes", len(claims.hashes)), ("last hash", claims.hashes[-1].hash), ("made on", claims.device.name),
        ]  # fmt: skip
        return html_facts("Certificate", facts)

    def read(self) -> Certificate:
        """What it claims."""
        return read_certificate(self.path)

    def verify(
        self, device: str | Device = "auto", *, against: str | Device | None = None, events: Events = SILENT
    ) -> Verification:
        """Repeats the run on a device, or on two, and compares every hash: `Verification.same`."""
        return verify(VerifyRequest(certificate=self.path, against=against), device=device, events=events)
