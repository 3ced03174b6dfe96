"""The job `dashi filament track`: frames of vorticity in, the genealogy of their vortices out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dashi.errors import InputError
from dashi.filament.threads.books import Books, keep_books
from dashi.filament.threads.files import thread_table, write_genealogy, write_graphml
from dashi.filament.threads.genealogy import Genealogy
from dashi.filament.threads.tracking import TrackSettings, track
from dashi.flow.windows.sources import Naming, read_vorticity
from dashi.io._files import write_text
from dashi.io._paths import path_of
from dashi.io._whole_folder import Owner, require_replaceable, whole_folder
from dashi.lab._arguments import require_events, require_request, require_types
from dashi.lab._job import AnyPath
from dashi.lab.events import SILENT, Events
from dashi.runtime._notebook import html_table

COMMAND: Final = "filament track"
THREADS: Final = "threads.npz"
GRAPH: Final = "threads.graphml"
TABLE: Final = "threads.json"


@dataclass(frozen=True, kw_only=True)
class TrackRequest:
    """A record of vorticity (the folder of a run, a NetCDF file, a Zarr store), and what counts as a vortex in it."""

    source: AnyPath
    variables: tuple[str, ...] = ()
    """None: as usual; one: vorticity; two: the velocities along x and along y."""
    dims: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of axes, such as {"time": "t"}."""
    member: int = 0
    """Which member of an ensemble."""
    periodic: bool = False
    """Whether the box is periodic for certain, whatever its edges look like."""
    settings: TrackSettings = field(default_factory=TrackSettings)

    def __post_init__(self) -> None:
        require_types(self)


@dataclass(frozen=True, eq=False)
class TrackResult:
    """The genealogy of a record, its books, and the folder that holds them."""

    genealogy: Genealogy
    books: Books
    folder: Path | None

    @property
    def unattributed(self) -> float:
        """Circulation that no edge explains, as a share of all: what vortices exchanged with their surroundings."""
        return self.books.unexplained

    @property
    def document(self) -> dict[str, Any]:
        """Counts, shares and digest, as the command prints them."""
        graph = self.genealogy
        return {
            **graph.counts,
            "unattributed": self.unattributed,
            "frames": len(graph.times),
            "vertices": len(graph.vertices),
            "threshold": graph.threshold,
            "quantum": graph.quantum,
            "accounts": self.books.totals(),
            "digest": graph.digest,
        }

    def __repr__(self) -> str:
        counts = self.genealogy.counts
        return f"<TrackResult: {', '.join(f'{value} {name}' for name, value in counts.items())}>"

    def _repr_html_(self) -> str:
        return html_table(("", "how many"), list(self.genealogy.counts.items()), "Threads")


def track_threads(
    request: TrackRequest, *, out: AnyPath | None = None, overwrite: bool = False, events: Events = SILENT
) -> TrackResult:
    """Tracks the vortices of a record. With `out` the folder gets the genealogy (threads.npz), a graph for other
    programs (threads.graphml), and a table of threads with what became of the circulation (threads.json). Raises
    BooksError where the books do not close, which would be a defect of the tracker."""
    require_request(request, TrackRequest)
    require_events(events)
    place = None if out is None else path_of("out", out)
    owner = _owner(request, overwrite=overwrite)
    if place is not None:
        require_replaceable(place, owner)
    naming = Naming(request.variables, request.dims)
    record = read_vorticity(path_of("source", request.source), naming, periodic=request.periodic)
    if not 0 <= request.member < len(record.values):
        raise InputError(
            f"`member={request.member}` is not among the {len(record.values)} members of the record.",
            f"use 0 to {len(record.values) - 1}.",
        )
    frames = record.values[request.member]
    with events.progress("frames", len(frames), "frames") as advance:
        genealogy = track(frames, record.length, record.times, request.settings, advance)
    books = keep_books(genealogy)
    books.require_closed()
    result = TrackResult(genealogy, books, place)
    if place is not None:
        with whole_folder(place, owner) as folder:
            write_genealogy(folder / THREADS, genealogy)
            write_graphml(folder / GRAPH, genealogy)
            document = {**result.document, "thread_table": thread_table(genealogy)}
            write_text(folder / TABLE, json.dumps(document, indent=2) + "\n")
    return result


def _owner(request: TrackRequest, *, overwrite: bool) -> Owner:
    settings = {
        "source": str(request.source), "variables": list(request.variables), "dims": dict(request.dims),
        "member": request.member, "settings": repr(request.settings),
    }  # fmt: skip
    return Owner(COMMAND, {THREADS, GRAPH, TABLE}, settings=settings, overwrite=overwrite)
