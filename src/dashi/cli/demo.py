"""`dashi demo`: the main job, from nothing to a report that can be opened."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from dashi.cli.options import Json, OneDevice, Overwrite, example, whole_within
from dashi.cli.progress import Shown
from dashi.errors import InputError

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
    from dashi.cli.demo_report import print_wave
    from dashi.lab._job import until_interrupted
    from dashi.lab.demos import wave

    request = wave.WaveRequest(steps=steps or wave.STEPS)
    result, stopped = until_interrupted(lambda: wave.demo_wave(request, **where, events=Shown()))
    print_wave(result, as_json)
    if stopped:
        raise KeyboardInterrupt
    return result.same


def _main_job(quick: bool, where: dict[str, Any], opened: bool, as_json: bool) -> bool:
    from dashi.cli.demo_report import print_demo
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
