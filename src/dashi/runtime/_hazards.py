"""Hazards between recorded commands, by byte range: where barriers must stand, and whether those that stand suffice.

A command reads and writes ranges of bytes. Two commands that touch a byte in common, at least one of them writing it,
must run in order. `place_barriers` finds the places while a program is recorded; `hazards` derives the pairs in another
way, from the last writer and reader of every byte, and `check_barriers` holds the places to them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal, NamedTuple, Protocol

from dashi.errors import HazardError
from dashi.runtime.info import Barriers

Range = tuple[int, int, int]
"""(memory, first byte, byte after the last)."""

HazardKind = Literal["read after write", "write after write", "write after read"]


class RecordedCommand(Protocol):
    """What is recorded: the ranges of bytes that it reads and those that it writes."""

    @property
    def reads(self) -> tuple[Range, ...]: ...

    @property
    def writes(self) -> tuple[Range, ...]: ...


class Touched(NamedTuple):
    """A command of which nothing is known but the bytes that it touches."""

    reads: tuple[Range, ...]
    writes: tuple[Range, ...]


class Barrier(IntEnum):
    """What stands before a command. A wait lets it overwrite what others have read; a flush also lets it see, or
    overwrite, what they wrote (Vulkan 1.3, 7.1)."""

    NONE = 0
    WAIT = 1
    FLUSH = 2


class Hazard(NamedTuple):
    """Two commands, by their indices, that must run in order, and the first bytes that they share."""

    kind: HazardKind
    first: int
    second: int
    bytes: Range


@dataclass(frozen=True)
class BarrierProof:
    """What a check went through: commands, the hazards between them, and the barriers that cover every one."""

    commands: int
    hazards: int
    barriers: int


@dataclass(frozen=True)
class Batch:
    """Commands that are submitted together, what stands before each (a `Barrier`), and what each is called. A batch
    begins after all work that was submitted before it."""

    commands: Sequence[RecordedCommand]
    barriers: Sequence[int]
    names: Sequence[str]

    def check(self) -> BarrierProof:
        """Proves that the barriers cover every hazard, or raises a HazardError."""
        return check_barriers(self.commands, self.barriers, self.names)


class _Sets(NamedTuple):
    """A command's ranges by number, and the numbers of all ranges that it must not meet unordered."""

    reads: frozenset[int]
    writes: frozenset[int]
    not_written: frozenset[int]
    not_read: frozenset[int]


_NOTHING: Final[frozenset[int]] = frozenset()


def place_barriers(commands: Sequence[RecordedCommand], mode: Barriers = "auto") -> bytes:
    """A `Barrier` for each command. With "auto" one stands where a command would race with those since the last
    barrier; "all" puts one before each, "none" none."""
    if mode != "auto":
        return bytes([Barrier.FLUSH if mode == "all" else Barrier.NONE]) * len(commands)
    sets = _sets(commands)
    placed = bytearray(len(commands))
    # What was read since the last barrier of any kind, and written since the last flush.
    # Sets are copied only where they grow: in a chain every command begins anew.
    read: set[int] | frozenset[int] = _NOTHING
    written: set[int] | frozenset[int] = _NOTHING
    for i, command in enumerate(commands):
        reads, writes, not_written, not_read = sets[id(command)]
        if not written.isdisjoint(not_written):
            placed[i] = 2
            read, written = reads, writes
            continue
        if not read.isdisjoint(not_read):
            placed[i] = 1
            read = reads
        elif isinstance(read, set):
            read |= reads
        else:
            read = set(read | reads)
        if isinstance(written, set):
            written |= writes
        else:
            written = set(written | writes)
    return bytes(placed)


def _sets(commands: Iterable[RecordedCommand]) -> dict[int, _Sets]:
    """The sets of each command, by its identity: programs repeat few commands many times."""
    different = {id(command): command for command in commands}
    ranges = {r for command in different.values() for r in (*command.reads, *command.writes)}
    overlapping = _overlapping(ranges)
    sets: dict[int, _Sets] = {}
    for key, command in different.items():
        reads = frozenset([overlapping[r][0] for r in command.reads])
        writes = frozenset([overlapping[r][0] for r in command.writes])
        after_reads = _NOTHING.union(*[overlapping[r][1] for r in command.writes])
        sets[key] = _Sets(reads, writes, after_reads.union(*[overlapping[r][1] for r in command.reads]), after_reads)
    return sets


