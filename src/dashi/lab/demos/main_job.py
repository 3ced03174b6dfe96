"""The main job: a turbulent flow, a proxy that learns it, a certified rollout of the proxy, scores, and a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashi.core.metrics._placement import Placement
from dashi.core.traces.queue import watch
from dashi.errors import Interrupted
from dashi.io._run_folder import REPORT
from dashi.lab._arguments import require_request
from dashi.lab._job import AnyPath, Request, interrupted_with, require_results
from dashi.lab.demos._folder import begin_demo
from dashi.lab.demos._leaving import draw, keep
from dashi.lab.demos._results import Results
from dashi.lab.demos._stages import run_stages
from dashi.lab.demos._work import STAGES, Work
from dashi.lab.demos.setting import FULL, DemoSetting
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_facts
from dashi.runtime.device import Device


@dataclass(frozen=True, kw_only=True)
class DemoRequest(Request):
    """The main job: `FULL`, which takes a minute or two, or `QUICK`, which takes seconds. There is nothing to resume:
    what was finished stays in OUT-unfinished, and the same request begins anew."""

    setting: DemoSetting = FULL


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the main job leaves."""

    results: Results
    """Windows, models, the run and the scores; of a job that was stopped, as far as it came."""
    summary: Mapping[str, Any]
    """What the folder keeps as summary.json."""
    folder: Path
    report: Path | None
    """The page, where it could be drawn."""
    seconds: float
    """From the beginning to the end, the report included."""

    @property
    def same(self) -> bool:
        """Whether NumPy gave no other hash than the device, as far as it repeated the rollout."""
        return self.results.differs is None

    def __repr__(self) -> str:
        verdict = "same hashes on NumPy" if self.same else "NumPy has OTHER hashes"
        return f"<DemoResult: {self.folder}, {self.seconds:.0f} s, {verdict}>"

    def _repr_html_(self) -> str:
        horizons: Mapping[str, Any] = self.summary.get("horizons") or {}
        facts = [("folder", self.folder), ("report", self.report or "none"), ("seconds", f"{self.seconds:.1f}")]
        facts += [("verified", self.results.checked)] if self.results.checked else []
        facts += [(f"time of {name} until correlation falls below 0.5", time) for name, time in horizons.items()]
        return html_facts("Main job", facts)


@interrupted_with(DemoResult)
def demo(
    request: DemoRequest | None = None,
    *,
    device: str | Device = "auto",
    out: AnyPath = "runs/demo",
    overwrite: bool = False,
    events: Events = SILENT,
) -> DemoResult:
    """Makes a flow, fits models to it, rolls one out alone, decodes, scores on seeds that nothing has seen, lets NumPy
    repeat the first steps, and draws the report. What will be refused is refused before the first stage.

    Every stage is kept as soon as it is finished, in OUT-unfinished, which becomes OUT at the end: Ctrl-C raises
    `Interrupted`, loses nothing and replaces nothing.
    """
    asked = request or DemoRequest()
    require_request(asked, DemoRequest)
    setting = asked.setting
    begun = begin_demo(
        asked, {"form": setting.form}, setting.words, device=device, out=out, overwrite=overwrite, events=events
    )
    with begun.job.place() as placed:
        require_results(placed)
        notes = _say_where(placed, events)
        with begun.open_folder(placed) as folder:
            work = Work(setting, Path(out), folder, placed, begun.job.stages, events, Results(notes=notes))
            try:
                with watch(placed.device, work.trace):
                    run_stages(work)
                keep(work, STAGES[-1])  # again: now the trace has all that the queue did
                draw(work, begun.place)
            except KeyboardInterrupt as stop:
                raise Interrupted(_until_stopped(work)) from stop
    return _result(work, begun.place)


def _say_where(placed: Placement, events: Events) -> list[str]:
    """Tells where the job runs; notes for its report."""
    info = placed.device.info
    events.remark(f"the main job on {info.name} ({info.spec}, {info.type})")
    if info.type != "reference":
        return []
    why = "as asked" if placed.requested == "cpu" else "since there is no Vulkan device here"
    note = f"All ran on NumPy, {why}, with its own transforms where they are faster."
    events.remark(note if placed.requested == "cpu" else f"{note} `dashi doctor` says how to get one.")
    return [note]


def _until_stopped(work: Work) -> DemoResult | None:
    """Keeps what the stage that was stopped has finished, and draws what there is, unless that was stopped itself;
    None where nothing was finished."""
    if not work.results.windows:
        return None
    if work.missing:
        keep(work, work.missing[0])
        draw(work, work.folder)
    work.summary["stopped"] = True
    return _result(work, work.folder)


def _result(work: Work, place: Path) -> DemoResult:
    report = place / REPORT if REPORT in work.summary["files"] else None
    return DemoResult(work.results, work.summary, place, report, work.seconds)
