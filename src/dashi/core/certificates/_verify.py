"""Verifying a certificate: the run, or a segment of it, is repeated in order, up to the first hash that is not the one
claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from dashi.core.certificates._certificate import Certificate
from dashi.core.certificates._segments import CertifiedSegment
from dashi.core.operators.operator import Operator
from dashi.core.rollouts._state_files import BITS_OF, state_digest
from dashi.core.rollouts.rollout import rollout
from dashi.core.rollouts.run import Run
from dashi.errors import Interrupted, NoResultError
from dashi.runtime.device import Device
from dashi.types import HostArray

LOOKS: Final = 64
"""How often the hashes so far are compared, so that a long run that went wrong early ends early."""

_FINE: Final = 1000
"""Hashes that are taken at once while the exact step is searched for."""


@dataclass(frozen=True)
class Difference:
    """A device's hash that is not the one claimed: the states agreed after `first` steps, and not after `last`."""

    first: int
    last: int
    claimed: str
    found: str


@dataclass(frozen=True)
class Divergence:
    """The step that two devices do differently from the same states, and the first component that shows it."""

    step: int
    index: int
    values: tuple[float, float]
    bits: tuple[str, str]


@dataclass(frozen=True)
class Check:
    """What one device made of a certificate: how many hashes it gave again, up to which step, and the first other.
    `finite` is False where the states that were compared hold NaN or infinities: nothing follows from those."""

    device: str
    name: str
    hashes: int
    steps: int
    difference: Difference | None
    finite: bool = True


class _DiffersError(Exception):
    """Ends a rollout that has gone another way."""

    def __init__(self, check: Check) -> None:
        super().__init__()
        self.check = check


def check(
    certificate: Certificate,
    operator: Operator,
    z0: HostArray,
    device: Device,
    *,
    strategy: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> Check:
    """Repeats the run from its start on a device and compares every hash, in order, up to the first that differs."""
    whole = CertifiedSegment(0, 0, certificate.hash_every, certificate.hashes)
    return check_segment(whole, operator, z0, device, strategy=strategy, progress=progress)


def check_segment(
    segment: CertifiedSegment,
    operator: Operator,
    states: HostArray,
    device: Device,
    *,
    strategy: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> Check:
    """Repeats a segment on a device, from the states that it begins with, and compares every hash and the states that
    it must end with, up to the first that differ."""
    groups = -(-len(segment.claims) // LOOKS)
    compared = _Comparison(segment, device)
    try:
        run = rollout(
            operator,
            states,
            segment.steps,
            device=device,
            hash_every=segment.hash_every,
            keep_every=segment.hash_every * groups,
            keep=compared.look,
            strategy=strategy,
            stop_on_nonfinite=False,
            progress=progress,
        )
        compared.look(run)
    except Interrupted as stop:
        return _until_stopped(compared, stop)
    except _DiffersError as found:
        return found.check
    if len(run.hashes) < len(segment.claims):
        raise NoResultError(
            f"{device.info.name!r} gave no hashes to compare.", "verify on a device that computes: auto, cpu, vulkan:0."
        )
    return compared.ended(run.state)


def _until_stopped(compared: _Comparison, stop: Interrupted) -> Check:
    """A difference that was there before Ctrl-C came; without one there is no verdict, and it is raised on."""
    try:
        compared.look(stop.partial)
    except _DiffersError as found:
        return found.check
    raise stop


class _Comparison:
    """The hashes of a segment that is repeated beside those claimed."""

    def __init__(self, segment: CertifiedSegment, device: Device) -> None:
        self._segment, self._device = segment, device
        self._agreed = 0
        self._finite = True

    def look(self, run: Run) -> None:
        """Compares what has come since the last look."""
        first = self._segment.first
        self._finite = self._finite and bool(np.isfinite(run.state).all())
        for claim, found in zip(self._segment.claims[self._agreed :], run.hashes[self._agreed :], strict=False):
            if (claim.step, claim.hash) != (first + found.step, found.digest):
                raise _DiffersError(self._verdict(Difference(self._steps(), claim.step, claim.hash, found.digest)))
            self._agreed += 1

    def ended(self, states: HostArray) -> Check:
        """The verdict on a segment of which every hash agreed: its last states must be those that were kept, also where
        their digest is longer than a hash."""
        claimed = self._segment.end
        digest = state_digest(states, BITS_OF[len(claimed.digest)]) if claimed else ""
        if claimed is None or digest == claimed.digest:
            return self._verdict(None)
        self._agreed -= 1
        return self._verdict(Difference(self._steps(), claimed.step, claimed.digest, digest))

    def _steps(self) -> int:
        return self._segment.claims[self._agreed - 1].step if self._agreed else self._segment.first

    def _verdict(self, difference: Difference | None) -> Check:
        info = self._device.info
        return Check(info.spec, info.name, self._agreed, self._steps(), difference, self._finite)


def bisect_divergence(
    operator: Operator, z0: HostArray, interval: tuple[int, int], devices: tuple[Device, Device]
) -> tuple[tuple[int, int], Divergence | None]:
    """Where two devices part within an interval of steps: narrowed to one step, by hashes that are taken ever closer.

    They agree at its start. Returns the interval that was reached, and the step with its evidence; None where both did
    that interval alike this time, so that there is nothing to point at.
    """
    first, last = interval
    state = _after(operator, z0, first, devices[0])
    while last - first > 1:
        every = max(1, (last - first) // _FINE)
        hashes, others = (rollout_hashes(operator, state, last - first, every, device) for device in devices)
        apart = next((i for i, (a, b) in enumerate(zip(hashes, others, strict=True)) if a[1] != b[1]), None)
        if apart is None:
            return (first, last), None
        low, high = hashes[apart - 1][0] if apart else 0, hashes[apart][0]
        state = _after(operator, state, low, devices[0])
        first, last = first + low, first + high
    one, two = (_after(operator, state, 1, device) for device in devices)
    return (first, last), _divergence_at(last, one, two)


def _after(operator: Operator, state: HostArray, steps: int, device: Device) -> HostArray:
    """The states so many steps later; values that are not finite are repeated like others."""
    return rollout(operator, state, steps, device=device, stop_on_nonfinite=False).state


def rollout_hashes(
    operator: Operator, state: HostArray, steps: int, every: int, device: Device
) -> list[tuple[int, str]]:
    """The hashes of some steps, by step; the run goes on over values that are not finite."""
    run = rollout(operator, state, steps, device=device, hash_every=every, stop_on_nonfinite=False)
    return [(found.step, found.digest) for found in run.hashes]


def _divergence_at(step: int, one: HostArray, two: HostArray) -> Divergence | None:
    words = np.dtype(f"u{one.dtype.itemsize}")
    a, b = one.reshape(-1), two.reshape(-1)
    apart = np.flatnonzero(a.view(words) != b.view(words))
    if not apart.size:
        return None
    index, digits = int(apart[0]), 2 * words.itemsize
    bits = [f"0x{int(v.view(words)[index]):0{digits}x}" for v in (a, b)]
    return Divergence(step, index, (float(a[index]), float(b[index])), (bits[0], bits[1]))
