"""`dashi bench identify`: are known operators found again from partial observation?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.progress import progress

if TYPE_CHECKING:
    from dashi.bench.identify.study import Outcome, Setting

SEEDS: Final = 5
OBSERVED: Final = (1.0, 0.3)
NOISE: Final = (0.0, 0.01)
_MEANING: Final = (
    "dictionary knows candidate terms, the true ones among them, but no coefficient; rbf and linear know only that the "
    "rule is local. Errors are relative; one-step errors of 1 are persistence's."
)


class Which(Enum):
    """Which operators to find again."""

    tree = "tree"
    reaction = "reaction"


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi bench`."""
    app.command("identify", epilog=example("dashi bench identify --system tree --observed 0.3 --noise 0 --seeds 1"))(
        identify
    )


def identify(
    device: OneDevice = "auto",
    system: Annotated[
        list[Which] | None, typer.Option("--system", metavar="tree|reaction", help="Repeatable. Default: all.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1000, help="Draws of starts, sites and noise.")] = SEEDS,
    observed: Annotated[
        list[float] | None,
        typer.Option("--observed", metavar="FRACTION", help="Of the sites; several times; default: 1 and 0.3."),
    ] = None,
    noise: Annotated[
        list[float] | None,
        typer.Option("--noise", metavar="PART", help="Of the data's deviation; several times; default: 0 and 0.01."),
    ] = None,
    json: Json = False,
) -> None:
    """Find known operators again from partial observation, against a learner by radial basis functions.

    Band energies on a tree with cross-band coupling, and a reaction with diffusion, are observed at some of their
    sites, with noise. Ridge fits on the device make rules of what was seen: of a dictionary of terms, of Gaussians,
    and linear. They are compared with the truth on states and starts that no learner saw. Ctrl-C keeps what was
    finished.
    """
    import dashi
    from dashi.bench.identify.learners import LEARNERS
    from dashi.bench.identify.study import identify as outcomes_of
    from dashi.bench.identify.study import settings

    asked = settings([w.value for w in system or Which], observed or OBSERVED, noise or NOISE)
    done: list[Outcome] = []
    stopped = False
    start = time.perf_counter()
    with dashi.open(device) as opened:
        info = opened.info
        remark(f"{len(asked)} settings x {seeds} seeds x {len(LEARNERS)} learners on {info.name}")
        try:
            with progress("identifying", len(asked) * seeds * len(LEARNERS), "rules") as advance:
                for outcome in outcomes_of(asked, range(seeds), device=opened):
                    done.append(outcome)
                    advance(1)
        except KeyboardInterrupt:
            stopped = True
    rows = _rows(asked, LEARNERS, done)
    if json:
        about = {"spec": info.spec, "name": info.name, "type": info.type, "driver": info.driver_info or info.driver}
        seconds = round(time.perf_counter() - start, 3)
        print_json(
            {"schema": 1, "device": about, "seeds": seeds, "seconds": seconds, "meaning": _MEANING, "rows": rows}
        )
    else:
        _print(rows)
    if stopped:
        raise KeyboardInterrupt


def _rows(asked: Sequence[Setting], learners: Sequence[str], done: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row for each setting and learner: every measure over the seeds that were finished."""
    from dashi.bench.identify.study import MEASURES, spread

    rows: list[dict[str, Any]] = []
    for setting in asked:
        for learner in learners:
            found = [o for o in done if o.setting == setting and o.learner == learner]
            if not found:
                continue
            row: dict[str, Any] = {**asdict(setting), "learner": learner, "seeds": [o.seed for o in found]}
            row["training_rows"] = [o.rows for o in found]
            row["chosen"] = [o.chosen for o in found]
            for name in MEASURES:
                over = spread([o.measures[name] for o in found])
                row[name] = None if over is None else asdict(over)
            rows.append(row)
    return rows


def _print(rows: Sequence[dict[str, Any]]) -> None:
    table = new_table(
        "system", "observed", "noise", "learner", "operator error", "one step", "rollout", "diverged", "coefficients"
    )
    for row in rows:
        errors = (_text(row[name]) for name in ("operator", "one_step", "rollout"))
        away = f"{row['diverged']['mean']:.0%}"
        place = (row["system"], f"{row['observed']:g}", f"{row['noise']:g}", row["learner"])
        add_row(table, *place, *errors, away, _text(row["coefficients"]))
    print_table(table)
    remark(f"mean +- standard deviation over seeds. {_MEANING}")


def _text(over: dict[str, float] | None) -> str:
    return "" if over is None else f"{over['mean']:.1e} +- {over['deviation']:.0e}"
