"""Memory of a link between two devices: which kind they can have, and the slots made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from dashi.errors import DeviceError, UnsupportedOperationError
from dashi.runtime._program import Program
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.runtime.shared import SharedMemory, modes, shared_memory
from dashi.stream._codecs import LinkCodec
from dashi.stream._model import LinkMode, PayloadSchema
from dashi.types import dtype as dtype_of

LinkWay = Literal["device", "exported", "host", "staging"]
"""How bytes go over a link: memory of one device that both stages use; memory of one GPU that a logical device
exported to another; one allocation of the host that both devices imported; memory of each, and a memcpy."""

WAYS: Final[Mapping[LinkWay, str]] = {
    "device": "both stages are on one device and use one memory; nothing is copied",
    "exported": "both logical devices are on one GPU; its memory was exported by a descriptor, and nothing is copied",
    "host": "both devices imported one allocation of the host; there is no memcpy",
    "staging": "the devices have no memory in common: mapped staging, and a memcpy between",
}
_P2P: Final[frozenset[LinkWay]] = frozenset({"device", "exported"})


@dataclass(frozen=True)
class LinkChoice:
    """The ways to try, the best first, and what a run's record has to say of them."""

    ways: tuple[LinkWay, ...]
    notes: tuple[str, ...] = ()


def modes_of(way: LinkWay, source: Device, target: Device) -> tuple[LinkMode, ...]:
    """The modes that a way serves, its own first: P2P where memory of one GPU is shared, or of the host by two devices
    that compute in it."""
    if way in _P2P:
        return ("P2P",)
    in_place = way == "host" and source.info.type == target.info.type == "reference"
    return ("HOST_STAGING", "P2P") if in_place else ("HOST_STAGING",)


def possible_ways(source: Device, target: Device) -> tuple[LinkWay, ...]:
    """How items can go from a device to another, or to itself, the best first."""
    if source is not target:
        return modes(source, target)
    within: list[LinkWay] = ["device"]
    return (*within, *(mode for mode in modes(source, target) if mode != "exported"))


def choose_ways(
    source: Device, target: Device, mode: LinkMode | None, way: LinkWay | None = None, *, strict: bool
) -> LinkChoice:
    """How a link of that mode and way (None: the best) can go. What was asked for and cannot be had is an error where
    the link is strict; else the host stands in, and the notes say so."""
    possible = possible_ways(source, target)
    pair = f"{source.info.name!r} ({source.info.spec}) and {target.info.name!r} ({target.info.spec})"
    if mode in ("RDMA", "TCP"):
        raise UnsupportedOperationError(
            f"a link between {pair} cannot have mode={mode!r}: both are devices of this machine.",
            "name P2P or HOST_STAGING, or leave `mode` away; RDMA and TCP join stages of several nodes.",
        )
    if way is not None and (way not in possible or mode not in (None, *modes_of(way, source, target))):
        raise UnsupportedOperationError(
            f"a link between {pair} cannot go by way={way!r}" + (f" in mode={mode!r}." if mode else "."),
            f"leave `way` away, or pass one of {', '.join(map(repr, possible))} and its mode.",
        )
    if way is not None:
        return LinkChoice((way,))
    if mode is None:
        return LinkChoice(possible)
    wanted: list[LinkWay] = [one for one in possible if mode in modes_of(one, source, target)]
    if wanted:
        return LinkChoice(tuple(wanted))
    reason = (
        f"{pair} share no memory of a GPU: opaque descriptors join logical devices of one physical device, and neither "
        "dma_buf nor a device group was tried for them"
    )
    if strict:
        raise UnsupportedOperationError(
            f"a link of mode='P2P' cannot be had: {reason}.",
            "use mode='HOST_STAGING', or allow it to stand in: `strict=False`, `fallback: true` in a configuration.",
        )
    return LinkChoice(possible, (f"P2P was asked for and HOST_STAGING stands in: {reason}",))


