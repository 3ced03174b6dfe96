"""Reports: one HTML page that shows everything a run left, and works offline. Needs the extra `plot`.

    dashi.report.write("runs/demo")        # runs/demo/report.html

Each name is imported when it is asked for; inside dashi every module is imported from where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashi._lazy import lazy_names

if TYPE_CHECKING:
    from dashi.report.example import example_report as example_report
    from dashi.report.live import LiveState as LiveState
    from dashi.report.live import LiveView as LiveView
    from dashi.report.live_page import LivePage as LivePage
    from dashi.report.page import Report as Report
    from dashi.report.page import render as render
    from dashi.report.page import write_report as write_report
    from dashi.report.run import read_run as read_run
    from dashi.report.writing import write as write

_MODULES = {
    "example": "example_report",
    "live": "LiveState LiveView",
    "live_page": "LivePage",
    "page": "Report render write_report",
    "run": "read_run",
    "writing": "write",
}

if not TYPE_CHECKING:  # to a type checker a name that is not imported above is a mistake
    __all__, __getattr__, __dir__ = lazy_names(__name__, _MODULES)
