"""The segments of a certified run: between states that were kept, each can be repeated apart.

Soundness: the states that a segment begins with have the digest that the certificate claims for them, and its last step
gives the states of the next claim. So if every segment holds, the run does, from its first step to its last.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from dashi.core.certificates._certificate import Certificate, Claim, StateRecord
from dashi.errors import InputError


@dataclass(frozen=True)
class CertifiedSegment:
    """A part of a run: from states that are known, to those of the last of its claims."""

    number: int
    first: int
    """Steps before it."""
    hash_every: int
    claims: tuple[Claim, ...]
    start: StateRecord | None = None
    """The states that it begins with; None for those that the run starts from."""
    end: StateRecord | None = None
    """The states that it must end with; None where none were kept there."""

    @property
    def last(self) -> int:
        """Steps at its end."""
        return self.claims[-1].step

    @property
    def steps(self) -> int:
        """Steps from its start to its end."""
        return self.last - self.first


def segments_of(certificate: Certificate) -> tuple[CertifiedSegment, ...]:
    """The segments of a run, in order; one, where no states were kept."""
    every, states = certificate.hash_every, certificate.states
    if states is None:
        return (CertifiedSegment(0, 0, every, certificate.hashes),)
    claims, stride = certificate.hashes, states.every // every
    whole = [claims[at : at + stride] for at in range(0, len(claims), stride)]
    starts, ends = [None, *states.files], [*states.files, None]
    return tuple(
        CertifiedSegment(number, number * states.every, every, part, starts[number], ends[number])
        for number, part in enumerate(whole)
    )


def draw_segments(segments: int, sample: int | None, seed: int) -> tuple[int, ...]:
    """The numbers of a sample of so many of the segments, rising; all of them without a sample.

    Of all samples of that size each is as likely as any other, for whoever does not know the seed: segments are ordered
    by the SHA-256 of the text `dashi sample SEED NUMBER`, and the first are taken.
    """
    if sample is None:
        return tuple(range(segments))
    if not 1 <= sample <= segments:
        raise InputError(
            f"`sample=` is {sample}, and the certificate has {segments} segment{'s' if segments > 1 else ''}.",
            f"ask for 1 to {segments}, or leave `sample=` away to repeat all of them."
            if segments > 1
            else "leave `sample=` away; a run with `states_every=` keeps states, between which segments are.",
        )
    ordered = sorted(range(segments), key=lambda number: sha256(f"dashi sample {seed} {number}".encode()).digest())
    return tuple(sorted(ordered[:sample]))


def missed_with_probability(segments: int, verified: int) -> float:
    """How likely a sample misses a fault that lies in one segment alone."""
    return 1.0 - verified / segments
