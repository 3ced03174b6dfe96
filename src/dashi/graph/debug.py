"""Switches for whoever looks for a fault: how pipelines are recorded, and what they say about it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dashi.errors import InputError
from dashi.io._files import write_text
from dashi.runtime.info import Barriers

ENVIRONMENT: Final = "DASHI_GRAPH_DEBUG"
"""The switches of every pipeline whose caller names none: "barriers=all,record_again,check,timing,dump=FILE"."""
_FIX: Final = f"set {ENVIRONMENT} to words of barriers=all, barriers=none, record_again, check, timing, dump=FILE."


@dataclass(frozen=True)
class Debug:
    """All off, unless set.

    - `barriers`: "all" places one before every dispatch; "none" places none, which is for measuring what they cost: the
      results are undefined, and the report says `unsafe`.
    - `record_again`: every run is recorded anew.
    - `check`: every recording is proved to have the barriers that it needs, or a HazardError names two that race.
    - `timing`: each step of a run is timed on the device's clock (`pipeline.step_times()`).
    - `dump`: a file that the schedule is written to, as it was recorded, with its barriers.
    """

    barriers: Barriers = "auto"
    record_again: bool = False
    check: bool = False
    timing: bool = False
    dump: Path | None = None

    def __post_init__(self) -> None:
        if self.barriers not in ("auto", "all", "none"):
            raise InputError(f"barriers cannot be {self.barriers!r}.", 'use "auto", "all" or "none".')

    @property
    def names(self) -> tuple[str, ...]:
        """The switches that are on."""
        words = [] if self.barriers == "auto" else [f"barriers={self.barriers}"]
        words += [name for name in _FLAGS if getattr(self, name)]
        return (*words, f"dump={self.dump}") if self.dump else tuple(words)

    def write(self, schedule: str) -> None:
        """Writes the schedule, where it is wanted."""
        if self.dump is not None:
            write_text(self.dump, schedule + "\n")


_FLAGS: Final = ("record_again", "check", "timing")


def debug_from_environment() -> Debug:
    """The switches in the environment variable DASHI_GRAPH_DEBUG."""
    flags: dict[str, bool] = {}
    barriers, dump = "auto", None
    for word in filter(None, (part.strip() for part in os.environ.get(ENVIRONMENT, "").split(","))):
        name, equals, value = word.partition("=")
        if name in _FLAGS and not equals:
            flags[name] = True
        elif name == "dump" and value:
            dump = Path(value)
        elif name == "barriers" and value in ("auto", "all", "none"):
            barriers = value
        else:
            raise InputError(f"{ENVIRONMENT} holds {word!r}, which is no switch.", _FIX)
    return Debug(barriers, **flags, dump=dump)
