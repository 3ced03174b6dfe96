"""Links: how items go from a stage of one device to the next of another, through W slots that go round.

    link = Link(first, second, {"x": Field((1024,))}, window=3)
    t = 0
    writer = first.program([first.bind("scale", z, a=2.0, out=link.outgoing(t)["x"])])
    arrived = link.send(t, after=[writer.submit(after=link.take(t))])
    reader = second.program([second.bind("reduce_sum", link.incoming(t)["x"])])
    link.release(t, after=[reader.submit(after=arrived)])

Nothing here waits for a device, except `measure`: what must be waited for is handed on as tickets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from dashi.errors import ClosedError
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.landing import Ticket, require_tickets
from dashi.stream._codecs import LinkCodec
from dashi.stream._contracts import ContractLedger
from dashi.stream._link_memory import WAYS, LinkSlot, LinkWay, choose_ways, make_slots, modes_of
from dashi.stream._link_rates import LinkRate, measure_link, single_seconds
from dashi.stream._model import WINDOW, Codec, Field, LinkMode, PayloadSchema
from dashi.stream._ring import Ring


class Link:
    """The way from a device to the next for payloads of one schema (or of `nbytes` bytes: a field "bytes").

    `mode` "P2P" is memory of a GPU that both stages use, "HOST_STAGING" goes through the host; None is the best that
    the two can have. With `strict`, P2P that cannot be had is an error; without, HOST_STAGING stands in, and the record
    has a flag. `way` says what the link is, `notes` why.

    Step t has slot t mod W. A slot is not written again before its consumer has released it, and steps go in order:
    timelines only grow. Producer and consumer may be two threads.
    """

    def __init__(
        self,
        source: Device,
        target: Device,
        schema: Mapping[str, Field] | int,
        *,
        window: int = WINDOW,
        mode: LinkMode | None = None,
        codec: Codec = "none",
        codec_options: Mapping[str, float] | None = None,
        strict: bool = True,
        way: LinkWay | None = None,
        own_memory: bool | None = None,
        name: str = "",
    ) -> None:
        """`way` names one of the ways of the mode; None: the best. `own_memory` says whether, where the way is "host",
        each end has a copy in its device's own memory, made by one DMA; None: hardware has, devices that live in the
        host's memory use that itself."""
        fields = PayloadSchema({"bytes": Field((schema,), "u8")} if isinstance(schema, int) else schema)
        self.source: Final = source
        self.target: Final = target
        self.codec: Final = LinkCodec(codec, fields, dict(codec_options or {}))
        self.asked: Final = mode
        self.strict: Final = strict
        self.name: Final = name or f"the link from {source.info.spec} to {target.info.spec}"
        self._ring: Final = Ring(window, self.name)
        own = (source.info.is_hardware, target.info.is_hardware) if own_memory is None else (own_memory, own_memory)
        self._own_memory: Final = own_memory
        self._asked_way: Final = way
        self.ledger: ContractLedger | None = None
        """What is told of slots that are taken and released, in debug runs."""
        choice = choose_ways(source, target, mode, way, strict=strict)
        self.way: Final[LinkWay]
        self.notes: Final[tuple[str, ...]]
        self._slots: tuple[LinkSlot, ...]
        self.way, self._slots, self.notes = make_slots(source, target, self.codec, window, choice, own)
        self._closed = False

    @property
    def schema(self) -> PayloadSchema:
        """The fields as stages see them."""
        return self.codec.schema

    @property
    def window(self) -> int:
        """How many items may be under way."""
        return self._ring.window

    @property
    def mode(self) -> LinkMode:
        """P2P or HOST_STAGING: what the link is, whatever was asked."""
        served = modes_of(self.way, self.source, self.target)
        return self.asked if self.asked in served else served[0]

    @property
    def dma(self) -> tuple[int, int]:
        """How many copies by the driver's transfer engine an item takes on the way out and in."""
        if self.way == "staging":
            return (1, 1)
        slot = self._slots[0]
        first, second = (slot.memory.first, slot.memory.second) if slot.memory else (slot.out_block, slot.in_block)
        return (int(slot.out_block is not first), int(slot.in_block is not second))

    @property
    def values(self) -> tuple[int, int]:
        """How many steps were sent, and how many released: values of timelines that only grow."""
        return self._ring.values

    # The producer's side

    def take(self, step: int, timeout: float = 0.0) -> list[Ticket]:
        """Makes the next step's slot the producer's: he writes it `after` the tickets. Waits, `timeout` seconds at
        most, until the consumer has submitted what ends its use, then raises BusyError."""
        self._require_open()
        free = self._ring.take(step, timeout)
        if self.ledger is not None:
            self.ledger.use_slot(self.name.removeprefix("the link "), step, self.window)
        return free

    def outgoing(self, step: int) -> Mapping[str, Array]:
        """The arrays on the source that the producer of a step writes."""
        self._require_open()
        return self._slots[self._ring.slot(step)].outgoing

    def send(self, step: int, after: Iterable[Ticket] = ()) -> list[Ticket]:
        """Starts the way of a step that is written after the tickets, and returns at once: what the consumer's work
        comes after."""
        self._require_open()
        tickets: list[Ticket] = require_tickets(after) if after else []
        slot = self._slots[self._ring.slot(step)]
        self._ring.sent(step)
        if slot.encode is not None:
            tickets = [slot.encode.submit(after=tickets)]
        if slot.memory is not None:
            first, second = slot.memory.first, slot.memory.second
            if slot.out_block is not first:
                tickets = [self.source.copy(slot.out_block, first, tickets, by="transfer", queue="download")]
            if self.way == "staging":
                tickets = [slot.memory.hand_over(after=tickets)]
            if slot.in_block is not second:
                tickets = [self.target.copy(second, slot.in_block, tickets, by="transfer", queue="upload")]
        if slot.decode is not None:
            tickets = [slot.decode.submit(after=tickets)]
        return tickets

    # The consumer's side

    def incoming(self, step: int) -> Mapping[str, Array]:
        """The arrays on the target that the consumer of a step reads."""
        self._require_open()
        return self._slots[self._ring.slot(step)].incoming

    def receive(self, step: int) -> Mapping[str, Array]:
        """The arrays that the consumer of the next step reads: the slot is his until he releases it."""
        self._require_open()
        self._ring.receive(step)
        return self._slots[self._ring.slot(step)].incoming

    def release(self, step: int, after: Iterable[Ticket] = ()) -> None:
        """The consumer needs a step no more, once the work is done that the tickets are of."""
        if self.ledger is not None:  # first: behind the release the producer may take the slot
            self.ledger.signal(self.name.removeprefix("the link "), step, self.window)
        self._ring.release(step, after)

    # About it

    def measure(self, *, seconds: float = 0.3) -> LinkRate:
        """Bytes per second and latency, tried with slots like these, of its own."""
        return measure_link(lambda schema: self._like(schema), self.schema, seconds)

    def _like(self, schema: PayloadSchema) -> Link:
        codec = self.codec if schema == self.schema else LinkCodec("none", schema)
        return Link(
            self.source, self.target, schema, window=self.window, mode=self.asked, way=self._asked_way,
            strict=self.strict, own_memory=self._own_memory, name=self.name, codec=codec.name,
            codec_options=codec.options,
        )  # fmt: skip

    @property
    def why(self) -> str:
        """What the link is, in words."""
        out, back = self.dma
        copies = f"; {out} DMA out, {back} in" if out or back else ""
        return "; ".join([f"{self.way}: {WAYS[self.way]}{copies}", *self.notes])

    def record(self) -> dict[str, Any]:
        """What a run's record says of it. `fallback` is true where HOST_STAGING stands in for P2P."""
        return {
            "source": self.source.info.spec,
            "target": self.target.info.spec,
            "asked": self.asked,
            "mode": self.mode,
            "way": self.way,
            "fallback": self.asked is not None and self.asked != self.mode,
            "dma": list(self.dma),
            "window": self.window,
            "bytes": self.schema.nbytes,
            "why": self.why,
        } | self.codec.record()

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{self.name} is closed.", "make a new link, or close it later.")

    def close(self) -> None:
        """Ends its use. Memory goes back when the last work that uses it is done. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
            for slot in self._slots:
                slot.close()
            self._slots = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Link {self.mode} ({self.way}), window {self.window}, {self.schema.nbytes} bytes: {self.name}>"


def transfer_seconds(first: Device, second: Device, nbytes: int) -> float:
    """What an item of so many bytes takes from a device to another by the best way that they have: for
    `dashi.stream.calibrate(..., measure_link=transfer_seconds)`."""
    return single_seconds(Link(first, second, nbytes, window=1))
