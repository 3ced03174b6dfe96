"""Threads: the identity of vortices through time. Blobs of frames, matched, with splits and merges: a genealogy, its
books, its files."""

from dashi.filament.threads.assignment import MatchWeights
from dashi.filament.threads.blobs import Blobs, find_blobs
from dashi.filament.threads.books import Books, BooksDefect, Entry, keep_books
from dashi.filament.threads.files import read_genealogy, thread_table, write_genealogy, write_graphml
from dashi.filament.threads.genealogy import Genealogy, Lifetime, Vertices
from dashi.filament.threads.linking import Edge, EdgeKind, link
from dashi.filament.threads.tracking import TrackSettings, track

__all__ = [
    "Blobs",
    "Books",
    "BooksDefect",
    "Edge",
    "EdgeKind",
    "Entry",
    "Genealogy",
    "Lifetime",
    "MatchWeights",
    "TrackSettings",
    "Vertices",
    "find_blobs",
    "keep_books",
    "link",
    "read_genealogy",
    "thread_table",
    "track",
    "write_genealogy",
    "write_graphml",
]
