"""`dashi demo`: the main job, from nothing to a report that can be opened."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dashi.cli.options import Json, OneDevice, Overwrite, example, whole_within
from dashi.cli.output import print_json, print_rows
from dashi.cli.progress import Shown
from dashi.errors import InputError

if TYPE_CHECKING:
    from dashi.lab.demos.main_job import DemoResult
    from dashi.lab.demos.wave import WaveResult

_OUT: Final = Path("runs/demo")
_FORMS: Final = "runs/demo, runs/demo-quick with --quick, runs/demo-rollout with --rollout"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("demo", epilog=example("dashi demo --quick --device cpu"))(demo)


def demo(
    device: OneDevice = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help=f"The folder to write, replaced at the end if it holds the same demo. Default: {_FORMS}."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A smaller flow: seconds, to see that all works.")] = False,
    opened: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    rollout: Annotated[
        bool, typer.Option("--rollout", help="Only the rollout of z' = z A, its bits checked against NumPy.")
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps",
            min=1,
            max=10_000_000,
            parser=whole_within(1, 10_000_000),
            help="Steps of --rollout (default 5000).",
        ),
    ] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Make a turbulent flow, learn a proxy of it, roll it out alone, score it on unseen seeds, and write a report.

    Two seeds of a forced flow of 64 x 64 points train models of 196 numbers, one chooses, and two that nothing has
    seen judge. The rollout is certified, and NumPy repeats its first steps: exit code 1 if a hash differs. Writes
    report.html (it needs nothing else), the fields, the scores, the model, a certificate for `dashi verify`, and a
    trace for Perfetto. Every stage is kept as soon as it is finished, in OUT-unfinished, which becomes OUT at the end:
    Ctrl-C loses nothing and replaces nothing. Without Vulkan it runs on NumPy, and says so.
    """
    if rollout and (quick or opened):
        raise InputError("--rollout makes no report.", "leave --quick and --open away.")
    if steps is not None and not rollout:
        raise InputError("--steps goes with --rollout.", "add --rollout, or leave --steps away.")
    form = "-rollout" if rollout else "-quick" if quick else ""
    where: dict[str, Any] = {"device": device, "out": out or Path(f"{_OUT}{form}"), "overwrite": overwrite}
    same = _wave(steps, where, json) if rollout else _main_job(quick, where, opened, json)
    if not same:
        raise typer.Exit(1)


def _wave(steps: int | None, where: dict[str, Any], as_json: bool) -> bool:
    from dashi.lab._job import until_interrupted
    from dashi.lab.demos import wave

    request = wave.WaveRequest(steps=steps or wave.STEPS)
    result, stopped = until_interrupted(lambda: wave.demo_wave(request, **where, events=Shown()))
    print_wave(result, as_json)
    if stopped:
        raise KeyboardInterrupt
    return result.same


def _main_job(quick: bool, where: dict[str, Any], opened: bool, as_json: bool) -> bool:
    from dashi.lab._job import until_interrupted
    from dashi.lab.demos import main_job, setting

    request = main_job.DemoRequest(setting=setting.QUICK if quick else setting.FULL)
    result, stopped = until_interrupted(lambda: main_job.demo(request, **where, events=Shown()))
    print_demo(result, as_json)
    if opened and result.report:
        webbrowser.open(result.report.absolute().as_uri())
    if stopped:
        raise KeyboardInterrupt
    return result.same


def print_demo(result: DemoResult, as_json: bool) -> None:
    """The main job: a table for people, or one document."""
    report = str(result.report) if result.report else None
    summary_document = {"folder": str(result.folder), "report": report, "total_seconds": result.seconds}
    print_summary({**result.summary, **summary_document}, as_json)


def print_summary(summary: dict[str, Any], as_json: bool) -> None:
    """A table for people, or one document."""
    if as_json:
        print_json(summary)
        return
    rows = [("device", _device_text(summary)), *([("model", summary["model"])] if summary["model"] else [])]
    for number, (name, value) in enumerate(summary["horizons"].items()):
        bound = ">=" if name in summary["at_least"] else "  "
        rows.append(("" if number else "horizon", f"{bound} {value:.2f}  {name}"))
    if summary["hash"]:
        rows.append(("hash", summary["hash"]))
    whole, scored = f"{summary['total_seconds']:.0f} s", f"{summary['seconds']:.0f} s"
    drawn = f", {scored} from the seeds to the scores, the rest to draw the report" if summary["report"] else ""
    rows += [("verified", summary["verified"]), ("time", whole + drawn), ("folder", _folder_text(summary))]
    if summary["report"]:
        rows.append(("report", summary["report"]))
    print_rows(("", ""), rows)


def print_wave(result: WaveResult, as_json: bool) -> None:
    """The rollout of a wave: a table for people, or one document."""
    summary: dict[str, Any] = {**result.summary, "folder": str(result.folder)}
    if as_json:
        print_json(summary)
        return
    rows = {
        "device": _device_text(summary),
        "steps": f"{summary['steps']} of z' = z A, dimension {summary['dimension']}, fp32",
        "time": f"{summary['us_per_step']:.2f} us per step"
        + (f" (NumPy {summary['numpy_us_per_step']:.2f})" if summary["numpy_us_per_step"] else ""),
        "hash": summary["hash"] or "none",
        "verified": summary["verified"],
        "folder": _folder_text(summary),
    }
    print_rows(("", ""), rows.items())


def _device_text(summary: dict[str, Any]) -> str:
    device = summary["device"]
    return f"{device['name']} ({device['spec']}, {device['type']})"


def _folder_text(summary: dict[str, Any]) -> str:
    return f"{summary['folder']} ({len(summary['files'])} files)"
