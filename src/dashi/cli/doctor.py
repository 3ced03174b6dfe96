"""`dashi doctor`: what was found, what is missing, and the command that installs it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dashi.cli.options import Json, example
from dashi.cli.output import new_table, print_json, print_table, printable, remark

if TYPE_CHECKING:
    from dashi.cli.findings import Finding
    from dashi.runtime.probe import Probe

_MARKS: Final = {"ok": "[green]ok[/]", "optional": "[dim]--[/]", "warning": "[yellow]!![/]", "failed": "[red]FAILED[/]"}
_TIMEOUT: Final = 60.0


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
    found, details = _examine(timeout)
    failed = [f for f in found if f.status == "failed"]
    verdict = _verdict(found, failed, details["devices"])
    if json:
        print_json({"ok": not failed, "verdict": verdict, "findings": [asdict(f) for f in found], **details})
    else:
        _print(found, verdict)
    if failed:
        raise typer.Exit(1)


def _examine(timeout: float) -> tuple[list[Finding], dict[str, Any]]:
    from dashi.cli import findings
    from dashi.runtime.drivers import driver_files
    from dashi.runtime.probe import probe, probe_each

    found = [*findings.host()]
    if any(f.name == "dashi" and f.status == "failed" for f in found):  # nothing of it can be asked anything
        return found, {"loader": {}, "driver_files": [], "drivers": [], "devices": []}
    found += [findings.binaries(), *findings.tools()]
    loader = probe("loader", timeout=timeout)
    found += findings.loader(loader)
    files = driver_files()
    probes: dict[str, Probe] = {}
    seen = loader
    if loader.loader:
        remark("probing drivers ...")
        probes = probe_each(timeout)
        found += findings.drivers(files, probes)
        seen = _devices(probes, timeout)
    found += findings.devices(seen)
    details = {
        "loader": {"name": loader.loader, "version": loader.loader_version, "layers": list(loader.layers)},
        "driver_files": [asdict(f) for f in files],
        "drivers": [{"driver": name, "problem": p.problem, "unsafe": p.unsafe} for name, p in probes.items()],
        "devices": [info.as_json() for info in seen.devices],
    }
    return found, details


def _devices(probes: dict[str, Probe], timeout: float) -> Probe:
    """All devices that the sound drivers give together, numbered as --device numbers them."""
    from dataclasses import replace

    from dashi.runtime.probe import probe

    bad = [name for name, p in probes.items() if p.unsafe]
    good = [name for name in probes if name not in bad] if bad else None
    seen = probe("compute", good, timeout)
    if seen.unsafe:
        problem = f"{seen.problem} while a kernel ran"
        looked = probe("look", good, timeout)
        seen = replace(looked, computed={info.spec: problem for info in looked.devices})
    return seen


def _verdict(found: list[Finding], failed: list[Finding], devices: list[Any]) -> str:
    if failed:
        return f"dashi does not work here: {', '.join(f.name for f in failed)}."
    works = sum(f.name == "Vulkan device" and f.status == "ok" for f in found)
    if not works:
        return "dashi works on the NumPy device (--device cpu); there is no Vulkan device that works."
    noted = sum(f.status == "warning" for f in found)
    with_warnings = f", with {noted} warning{'s' * (noted > 1)}" if noted else ""
    return f"dashi works on {works} of {len(devices)} Vulkan devices and on the NumPy device{with_warnings}."


def _print(found: list[Finding], verdict: str) -> None:
    from rich.markup import escape

    table = new_table("", "", "", keys=2)
    for finding in found:
        fix = f"\n[bold]Fix:[/] {escape(printable(finding.fix))}" if finding.fix else ""
        table.add_row(_MARKS[finding.status], escape(finding.name), escape(printable(finding.text)) + fix)
    print_table(table)
    sys.stdout.write(f"\n{verdict}\n")
