"""`dashi bench fft`, `flow` and `rollout`: times beside those of peers. The options they share, the document that they
fill, and how it is kept and shown."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from dashi.cli.options import Json, OneDevice, RunType, complete_peers
from dashi.cli.output import print_json, print_rows, remark
from dashi.cli.progress import progress
from dashi.cli.shard_options import ShardText, shard_of
from dashi.errors import InputError, NoResultError
from dashi.io._files import require_writable

if TYPE_CHECKING:
    from dashi.bench.fft import TransformCase
    from dashi.bench.rollout import RolloutCase
    from dashi.bench.shards import BenchShard
    from dashi.runtime.device import Device

Work = TypeVar("Work")
Document = dict[str, Any]
Cells = list[list[str]]

CaseNumbers = Annotated[
    list[int] | None,
    typer.Option("--case", metavar="NUMBER", help="Only the case of this number, from 0. Repeatable."),
]
Peers = Annotated[
    list[str] | None,
    typer.Option(
        "--peer",
        metavar="NAME",
        help="torch or jax: the same on CUDA. May be given several times.",
        autocompletion=complete_peers,
    ),
]
Save = Annotated[
    Path | None, typer.Option("--save", metavar="DIR", help="Keep the results there, as JSON and Markdown.")
]


class Named(Protocol):
    """What the document says of a peer."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...


@contextmanager
def bench_device(spec: str) -> Generator[tuple[Device, Document]]:
    """An open device that computes, and a document that says where, when and by which command it is filled."""
    import dashi
    from dashi.bench.results import heading

    with dashi.open(spec, validation=False) as device:
        if device.info.type == "null":
            raise NoResultError("the null device computes nothing.", "name another: --device auto, cpu or vulkan:0.")
        date = datetime.now(UTC).isoformat(timespec="seconds")
        yield device, heading(device.info, date, shlex.join(["dashi", *sys.argv[1:]]), dashi.__version__)


@dataclass(frozen=True)
class PeerBench:
    """A bench by its name: how its document becomes tables and a page, and where it is kept, if anywhere."""

    name: str
    tables: Callable[[Document], Sequence[Cells]]
    page: Callable[[Document], str]
    save: Path | None
    part: BenchShard | None = None
    """The rows to measure, where they are not all."""

    def require_writable(self) -> None:
        """Refuses a folder that cannot be written before anything is measured."""
        if self.save is not None and self.part is None:
            require_writable(self.save / f"{self.name}.json")

    def measure(
        self,
        document: Document,
        beside: Sequence[Named],
        work: Sequence[Work],
        noun: str,
        row: Callable[[Work], Document],
        into: str = "rows",
    ) -> None:
        """A row for each piece of work; after each the document is kept, so that Ctrl-C loses none of them."""
        document["peers"] = {peer.name: peer.version for peer in beside}
        document[into] = rows = list[Document]()
        own = work if self.part is None else self.part.share(work)
        with progress("measuring", len(own), noun) as advance:
            for piece in own:
                rows.append(row(piece))
                self.keep(document)
                advance(1)

    @property
    def is_first(self) -> bool:
        """Whether what is measured once, besides the rows, is measured here."""
        return self.part is None or self.part.shard.index == 1

    def is_finished(self, work: Sequence[object], document: Document) -> bool:
        """Whether the folder holds this part already, which is said."""
        if self.part is None or not self.part.is_finished(work, document["device"]):
            return False
        remark(f"shard {self.part.shard} in {self.part.folder} is finished already: nothing is done")
        return True

    def keep_part(self, work: Sequence[object], document: Document) -> None:
        """Keeps the rows of a shard, once all are there."""
        if self.part is not None:
            self.part.keep(work, document)

    def keep(self, document: Document) -> None:
        if self.save is not None and self.part is None:
            from dashi.bench.results import save

            save(document, self.save, self.page(document), f"{self.name}-")

    def print(self, document: Document, *, json: bool) -> None:
        """For programs as it is, for people as tables."""
        if json:
            print_json(document)
            return
        for headings, *rows in self.tables(document):
            print_rows(headings, rows)


