"""Seeds as requests have them: tuples, or ranges that may be long, since what is too long is refused before it is
counted out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, cast

from dashi.errors import InputError


def frozen_seeds(name: str, seeds: Any) -> Sequence[int]:
    """The seeds of the parameter `name` as something that does not change; a number is one seed."""
    if isinstance(seeds, range):
        return seeds
    try:
        return tuple(map(index, cast("Iterable[Any]", seeds))) if isinstance(seeds, Iterable) else (index(seeds),)
    except TypeError as error:
        raise InputError(f"`{name}=` is {seeds!r:.80}.", "pass whole numbers, such as [1, 2] or range(4).") from error


def seed_count(seeds: Sequence[int]) -> int:
    """How many seeds there are; `len` goes no further than a machine word."""
    return max(0, -((seeds.start - seeds.stop) // seeds.step)) if isinstance(seeds, range) else len(seeds)


def require_seeds(argument: str, seeds: Sequence[int], least: int = 1) -> None:
    """Refuses too few seeds, and one that is named twice."""
    twice = not isinstance(seeds, range) and len(set(seeds)) < len(seeds)
    if seed_count(seeds) < least or twice:
        raise InputError(f"`{argument}=` is {list(seeds)}.", "name at least one seed, and none twice.")


def follow_each_other(seeds: Sequence[int]) -> bool:
    """Whether each seed is the one before it plus 1."""
    if isinstance(seeds, range):
        return seeds.step == 1
    return tuple(seeds) == tuple(range(seeds[0], seeds[0] + len(seeds)))