@dataclass(frozen=True)
class LinkSlot:
    """One slot: the arrays that the producer writes, those that the consumer reads, what lies between, and the
    programs that encode and decode, where there are some."""

    outgoing: Mapping[str, Array]
    incoming: Mapping[str, Array]
    out_block: Array
    in_block: Array
    memory: SharedMemory | None
    encode: Program | None = None
    decode: Program | None = None

    def close(self) -> None:
        """Lets go of the programs; arrays go when nobody uses them."""
        for program in (self.encode, self.decode):
            if program is not None:
                program.close()


@dataclass(frozen=True)
class SlotLayout:
    """Where the fields of what travels lie in a slot of so many bytes."""

    wire: PayloadSchema
    alignment: int
    offsets: Mapping[str, int] = field(init=False)
    nbytes: int = field(init=False)

    def __post_init__(self) -> None:
        offsets, end = dict[str, int](), 0
        for name, one in self.wire.items():
            offsets[name] = end
            end += -(-one.nbytes // self.alignment) * self.alignment
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "nbytes", max(end, self.alignment))

    def fields(self, block: Array) -> dict[str, Array]:
        """The fields as views of a block of bytes."""
        return {
            name: block.device.part(block, self.offsets[name], one.shape, one.element)
            for name, one in self.wire.items()
        }


def make_slots(
    source: Device, target: Device, codec: LinkCodec, window: int, choice: LinkChoice, own_memory: tuple[bool, bool]
) -> tuple[LinkWay, tuple[LinkSlot, ...], tuple[str, ...]]:
    """The slots by the first way that works, and notes on those that did not: drivers refuse what they offer."""
    layout = SlotLayout(codec.wire, max(256, source.part_alignment, target.part_alignment))
    notes = list(choice.notes)
    for number, way in enumerate(choice.ways):
        slots = list[LinkSlot]()
        try:
            for _ in range(window):
                slots.append(_make_slot(source, target, codec, layout, way, own_memory))
        except DeviceError as error:
            for slot in slots:
                slot.close()
            if number + 1 == len(choice.ways):
                raise
            notes.append(f"{way} memory could not be made, {choice.ways[number + 1]} stands in: {error.what}")
        else:
            return way, tuple(slots), tuple(notes)
    raise AssertionError("a link has at least one way")


def _make_slot(
    source: Device, target: Device, codec: LinkCodec, layout: SlotLayout, way: LinkWay, own_memory: tuple[bool, bool]
) -> LinkSlot:
    memory: SharedMemory | None = None
    if way == "device":
        first = second = source.zeros(layout.nbytes, np.uint8)
    else:
        memory = shared_memory(source, target, layout.nbytes, way)
        first, second = memory.first, memory.second
    out_own, in_own = (way == "host" and own for own in own_memory)
    out_block = source.zeros(layout.nbytes, np.uint8) if out_own else first
    in_block = target.zeros(layout.nbytes, np.uint8) if in_own else second
    sent, arrived = layout.fields(out_block), layout.fields(in_block)
    outgoing = {name: _raw(source, codec, sent, name) for name in codec.schema}
    incoming = {name: _raw(target, codec, arrived, name) for name in codec.schema}
    encode, decode = codec.encode(source, outgoing, sent), codec.decode(target, arrived, incoming)
    return LinkSlot(
        outgoing, incoming, out_block, in_block, memory,
        source.program(encode, label=f"encode {codec.name}") if encode else None,
        target.program(decode, label=f"decode {codec.name}") if decode else None,
    )  # fmt: skip


def _raw(device: Device, codec: LinkCodec, wire: Mapping[str, Array], name: str) -> Array:
    """A field as stages see it: what travels itself, or an array beside it."""
    if name in wire:
        return wire[name]
    one = codec.schema[name]
    return device.zeros(one.shape, dtype_of(one.dtype))
