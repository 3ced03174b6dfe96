"""What the observers of a rollout saw: small frozen records, a few bytes of readback each."""

from __future__ import annotations

from dataclasses import dataclass

from dashi.types import HostArray


@dataclass(frozen=True)
class Hash:
    """The digest of all states after so many steps: BLAKE3 of their bytes, cut to 128 bits."""

    step: int
    digest: str
    """32 lower-case hexadecimal digits."""


@dataclass(frozen=True)
class KeptState:
    """The states after so many steps are in a file of the run: BLAKE3 of their bytes."""

    step: int
    digest: str
    """32 or 64 lower-case hexadecimal digits."""


@dataclass(frozen=True)
class Observation:
    """Numbers of one step, over all states of an ensemble together: from the state before it to the state after.

    They are measured on the device. Where a state is not finite, norms, ratio and defect may not be either.
    """

    step: int
    """How many steps were done: the state after this one was observed."""
    norm_before: float
    """The L2 norm before the step."""
    norm: float
    """The L2 norm after it."""
    ratio: float
    """The contraction ratio norm / norm_before; 0 where both are 0."""
    defect: float
    """How far the step moved the state: the largest |after - before| of any component."""
    nonfinite: int
    """How many components are NaN or infinite after the step."""
    first_nonfinite: int | None
    """The flat index of the first of those, in the order of (m, *shape); None where there is none."""


@dataclass(frozen=True, eq=False)
class SheetRow:
    """Band energies after so many steps, the mean over an ensemble."""

    step: int
    energies: HostArray
    """(bands,), float64."""
