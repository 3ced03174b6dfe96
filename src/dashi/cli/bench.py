"""`dashi bench`: what things cost, measured in one run."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dashi.cli import bench_graph, bench_links, bench_peers
from dashi.cli.bench_peers import Save, bench_device, part_of
from dashi.cli.help import App
from dashi.cli.kernels import Folder, Names, chosen
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import print_json, print_rows, remark
from dashi.cli.progress import progress
from dashi.cli.shard_options import ShardText
from dashi.io._files import require_writable

if TYPE_CHECKING:
    from dashi.bench.identify.study import Outcome
    from dashi.bench.peers.kernels import TorchPeer

app = App("bench", "What things cost, measured in one run.")
_MEANING: Final = (
    "dictionary knows candidate terms, the true ones among them, but no coefficient; rbf and linear know only that the "
    "rule is local. Errors are relative; one-step errors of 1 are persistence's."
)
SEEDS: Final = 5
OBSERVED: Final = (1.0, 0.3)
NOISE: Final = (0.0, 0.01)


def host(device: OneDevice = "auto", json: Json = False) -> None:
    """What the host pays to record a step and to resubmit a batch, also one that waits for two other queues.

    Beside each stand the bare ctypes calls that it needs, in the tightest loop, and the wrappers of the PyPI package
    `vulkan` where that is installed. Times are the best of several rounds; only the ratios
    carry over to other machines.
    """
    from dashi.bench import host as hostbench
    from dashi.runtime import _hostcost as hostcost

    with hostbench.open_vulkan(device) as opened:
        remark(f"measuring on {opened.info.name}: {hostcost.ROUNDS} rounds of {hostcost.STEPS} steps")
        costs = hostbench.measure(opened)
        name = opened.info.name
    if json:
        rows = {
            what: {"ours_us": c.ours, "bare_us": c.bare, "ratio": c.ratio, "wrappers_us": c.wrappers}
            | ({"parts_us": dict(c.parts)} if c.parts else {})
            for what, c in costs.items()
        }
        print_json({"device": name, "steps": hostcost.STEPS, "rounds": hostcost.ROUNDS, "costs": rows})
        return
    lines: list[tuple[str, ...]] = []
    for what, c in costs.items():
        missing = "not installed" if c.compared else ""
        wrappers = missing if c.wrappers is None else f"{c.wrappers:.1f} us"
        lines.append((what, f"{c.ours:.2f} us", f"{c.bare:.2f} us", f"{c.ratio:.2f}", wrappers))
    print_rows(("", "dashi", "bare calls", "ratio", "vulkan package"), lines)
    for what, c in costs.items():
        if c.parts:
            remark(f"{what}: {', '.join(f'{part} {us:.1f}' for part, us in c.parts.items())} us")


class Size(Enum):
    """Which cases to measure."""

    small = "small"
    full = "full"


Types = Annotated[
    list[str] | None,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        help="f32, f64, f16, ...: may be given several times; default: the first of each kernel.",
    ),
]


def kernels(
    names: Names = None,
    device: OneDevice = "auto",
    dtype: Types = None,
    case: Annotated[int | None, typer.Option("--case", help="Only the benchmark case of this number, from 0.")] = None,
    size: Annotated[
        Size, typer.Option("--size", help="full: each kernel's benchmark cases; small: its largest test case.")
    ] = Size.full,
    tuning: Annotated[
        str | None,
        typer.Option("--tuning", metavar="NAME", help="A tuning by name, or `all`; default: the device's choice."),
    ] = None,
    peer: Annotated[
        str | None, typer.Option("--peer", metavar="torch", help="Measure the same work by torch on CUDA as well.")
    ] = None,
    tflops: Annotated[
        float | None,
        typer.Option("--tflops", min=1e-9, help="The device's arithmetic rate, if known: part of the floor."),
    ] = None,
    save: Save = None,
    shard: ShardText = None,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """What kernels take, beside the device's copy bandwidth, the counted floor, and a peer.

    Times are medians of several batches on the device's own clock. The floor is the fewest bytes that must move, at
    the copy bandwidth measured in the same run. Results are compared with NumPy first; wrong ones are not timed, and
    give exit code 1. On software devices benchmark cases are scaled down, and the table says so. Each row is shown
    when it is measured; Ctrl-C prints, and with --save keeps, those that there are.
    """
    from dashi.bench import kernels as kernelbench
    from dashi.bench import results
    from dashi.bench.peers import kernels as peers
    from dashi.bench.workloads import workloads_of
    from dashi.runtime import _bandwidth as bandwidth

    asked = chosen(names, folder)
    part = part_of("kernels", shard, save, size=size.value, peer=peer, tflops=tflops)
    if part is not None:
        save = None
    if save is not None:
        require_writable(save / "kernels.json")
    with bench_device(device) as (opened, document):
        work = [
            *workloads_of(
                asked, opened, size.value, dtypes=dtype, number=case, tuning=tuning, named=bool(names or folder)
            )
        ]
        work_names = [f"{one.kernel.name} {one.variant} {one.number} {tunings}" for one, tunings in work]
        if part is not None:
            if part.is_finished(work_names, document["device"]):
                remark(f"shard {part.shard} in {part.folder} is finished already: nothing is done")
                return
            work = part.share(work)
        beside = peers.load(peer) if peer is not None else None
        width = bandwidth.measure(opened)
        document["bandwidth"] = results.bandwidth_document(width)
        document["peer"] = None if beside is None else _peer_document(beside, width.nbytes)
        document["cases"] = cases = {"asked": len(work), "measured": 0}
        document["rows"] = rows = list[dict[str, Any]]()
        stopped = False
        try:
            with progress("measuring", len(work), "cases") as advance:
                for workload, tunings in work:
                    measured = kernelbench.measure(opened, workload, tunings, beside)
                    new = [results.row(m, width.best, tflops and tflops * 1e12) for m in measured]
                    rows += new
                    cases["measured"] += 1
                    if save is not None:
                        # After each case: what was measured is kept, whatever ends the run.
                        results.save(document, save)
                    remark(*(results.line(row, beside and beside.name) for row in new))
                    advance(1)
        except KeyboardInterrupt:
            stopped = True
        if part is not None and not stopped:
            part.keep(work_names, document)
    _print_kernels(document, save, json)
    if stopped:
        if save is None:
            remark("nothing is kept without --save")
        raise KeyboardInterrupt
    if any(r["failed"] for r in rows):
        raise typer.Exit(1)


def _peer_document(peer: TorchPeer, nbytes: int) -> dict[str, Any]:
    width = peer.copy_bandwidth(nbytes)
    peer.close()
    return {"name": peer.name, "version": peer.version, "device": peer.device, "copy_gb_per_s": round(width * 1e-9, 3)}


def _print_kernels(document: dict[str, Any], save: Path | None, json: bool) -> None:
    from dashi.bench import results

    if json:
        print_json(document)
    else:
        sys.stdout.writelines(f"{line}\n" for line in results.summary(document))
        print_rows(*results.table(document))
    if save is not None:
        for path in results.save(document, save):
            remark(f"wrote {path}")


class Which(Enum):
    """Which operators to find again."""

    tree = "tree"
    reaction = "reaction"
    oscillators = "oscillators"
    waves = "waves"


def identify(
    device: OneDevice = "auto",
    system: Annotated[
        list[Which] | None,
        typer.Option(
            "--system", metavar="NAME", help="tree, reaction, oscillators or waves. Repeatable. Default: all."
        ),
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
    rows: Annotated[
        list[int] | None,
        typer.Option(
            "--rows", metavar="COUNT", help="Rows to learn from, for the onset; several times. Default: 1500."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Find known operators again from partial observation, against a learner by radial basis functions.

    Band energies on a tree with cross-band coupling, a reaction with diffusion, coupled oscillators and waves are
    observed at some of their sites, with noise. Ridge fits on the device make rules of what was seen: of a dictionary
    of terms, of Gaussians, and linear. They are compared with the truth on states and starts that no learner saw, and
    fill in the waves that were not seen. Ctrl-C keeps what was finished.
    """
    import dashi
    from dashi.bench.identify.learners import LEARNERS
    from dashi.bench.identify.study import ROWS, result_rows, settings
    from dashi.bench.identify.study import identify as outcomes_of

    asked = settings([w.value for w in system or Which], observed or OBSERVED, noise or NOISE, rows or (ROWS,))
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
    lines = result_rows(asked, done)
    if json:
        about = {"spec": info.spec, "name": info.name, "type": info.type, "driver": info.driver_info or info.driver}
        seconds = round(time.perf_counter() - start, 3)
        print_json(
            {"schema": 1, "device": about, "seeds": seeds, "seconds": seconds, "meaning": _MEANING, "rows": lines}
        )
    else:
        _print_identified(lines)
    if stopped:
        raise KeyboardInterrupt


