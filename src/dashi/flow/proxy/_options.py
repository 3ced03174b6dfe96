"""The options of models: declared by each, so that what is odd is refused before any work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from dashi.errors import InputError


@dataclass(frozen=True)
class Number:
    """A finite number from `least` to `most`."""

    least: float = -math.inf
    most: float = math.inf
    whole: bool = False

    def fits(self, value: Any) -> bool:
        """Whether a value is one."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        return self.least <= number <= self.most and math.isfinite(number)

    def __str__(self) -> str:
        kind = "whole" if self.whole else "finite"
        if math.isfinite(self.most):
            return f"a {kind} number from {self.least:g} to {self.most:g}"
        return f"a {kind} number" + (f", {self.least:g} or more" if math.isfinite(self.least) else "")


@dataclass(frozen=True)
class Word:
    """One of some words."""

    words: tuple[str, ...]

    def fits(self, value: Any) -> bool:
        """Whether a value is one."""
        return value in self.words

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


Option = Number | Word


def with_current_names(options: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Options under their current names; `renamed` maps former names to these. Raises InputError where one option is
    there under both."""
    for former, name in renamed.items():
        if former in options and name in options:
            raise InputError(f"the option {name} is there twice: {former} is its former name.", f"leave {former} away.")
    return {renamed.get(name, name): value for name, value in options.items()}


def require_options(model: str, options: Mapping[str, Any], takes: Mapping[str, Option]) -> None:
    """Refuses options that a model does not have, and values that they cannot have: a word misspelt must not pass for a
    choice made."""
    for name, value in options.items():
        if name not in takes:
            raise InputError(
                f"the model {model} has no option {name!r}.",
                f"use {', '.join(takes)}." if takes else "leave it away: the model has none.",
            )
        if not takes[name].fits(value):
            raise InputError(f"the option {name} of the model {model} is {value!r}.", f"use {takes[name]}.")
