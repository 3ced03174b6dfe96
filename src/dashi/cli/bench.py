"""`dashi bench`: what things cost, measured in one run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli import bench_fft, bench_flow, bench_identify, bench_report, bench_rollout
from dashi.cli.bench_beside import Save, bench_device
from dashi.cli.help import App
from dashi.cli.kernels import Folder, Names, chosen
from dashi.cli.options import Json, OneDevice, example
from dashi.cli.output import new_table, print_json, print_table, remark
from dashi.cli.progress import progress
from dashi.errors import DeviceNotFoundError, DTypeError
from dashi.io._files import require_writable

if TYPE_CHECKING:
    from dashi.bench.peers.kernels import TorchPeer
    from dashi.bench.workloads import Workload
    from dashi.kernels.abi import Kernel
    from dashi.runtime.device import Device

app = App("bench", "What things cost, measured in one run.")
bench_rollout.register(app)
bench_identify.register(app)
bench_fft.register(app)
bench_flow.register(app)


@app.command("host", epilog=example("dashi bench host"))
def host(device: OneDevice = "auto", json: Json = False) -> None:
    """What the host pays to record a step and to resubmit a batch, also one that waits for two other queues.

    Beside each stand the bare ctypes calls that it needs, in the tightest loop, and the wrappers of the PyPI package
    `vulkan` where that is installed. Times are the best of several rounds; only the ratios
    carry over to other machines.
    """
    import dashi
    from dashi.runtime import _hostcost as hostcost
    from dashi.runtime._vulkan_device import VulkanDevice

    with dashi.open(device, validation=False, queues=3) as opened:
        if not isinstance(opened, VulkanDevice):
            raise DeviceNotFoundError(
                f"{opened.info.name!r} is not a Vulkan device, and only those record and submit.",
                "install a driver (`dashi doctor` says how), or name one: --device vulkan:0.",
            )
        remark(f"measuring on {opened.info.name}: {hostcost.ROUNDS} rounds of {hostcost.STEPS} steps")
        costs = {
            "record a step": hostcost.recording(opened),
            "resubmit and wait": hostcost.resubmission(opened),
            "bind a step": hostcost.binding(opened),
            "feed, run, fetch 64 KiB": hostcost.feeding(opened),
            "resubmit after two queues": hostcost.waiting(opened),
        }
        name = opened.info.name
    if json:
        rows = {
            what: {"ours_us": c.ours, "bare_us": c.bare, "ratio": c.ratio, "wrappers_us": c.wrappers}
            for what, c in costs.items()
        }
        print_json({"device": name, "steps": hostcost.STEPS, "rounds": hostcost.ROUNDS, "costs": rows})
        return
    table = new_table("", "dashi", "bare calls", "ratio", "vulkan package")
    for what, c in costs.items():
        missing = "not installed" if c.compared else ""
        wrappers = missing if c.wrappers is None else f"{c.wrappers:.1f} us"
        table.add_row(what, f"{c.ours:.2f} us", f"{c.bare:.2f} us", f"{c.ratio:.2f}", wrappers)
    print_table(table)


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


@app.command("kernels", epilog=example("dashi bench kernels axpy --size small"))
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
    from dashi.bench.peers import kernels as peers
    from dashi.runtime import _bandwidth as bandwidth

    found = chosen(names, folder)
    if save is not None:
        require_writable(save / "kernels.json")
    with bench_device(device) as (opened, document):
        work = list(_work(opened, found, dtype, size.value, case, tuning, named=bool(names or folder)))
        beside = peers.load(peer) if peer is not None else None
        width = bandwidth.measure(opened)
        document["bandwidth"] = bench_report.bandwidth_document(width)
        document["peer"] = None if beside is None else _peer_document(beside, width.nbytes)
        document["cases"] = cases = {"asked": len(work), "measured": 0}
        document["rows"] = rows = list[dict[str, Any]]()
        stopped = False
        try:
            with progress("measuring", len(work), "cases") as advance:
                for one, tunings in work:
                    measured = kernelbench.measure(opened, one, tunings, beside)
                    new = [bench_report.row(m, width.best, tflops and tflops * 1e12) for m in measured]
                    rows += new
                    cases["measured"] += 1
                    if save is not None:
                        # After each case: what was measured is kept, whatever ends the run.
                        bench_report.save(document, save)
                    remark(*(bench_report.line(row, beside and beside.name) for row in new))
                    advance(1)
        except KeyboardInterrupt:
            stopped = True
    _tell(document, save, json)
    if stopped:
        if save is None:
            remark("nothing is kept without --save")
        raise KeyboardInterrupt
    if any(r["failed"] for r in rows):
        raise typer.Exit(1)


def _work(
    device: Device,
    found: Sequence[Kernel],
    dtypes: Sequence[str] | None,
    size: Any,
    case: int | None,
    tuning: str | None,
    *,
    named: bool,
) -> Iterator[tuple[Workload, tuple[str | None, ...]]]:
    """What to measure, and with which tunings. Kernels that were not named are left out where they have no such
    variant or tuning; for those that were it is an error."""
    from dashi.bench.workloads import workloads

    for kernel in found:
        for variant in dtypes or kernel.dtypes[:1]:
            if variant not in kernel.dtypes:
                if named:
                    raise DTypeError(
                        f"kernel {kernel.name!r} has no variant {variant}.", f"use {', '.join(kernel.dtypes)}."
                    )
                continue
            if tuning is None or (tuning == "all" and not kernel.tunings):
                tunings: tuple[str | None, ...] = (None,)
            elif tuning == "all":
                tunings = tuple(kernel.tunings)
            elif not named and tuning not in kernel.tunings:
                continue
            else:
                tunings = (device.tuning_for(kernel, variant, tuning),)
            for workload in workloads(kernel, variant, device, size, case):
                yield workload, tunings


def _peer_document(peer: TorchPeer, nbytes: int) -> dict[str, Any]:
    width = peer.copy_bandwidth(nbytes)
    peer.close()
    return {"name": peer.name, "version": peer.version, "device": peer.device, "copy_gb_per_s": round(width * 1e-9, 3)}


def _tell(document: dict[str, Any], save: Path | None, json: bool) -> None:
    if json:
        print_json(document)
    else:
        sys.stdout.writelines(f"{line}\n" for line in bench_report.summary(document))
        print_table(bench_report.table(document["rows"], document["peer"] and document["peer"]["name"]))
    if save is not None:
        for path in bench_report.save(document, save):
            remark(f"wrote {path}")
