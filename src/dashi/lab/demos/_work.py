"""The main job under way."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dashi.core.metrics._document import Stages
from dashi.core.metrics._placement import Placement
from dashi.core.traces.trace import Trace
from dashi.lab.demos._results import Results
from dashi.lab.demos.setting import DemoSetting
from dashi.lab.events import Advance, Events
from dashi.runtime.device import Device

STAGES: Final = ("simulate", "fit", "roll out", "decode", "score", "check")


@dataclass(eq=False)
class Work:
    """What the main job does, where, and what it has finished so far; owned by the job, filled stage by stage."""

    setting: DemoSetting
    out: Path
    """The place as the caller named it."""
    folder: Path
    """The folder that is filled, and takes its place at the end."""
    placed: Placement
    clock: Stages
    events: Events
    results: Results = field(default_factory=Results)
    trace: Trace = field(default_factory=Trace)
    finished: list[str] = field(default_factory=list[str])
    """Stages that are."""
    summary: dict[str, Any] = field(default_factory=dict[str, Any])
    """As it was kept last."""
    began: float = field(default_factory=time.perf_counter)

    @property
    def device(self) -> Device:
        return self.placed.device

    @property
    def seconds(self) -> float:
        """Since the job began."""
        return round(time.perf_counter() - self.began, 1)

    @property
    def missing(self) -> tuple[str, ...]:
        """Stages that are not finished."""
        return tuple(name for name in STAGES if name not in self.finished)

    @contextmanager
    def stage(self, name: str, total: int, unit: str, clock: str = "") -> Generator[Advance]:
        """A stage: told, traced, with progress, and timed under a name of the metrics where they have one."""
        began = time.perf_counter()
        timed = self.clock.time(clock) if clock else nullcontext()
        with timed, self.trace.stage(name), self.events.progress(name, total, unit) as advance:
            yield advance
        self.events.remark(f"{name}: {time.perf_counter() - began:.1f} s")