def part_of(name: str, shard: str | None, save: Path | None, **options: object) -> BenchShard | None:
    """The part of a bench that was typed; None where all of it is measured. `options` decide what its rows hold."""
    from dashi.bench.shards import BenchShard

    one = shard_of(shard)
    return None if one is None else BenchShard(name, one, save, options=options)


def _load_peers(names: Sequence[str] | None, load: Callable[[str], Work]) -> list[Work]:
    """Peers by name; JAX would take the memory of the whole GPU, unless it is told not to."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    return [load(name) for name in names or ()]


def cases_of(cases: Sequence[Work], numbers: Sequence[int] | None, usual: Sequence[Work]) -> list[Work]:
    """The cases of these numbers; without any, the usual ones."""
    if numbers is None:
        return [*usual]
    wrong = [n for n in numbers if not 0 <= n < len(cases)]
    if wrong:
        raise InputError(f"there is no case {wrong[0]}.", f"use 0 to {len(cases) - 1}.")
    return [cases[n] for n in numbers]


def rollout(
    device: OneDevice = "auto", case: CaseNumbers = None, peer: Peers = None, save: Save = None,
    shard: ShardText = None, json: Json = False,
) -> None:  # fmt: skip
    """What a step of z' = z A takes: step by step, in one workgroup, over tagged workgroups.

    Everything is resident, and each way is checked against NumPy first: other bits are not timed, and give exit code
    1. Times are medians on the device's own clock. Software devices measure the two smallest cases unless told
    otherwise, and compare `rollout` as a whole with a loop recorded by hand. What was measured is kept after each case.
    """
    from dashi.bench import rollout as bench
    from dashi.bench.peers import rollout as peers

    job = PeerBench("rollout", bench.tables, bench.page, save, part_of("rollout", shard, save, peer=peer))
    job.require_writable()
    beside = _load_peers(peer, peers.load)
    with bench_device(device) as (opened, document):
        usual = bench.CASES if opened.info.is_hardware else bench.CASES[:2]

        def row(case: RolloutCase) -> Document:
            ways = bench.measure(opened, case)
            return bench.document(case, ways, {p.name: p.us_per_step(*case.inputs()) for p in beside})

        work = cases_of(bench.CASES, case, usual)
        if job.is_finished(work, document):
            return
        job.measure(document, beside, work, "cases", row)
        if job.is_first:
            document.update(bench.whole_rollout(opened))
        job.keep_part(work, document)
    job.keep(document)
    job.print(document, json=json)
    if not json:
        remark(*bench.remarks(document))
    if any(w["checked"].startswith("WRONG") for r in document["rows"] for w in r["ways"]):
        raise typer.Exit(1)


def fft(
    device: OneDevice = "auto",
    case: CaseNumbers = None,
    n: Annotated[
        list[str] | None,
        typer.Option("--n", metavar="N[,N...]", help="Fields of these sides instead, of any length. Repeatable."),
    ] = None,
    dtype: Annotated[RunType, typer.Option("--dtype", help="The element type, with --n.")] = RunType.float32,
    tunings: Annotated[bool, typer.Option("--tunings", help="Every tuning, not only the one that is used.")] = False,
    peer: Annotated[
        list[str] | None, typer.Option("--peer", metavar="NAME", help="torch: the same on CUDA, by cuFFT.")
    ] = None,
    save: Save = None,
    shard: ShardText = None,
    json: Json = False,
) -> None:
    """What a Fourier transform takes, on arrays that stay on the device.

    Each is checked against NumPy first: other bits are not timed, and give exit code 1. Times are medians on the
    device's own clock. Software devices measure the cases of 128 x 128 unless told otherwise. What was measured is
    kept after each case.
    """
    from dashi.bench import fft as bench
    from dashi.bench.peers import fft as peers

    fields = {"n": n, "dtype": dtype} if n else {}
    job = PeerBench(
        "fft", bench.tables, bench.page, save, part_of("fft", shard, save, **fields, tunings=tunings, peer=peer)
    )
    sides = bench.cases_of_lengths(_lengths(n), str(dtype)) if n else None
    if sides and case:
        raise InputError("--n and --case both say what is measured.", "leave one of them away.")
    job.require_writable()
    beside = _load_peers(peer, peers.load)
    with bench_device(device) as (opened, document):
        usual = [c for c in bench.CASES if opened.info.is_hardware or c.n == 128]

        def row(case: TransformCase) -> Document:
            return bench.measured_row(opened, case, beside, bench.tunings_of(case) if tunings else (None,))

        work = [*sides] if sides else cases_of(bench.CASES, case, usual)
        if job.is_finished(work, document):
            return
        job.measure(document, beside, work, "cases", row)
        job.keep_part(work, document)
    job.print(document, json=json)
    if bench.has_wrong(document["rows"]):
        raise typer.Exit(1)


def _lengths(texts: Sequence[str]) -> list[int]:
    """The numbers of --n, with commas or several times."""
    words = [word.strip() for text in texts for word in text.split(",")]
    for word in words:
        if not (word.isascii() and word.isdigit()) or len(word) > len("1000000000"):
            raise InputError(f"--n {word[:40]} is no length.", "write for instance --n 1000,2187.")
    return [int(word) for word in words]


def flow(
    device: OneDevice = "auto",
    n: Annotated[list[int] | None, typer.Option("--n", metavar="N", help="Points along a side. Repeatable.")] = None,
    dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE", help="float32 or float64.")] = "float32",
    peer: Peers = None,
    save: Save = None,
    shard: ShardText = None,
    json: Json = False,
) -> None:
    """What a step of RK4 takes: four stages of four inverse and one forward transform, dealiased.

    States are resident; two steps are compared with float64 first, and a wrong result gives exit code 1. Times are
    medians on the device's own clock. On the device cpu the solver's --host-fft mode runs in turns with a plain solver
    by SciPy (NumPy where that is not installed). Unless sizes or float64 are asked for, complex transforms follow on a
    GPU, by torch too if it is a peer (all of them: dashi bench fft). What was measured is kept after each size.
    """
    from dashi.bench import fft as fft_bench
    from dashi.bench import flow as bench
    from dashi.bench.peers import fft as fft_peers
    from dashi.bench.peers import flow as peers

    job = PeerBench("flow", bench.tables, bench.page, save, part_of("flow", shard, save, n=n, peer=peer))
    job.require_writable()
    beside = _load_peers(peer, peers.load)
    transforming = [fft_peers.load(p.name) for p in beside if p.name in fft_peers.NAMES]
    with bench_device(device) as (opened, document):
        sizes = n or [*(bench.SIZES if opened.info.is_hardware else bench.SMALL)]
        work = [f"{size} {dtype}" for size in sizes]
        if job.is_finished(work, document):
            return
        job.measure(document, beside, sizes, "sizes", lambda size: bench.measured_row(opened, size, dtype, beside))
        if not n and dtype == "float32" and opened.info.is_hardware and job.is_first:

            def transform(case: TransformCase) -> Document:
                return fft_bench.measured_row(opened, case, transforming)

            whole = replace(job, part=None, save=None if job.part else save)
            whole.measure(document, beside, fft_bench.FIELDS, "transforms", transform, into="transforms")
        job.keep_part(work, document)
    job.print(document, json=json)
    wrong_transforms = fft_bench.has_wrong(document.get("transforms", ()))
    if wrong_transforms or any(not row.get("good", True) for row in document["rows"]):
        raise typer.Exit(1)