def _overlapping(ranges: Iterable[Range]) -> dict[Range, tuple[int, set[int]]]:
    """A number for each range, and the numbers of those that share bytes with it, its own among them."""
    numbered: dict[Range, tuple[int, set[int]]] = {}
    near: list[Range] = []
    for number, current in enumerate(sorted(ranges)):
        memory, start, end = current
        if start >= end:
            numbered[current] = (number, set())
            continue
        # Sorted by their start: what ended before this one starts meets none of those to come.
        near = [r for r in near if r[0] == memory and r[2] > start]
        for other in near:
            numbered[other][1].add(number)
        numbered[current] = (number, {number, *(numbered[other][0] for other in near)})
        near.append(current)
    return numbered


class _Piece:
    """Bytes that the same commands touched last."""

    __slots__ = ("end", "reader", "start", "writer")

    def __init__(self, start: int, end: int, writer: int = -1, reader: int = -1) -> None:
        self.start, self.end, self.writer, self.reader = start, end, writer, reader


class _Ledger:
    """The last writer, and the last reader since, of every byte of one piece of memory."""

    def __init__(self) -> None:
        self._pieces: list[_Piece] = []

    def pieces(self, start: int, end: int) -> list[_Piece]:
        """The pieces that cover exactly [start, end), cut or made as needed."""
        first = self._cut(start)
        last = self._cut(end)
        filled: list[_Piece] = []
        at = start
        for piece in self._pieces[first:last]:
            if piece.start > at:
                filled.append(_Piece(at, piece.start))
            filled.append(piece)
            at = piece.end
        if at < end:
            filled.append(_Piece(at, end))
        self._pieces[first:last] = filled
        return filled

    def _cut(self, at: int) -> int:
        """The index of the first piece that starts at a byte or after it; one that spans the byte is cut in two."""
        index = bisect_left(self._pieces, at, key=lambda piece: piece.start)
        if index and self._pieces[index - 1].end > at:
            before = self._pieces[index - 1]
            self._pieces.insert(index, _Piece(at, before.end, before.writer, before.reader))
            before.end = at
        return index


def hazards(commands: Iterable[RecordedCommand]) -> Iterator[Hazard]:
    """Every pair of commands that must run in order and that no pair between them implies: each byte's reader after
    its last writer, each writer after the last writer and the last reader."""
    ledgers: dict[int, _Ledger] = {}
    for i, command in enumerate(commands):
        accesses = [(r, False) for r in command.reads] + [(r, True) for r in command.writes]
        touched: list[tuple[_Ledger, Range, bool]] = []
        for (memory, start, end), writing in accesses:
            if start < end:
                ledger = ledgers.setdefault(memory, _Ledger())
                touched.append((ledger, (memory, start, end), writing))
                for piece in ledger.pieces(start, end):
                    yield from _met(piece, memory, i, writing=writing)
        # A command does not race with itself: it is noted once all of its own ranges were looked at.
        for ledger, (_, start, end), writing in touched:
            for piece in ledger.pieces(start, end):
                if writing:
                    piece.writer, piece.reader = i, -1
                else:
                    piece.reader = i


def _met(piece: _Piece, memory: int, second: int, *, writing: bool) -> Iterator[Hazard]:
    place = (memory, piece.start, piece.end)
    if piece.writer >= 0:
        yield Hazard("write after write" if writing else "read after write", piece.writer, second, place)
    if writing and piece.reader >= 0:
        yield Hazard("write after read", piece.reader, second, place)


def check_barriers(
    commands: Sequence[RecordedCommand], placed: Sequence[int], names: Sequence[str] = ()
) -> BarrierProof:
    """Proves that barriers (a `Barrier` before each command) cover every hazard; else raises a HazardError that names
    the first pair that nothing orders."""
    flush, wait, last_flush, last_wait = [0] * len(commands), [0] * len(commands), -1, -1
    for i, kind in enumerate(placed):
        last_flush = i if kind == Barrier.FLUSH else last_flush
        last_wait = i if kind != Barrier.NONE else last_wait
        flush[i], wait[i] = last_flush, last_wait
    count = 0
    for kind, first, second, (memory, start, end) in hazards(commands):
        count += 1
        # A barrier before command b orders all before it with b and all after: it covers first < b <= second.
        latest = wait[second] if kind == "write after read" else flush[second]
        if latest <= first:
            earlier, later = (f"{i} ({names[i]})" if i < len(names) else f"{i}" for i in (first, second))
            raise HazardError(
                f"no barrier orders command {later} after command {earlier}: {kind}, bytes {start} to {end} of memory "
                f"{memory}.",
                'record the program with barriers="auto", or put a barrier between the two.',
            )
    return BarrierProof(len(commands), count, sum(1 for kind in placed if kind))
