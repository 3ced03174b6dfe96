"""`dashi bench links`: how fast items go from one device to another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dashi.cli.options import DEVICE, Json, OneDevice, complete_devices
from dashi.cli.output import print_json, print_rows, remark

Target = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="DEVICE",
        help="Where items go; default: another logical device of the same.",
        rich_help_panel=DEVICE,
        autocompletion=complete_devices,
    ),
]
Sizes = Annotated[
    list[int] | None,
    typer.Option("--size", metavar="BYTES", min=1, help="Bytes of an item. Repeatable. Default: 64 KiB, 1 and 16 MiB."),
]
Window = Annotated[int, typer.Option("--window", min=1, max=64, help="Slots of each link.")]


def links(
    device: OneDevice = "auto", to: Target = None, size: Sizes = None, window: Window = 3, json: Json = False
) -> None:
    """How fast items go from one device to another, by every way that the two have.

    exported: memory of one GPU that two logical devices use, no copy; host: one allocation of the host that both
    imported, a DMA out and one in; staging: a memcpy between. Rates are from the source's own memory to the target's,
    all slots in use, beside what the devices copy within themselves; latency is that of an item of 4 bytes.
    """
    from dashi.bench import links as linkbench

    rows: list[dict[str, Any]] = []
    asked = size or linkbench.SIZES
    for row in linkbench.measure(device, device if to is None else to, asked, window=window):
        rows.append(row.document())
        remark(f"{row.way}, {row.nbytes} bytes: {row.rate.gb_per_s:.2f} GB/s")
    if json:
        print_json({"source": device, "target": to or device, "window": window, "rows": rows})
        return
    headings = ("way", "mode", "DMA", "bytes", "GB/s", "latency", "copies", "of copy")
    print_rows(headings, [_cells(row) for row in rows])


def _cells(row: dict[str, Any]) -> list[str]:
    copies = " ".join(f"{one:.1f}" for one in row["copy_gb_per_s"])
    return [
        row["way"], row["mode"], "+".join(map(str, row["dma"])), str(row["bytes"]), f"{row['gb_per_s']:.2f}",
        f"{row['latency_us']:.0f} us", copies, f"{row['of_copy']:.2f}",
    ]  # fmt: skip
