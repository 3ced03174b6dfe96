"""`dashi filament run`: vortex atoms that move."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli.help import DEVICE, FLOW, OUTPUT, RULES, RUN, App
from dashi.cli.options import Json, OneDevice, Overwrite, RunType, example, typed, whole
from dashi.cli.output import print_facts, print_json, remark
from dashi.cli.progress import Shown
from dashi.cli.signals import stopped_lines

if TYPE_CHECKING:
    from dashi.lab.filament_runs import FilamentRun

_EXAMPLE = "dashi filament run --atoms pair.json --dt 0.05 --steps 200 --out runs/pair"


class Domain(StrEnum):
    """Where atoms live."""

    free = "free"
    periodic = "periodic"


class Core(StrEnum):
    """Profiles of vorticity."""

    gaussian = "gaussian"
    algebraic = "algebraic"


class Way(StrEnum):
    """How atoms move."""

    free = "free"
    full = "full"


AtomsFile = Annotated[
    Path,
    typer.Option(
        "--atoms", metavar="FILE", rich_help_panel=FLOW,
        help='JSON: {"atoms": [{"x":, "y":, "gamma":, "radius":}, ...]}; or atoms.json of a run.',
    ),
]  # fmt: skip
InDomain = Annotated[
    Domain | None,
    typer.Option("--domain", rich_help_panel=FLOW, help="Free space, or a periodic box. Default: as FILE says, free."),
]
OfCore = Annotated[
    Core | None, typer.Option("--core", rich_help_panel=FLOW, help="Default: as the file says, gaussian.")
]
Viscosity = Annotated[float, typer.Option("--nu", rich_help_panel=FLOW, help="Kinematic viscosity.")]
TimeStep = Annotated[float, typer.Option("--dt", rich_help_panel=RUN, help="Length of a step.")]
Steps = Annotated[int, typer.Option("--steps", parser=whole, rich_help_panel=RUN, help="How many steps.")]
AnyWay = Annotated[
    Way,
    typer.Option(
        "--way",
        rich_help_panel=RUN,
        help="free: every atom moves with the velocity of all; full: particles of a mesh, remeshed every step.",
    ),
]
MeshSize = Annotated[
    int | None,
    typer.Option("--n", parser=whole, rich_help_panel=RUN, help="Of full: points along a side. Default: by the cores."),
]
Weakest = Annotated[
    int, typer.Option("--weakest", parser=whole, rich_help_panel=RULES, help="Prune atoms of fewer quanta.")
]
Merge = Annotated[
    float,
    typer.Option("--merge", rich_help_panel=RULES, help="Merge atoms nearer than so many core radii, up to 0.9."),
]
Widest = Annotated[
    float, typer.Option("--widest", rich_help_panel=RULES, help="Split cores of larger radius; needs --budget.")
]
Budget = Annotated[int, typer.Option("--budget", parser=whole, rich_help_panel=RULES, help="Atoms at most.")]
AnyType = Annotated[RunType, typer.Option("--dtype", rich_help_panel=RUN, help="Element type of places.")]
HashEvery = Annotated[
    int | None,
    typer.Option("--hash-every", parser=whole, rich_help_panel=RUN, help="Hash the state. Default: ten times."),
]
LookEvery = Annotated[
    int | None,
    typer.Option("--look-every", parser=whole, rich_help_panel=RUN, help="Measure invariants. Default: 100 times."),
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option(
        "--checkpoint-every", parser=whole, rich_help_panel=OUTPUT, help="Keep a checkpoint every so many steps."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FOLDER", rich_help_panel=OUTPUT, help="The run folder: atoms, metrics, certificate, state."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", rich_help_panel=OUTPUT, help="Go on from the checkpoint in the run folder.")
]
Fallback = Annotated[
    bool,
    typer.Option("--allow-fallback", rich_help_panel=DEVICE, help="Take the best device where DEVICE is missing."),
]
RequireGpu = Annotated[
    bool, typer.Option("--require-gpu", rich_help_panel=DEVICE, help="Refuse to run on anything but a GPU.")
]


def register(app: App) -> None:
    """Adds `run` to `dashi filament`."""
    app.command("run", epilog=example(_EXAMPLE), short_help="Move vortex atoms for so many steps.")(run)


def run(
    atoms: AtomsFile,
    dt: TimeStep,
    steps: Steps,
    domain: InDomain = None,
    core: OfCore = None,
    nu: Viscosity = 0.0,
    way: AnyWay = Way.free,
    n: MeshSize = None,
    dtype: AnyType = RunType.float64,
    weakest: Weakest = 0,
    merge: Merge = 0.0,
    widest: Widest = 0.0,
    budget: Budget = 0,
    hash_every: HashEvery = None,
    look_every: LookEvery = None,
    checkpoint_every: CheckpointEvery = None,
    out: Out = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    device: OneDevice = "auto",
    allow_fallback: Fallback = False,
    require_gpu: RequireGpu = False,
    json: Json = False,
) -> None:
    """Move vortex atoms for so many steps of Runge-Kutta, every one with the velocity that all of them induce.

    Circulation is counted in whole quanta. Cores spread where there is viscosity. With rules atoms merge, split and are
    pruned after every step; each change is an event that moves whole quanta, and the books close. Runs have the same
    hashes on every device; with --out they leave a certificate that `dashi verify` repeats anywhere. Exit code 3 on
    errors, 130 if stopped.
    """
    from dashi import lab
    from dashi.filament._normal_form import AtomRules
    from dashi.lab._job import until_interrupted

    rules = AtomRules(weakest=weakest, merge=merge, widest=widest, budget=budget)
    request = lab.FilamentRequest(
        atoms=atoms, steps=steps, dt=dt, nu=nu, domain=domain.value if domain else None,
        core=core.value if core else None, way=way.value, n=n, dtype=dtype.value, rules=rules, hash_every=hash_every,
        look_every=look_every, checkpoint_every=checkpoint_every, allow_fallback=allow_fallback,
        require_gpu=require_gpu, command_line=typed(),
    )  # fmt: skip
    result, stopped = until_interrupted(
        lambda: lab.run_filament(request, device=device, out=out, resume=resume, overwrite=overwrite, events=Shown())
    )
    _print_run(result, as_json=json)
    if stopped:
        remark(*stopped_lines(out, result.run.folder))
        raise KeyboardInterrupt


def _print_run(result: FilamentRun, *, as_json: bool) -> None:
    if as_json:
        print_json(result.document())
        return
    first, last, metrics = result.first, result.last, result.metrics
    rows = {
        "atoms": f"{len(result.atoms)}, {result.ledger.counts or 'no events'}",
        "device": f"{metrics.op_device} ({metrics.op_backend_used}, {metrics.op_device_type})",
        "time": f"{result.run.time:g} after {result.run.steps} steps; {metrics.ns_per_step / 1000:.1f} us per step",
        "circulation": f"{last.circulation:.9g}, {last.quanta - first.quanta} quanta more than at first",
        "impulse": f"{last.impulse_x:.9g}, {last.impulse_y:.9g}; drift "
        f"{last.impulse_x - first.impulse_x:.2g}, {last.impulse_y - first.impulse_y:.2g}",
        "hamiltonian": f"{last.hamiltonian:.9g}, drift {last.hamiltonian - first.hamiltonian:.2g}",
        "hash": result.hash or "none",
        "folder": str(result.run.folder or ""),
    }
    print_facts(rows)
