"""A counterexample made small: cut the field, then empty sites, then prefer +1, for as long as the fault remains.

Every step is tried in a fixed order, so that the same kernel and sample give the same counterexample. Leaving out large
parts first follows delta debugging: A. Zeller, R. Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE
Transactions on Software Engineering 28 (2002), doi 10.1109/32.988498.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from dashi.core.carriers._check_claims import Test, Violation
from dashi.core.carriers.check_samples import FieldSample

BUDGET: Final = 2000
"""Samples tried at most, so that a slow kernel does not run for ever."""


def shrink(fault: Violation, test: Test, budget: int = BUDGET) -> Violation:
    """The fault of the smallest sample found that still refutes the claim."""
    left = budget
    smaller = _smaller(fault.sample)
    while left > 0 and (candidate := next(smaller, None)) is not None:
        left -= 1
        found = _fault(test, candidate)
        if found is not None:
            fault, smaller = found, _smaller(found.sample)
    return fault


def _smaller(sample: FieldSample) -> Iterator[FieldSample]:
    """Simpler samples, those first that leave out most."""
    for axis in range(sample.field.ndim):
        length = sample.field.shape[axis]
        for start, end in _runs(length):
            if end - start < length:
                yield sample.moved(lambda x, at=axis, run=slice(start, end): np.delete(x, run, at))
    held = np.flatnonzero(sample.field)
    for start, end in _runs(held.size):
        yield _with(sample, held[start:end], 0)
    for place in np.flatnonzero(sample.field < 0):
        yield _with(sample, place, 1)


def _with(sample: FieldSample, places: Any, trit: int) -> FieldSample:
    field = sample.field.copy()
    field.reshape(-1)[places] = trit
    return sample.with_field(field)


def _runs(length: int) -> Iterator[tuple[int, int]]:
    """Parts of a list to leave out: all of it, halves, quarters, ..., single places."""
    size = length
    while size > 0:
        for start in range(0, length, size):
            yield start, min(start + size, length)
        size //= 2


def _fault(test: Test, sample: FieldSample) -> Violation | None:
    """A sample that the kernel or the symmetry cannot take refutes nothing."""
    try:
        return test(sample)
    except Exception:  # kernels are other people's code: they may raise anything
        return None
