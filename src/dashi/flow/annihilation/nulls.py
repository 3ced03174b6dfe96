"""Nulls: what fields look like that have some properties of the data and are random otherwise.

Surrogates are made on the device. Surrogate m of field f with a seed s depends on (s, f, m) alone, by a counted
generator, so that it is the same on every device, in any batch and on any day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class Null:
    """What surrogates have in common with the data, and what they do not."""

    preserves: str
    destroys: str
    exact: bool
    """Whether data of this kind and its surrogates can be exchanged, so that false alarms are as rare as stated."""


NULLS: Final[Mapping[str, Null]] = MappingProxyType(
    {
        "phase": Null("the power of every mode", "all relations between modes", exact=True),
        "iaaft": Null(
            "the distribution of values; the power of every mode, nearly", "all other relations between modes",
            exact=False,
        ),
        "shift": Null(
            "every octave as it is, with its own shape and flatness", "where octaves lie on one another", exact=True
        ),
        "shuffle": Null("the distribution of values", "everything in space, the spectrum too", exact=True),
        "white": Null("nothing", "everything: independent Gaussian modes of equal power", exact=False),
        "power": Null("nothing", "everything: independent Gaussian modes, power as k^-slope", exact=False),
    }
)  # fmt: skip
"""Nulls by name."""
