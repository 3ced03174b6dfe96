"""`dashi bench rollout`: what a step of a rollout takes, each way, beside torch and JAX."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import typer

from dashi.cli import bench_report
from dashi.cli.bench_beside import Bench, CaseNumbers, Peers, Save, bench_device, cases_of
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import remark

if TYPE_CHECKING:
    from dashi.bench.rollout import BenchCase
    from dashi.runtime.device import Device


def register(app: typer.Typer) -> None:
    """Adds the command to `dashi bench`."""
    app.command("rollout", epilog=example("dashi bench rollout --case 0"))(rollout)


def rollout(
    device: OneDevice = "auto", case: CaseNumbers = None, peer: Peers = None, save: Save = None, json: Json = False
) -> None:
    """What a step of z' = z A takes: step by step, in one workgroup, over tagged workgroups.

    Everything is resident, and each way is checked against NumPy first: other bits are not timed, and give exit code
    1. Times are medians on the device's own clock. Software devices measure the two smallest cases unless told
    otherwise, and compare `rollout` as a whole with a loop recorded by hand. What was measured is kept after each case.
    """
    from dashi.bench import rollout as bench
    from dashi.bench.peers import rollout as peers

    job = Bench("rollout", lambda document: [_cells(document)], _page, save)
    job.require_writable()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take the memory of the whole GPU
    beside = [peers.load(name) for name in peer or ()]
    with bench_device(device) as (opened, document):
        usual = bench.CASES if opened.info.is_hardware else bench.CASES[:2]

        def row(one: BenchCase) -> dict[str, Any]:
            ways = bench.measure(opened, one)
            return bench.document(one, ways, {p.name: p.us_per_step(*one.inputs()) for p in beside})

        job.measure(document, beside, cases_of(bench.CASES, case, usual), "cases", row)
        document.update(_whole(opened))
    job.keep(document)
    job.tell(document, json=json)
    if not json:
        for line in _remarks(document):
            remark(line)
    if any(w["checked"].startswith("WRONG") for r in document["rows"] for w in r["ways"]):
        raise typer.Exit(1)


def _whole(device: Device) -> dict[str, Any]:
    """`rollout` as a whole: on software beside a loop recorded by hand; on hardware with and without hashes."""
    from dashi.bench import rollout as bench

    if device.info.is_hardware:
        cost = bench.hashing(device)
        times = {"us_per_step": cost.us, "without_us_per_step": cost.without_us, "share": cost.share}
        return {"hashing": {"steps": cost.steps, "every": cost.every, **times, "grown_bytes": cost.grown_bytes}}
    if device.info.type == "reference":
        return {}
    found = bench.beside_by_hand(device)
    return {"by_hand": {"us_per_step": found.us, "by_hand_us_per_step": found.by_hand_us, "ratio": found.ratio}}


def _cells(document: dict[str, Any]) -> list[list[str]]:
    peers = list(document["peers"])
    timed = [f"{name} (us/step)" for name in ("stepwise", "workgroup", "tagged", *peers)]
    lines = [["case", *timed, "best", "checked"]]
    for row in document["rows"]:
        times = [f"{w['us_per_step']:.3f}" if w["us_per_step"] is not None else "-" for w in row["ways"]]
        theirs = [f"{row['peers_us_per_step'][p]:.3f}" for p in peers]
        checked = next((w["checked"] for w in row["ways"] if w["way"] == row["best_way"]), "nothing could run")
        lines.append([row["case"], *times, *theirs, row["best_way"] or "-", checked])
    return lines


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
    page = bench_report.page("Rollout", taken, document, [_cells(document)])
    return page + "".join(f"\n{line}.\n" for line in _remarks(document))
