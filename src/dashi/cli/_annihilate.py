"""`dashi flow annihilate`: at which scale coherent signs end, measured against chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli.options import Json, OneDevice, RunType, example
from dashi.cli.output import print_facts, print_json, print_rows, remark
from dashi.cli.progress import Shown
from dashi.errors import InputError

if TYPE_CHECKING:
    from dashi.lab.annihilation_studies import AnnihilationStudy
    from dashi.lab.annihilations import MeasuredFile

Source = Annotated[
    Path | None,
    typer.Argument(metavar="FIELD", help="Square periodic vorticity, (n, n) or (fields, n, n): .npy or .npz."),
]
Null = Annotated[
    str,
    typer.Option("--null", metavar="NULL", help="What surrogates are: phase, iaaft, shift, shuffle, white or power."),
]
Surrogates = Annotated[int, typer.Option("--surrogates", help="Surrogates of every field; 5 % needs 19 or more.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the surrogates and of the bootstrap.")]
Estimator = Annotated[
    str,
    typer.Option(
        "--estimator", metavar="NAME", help="What decides: persistence, information, concentration or flatness."
    ),
]
Bands = Annotated[str, typer.Option("--bands", metavar="FAMILY", help="shannon (apart) or gaussian (overlapping).")]
Gauge = Annotated[
    str,
    typer.Option("--gauge", metavar="GAUGE", help="Of signs: vorticity, circulation, axis, streamfunction or strain."),
]
Tau = Annotated[float, typer.Option("--tau", help="A point is active beyond so many rms of its band.")]
Rounds = Annotated[int, typer.Option("--rounds", help="Rounds of the null iaaft.")]
Slope = Annotated[float, typer.Option("--slope", help="Of the null power: |w|^2 goes as k^-slope.")]
Study = Annotated[
    Path | None, typer.Option("--study", metavar="STUDY.yaml", help="Make a whole study, as the file says.")
]
Filaments = Annotated[
    Path | None, typer.Option("--filaments", metavar="FILE.npz", help="Trace filaments through the scales to a file.")
]
Out = Annotated[Path | None, typer.Option("--out", help="The folder of the study.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the study in --out.")]
DType = Annotated[RunType, typer.Option("--dtype", help="The element type.")]


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi flow`."""
    line, summary = "dashi flow annihilate omega.npy --null shift --surrogates 19", "Measure where coherent signs end."
    app.command("annihilate", epilog=example(line), short_help=summary)(annihilate)


def annihilate(
    source: Source = None,
    null: Null = "phase",
    surrogates: Surrogates = 199,
    seed: Seed = 0,
    estimator: Estimator = "persistence",
    bands: Bands = "shannon",
    gauge: Gauge = "vorticity",
    tau: Tau = 1.5,
    rounds: Rounds = 20,
    slope: Slope = 1.0,
    dtype: DType = RunType.float32,
    filaments: Filaments = None,
    study: Study = None,
    out: Out = None,
    resume: Resume = False,
    device: OneDevice = "auto",
    json: Json = False,
) -> None:
    """Measure at which scale the coherent signs of vorticity end: scale by scale, against surrogates.

    Each octave's active points are compared with the next coarser octave. K is the number of octaves from the
    integral scale to the first one whose statistic is not above that of the surrogates (5 %, over all octaves
    together). All statistics are measured at once; --estimator chooses which decides. Every device gives the same
    bits.

    With --study a whole study is made instead of a file being measured: flows are solved, and every cell of the plan
    is measured and stored in --out; with --resume one that was stopped goes on. Exit code 3 on errors.
    """
    from dashi import lab
    from dashi.flow.annihilation import AnnihilationSettings

    if study is not None:
        if source is not None or out is None:
            raise InputError("a study makes its own fields, in a folder.", "pass --study and --out alone.")
        asked = lab.AnnihilationStudyRequest(study=study, out=out, resume=resume)
        print_study(lab.study_annihilation(asked, device=device, events=Shown()), as_json=json)
        return
    if source is None or out is not None or resume:
        raise InputError("a field is measured, or a study made.", "name a file, or pass --study and --out.")
    settings = AnnihilationSettings(
        null=null, surrogates=surrogates, seed=seed, estimator=estimator, bands=bands, gauge=gauge, tau=tau,
        rounds=rounds, slope=slope, dtype=str(dtype),
    )  # fmt: skip
    request = lab.AnnihilateRequest(source=source, settings=settings, filaments=filaments)
    measured = lab.annihilate(request, device=device, events=Shown())
    if json:
        print_json(measured.as_json())
        return
    print_measured(measured)


def print_study(study: AnnihilationStudy, *, as_json: bool) -> None:
    """The verdict of a study, claim by claim; with --json all tables."""
    if as_json:
        print_json(study.as_json())
        return
    print_rows(("claim", "status", "by"), [(j.claim, j.status, j.evidence) for j in study.verdict])
    remark(f"all tables: {study.folder / 'results.md'}")


def print_measured(measured: MeasuredFile) -> None:
    """The bands of the chosen statistic, the depth by each, and the verdict."""
    from dashi.lab.annihilations import HEADINGS, band_rows

    result = measured.annihilation
    print_rows(HEADINGS, band_rows(result))
    rows = [
        (
            name, f"{'>= ' if r.depth.censored else ''}{r.depth.octaves:.2f}", f"{r.depth.low:.2f}",
            f"{r.depth.high:.2f}", ", ".join(f"{r.bands[j].k:.3g}" for j in r.depth.second_crossing),
        )
        for name, r in result.results.items()
    ]  # fmt: skip
    print_rows(("statistic", "K in octaves", "low", "high", "above again at k"), rows)
    if result.filaments is not None:
        from dashi.flow.annihilation.trace import survival_curve

        curve = [
            (str(c.age), str(c.at_risk), str(c.deaths), f"{c.survival:.3f}", f"{c.low:.3f}", f"{c.high:.3f}")
            for c in survival_curve(result.filaments)
        ]
        print_rows(("scales lived", "filaments", "deaths", "survival", "low", "high"), curve)
    print_facts(
        {
            "fields": f"{result.fields} of {result.n} x {result.n}, integral scale k = {result.depth.integral_k:.3g}",
            "null": f"{result.settings.null}, {result.settings.surrogates} surrogates of each",
            "K_grid": f"{result.grid_levels} levels of the grid (the old count)",
            "surviving": ", ".join(f"{s.fraction:.0%} at k = {s.k:.3g}" for s in result.survival),
            "device": f"{measured.device.name} ({measured.device.spec})",
            "hash": result.hash,
            "verdict": result.verdict,
        }
    )
