"""`dashi filament track`: the genealogy of the vortices of a record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dashi.cli import flow_options as o
from dashi.cli.options import Json, Overwrite, example
from dashi.cli.output import print_facts, print_json
from dashi.cli.progress import Shown

Source = Annotated[
    Path, typer.Argument(metavar="DATA", help="The folder of a run, a NetCDF file, or a Zarr store of vorticity.")
]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="The folder for threads and their graph.")]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", metavar="W", help="The weakest vorticity of a vortex. Default: --level times the rms."),
]
Level = Annotated[float, typer.Option("--level", help="That threshold in root mean squares of the record.")]
Depth = Annotated[
    float, typer.Option("--depth", help="Two peaks are one vortex where the dip between them is shallower than this.")
]
MinPoints = Annotated[int, typer.Option("--min-points", help="Smaller regions are no vortices.")]
Quantum = Annotated[
    float | None, typer.Option("--quantum", metavar="G", help="Circulation is counted in wholes of it.")
]
Gate = Annotated[float, typer.Option("--gate", help="A vortex moves by at most so many of its radii between frames.")]
Member = Annotated[int, typer.Option("--member", help="Which member of an ensemble.")]
Motion = Annotated[bool, typer.Option("--motion/--no-motion", help="Expect a vortex to move on as it moved last.")]
Periodic = Annotated[bool, typer.Option("--periodic", help="The box is periodic for certain.")]


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi filament`."""
    line = (
        "dashi flow simulate --n 64 --steps 200 --frame-every 20 --out runs/eddies && "
        "dashi filament track runs/eddies --out runs/threads"
    )
    app.command("track", epilog=example(line), short_help="Follow the vortices of a record.")(track)


def track(
    source: Source,
    out: Out = None,
    threshold: Threshold = None,
    level: Level = 1.0,
    depth: Depth = 0.15,
    min_points: MinPoints = 4,
    quantum: Quantum = None,
    gate: Gate = 2.5,
    motion: Motion = True,
    member: Member = 0,
    variable: o.Variable = None,
    dims: o.Dims = None,
    periodic: Periodic = False,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Find the vortices of every frame, and follow them: what goes on, splits, merges, is born and dies.

    Prints how many threads there are, and how they begin and end: `first` and `last` are those that the record begins
    and ends with, which were neither born nor died. `unattributed` is the share of circulation that vortices exchanged
    with their surroundings. With --out a folder gets threads.npz, threads.graphml and threads.json.
    """
    from dashi import lab
    from dashi.filament.threads import MatchWeights, TrackSettings

    settings = TrackSettings(
        threshold=threshold, level=level, depth=depth, min_points=min_points, quantum=quantum, motion=motion,
        weights=MatchWeights(gate=gate),
    )  # fmt: skip
    request = lab.TrackRequest(
        source=source, variables=tuple(variable or ()), dims=o.axis_names(dims or ()), member=member,
        periodic=periodic, settings=settings,
    )  # fmt: skip
    result = lab.track_threads(request, out=out, overwrite=overwrite, events=Shown())
    if json:
        print_json({**result.document, "folder": None if result.folder is None else str(result.folder)})
        return
    graph, counts = result.genealogy, result.genealogy.counts
    print_facts(
        {
            "frames": f"{len(graph.times)} of {graph.n} x {graph.n}, t = {graph.times[0]:g} to {graph.times[-1]:g}",
            "vortices": f"{len(graph.vertices)} in all, above a vorticity of {graph.threshold:.4g}",
            "threads": str(counts["threads"]),
            "begin": ", ".join(f"{counts[name]} {name}" for name in ("first", "births", "splits")),
            "end": ", ".join(f"{counts[name]} {name}" for name in ("last", "deaths", "merges")),
            "unattributed": f"{result.unattributed:.2%} of the circulation, exchanged with the surroundings",
            "digest": graph.digest,
            "folder": str(result.folder or ""),
        }
    )
