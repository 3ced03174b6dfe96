"""Codes: fields as bytes of which any prefix decodes, and a longer one is never further from the field; their rates."""

from dashi.filament.code.packing import Packed, Unpacked, pack, unpack
from dashi.filament.code.rates import CoherentPart, RatePoint, Rates, rate

__all__ = ["CoherentPart", "Packed", "RatePoint", "Rates", "Unpacked", "pack", "rate", "unpack"]
