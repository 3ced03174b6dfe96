"""`dashi kernels`: list, show, build, check, tune, new, isa."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dashi.cli import kernels_isa, kernels_list
from dashi.cli.help import App
from dashi.cli.options import Devices, Json, OneDevice, complete_kernels, example
from dashi.cli.output import add_row, new_table, print_json, print_table, remark
from dashi.cli.progress import progress

if TYPE_CHECKING:
    from dashi.bench.kernels import Tuned
    from dashi.kernels.abi import Kernel

app = App("kernels", "Kernels: list, show, build, check, tune, new, isa.")
kernels_list.register(app)
kernels_isa.register(app)

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME...", help="Kernels by name; none means all.", autocompletion=complete_kernels),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="A kernel folder outside the project, instead of names. Its kernel.py is Python that is run here: name "
        "only folders that you trust.",
    ),
]


def chosen(names: Sequence[str] | None, folder: Path | None) -> list[Kernel]:
    """The kernels that a command was asked for."""
    from dashi import kernels

    if folder is not None:
        from dashi.lab import read_kernels

        there = {kernel.name: kernel for kernel in read_kernels(folder)}
        wanted = [name for name in names or () if name in there] or list(there)
        return [there.get(name) or kernels.get(name) for name in dict.fromkeys((*wanted, *(names or ())))]
    return [kernels.get(name) for name in names or kernels.names()]


def buildable(names: Sequence[str] | None, folder: Path | None) -> list[Kernel]:
    """The kernels to build, with the templates that fused kernels are made from."""
    from dashi.kernels._registry import templates

    if folder is not None:
        return chosen(names, folder)
    others = [name for name in names or () if name not in templates()]
    asked = [templates().get(name) for name in templates().names() if not names or name in names]
    return [*(chosen(others, None) if others or not names else ()), *asked]


@app.command("build", epilog=example("dashi kernels build axpy --check"))
def build_kernels(
    names: Names = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a rebuild would differ.")] = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Build the SPIR-V binaries with the pinned compiler (the extra `compile`).

    With --check, rebuild in memory and compare with the binaries in the folders; exit code 1 on any difference.
    """
    from dashi import lab
    from dashi.cli.progress import Shown

    done = lab.build_kernels(buildable(names, folder), check=check, events=Shown()).rows
    differing = [d for d in done if d.get("differences")]
    if json:
        print_json({"ok": not differing, "kernels": done})
    else:
        for one in differing:
            sys.stdout.writelines(f"{one['name']}: {text}\n" for text in one["differences"])
        word = "checked" if check else "built"
        fresh = f", {len(differing)} differ" if differing else (", all as in their folders" if check else "")
        sys.stdout.write(f"{len(done)} kernels {word}{fresh}\n")
    if differing:
        which = " ".join(d["name"] for d in differing) if folder is None else f"--folder {folder}"
        remark(f"Fix: dashi kernels build {which}")
        raise typer.Exit(1)


