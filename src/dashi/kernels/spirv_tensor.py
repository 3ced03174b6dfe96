"""Tensor layouts, which the compiler has no words for: shaders declare them with GL_EXT_spirv_intrinsics.

That writes the parameters of a type as literal words, but those of OpTypeTensorLayoutNV are ids of constants.
"""

from __future__ import annotations

import struct
from typing import Final

_HEADER: Final = 5
_BOUND: Final = 3
_TYPE_INT: Final = 21
_CONSTANT: Final = 43
_TENSOR_LAYOUT: Final = 5370
_UINT: Final = (32, 0)


def sizes_as_constants(code: bytes) -> bytes:
    """The module with constants in place of the literals of its tensor layouts; others are given back as they are."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    body: list[tuple[int, ...]] = []
    at = _HEADER
    while at < len(words):
        body.append(words[at : at + (words[at] >> 16)])
        at += words[at] >> 16
    layouts = [i for i in body if i[0] & 0xFFFF == _TENSOR_LAYOUT]
    if not layouts:
        return code
    # The type of the constants must come before them. It is made of nothing, so it may move.
    uint = next(i for i in body if i[0] & 0xFFFF == _TYPE_INT and i[2:] == _UINT)
    first_use = min(body.index(layouts[0]), body.index(uint))
    body.remove(uint)
    body.insert(first_use, uint)
    made: list[int] = list(words[:_HEADER])
    for instruction in body:
        if instruction[0] & 0xFFFF == _TENSOR_LAYOUT:
            head, name, *sizes = instruction
            first = made[_BOUND]
            for size in sizes:
                made += (4 << 16 | _CONSTANT, uint[1], made[_BOUND], size)
                made[_BOUND] += 1
            made += (head, name, *range(first, made[_BOUND]))
        else:
            made += instruction
    return struct.pack(f"<{len(made)}I", *made)
