"""Codes: fields as bytes of which any prefix decodes, and a longer one is never further from the field."""

from dashi.filament.code.packing import Packed, Unpacked, pack, unpack

__all__ = ["Packed", "Unpacked", "pack", "unpack"]
