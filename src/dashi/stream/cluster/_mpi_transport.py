"""Messages by MPI, with its fault tolerance (ULFM): the only module that knows mpi4py.

Items go into receives that were posted before (a ring), all else is probed for. Every call returns at once, but for
`recover`, which agrees with the other ranks on who is left (Open MPI 5.0 cannot do that in the background).
"""

from __future__ import annotations

import atexit
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dashi.errors import FeatureError, InputError, RankLostError, install_extra
from dashi.stream.cluster._messages import LARGEST_BYTES, Kind, Message, decode, encode
from dashi.stream.cluster._transport import RanksLost, Transport

if TYPE_CHECKING:
    from dashi.types import HostArray

_ITEMS, _REST = 1, 2
"""Tags: of items, which go into rings, and of all else."""
_LOOK_S = 0.02
"""How often a rank asks whether others were lost; what it sends and receives tells it sooner."""


@dataclass(eq=False)
class _Ring:
    """Places for items, each with its posted receive."""

    source: int
    places: list[HostArray]
    requests: list[Any]
    next: int = 0


class MpiTransport(Transport):
    """Ranks of an MPI job."""

    def __init__(self, communicator: Any = None) -> None:
        self._mpi = load_mpi()
        world = self._mpi.COMM_WORLD if communicator is None else communicator
        self._comm: Any = world.Dup()
        self._errors(self._comm)
        self.rank, self.size = self._comm.rank, self._comm.size
        self.name = f"MPI ({' '.join([self._mpi.get_vendor()[0], '.'.join(map(str, self._mpi.get_vendor()[1]))])})"
        self._numbers: list[int] = list(range(self.size))
        """The number of each rank of the communicator as it is now."""
        self._ring: _Ring | None = None
        self._sending: deque[tuple[Any, bytearray]] = deque()
        self._looked = 0.0
        self._lost: frozenset[int] = frozenset()

    def _errors(self, comm: Any) -> None:
        comm.Set_errhandler(self._mpi.ERRORS_RETURN)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except self._mpi.Exception as error:
            if error.Get_error_class() in (
                self._mpi.ERR_PROC_FAILED,
                self._mpi.ERR_PROC_FAILED_PENDING,
                self._mpi.ERR_REVOKED,
            ):
                raise RanksLost(str(error)) from error
            raise RankLostError(
                f"MPI reports {error.Get_error_string()}.", "look at the messages of mpiexec; start the chain again."
            ) from error

    def open_ring(self, source: int, window: int, nbytes: int) -> None:
        self._cancel_ring()
        places: list[HostArray] = [np.empty(nbytes, np.uint8) for _ in range(window)]
        self._ring = _Ring(source, places, [])
        for place in places:
            self._ring.requests.append(self._post(place))

    def _post(self, place: HostArray) -> Any:
        assert self._ring is not None
        return self._call(self._comm.Irecv, [place, self._mpi.BYTE], self._numbers.index(self._ring.source), _ITEMS)

    def _cancel_ring(self) -> None:
        ring, self._ring = self._ring, None
        for request in ring.requests if ring is not None else ():
            try:
                if request is not None and not request.Test():
                    request.Cancel()
                    request.Free()
            except self._mpi.Exception:
                pass  # its communicator is gone, and so is what was to be received

    def release(self, message: Message) -> None:
        ring = self._ring
        if ring is not None and message.slot >= 0:
            ring.requests[message.slot] = self._post(ring.places[message.slot])

    def send(self, target: int, message: Message) -> None:
        encoded = encode(message)
        if len(encoded) > LARGEST_BYTES:
            raise InputError(f"a message of {len(encoded)} bytes.", f"keep items below {LARGEST_BYTES} bytes.")
        tag = _ITEMS if message.kind == Kind.ITEM else _REST
        request = self._call(self._comm.Isend, [encoded, self._mpi.BYTE], self._numbers.index(target), tag)
        self._sending.append((request, encoded))

    def receive(self) -> Message | None:
        self._look()
        while self._sending and self._call(self._sending[0][0].Test):
            self._sending.popleft()
        return self._receive_rest() or self._receive_item()

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        if self._comm.Is_revoked() or self._comm.Get_failed().size:
            raise RanksLost("ranks are gone")

    def _receive_rest(self) -> Message | None:
        status = self._mpi.Status()
        probed = self._call(self._comm.Improbe, self._mpi.ANY_SOURCE, _REST, status)
        if probed is None:
            return None
        encoded = bytearray(status.Get_count(self._mpi.BYTE))
        self._call(probed.Recv, [encoded, self._mpi.BYTE])
        return decode(encoded, self._numbers[int(status.Get_source())])

    def _receive_item(self) -> Message | None:
        ring = self._ring
        if ring is None or ring.requests[ring.next] is None:
            return None
        status = self._mpi.Status()
        if not self._call(ring.requests[ring.next].Test, status):
            return None
        slot = ring.next
        ring.requests[slot], ring.next = None, (slot + 1) % len(ring.places)
        return decode(ring.places[slot].data[: status.Get_count(self._mpi.BYTE)], ring.source, slot)

    def recover(self) -> frozenset[int]:
        comm = self._comm
        if not comm.Is_revoked():
            comm.Revoke()
        self._cancel_ring()
        self._sending.clear()
        survivors = comm.Shrink()
        self._errors(survivors)
        group, old = survivors.Get_group(), comm.Get_group()
        places: list[int] = group.Translate_ranks(list(range(group.size)), old)
        self._numbers = [self._numbers[place] for place in places]
        self._comm = survivors
        self._lost = frozenset(range(self.size)) - frozenset(self._numbers)
        return self._lost

    def close(self) -> None:
        deadline = time.monotonic() + 5.0
        try:
            while self._sending and time.monotonic() < deadline:
                if self._call(self._sending[0][0].Test):
                    self._sending.popleft()
                else:
                    time.sleep(0.001)
        except (RanksLost, RankLostError):
            pass  # whoever is gone needs nothing more
        self._cancel_ring()
        if self._lost:
            # All are here before anyone leaves, so that nobody's last words are lost.
            with suppress(self._mpi.Exception):
                self._comm.Barrier()
        else:
            atexit.register(_finalize, self._mpi)


def _finalize(mpi: Any) -> None:
    if not mpi.Is_finalized():
        mpi.Finalize()


def load_mpi() -> Any:
    """mpi4py's MPI, or a FeatureError that says how to get it."""
    try:
        import mpi4py

        # Open MPI 5.0.11 was seen to hang at the end of jobs that had lost a rank; those end without MPI_Finalize.
        mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise FeatureError(
            f"chains over machines need MPI, which is not here ({error}).", f"{install_extra('cluster')}."
        ) from error
    if not hasattr(MPI.Comm, "Shrink"):
        raise FeatureError(
            "this mpi4py has no fault tolerance (MPI_Comm_shrink).",
            f"use Open MPI 5 or newer: {install_extra('cluster')}.",
        )
    return MPI
