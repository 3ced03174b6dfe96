"""What a job adds to the `Run` that it leaves: what was asked for, its metrics, its files, and how it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dashi.io.metrics import Metrics

if TYPE_CHECKING:
    from dashi.core.rollouts.run import Run


class CertificateFile(Protocol):
    """A certificate on disk."""

    @property
    def path(self) -> Path: ...

    @property
    def digest(self) -> str: ...

    def verify(self, device: Any = "auto", *, against: Any = None) -> Any:
        """Repeats the run on a device, or on two, and compares every hash: `Verification.same`."""
        ...


class RunJob(Protocol):
    """A job that is done."""

    @property
    def request(self) -> Any:
        """The frozen request that it was asked."""
        ...

    @property
    def setup(self) -> Any:
        """What was read or made of the request, for whoever knows the job."""
        ...

    @property
    def metrics(self) -> Metrics: ...

    @property
    def folder(self) -> Path | None:
        """Where the run lies. One that was stopped beside a finished one lies in a folder within `out`."""
        ...

    @property
    def out(self) -> Path | None:
        """The folder that was asked for."""
        ...

    @property
    def certificates(self) -> Mapping[Path, str]:
        """Digests of the certificates that were written, by file: the one asked for first, then that of the folder."""
        ...

    def certificate(self) -> CertificateFile:
        """The certificate that was written first. Raises InputError where there is none."""
        ...

    def fields(self) -> Any:
        """The frames and series in the folder. Raises InputError where there are none."""
        ...

    def resume(self, run: Run, steps: int, **options: Any) -> Run:
        """Goes on with the run, up to so many steps in all."""
        ...
