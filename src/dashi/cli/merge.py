"""`dashi merge`: the shards of a job become the whole of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashi.cli.options import Json, OneDevice, Overwrite, example
from dashi.cli.output import print_facts, print_json
from dashi.cli.progress import Shown
from dashi.errors import FileError, InputError

if TYPE_CHECKING:
    from dashi.io._shards import ShardFolder
    from dashi.lab import Merged

_RUN = "dashi flow simulate --n 16 --set peak=2 --steps 20 --members 2 --device cpu"
_EXAMPLE = (
    f"{_RUN} --shard 1/2 --out runs/k/1 && {_RUN} --shard 2/2 --out runs/k/2 && "
    "dashi merge runs/k/1 runs/k/2 --out runs/k/all"
)


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("merge", epilog=example(_EXAMPLE))(merge)


def merge(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="The folders of all shards, in any order.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the whole; of a fit, its file.")],
    device: OneDevice = "auto",
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Make the whole of all shards of a job: the bytes that the command without --shard leaves, but for what tells
    where and how long it ran.

    Shards of different runs, of other versions, one that is there twice and a hole are refused, and what is missing is
    named. Of the data of a fit, the model is fitted now, on --device. The document of a bench has a name of its own, so
    neither --device nor --overwrite means anything there. --out is written beside its place and put there when all of
    it is there; the shards stay as they are. Exit code 3 on errors, 130 if stopped.
    """
    from dashi import lab
    from dashi.bench.shards import PREFIX
    from dashi.io._shards import read_shards

    shards = read_shards(folders)
    if shards[0].record.command.startswith(PREFIX):
        _require_no_options(shards[0].record.command, device, overwrite=overwrite)
        _merge_bench(shards, out, as_json=json)
        return
    print_merged(lab.merge(folders, out=out, overwrite=overwrite, device=device, events=Shown()), as_json=json)


def _require_no_options(command: str, device: str, *, overwrite: bool) -> None:
    """Refuses what a merge of benches has no use for."""
    if overwrite:
        raise InputError(
            f"--overwrite replaces a run, and shards of `dashi {command}` become a document of a name of its own, "
            "beside what is in --out.", "leave it away.",
        )  # fmt: skip
    if device != "auto":
        raise InputError(
            f"--device {device} is where a fit is made, and shards of `dashi {command}` are measured already.",
            "leave it away.",
        )  # fmt: skip


def _merge_bench(shards: Sequence[ShardFolder], out: Path, *, as_json: bool) -> None:
    """The document of all rows, kept in a folder as `--save` keeps it."""
    from dashi.bench import fft, flow, rollout
    from dashi.bench.shards import PREFIX, save_merged

    pages = {"fft": fft.page, "flow": flow.page, "rollout": rollout.page, "kernels": None}
    record = shards[0].record
    name = record.command.removeprefix(PREFIX)
    if name not in pages:
        raise FileError(
            f"{shards[0]} is of a bench that is not merged.", "name shards of kernels, fft, flow or rollout."
        )
    document, page = save_merged(shards, out, pages[name], "" if name == "kernels" else f"{name}-")
    facts = {"command": record.command, "shards": record.count, "rows": record.total, "document": str(document)}
    if as_json:
        print_json({**facts, "page": str(page)})
    else:
        print_facts({name: str(value) for name, value in facts.items()} | {"page": str(page)})


def print_merged(merged: Merged, *, as_json: bool) -> None:
    """A table for people; with --json the same facts."""
    if as_json:
        print_json(
            {
                "command": merged.command, "out": str(merged.out), "shards": merged.shards, "total": merged.total,
                "unit": merged.unit, "certificate": merged.certificate,
            }
        )  # fmt: skip
        return
    print_facts(
        {
            "merged": f"{merged.shards} shard(s) of dashi {merged.command}, {merged.total} {merged.unit}",
            "certificate": merged.certificate or "none",
            "folder": str(merged.out),
        }
    )
