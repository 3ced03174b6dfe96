"""Units as people write them, far enough to see that lengths and times of a data set belong together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dashi.errors import InputError

Powers = Mapping[str, int]
"""Exponents by base unit; empty for a pure number."""
_WORDS: Final = {
    "meter": "m", "meters": "m", "metre": "m", "metres": "m", "kilometers": "km", "kilometres": "km",
    "second": "s", "seconds": "s", "sec": "s", "hour": "h", "hours": "h", "hr": "h", "day": "d", "days": "d",
    "minute": "min", "minutes": "min",
}  # fmt: skip
_ANGLES: Final = ("deg", "degree", "degrees", "degrees_north", "degrees_east", "rad", "radians")
_TERM: Final = re.compile(r"([A-Za-z_]+)\s*(?:\^|\*\*)?\s*([+-]?\d+)?")


def parse_units(text: str) -> Powers:
    """`m s-1`, `m/s`, `1/T`, `s^-1` and their like as exponents. Raises ValueError for what is not understood."""
    powers: dict[str, int] = {}
    for place, part in enumerate(text.strip().split("/")):
        rest = part.replace("·", " ").replace("*", " ") if "**" not in part else part
        rest = rest.strip().strip("()")
        if rest in ("1", "", "dimensionless"):
            continue
        terms: list[tuple[str, str]] = _TERM.findall(rest)
        if re.sub(r"[\s.]", "", _TERM.sub("", rest)):
            raise ValueError(text)
        for name, power in terms:
            base = _WORDS.get(name, name)
            powers[base] = powers.get(base, 0) + (int(power) if power else 1) * (-1 if place else 1)
    return {name: power for name, power in powers.items() if power}


def require_units(what: str, text: str | None, length: str, time: str, powers: tuple[int, int]) -> None:
    """Refuses units other than length^a time^b; those that are not given are trusted."""
    if text is None or not text.strip():
        return
    expected = {name: power for name, power in zip((length, time), powers, strict=True) if power and name}
    try:
        parsed = parse_units(text)
    except ValueError:
        parsed = None
    if parsed != expected:
        units = " ".join(f"{name}{'' if power == 1 else power}" for name, power in expected.items()) or "1"
        raise InputError(
            f"{what} is in {text!r}, and the coordinates ask for {units!r}.",
            f"convert it to {units!r} and correct its attribute `units`, or the units of the coordinates.",
        )


def base_of(what: str, text: str | None) -> str:
    """The one base unit of a coordinate: `m`, `s`, `L`; empty where none is given."""
    if text is None or not text.strip():
        return ""
    if text.strip() in _ANGLES:
        raise InputError(f"{what} is in {text!r}: angles on a sphere are no periodic box.", "project it to a plane.")
    try:
        parsed = parse_units(text)
    except ValueError:
        parsed = {"?": 0}
    if not parsed:
        return ""
    if [*parsed.values()] != [1]:
        raise InputError(f"{what} is in {text!r}.", "give it one plain unit, such as m, km or s.")
    return next(iter(parsed))
