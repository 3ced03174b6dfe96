"""A certificate with all that repeating it takes: its operator, initial states, and the states that were kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dashi.core.certificates._certificate import Certificate
from dashi.core.certificates._kept_states import KeptStateReader
from dashi.core.certificates._segments import CertifiedSegment
from dashi.core.certificates._verify import Check, check_segment
from dashi.core.certificates.inputs import certified_inputs
from dashi.core.operators.operator import Operator
from dashi.runtime.device import Device
from dashi.types import HostArray


@dataclass(frozen=True, eq=False)
class CertifiedRun:
    """What a certificate claims, and what it is repeated from, held to its digests."""

    certificate: Certificate
    operator: Operator
    z0: HostArray
    states: KeptStateReader | None
    """Reads the states that were kept; None where there are none."""

    @classmethod
    def open(cls, certificate: Certificate, folder: Path, inputs: Path | None) -> CertifiedRun:
        """Finds the inputs of a certificate in `folder`, or by name in `inputs`. Raises where they are not those that
        it claims, or its operator is another."""
        operator, z0 = certified_inputs(certificate, folder, inputs)
        if certificate.states is None:
            return cls(certificate, operator, z0, None)
        shape = z0.shape if z0.ndim > len(operator.shape) else (1, *z0.shape)
        states = KeptStateReader(folder, inputs, shape, operator.dtype, certificate.states.bits)
        return cls(certificate, operator, z0, states)

    def check(self, segment: CertifiedSegment, device: Device, progress: Callable[[int], None] | None = None) -> Check:
        """Repeats a segment on a device. Raises where the states that it begins with are not those claimed."""
        states = self.z0 if segment.start is None or self.states is None else self.states.read(segment.start)
        return check_segment(segment, self.operator, states, device, progress=progress)


def joined(checks: Sequence[Check]) -> Check:
    """What the checks of segments, in their order, come to: all that agreed, up to the first difference."""
    parting = next((at for at, check in enumerate(checks) if check.difference is not None), len(checks) - 1)
    counted = checks[: parting + 1]
    devices, last = {check.device: check.name for check in counted}, counted[-1]
    return Check(
        ", ".join(devices), ", ".join(dict.fromkeys(devices.values())), sum(check.hashes for check in counted),
        last.steps, last.difference, all(check.finite for check in counted),
    )  # fmt: skip
