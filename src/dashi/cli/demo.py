"""`dashi demo`: the main job, from nothing to a report that can be opened."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from dashi.cli.options import Json, OneDevice, Overwrite, example, whole_within
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
    if rollout:
        from dashi.cli.demo_wave import STEPS, roll_wave

        if quick or opened:
            raise InputError("--rollout makes no report.", "leave --quick and --open away.")
        roll_wave(device, out or Path(f"{_OUT}-rollout"), steps or STEPS, json, overwrite=overwrite)
        return
    if steps is not None:
        raise InputError("--steps goes with --rollout.", "add --rollout, or leave --steps away.")
    from dashi.cli.demo_job import Job
    from dashi.cli.demo_setting import FULL, QUICK

    place = out or (Path(f"{_OUT}-quick") if quick else _OUT)
    Job(QUICK if quick else FULL, device, place, open_report=opened, json=json, overwrite=overwrite).do()
