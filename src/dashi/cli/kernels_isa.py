"""`dashi kernels isa`: the kernels through a vendor's own compiler, and what its machine code does to floats."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dashi.cli.help import App
from dashi.cli.options import Json, complete_kernels, example
from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.progress import Shown

if TYPE_CHECKING:
    from dashi.lab.isa.machine_code import MachineCode, MachineCodeReport

_MOST: Final = 20


def register(app: App) -> None:
    """Adds the command."""
    app.command("isa", epilog=example("dashi kernels isa --vendor amd --kernel axpy --kernel gemm_fast"))(show_isa)


def show_isa(
    vendor: Annotated[str, typer.Option("--vendor", metavar="NAME", help="amd, nvk, apple or adreno.")],
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            "--kernel", metavar="NAME", help="Only this kernel; may be repeated.", autocompletion=complete_kernels
        ),
    ] = None,
    gpu: Annotated[
        str, typer.Option("--gpu", metavar="NAME", help="Only the GPU of the vendor with this in its name.")
    ] = "",
    drivers: Annotated[
        Path | None,
        typer.Option(
            "--drivers",
            metavar="DIR",
            help="The folder of unpacked compilers: .drivers/vendors, unless the system has the vendor's own (amd).",
        ),
    ] = None,
    memory: Annotated[float, typer.Option("--memory", min=0.5, help="GiB that a compiler may take.")] = 6.0,
    timeout: Annotated[float, typer.Option("--timeout", min=1.0, help="Seconds for a module.")] = 120.0,
    json: Json = False,
) -> None:
    """Compile every kernel for GPUs that need not be here, and look into the machine code.

    Each module is compiled by the vendor's own compiler (Mesa's) with the specialisation constants that the kernel's
    cases use. Portable kernels must have no fused multiply-add and no estimate of the hardware (reciprocal, root,
    exponential, ...) but those of integer divisions; kernels that are not portable are the control. Exit code 1 if one
    has, or if a module could not be compiled. `tests/drivers/fetch vendors` gets the compilers.
    """
    from dashi.lab import MachineCodeRequest, inspect_machine_code

    request = MachineCodeRequest(vendor, tuple(kernel or ()), gpu, drivers, memory=int(memory * 2**30), timeout=timeout)
    report = inspect_machine_code(request, events=Shown())
    if json:
        print_json({"ok": report.ok, "vendor": vendor, "modules": [row.as_json() for row in report.rows]})
    else:
        _print(report)
    if not report.ok:
        raise typer.Exit(1)


def _print(report: MachineCodeReport) -> None:
    table = new_table(
        "kernel", "gpu", "class", "modules", "fused", "unfused", "estimates", "int divisions", "flushing", "result"
    )
    groups: dict[tuple[str, str], list[MachineCode]] = {}
    for row in report.rows:
        groups.setdefault((row.gpu, row.kernel), []).append(row)
    for (gpu, name), rows in groups.items():
        compiled = [row for row in rows if not row.skipped]
        names = ("fused", "unfused", "estimates", "divisions", "flushing")
        sums = [str(sum(getattr(row.counts, field) for row in compiled)) for field in names]
        kind = "portable" if rows[0].portable else "device"
        add_row(table, name, gpu, kind, str(len(compiled)), *sums, _result(rows))
    print_table(table)
    failures = [row for row in report.rows if not row.ok]
    for row in failures[:_MOST]:
        where = f"{row.kernel}/{row.shader}.{row.variant} {list(row.spec)} for {row.gpu}"
        why = row.problem or f"{row.counts.fused} fused multiply-adds, {row.counts.estimates} estimates"
        sys.stdout.write(f"FAILED {where}: {why}\n")
    if len(failures) > _MOST:
        sys.stdout.write(f"... and {len(failures) - _MOST} more; --json lists all\n")
    compiled = sum(not row.skipped for row in report.rows)
    drivers = ", ".join(sorted({row.driver for row in report.rows}))
    sys.stdout.write(
        f"{compiled} modules by {drivers}: {report.fused(portable=True)} fused multiply-adds in portable kernels, "
        f"{report.fused(portable=False)} in the others\n"
    )
    if not report.multiply_adds(portable=False) and any(not row.portable for row in report.rows):
        remark("no multiply-add was seen in the kernels that are not portable: the control is missing")


def _result(rows: list[MachineCode]) -> str:
    failed = sum(not row.ok for row in rows)
    if failed:
        return f"{failed} FAILED"
    skipped = "; ".join(dict.fromkeys(f"{row.variant} {row.skipped}" for row in rows if row.skipped))
    return skipped or ("clean" if rows[0].portable else "control")
