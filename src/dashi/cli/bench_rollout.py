"""`dashi bench rollout`: what a step of a rollout takes, each way, beside torch and JAX."""

from __future__ import annotations

import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli import bench_report
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.progress import progress
from dashi.errors import InputError, NoResultError

if TYPE_CHECKING:
    from rich.table import Table

    from dashi.core.rollout_bench import BenchCase
    from dashi.runtime.device import Device


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi bench`."""
    app.command("rollout", epilog=example("dashi bench rollout --case 0"))(rollout)


def rollout(
    device: OneDevice = "auto",
    case: Annotated[
        list[int] | None,
        typer.Option("--case", help="Only the case of this number, from 0. May be given several times."),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="NAME", help="torch or jax: the same on CUDA. May be given several times."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Keep the results there, as JSON and Markdown.")
    ] = None,
    json: Json = False,
) -> None:
    """What a step of z' = z A takes: step by step, in one workgroup, over tagged workgroups.

    Everything is resident, and each way is checked against NumPy first: other bits are not timed, and give exit code
    1. Times are medians on the device's own clock. Software devices measure the two smallest cases unless told
    otherwise, and compare `rollout` as a whole with a loop recorded by hand.
    """
    import dashi
    from dashi.core import rollout_bench, rollout_peers

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take the memory of the whole GPU
    beside = [rollout_peers.load(name) for name in peer or ()]
    with dashi.open(device, validation=False) as opened:
        if opened.info.type == "null":
            raise NoResultError("the null device computes nothing.", "name another: --device auto, cpu or vulkan:0.")
        date = datetime.now(UTC).isoformat(timespec="seconds")
        command = shlex.join(["dashi", *sys.argv[1:]])
        document = bench_report.heading(opened.info, date, command, dashi.__version__)
        document["peers"] = {p.name: p.version for p in beside}
        document["rows"] = rows = list[dict[str, Any]]()
        chosen = _cases(case, hardware=opened.info.is_hardware)
        with progress("measuring", len(chosen), "cases") as advance:
            for one in chosen:
                ways = rollout_bench.measure(opened, one)
                times = {p.name: p.us_per_step(*one.inputs()) for p in beside}
                rows.append(rollout_bench.document(one, ways, times))
                advance(1)
        document |= _whole(opened)
    if save is not None:
        bench_report.save(document, save, _page(document), "rollout-")
    if json:
        print_json(document)
    else:
        print_table(_table(document))
    if any(w["checked"].startswith("WRONG") for r in rows for w in r["ways"]):
        raise typer.Exit(1)


def _whole(device: Device) -> dict[str, Any]:
    """`rollout` as a whole: on software beside a loop recorded by hand; on hardware with and without hashes."""
    from dashi.core import rollout_bench

    if device.info.is_hardware:
        cost = rollout_bench.hashing(device)
        times = {"us_per_step": cost.us, "without_us_per_step": cost.without_us, "share": cost.share}
        return {"hashing": {"steps": cost.steps, "every": cost.every, **times, "grown_bytes": cost.grown_bytes}}
    if device.info.type == "reference":
        return {}
    found = rollout_bench.beside_by_hand(device)
    return {"by_hand": {"us_per_step": found.us, "by_hand_us_per_step": found.by_hand_us, "ratio": found.ratio}}


def _cases(numbers: list[int] | None, *, hardware: bool) -> list[BenchCase]:
    from dashi.core.rollout_bench import CASES

    if numbers is None:
        return [*(CASES if hardware else CASES[:2])]
    if any(not 0 <= n < len(CASES) for n in numbers):
        raise InputError(f"there is no case {max(numbers)}.", f"use 0 to {len(CASES) - 1}.")
    return [CASES[n] for n in numbers]


def _cells(document: dict[str, Any]) -> list[list[str]]:
    peers = list(document["peers"])
    lines = [["case", "stepwise", "workgroup", "tagged", *peers, "best", "checked"]]
    for row in document["rows"]:
        times = [f"{w['us_per_step']:.3f}" if w["us_per_step"] is not None else "-" for w in row["ways"]]
        theirs = [f"{row['peers_us_per_step'][p]:.3f}" for p in peers]
        checked = next((w["checked"] for w in row["ways"] if w["way"] == row["best_way"]), "nothing could run")
        lines.append([row["case"], *times, *theirs, row["best_way"] or "-", checked])
    return lines


def _table(document: dict[str, Any]) -> Table:
    first, *rest = _cells(document)
    table = new_table(*(f"{name} (us/step)" if 0 < i < len(first) - 2 else name for i, name in enumerate(first)))
    for line in rest:
        add_row(table, *line)
    for line in _remarks(document):
        remark(line)
    return table


def _remarks(document: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    if "by_hand" in document:
        found = document["by_hand"]
        ours, theirs = found["us_per_step"], found["by_hand_us_per_step"]
        lines.append(f"rollout, D = 128: {ours:.1f} us a step, by hand {theirs:.1f}: {found['ratio']:.2f} x")
    if "hashing" in document:
        found = document["hashing"]
        ours, theirs = found["us_per_step"], found["without_us_per_step"]
        lines.append(
            f"{found['steps']} steps, D = 654, hashed every {found['every']}: {ours:.3f} us a step, without hashes "
            f"{theirs:.3f}: {found['share']:.1%} of the time; memory grew by {found['grown_bytes']} bytes"
        )
    return lines


def _page(document: dict[str, Any]) -> str:
    """The results as Markdown."""
    taken = ("Microseconds per step, medians on the device's own clock, states and operator resident.",)
    page = bench_report.page("Rollout", taken, document, _cells(document))
    return page + "".join(f"\n{line}.\n" for line in _remarks(document))
