"""`dashi kernels list` and `dashi kernels show`: which kernels there are, and how one is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli.options import Json, complete_families, complete_kernels, example
from dashi.cli.output import add_row, new_table, print_json, print_table, remark

if TYPE_CHECKING:
    from dashi.kernels.abi import Kernel, Operand, Scalar


def register(app: typer.Typer) -> None:
    """Adds the commands to `dashi kernels`."""
    app.command(
        "list", epilog=example("dashi kernels list sum --family reduce"), short_help="List kernels, all or some."
    )(list_kernels)
    app.command(
        "show", epilog=example("dashi kernels show axpy"), short_help="Show how one kernel is called, with an example."
    )(show_kernel)


def list_kernels(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN",
            help="Only kernels with this text in their name, alias or summary; with * or ?, a whole name.",
        ),
    ] = None,
    family: Annotated[
        str | None,
        typer.Option("--family", metavar="FAMILY", help="Only this family.", autocompletion=complete_families),
    ] = None,
    portable: Annotated[
        bool, typer.Option("--portable", help="Only kernels with the same bits on every device.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown tables with signatures and types, one for each family.")
    ] = False,
    json: Json = False,
) -> None:
    """List kernels by family: name, and what each computes.

    `dashi kernels show NAME` has the rest: operands, types, features, cost, and an example. With --json all of it is
    printed for every kernel.
    """
    from dashi.kernels import _catalogue as catalogue

    matches = catalogue.matching(pattern, family, portable=portable)
    if markdown:
        sys.stdout.write(catalogue.markdown(matches))
    elif json:
        print_json({"kernels": [catalogue.describe(kernel) for kernel in matches]})
    else:
        _print_list(matches)


def show_kernel(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A kernel by name or alias.", autocompletion=complete_kernels)
    ],
    json: Json = False,
) -> None:
    """Show one kernel: its signature, operands, types, scalars, features, cost, and a Python program that runs it."""
    from dashi import kernels
    from dashi.kernels import _catalogue as catalogue

    kernel = kernels.get(name)
    if json:
        print_json(
            {
                **catalogue.describe(kernel),
                "signature": catalogue.signature(kernel),
                "example": catalogue.example(kernel),
            }
        )
        return
    _print_kernel(kernel)
    sys.stdout.write(f"\n{catalogue.example(kernel)}\n")


def _print_list(kernels: Sequence[Kernel]) -> None:
    table = new_table("kernel", "computes")
    for family in sorted({kernel.family for kernel in kernels}):
        add_row(table, f"{family}:", "")
        for kernel in (kernel for kernel in kernels if kernel.family == family):
            add_row(table, f"  {kernel.name}", kernel.summary + ("" if kernel.portable else " (not portable)"))
    print_table(table)
    remark(f"{len(kernels)} kernels; `dashi kernels show NAME` says how one is called")


def _print_kernel(kernel: Kernel) -> None:
    from dashi.kernels._catalogue import example_cost, signature
    from dashi.kernels.abi import variant_features

    shapes, cost = example_cost(kernel)
    needs = {variant: " ".join(sorted(variant_features(kernel, variant))) for variant in kernel.dtypes}
    rows = [
        ("kernel", f"{kernel.name} ({kernel.family}): {kernel.summary}"),
        ("call", signature(kernel)),
        *((f"input {one.name}", _operand(one)) for one in kernel.inputs),
        *((f"scalar {one.name}", _scalar(one)) for one in kernel.scalars),
        *((f"output {one.name}", _operand(one)) for one in kernel.outputs),
        ("types", "T is " + ", ".join(f"{v} (needs {names})" if names else v for v, names in needs.items())),
        ("portable", "yes: the same bits on every device" if kernel.portable else f"no: within {kernel.bound:g}"),
        ("in place", "an output may be an input" if kernel.in_place else ""),
        ("cost", f"{cost.flops:,} flops, {cost.bytes:,} bytes, {cost.dispatches} dispatch(es) for {shapes}"),
        ("tunings", " ".join(kernel.tunings)),
        ("aliases", " ".join(kernel.aliases)),
        ("folder", str(kernel.folder)),
    ]
    table = new_table("", "")
    for name, text in rows:
        if text:
            add_row(table, name, text)
    print_table(table)


def _operand(one: Operand) -> str:
    return f"{one.dtype}, " + ("any shape" if one.shape is None else f"[{', '.join(map(str, one.shape))}]")


def _scalar(one: Scalar) -> str:
    default = "must be given" if one.default is None else f"default {one.default:g}"
    return f"{one.dtype}, {default}" + (f": {one.doc}" if one.doc else "")