@app.command("check", epilog=example("dashi kernels check axpy --device cpu --quick"))
def check_kernels(
    names: Names = None,
    device: Devices = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small cases and two distributions only.")] = False,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Run every kernel on its cases and compare with its NumPy reference; portable ones bit for bit.

    Exit code 1 if any result is wrong, or if the validation layers (DASHI_VALIDATION=1) say anything. Variants whose
    features a device lacks are skipped, and named.
    """
    from dashi import lab
    from dashi.cli.progress import Shown

    checks = lab.check_kernels(chosen(names, folder), devices=device or ["auto"], quick=quick, events=Shown())
    if json:
        document = {"ok": checks.ok, "results": checks.rows, "failures": checks.failures}
        print_json({**document, "validation_messages": checks.validation_messages})
    else:
        _print_check(checks.rows, checks.failures)
    for message in checks.validation_messages:
        remark(f"validation layers: {message}")
    if not checks.ok:
        raise typer.Exit(1)


def _verdict(row: dict[str, Any]) -> str:
    if row["failed"]:
        return f"{row['failed']} FAILED"
    if not row["passed"]:
        return "skipped"
    if not row["computed"]:
        return "recorded"
    return "same bits as NumPy" if row["portable"] else "within its bound"


def _print_check(rows: list[dict[str, Any]], failures: list[dict[str, Any]]) -> None:
    table = new_table("kernel", "device", "result", "passed", "skipped", "seconds")
    for row in rows:
        skipped = f"{row['skipped']} ({'; '.join(row['missing'])})" if row["skipped"] else ""
        passed = f"{row['passed']} of {row['trials']}"
        add_row(table, row["kernel"], row["device"], _verdict(row), passed, skipped, f"{row['seconds']:.2f}")
    print_table(table)
    for f in failures[:20]:
        where = f"{f['kernel']}.{f['variant']} on {f['device']}, case {f['case']} ({f['shapes']}), {f['distribution']}"
        where += f", tuning {f['tuning']}" if f["tuning"] else ""
        bits = f" (bits {f['got']}, expected {f['expected']})" if f["got"] else ""
        sys.stdout.write(f"FAILED {where}: {f['message']}{bits}\n")
    if len(failures) > 20:
        sys.stdout.write(f"... and {len(failures) - 20} more; --json lists all\n")
    kernels, devices = len({row["kernel"] for row in rows}), len({row["device"] for row in rows})
    end = f"{len(failures)} trials failed" if failures else "all passed"
    passed = sum(row["passed"] for row in rows)
    sys.stdout.write(f"{kernels} kernels on {devices} device{'s' * (devices > 1)}, {passed} trials passed: {end}\n")


@app.command("tune", epilog=example("dashi kernels tune prefix_scan"))
def tune_kernels(
    names: Names = None,
    device: OneDevice = "auto",
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="TYPE", help="Only this variant (f32, f64, ...).")
    ] = None,
    folder: Folder = None,
    json: Json = False,
) -> None:
    """Measure every tuning of the kernels on this device, and remember the fastest for it and its driver.

    What is remembered lies in the cache folder (DASHI_CACHE_DIR) and is used from then on, unless a call names its
    tuning or the environment does: DASHI_TUNINGS="gemm_tiled=NAME,prefix_scan=NAME". Results do not depend on it.
    """
    import dashi
    from dashi.bench.kernels import tune

    found = [k for k in chosen(names, folder) if len(k.tunings) > 1]
    work = [(k, v) for k in found for v in k.dtypes if dtype in (None, v)]
    with dashi.open(device, validation=False) as opened:
        if not opened.info.spec.startswith("vulkan:"):
            remark(f"{opened.info.name} has nothing to tune: only Vulkan devices run shaders")
            work = []
        elif not work:
            remark("none of these kernels has several tunings")
        with progress("tuning", len(work), "variants") as advance:
            tuned: list[Tuned] = []
            for kernel, variant in work:
                tuned.append(tune(opened, kernel, variant))
                advance(1)
        spec, name = opened.info.spec, opened.info.name
    if json:
        rows = [
            {"kernel": t.kernel.name, "dtype": t.variant, "best": t.best, "seconds": t.seconds, "notes": t.notes}
            for t in tuned
        ]
        print_json({"device": spec, "device_name": name, "tuned": rows})
    elif tuned:
        _print_tuned(tuned)


def _print_tuned(tuned: Sequence[Tuned]) -> None:
    from statistics import geometric_mean

    table = new_table("kernel", "type", "fastest", "times by tuning (geometric mean of the cases)", "note")
    for t in tuned:
        means = {name: geometric_mean(times) * 1e6 for name, times in t.seconds.items()}
        times = ", ".join(f"{name} {means[name]:,.1f} us" for name in sorted(means, key=lambda name: means[name]))
        add_row(table, t.kernel.name, t.variant, t.best or "", times, "; ".join(t.notes))
    print_table(table)


@app.command("new", epilog=example("dashi kernels new wave --folder my_kernels"))
def new_kernel(
    name: Annotated[str, typer.Argument(help="The kernel's name: lower case, digits and underscores.")],
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where to make its folder; without it, in the project itself.")
    ] = None,
    family: Annotated[str, typer.Option("--family", help="The family, for a kernel of the project.")] = "user",
    json: Json = False,
) -> None:
    """Make a kernel folder that builds and passes its checks as it stands: the place to start from."""
    from dashi import lab

    created = lab.new_kernel(name, folder, family)
    if json:
        print_json({"name": name, "folder": str(created), "files": sorted(p.name for p in created.iterdir())})
    else:
        sys.stdout.write(f"{created}\n")
    which = name if folder is None else f"--folder {created}"
    remark(f"next: edit kernel.comp and kernel.py there; dashi kernels build {which}; dashi kernels check {which}")


@app.command("accuracy", epilog=example("dashi kernels accuracy --samples 1000"))
def accuracy(
    samples: Annotated[int, typer.Option("--samples", min=1, help="Random arguments per function.")] = 1 << 19,
    json: Json = False,
) -> None:
    """Measure the largest error of each function of the portable maths, in units in the last place.

    The exact values come from mpmath (a development dependency: `./dev setup` installs it).
    """
    from dashi import lab
    from dashi.kernels.portable._accuracy import markdown

    measured = lab.measure_accuracy(samples)
    if json:
        print_json({"samples": samples, "functions": [asdict(row) for row in measured]})
    else:
        sys.stdout.write(markdown(measured))
