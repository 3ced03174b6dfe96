"""What a link does to a payload on its way: nothing, planes of ternary fields, or less precision.

A codec says which fields it sends instead of those of the payload (`wire`), and records the steps of kernels that make
the ones of the others on either side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from dashi.errors import InputError
from dashi.kernels.pq._planes import BLOCK, SUPER, WORD
from dashi.runtime._steps import AnyStep
from dashi.runtime.array import Array
from dashi.runtime.device import Device
from dashi.stream._model import LOSSY_CODECS, Codec, Field, PayloadSchema

Arrays = Mapping[str, Array]
_CODECS: Final = get_args(Codec)
KEEP: Final = 0.25
"""The share of values that `prune` keeps unless it is said: a value travels with its place."""


@dataclass(frozen=True)
class FieldCodec:
    """How fields of one element type travel: as which parts, by the ends of their names, and the steps to those and
    back."""

    takes: str
    parts: Callable[[Field, float], Mapping[str, Field]]
    encode: Callable[[Device, Array, Arrays], Sequence[AnyStep]]
    decode: Callable[[Device, Arrays, Array], Sequence[AnyStep]]


def _plane_parts(one: Field, _: float) -> Mapping[str, Field]:
    n = math.prod(one.shape)
    words = {"support": WORD, "signs": WORD, "blocks": BLOCK, "supers": SUPER}
    return {part: Field((-(-n // sites),), "u32") for part, sites in words.items()}


def _pack(device: Device, x: Array, parts: Arrays) -> Sequence[AnyStep]:
    count = device.empty(1, "u32")
    planes = [parts[name] for name in ("support", "signs", "blocks", "supers")]
    return [device.bind("pq_pack_bits", x.reshape(-1), out=[*planes, count])]


def _unpack(device: Device, parts: Arrays, x: Array) -> Sequence[AnyStep]:
    planes = [parts[name] for name in ("support", "signs", "blocks", "supers")]
    return [device.bind("pq_unpack_bits", *planes, out=x.reshape(-1), n=x.size)]


def _kept_count(one: Field, share: float) -> int:
    return max(1, math.ceil(share * math.prod(one.shape))) if math.prod(one.shape) else 0


def _pruned_parts(one: Field, share: float) -> Mapping[str, Field]:
    kept = _kept_count(one, share)
    return {"values": Field((kept,), "f32"), "places": Field((kept,), "u32")}


def _prune(device: Device, x: Array, parts: Arrays) -> Sequence[AnyStep]:
    """The values of greatest magnitude, the first of equal ones, and where they were."""
    flat, places = x.reshape(-1), parts["places"]
    size = device.bind("abs", flat)
    largest = device.bind("top_k", size.outputs[0], out=[device.empty(places.size), places], k=places.size)
    return [size, largest, device.bind("gather", flat, places, out=parts["values"])]


def _spread(device: Device, parts: Arrays, x: Array) -> Sequence[AnyStep]:
    nothing = device.zeros(x.size)
    return [device.bind("scatter", nothing, parts["places"], parts["values"], out=x.reshape(-1))]


def _narrow(kernel: str, dtype: str) -> FieldCodec:
    return FieldCodec(
        "f32",
        lambda one, _: {dtype: Field(one.shape, "u16" if dtype == "bf16" else dtype)},
        lambda device, x, parts: [device.bind(f"to_{kernel}", x, out=parts[dtype])],
        lambda device, parts, x: [device.bind(f"from_{kernel}", parts[dtype], out=x)],
    )


_FIELD_CODECS: Final[Mapping[Codec, FieldCodec]] = {
    "planes": FieldCodec("i8", _plane_parts, _pack, _unpack),
    "f16": _narrow("f16", "f16"),
    "bf16": _narrow("bf16", "bf16"),
    "prune": FieldCodec("f32", _pruned_parts, _prune, _spread),
}


def coded_fields(codec: Codec, schema: PayloadSchema) -> tuple[str, ...]:
    """The fields that a codec does not send as they are."""
    takes = _FIELD_CODECS[codec].takes if codec in _FIELD_CODECS else None
    return tuple(name for name, form in schema.items() if form.dtype == takes)


def wire_schema(codec: Codec, schema: PayloadSchema, keep: float = KEEP) -> PayloadSchema:
    """What a codec sends of a payload. `keep` is the share of values that `prune` keeps."""
    coded = coded_fields(codec, schema)
    sent: dict[str, Field] = {}
    for name, form in schema.items():
        if name in coded:
            for part, sent_form in _FIELD_CODECS[codec].parts(form, keep).items():
                if (full := f"{name}.{part}") in schema or full in sent:
                    raise InputError(
                        f"the codec {codec!r} sends the field {name!r} as {full!r}, and the payload has a field "
                        "of that name.",
                        f"call the field {full!r} otherwise, or choose another codec for this link.",
                    )
                sent[full] = sent_form
        else:
            sent[name] = form
    return PayloadSchema(sent)


@dataclass(frozen=True)
class LinkCodec:
    """A codec for payloads of one schema. Fields that it has nothing to say of travel as they are."""

    name: Codec
    schema: PayloadSchema
    options: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        if self.name not in _CODECS:
            raise InputError(
                f"codec={self.name!r} is none of {', '.join(map(repr, _CODECS))}.", "leave it away: 'none'."
            )
        unknown = sorted(set(self.options) - ({"keep"} if self.name == "prune" else set()))
        if unknown:
            raise InputError(
                f"the codec {self.name!r} has no option {unknown[0]!r}.",
                "leave it away; `prune` alone has one, `keep`: the share of values to keep.",
            )
        if not 0 < self.keep <= 1:
            raise InputError(f"prune keeps a share of {self.keep:g}.", "pass a `keep` above 0, and 1 at most.")
        if self.name != "none" and not self.coded:
            takes = _FIELD_CODECS[self.name].takes
            raise InputError(
                f"the codec {self.name!r} is for fields of {takes}, and the payload has none: {self.schema!r}.",
                "choose another codec for this link, or 'none'.",
            )
        wire_schema(self.name, self.schema, self.keep)  # names that stand twice are found now

    @property
    def keep(self) -> float:
        """The share of values that `prune` keeps."""
        return self.options.get("keep", KEEP)

    @property
    def lossy(self) -> bool:
        """Whether what arrives may differ from what was sent."""
        return self.name in LOSSY_CODECS

    @property
    def coded(self) -> tuple[str, ...]:
        """The fields that do not travel as they are."""
        return coded_fields(self.name, self.schema)

    @property
    def wire(self) -> PayloadSchema:
        """What travels: the field "x" as it is, or its parts "x.values" and the like."""
        return wire_schema(self.name, self.schema, self.keep)

    def encode(self, device: Device, raw: Arrays, wire: Arrays) -> list[AnyStep]:
        """Steps that make what travels from what was written."""
        codec = _FIELD_CODECS.get(self.name)
        return [s for n in self.coded if codec for s in codec.encode(device, raw[n], _parts(wire, n))]

    def decode(self, device: Device, wire: Arrays, raw: Arrays) -> list[AnyStep]:
        """Steps that make what is read from what travelled."""
        codec = _FIELD_CODECS.get(self.name)
        return [s for n in self.coded if codec for s in codec.decode(device, _parts(wire, n), raw[n])]

    def record(self) -> dict[str, Any]:
        """What a run's record says of it."""
        facts: dict[str, Any] = {"codec": self.name, "lossy": self.lossy}
        if self.name != "none":
            facts["bytes"] = [self.schema.nbytes, self.wire.nbytes]
            facts["fields"] = list(self.coded)
        if self.name == "prune":
            facts["keep"] = self.keep
        return facts


def _parts(wire: Arrays, name: str) -> Arrays:
    return {key.removeprefix(f"{name}."): array for key, array in wire.items() if key.startswith(f"{name}.")}
