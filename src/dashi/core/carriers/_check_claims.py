"""What can be claimed of a kernel on the carrier, and how one sample refutes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from dashi.core.carriers.carrier import Field
from dashi.core.carriers.check_samples import FieldSample, Symmetry
from dashi.types import HostArray

Claim = Literal[
    "ternary",
    "deterministic",
    "same everywhere",
    "no support creation",
    "keeps signs",
    "idempotent",
    "contractive",
    "admissible",
]
CLAIMS: Final[tuple[Claim, ...]] = get_args(Claim)
Operation = Callable[..., Any]
"""A kernel K: called with a field, and further arrays where it takes some; gives a field."""
DefectOf = Callable[[Field], float]
"""A defect D of one field."""
REPEATS: Final = 3


@dataclass(frozen=True, eq=False)
class Violation:
    """Why a claim does not hold for one sample."""

    what: str
    sample: FieldSample
    found: HostArray
    """What the kernel gave."""
    expected: Field | None = None
    """What it would have given if the claim held, where that is one field."""
    site: tuple[int, ...] | None = None
    """The first site where that shows."""
    symmetry: str = ""


Test = Callable[[FieldSample], Violation | None]


class NotAFieldError(Exception):
    """The kernel gave something that is no field of the same shape: only the claim "ternary" can say so."""

    def __init__(self, what: str, found: HostArray, site: tuple[int, ...] | None = None) -> None:
        self.what, self.found, self.site = what, found, site
        super().__init__(what)


def apply(kernel: Operation, sample: FieldSample) -> Field:
    """K of a sample. The kernel gets copies, so that it cannot change what it is judged by."""
    result = np.asarray(kernel(sample.field.copy(), *(x.copy() for x in sample.extras)))
    if result.shape != sample.field.shape:
        raise NotAFieldError(f"a field of shape {sample.field.shape} became one of shape {result.shape}", result)
    if result.dtype.kind not in "biu":
        raise NotAFieldError(f"the result holds {result.dtype}, not trits", result)
    wide = result.astype(np.int64)
    site = _first(np.abs(wide) > 1)
    if site is not None:
        raise NotAFieldError(f"site {_at(site)} became {wide[site]}", wide, site)
    return result.astype(np.int8)


def ternary(kernel: Operation) -> Test:
    """K maps fields to fields of the same shape."""

    def test(sample: FieldSample) -> Violation | None:
        try:
            apply(kernel, sample)
        except NotAFieldError as error:
            return Violation(error.what, sample, error.found, site=error.site)
        return None

    return test


def deterministic(kernel: Operation) -> Test:
    """K gives the same bits every time."""

    def test(sample: FieldSample) -> Violation | None:
        first = apply(kernel, sample)
        for time in range(1, REPEATS):
            again = apply(kernel, sample)
            site = _first(again != first)
            if site is not None:
                values = f"{_trit(first, site)} the first time and {_trit(again, site)} in run {time + 1}"
                what = f"site {_at(site)} is {values}"
                return Violation(what, sample, again, first, site)
        return None

    return test


def same_everywhere(kernel: Operation, other: Operation) -> Test:
    """K gives the same bits in both places."""

    def test(sample: FieldSample) -> Violation | None:
        here, there = apply(kernel, sample), apply(other, sample)
        site = _first(here != there)
        if site is None:
            return None
        return Violation(
            f"site {_at(site)} is {_trit(here, site)} here and {_trit(there, site)} there", sample, there, here, site
        )

    return test


def no_support_creation(kernel: Operation) -> Test:
    """K(s) is 0 wherever s is."""

    def test(sample: FieldSample) -> Violation | None:
        result = apply(kernel, sample)
        site = _first((result != 0) & (sample.field == 0))
        if site is None:
            return None
        allowed = np.where(sample.field == 0, 0, result).astype(np.int8)
        return Violation(
            f"site {_at(site)} has no support and becomes {_trit(result, site)}", sample, result, allowed, site
        )

    return test


def keeps_signs(kernel: Operation) -> Test:
    """K(s) has the sign of s wherever both have support: a site may become 0, never its opposite."""

    def test(sample: FieldSample) -> Violation | None:
        result = apply(kernel, sample)
        turned = result * sample.field < 0
        site = _first(turned)
        if site is None:
            return None
        allowed = np.where(turned, 0, result).astype(np.int8)
        return Violation(
            f"site {_at(site)} is {_trit(sample.field, site)} and becomes {_trit(result, site)}",
            sample,
            result,
            allowed,
            site,
        )

    return test


def idempotent(kernel: Operation) -> Test:
    """K(K(s)) = K(s)."""

    def test(sample: FieldSample) -> Violation | None:
        once = apply(kernel, sample)
        twice = apply(kernel, sample.with_field(once))
        site = _first(twice != once)
        if site is None:
            return None
        what = f"site {_at(site)} is {_trit(once, site)} after one application and {_trit(twice, site)} after two"
        return Violation(what, sample, twice, once, site)

    return test


def contractive(kernel: Operation, defect: DefectOf, depth: int) -> Test:
    """D(s) >= D(K(s)) >= D(K(K(s))) >= ..., so many times."""

    def test(sample: FieldSample) -> Violation | None:
        field, before = sample.field, float(defect(sample.field.copy()))
        for time in range(1, depth + 1):
            field = apply(kernel, sample.with_field(field))
            after = float(defect(field.copy()))
            if not after <= before:
                return Violation(f"the defect rises from {before:g} to {after:g} in application {time}", sample, field)
            before = after
        return None

    return test


def admissible(kernel: Operation, symmetry: Symmetry) -> Test:
    """K commutes with the symmetry: K(g s) = g K(s)."""

    def test(sample: FieldSample) -> Violation | None:
        result = apply(kernel, symmetry.of(sample))
        expected = symmetry.of(sample.with_field(apply(kernel, sample))).field
        if result.shape == expected.shape:
            site = _first(result != expected)
            if site is None:
                return None
            values = f"{_trit(result, site)} instead of {_trit(expected, site)}"
            what = f"after the {symmetry.name}, site {_at(site)} is {values}"
        else:
            site, what = None, f"after the {symmetry.name}, the shape is {result.shape} instead of {expected.shape}"
        return Violation(what, sample, result, expected, site, symmetry.name)

    return test


def _first(wrong: Any) -> tuple[int, ...] | None:
    """The first site that is marked."""
    places = np.flatnonzero(wrong)
    if not places.size:
        return None
    found: Any = np.unravel_index(int(places[0]), wrong.shape)
    return tuple(int(i) for i in found)


def _trit(field: Field, site: tuple[int, ...]) -> str:
    return ("0", "+1", "-1")[int(field[site])]


def _at(site: tuple[int, ...]) -> str:
    return str(site[0]) if len(site) == 1 else str(site)
