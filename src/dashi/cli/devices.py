"""`dashi devices` and `dashi doctor`: what this machine can compute on, what is missing, and the command that installs
it."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dashi.cli.help import App
from dashi.cli.options import Devices, Json, example
from dashi.cli.output import new_table, print_json, print_rows, print_table, printable, remark
from dashi.cli.progress import Shown
from dashi.lab._capacity import size_text

if TYPE_CHECKING:
    from dashi.lab.health import Health
    from dashi.runtime.info import DeviceInfo

_MARKS: Final = {"ok": "[green]ok[/]", "optional": "[dim]--[/]", "warning": "[yellow]!![/]", "failed": "[red]FAILED[/]"}
_TIMEOUT: Final = 60.0

app = App("devices", "What this machine can compute on.")


@app.command("list", epilog=example("dashi devices list"))
def list_devices(json: Json = False) -> None:
    """List every device: what --device takes, name, type, driver, API version, features, memory.

    With --json also limits, heaps, queues, float controls, and the driver files that the Vulkan loader reads.
    """
    import dashi
    from dashi.runtime._drivers import driver_files

    devices = dashi.devices()
    if json:
        files = [asdict(f) for f in driver_files()]
        print_json({"devices": [d.as_json() for d in devices], "driver_files": files})
        return
    rows: list[tuple[str, ...]] = []
    for info in devices:
        driver = f"{info.driver} {info.driver_info or info.driver_version}".strip()
        rows.append((info.spec, info.name, info.type, driver, info.api_version, _features(info), memory(info)))
    print_rows(("--device", "name", "type", "driver", "API", "features", "memory"), rows)


@app.command("calibrate", epilog=example("dashi devices calibrate --device cpu"))
def calibrate(
    devices: Devices = None,
    links: Annotated[bool, typer.Option("--links", help="Also the ways between each two of them.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what is known.")] = False,
    json: Json = False,
) -> None:
    """How fast devices are: arithmetic, memory, and what a dispatch takes. `dashi stream plan` counts with it.

    About a second for each device that is not known yet; numbers are kept in the cache folder (DASHI_CACHE_DIR). A
    configuration of a stream may say others.
    """
    import dashi
    from dashi.stream.calibration import calibrate as measure
    from dashi.stream.links import transfer_seconds

    names = devices or [info.spec for info in dashi.devices() if info.type != "null"]
    result = measure(names, fresh=fresh, links=links, measure_link=transfer_seconds)
    if json:
        print_json(result.as_json())
        return
    print_rows(result.HEAD, result.rows())
    if result.links:
        print_rows(result.LINK_HEAD, result.link_rows())
    if result.unwritten:
        remark(f"not kept: {result.unwritten}")


def _features(info: DeviceInfo) -> str:
    """The features that decide which kernels run."""
    shown = ("fp64", "fp16", "int64", "int8", "atomics_float", "subgroup", "coop_matrix")
    return " ".join(name for name in shown if name in info.features)


def memory(info: DeviceInfo) -> str:
    """The device's own memory; for the NumPy device, the machine's."""
    if info.type == "reference" and sys.platform != "win32":
        import os

        with contextlib.suppress(ValueError, OSError):
            return size_text(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    own = sum(heap.size for heap in info.heaps if heap.device_local)
    return size_text(own) if own else ""


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("doctor", epilog=example("dashi doctor"))(doctor)


def doctor(
    json: Json = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a driver may take to answer.")] = _TIMEOUT,
) -> None:
    """Say what works here, what is missing, and how to get it.

    Drivers are probed in child processes, so that one which crashes or hangs does no harm. Exit code 0: dashi works,
    if need be on the NumPy device alone; 1: it does not.
    """
    from dashi.lab.health import examine

    health = examine(timeout, events=Shown())
    if json:
        print_json(health.as_json())
    else:
        _print_health(health)
    if not health.ok:
        raise typer.Exit(1)


def _print_health(health: Health) -> None:
    from rich.markup import escape

    table = new_table("", "", "", keys=2)
    for part in health.parts:
        fix = f"\n[bold]Fix:[/] {escape(printable(part.fix))}" if part.fix else ""
        table.add_row(_MARKS[part.status], escape(part.name), escape(printable(part.text)) + fix)
    print_table(table)
    sys.stdout.write(f"\n{health.verdict}\n")
