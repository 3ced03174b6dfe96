"""The certificate of a run, as its result has it: a file that any device can repeat."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dashi.core.certificates.certificate import Certificate, read_certificate


@dataclass(frozen=True)
class RunCertificate:
    """A certificate file, and its digest."""

    path: Path
    digest: str

    def read(self) -> Certificate:
        """What it claims."""
        return read_certificate(self.path)
