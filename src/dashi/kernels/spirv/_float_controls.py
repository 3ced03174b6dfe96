"""Float controls: execution modes that hold a driver to rounding to nearest even, and to keeping NaN and infinities.

Without them Vulkan leaves the rounding mode open, and lets a driver assume that no NaN or infinity occurs. They are
put into the words of a module when it is loaded, as far as the device offers them: binaries and their digests stay.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

Independence = Literal["all", "32", "none"]
"""Widths whose rounding may be declared apart from the others': every one, 32 bits alone, or none."""

EXTENSION: Final = "SPV_KHR_float_controls"
CORE_SINCE: Final = 0x00010400
CAPABILITY, EXTENSION_OP, ENTRY_POINT, EXECUTION_MODE, TYPE_FLOAT, FUNCTION = 17, 10, 15, 16, 22, 54
PRESERVE_CAPABILITY, RTE_CAPABILITY = 4466, 4467
PRESERVE_MODE, RTE_MODE = 4461, 4462
_HEADER: Final = 5


@dataclass(frozen=True)
class FloatControls:
    """Widths of floats, in bits, for which a device takes these declarations; none, where it takes none."""

    rounding: tuple[int, ...] = ()
    """`RoundingModeRTE`: results are rounded to the nearest, ties to even."""
    special: tuple[int, ...] = ()
    """`SignedZeroInfNanPreserve`: signed zeros, infinities and NaN are values like others."""
    independence: Independence = "all"

    def roundings(self, used: frozenset[int]) -> frozenset[int]:
        """Widths whose rounding a module that uses these widths may declare."""
        offered = used & frozenset(self.rounding)
        if self.independence == "none":
            return offered if offered == used else frozenset()
        coupled = used - {32}
        if self.independence == "32" and not coupled <= offered:
            return offered - coupled
        return offered

    @property
    def text(self) -> str:
        """In words: the widths for which rounding and NaN are declared, and what is held by custom alone."""
        if not self.rounding and not self.special:
            return "by custom"
        both = sorted({*self.rounding} & {*self.special})
        parts = [f"declared for {_widths(both)}"] if both else []
        for name, widths in (("rounding", self.rounding), ("NaN and infinity", self.special)):
            alone = sorted({*widths} - {*both})
            parts += [f"{name} alone declared for {_widths(alone)}"] if alone else []
            parts += [f"{name} by custom"] if not widths else []
        return ", ".join(parts)


def _widths(widths: list[int]) -> str:
    return " ".join(f"fp{width}" for width in widths)


@dataclass(frozen=True)
class _Preamble:
    """What stands before the first function, as far as it matters here: places are indices of words."""

    entry: int
    capabilities: frozenset[int]
    extensions: bool
    modes: frozenset[tuple[int, int]]
    widths: frozenset[int]
    after_capabilities: int
    after_modes: int


def declare_float_controls(binary: bytes, controls: FloatControls) -> bytes:
    """The module with the declarations that the device takes, for the widths of floats that it uses; the same bytes
    where there is nothing to add. The module must have passed `parse`."""
    words = struct.unpack(f"<{len(binary) // 4}I", binary)
    preamble = _read(words)
    declarations = [
        *((PRESERVE_CAPABILITY, PRESERVE_MODE, width) for width in sorted(preamble.widths & {*controls.special})),
        *((RTE_CAPABILITY, RTE_MODE, width) for width in sorted(controls.roundings(preamble.widths))),
    ]
    missing = [
        (capability, mode, width) for capability, mode, width in declarations if (mode, width) not in preamble.modes
    ]
    if not missing:
        return binary
    head: list[int] = []
    for capability in sorted({capability for capability, _, _ in missing} - preamble.capabilities):
        head += [2 << 16 | CAPABILITY, capability]
    if words[1] < CORE_SINCE and not preamble.extensions:
        head += _extension()
    modes: list[int] = []
    for _, mode, width in missing:
        modes += [4 << 16 | EXECUTION_MODE, preamble.entry, mode, width]
    first, second = preamble.after_capabilities, preamble.after_modes
    result = (*words[:first], *head, *words[first:second], *modes, *words[second:])
    return struct.pack(f"<{len(result)}I", *result)


def _extension() -> list[int]:
    data = EXTENSION.encode()
    data += bytes(4 - len(data) % 4)
    return [(len(data) // 4 + 1) << 16 | EXTENSION_OP, *struct.unpack(f"<{len(data) // 4}I", data)]


def _before_functions(words: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """Number, first and end word of each instruction before the first function."""
    at = _HEADER
    while at < len(words) and words[at] & 0xFFFF != FUNCTION:
        length = words[at] >> 16
        yield words[at] & 0xFFFF, at, at + length
        at += length


def _read(words: tuple[int, ...]) -> _Preamble:
    entry, after_capabilities, after_modes = 0, _HEADER, _HEADER
    capabilities: set[int] = set()
    modes: set[tuple[int, int]] = set()
    widths: set[int] = set()
    extensions = False
    named = tuple(_extension()[1:])
    for number, start, end in _before_functions(words):
        if number == CAPABILITY:
            capabilities.add(words[start + 1])
            after_capabilities = end
        elif number == EXTENSION_OP:
            extensions |= words[start + 1 : end] == named
        elif number == ENTRY_POINT:
            entry, after_modes = words[start + 2], end
        elif number == EXECUTION_MODE:
            modes.add((words[start + 2], words[start + 3] if end > start + 3 else 0))
            after_modes = end
        elif number == TYPE_FLOAT:
            widths.add(words[start + 2])
    return _Preamble(
        entry, frozenset(capabilities), extensions, frozenset(modes), frozenset(widths), after_capabilities, after_modes
    )