def _print_identified(rows: Sequence[dict[str, Any]]) -> None:
    headings = (
        "system", "observed", "noise", "rows", "learner", "operator error", "one step", "rollout", "diverged",
        "coefficients", "completion",
    )  # fmt: skip
    lines: list[list[str]] = []
    for row in rows:
        errors = [_spread_text(row[name]) for name in ("operator", "one_step", "rollout")]
        away = f"{row['diverged']['mean']:.0%}"
        case = [row["system"], f"{row['observed']:g}", f"{row['noise']:g}", str(row["rows"]), row["learner"]]
        lines.append([*case, *errors, away, _spread_text(row["coefficients"]), _spread_text(row["completion"])])
    print_rows(headings, lines)
    remark(f"mean +- standard deviation over seeds. {_MEANING}")


def _spread_text(over: dict[str, float] | None) -> str:
    return "" if over is None else f"{over['mean']:.1e} +- {over['deviation']:.0e}"


for _name, _command, _line in (
    ("rollout", bench_peers.rollout, "dashi bench rollout --case 0"),
    ("identify", identify, "dashi bench identify --system tree --observed 0.3 --noise 0 --seeds 1"),
    ("fft", bench_peers.fft, "dashi bench fft --case 3"),
    ("flow", bench_peers.flow, "dashi bench flow --n 64"),
    ("host", host, "dashi bench host"),
    ("kernels", kernels, "dashi bench kernels axpy --size small"),
    ("links", bench_links.links, "dashi bench links --device vulkan:0 --to vulkan:0 --size 65536"),
):
    app.command(_name, epilog=example(_line))(_command)
app.add_typer(bench_graph.app)
