"""What ranks of a chain send one another: a fixed header, a small document, arrays. No pickles.

bytes 0..3    b"DSH1"
byte  4       kind
bytes 8..11   generation: how often the chain was put together anew; older ones are not for this chain
bytes 16..23  step
bytes 24..27  length of the document, JSON: what the kind needs, and name, type and shape of each array
bytes 64...   the document, then each array; all begin at multiples of 64
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import numpy as np

from dashi.errors import InputError
from dashi.types import HostArray

ALIGNMENT = 64
MAGIC = b"DSH1"
_HEADER = struct.Struct("<4sB3xI4xQI")
LARGEST_BYTES = (1 << 31) - 1
"""Bytes that one message may have: MPI counts them in an int."""
_LARGEST_DOCUMENT = 1 << 20
_ALLOWED_KINDS = "biufc"


class Kind(IntEnum):
    """What a message is."""

    PLAN = 1
    ITEM = 2
    ACK = 3
    SNAPSHOT = 4
    FAILURE = 5
    FINISH = 6
    REPORT = 7
    END = 8


@dataclass(frozen=True, eq=False)
class Message:
    """One message. `source` is the rank it came from; `slot` is the place in the ring of an item that arrived, which
    has to be released."""

    kind: Kind
    generation: int
    step: int = 0
    document: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    arrays: Mapping[str, HostArray] = field(default_factory=lambda: MappingProxyType({}))
    source: int = -1
    slot: int = -1


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def encoded_size(message: Message) -> int:
    """The bytes that `encode` needs for a message."""
    document, arrays = _describe(message)
    return ALIGNMENT + _aligned(len(document)) + sum(_aligned(each.nbytes) for each in arrays)


def encode(message: Message) -> bytearray:
    """The message as bytes."""
    document, arrays = _describe(message)
    place = ALIGNMENT + _aligned(len(document))
    encoded = bytearray(place + sum(_aligned(each.nbytes) for each in arrays))
    _HEADER.pack_into(encoded, 0, MAGIC, message.kind, message.generation, message.step, len(document))
    encoded[ALIGNMENT : ALIGNMENT + len(document)] = document
    for each in arrays:
        target = np.frombuffer(encoded, each.dtype, each.size, place).reshape(each.shape)
        target[...] = each
        place += _aligned(each.nbytes)
    return encoded


def _describe(message: Message) -> tuple[bytes, list[HostArray]]:
    arrays = {name: np.asarray(values) for name, values in message.arrays.items()}
    for name, values in arrays.items():
        if values.dtype.kind not in _ALLOWED_KINDS:
            raise InputError(
                f"{name!r} has the element type {values.dtype}, which is no number.",
                "send arrays of truth values, integers or floats.",
            )
    fields = [[name, values.dtype.str, list(values.shape)] for name, values in arrays.items()]
    document = json.dumps({**message.document, "arrays": fields}, separators=(",", ":")).encode()
    if len(document) > _LARGEST_DOCUMENT:
        raise InputError(f"a message has a document of {len(document)} bytes.", "send large values as arrays.")
    return document, list(arrays.values())


def decode(encoded: bytes | bytearray | memoryview, source: int = -1, slot: int = -1) -> Message:
    """The message of these bytes; its arrays show them, read-only. Raises InputError for anything else."""
    view = memoryview(encoded).toreadonly()
    if len(view) < ALIGNMENT or bytes(view[:4]) != MAGIC:
        raise InputError(f"{len(view)} bytes of rank {source} are no message of a chain.", _SAME_VERSION)
    _, kind, generation, step, length = _HEADER.unpack_from(view)
    if length > min(_LARGEST_DOCUMENT, len(view) - ALIGNMENT) or kind not in set(Kind):
        raise InputError(f"a message of rank {source} has a damaged header.", _SAME_VERSION)
    try:
        document = json.loads(bytes(view[ALIGNMENT : ALIGNMENT + length]))
        fields = document.pop("arrays")
        arrays = dict[str, HostArray]()
        place = ALIGNMENT + _aligned(length)
        for name, code, shape in fields:
            dtype, size = np.dtype(code), math.prod(shape)
            if dtype.kind not in _ALLOWED_KINDS or any(type(extent) is not int or extent < 0 for extent in shape):
                raise ValueError(code)
            arrays[name] = np.frombuffer(view, dtype, size, place).reshape(shape)
            place += _aligned(size * dtype.itemsize)
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
        raise InputError(f"a message of rank {source} is damaged: {error}.", _SAME_VERSION) from error
    return Message(Kind(kind), generation, step, document, arrays, source, slot)


_SAME_VERSION = "run the same version of dashi on every rank."
