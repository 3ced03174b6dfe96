"""SPIR-V modules as data: parsed defensively, so that nothing malformed goes further than here.

`parse` checks the file word by word: header, instruction lengths, ids. `structure` checks sections, functions
and blocks; `scope` that values are made before they are used, `values` that they are of the right types;
`reflect` reads the interface, `check` holds it against the ABI; `_portable_lint` forbids contraction and
lints. Khronos' own validator runs too where it is installed and a binary is built or added.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from dashi.errors import SpirvError
from dashi.kernels.spirv._ops import OPS, Opcode

MAGIC: Final = 0x07230203
MAX_BYTES: Final = 16 << 20
MAX_VERSION: Final = 0x00010600
_REBUILD: Final = "build the kernel again with `dashi kernels build`."


class Instruction(NamedTuple):
    """One instruction: what it is, the words after the first, and where it stands (in words).

    A tuple, since binaries hold a million of them, and a tuple is made in a third of the time of a dataclass.
    """

    info: Opcode
    words: tuple[int, ...]
    at: int = 0

    @property
    def name(self) -> str:
        return f"Op{self.info.name}"

    @property
    def result_type(self) -> int | None:
        return self.words[0] if self.info.has_type else None

    @property
    def result(self) -> int | None:
        if not self.info.has_result:
            return None
        return self.words[1] if self.info.has_type else self.words[0]

    @property
    def operands(self) -> tuple[int, ...]:
        """The words after result type and result."""
        return self.words[self.info.has_type + self.info.has_result :]

    def used(self) -> Iterable[int]:
        """The ids that it refers to, its result type included."""
        info, words = self.info, self.words
        if info.has_text:
            return self._used_around_text()
        found = [words[at] for at in info.ids]
        return found if info.more_ids is None else [*found, *words[info.more_ids :]]

    def _used_around_text(self) -> Iterator[int]:
        at = 0
        for letter in self.info.layout:
            if letter == "I":
                yield from self.words[at:]
            elif letter == "s":
                at += len(text(self.words[at:])) // 4 + 1
                continue
            elif letter in "Ti":
                yield self.words[at]
            at += 1


@dataclass(frozen=True)
class Module:
    """A parsed module."""

    version: int
    generator: int
    bound: int
    instructions: tuple[Instruction, ...]

    @cached_property
    def defined(self) -> dict[int, Instruction]:
        """Each id and the instruction that makes it."""
        return {i.words[i.info.has_type]: i for i in self.instructions if i.info.has_result}

    def all(self, *names: str) -> Iterator[Instruction]:
        """Instructions of these names ("FAdd", ...), in order."""
        if len(names) == 1:
            return iter(self._named.get(names[0], ()))
        return (i for i in self.instructions if i.info.name in names)

    @cached_property
    def _named(self) -> dict[str, list[Instruction]]:
        """Instructions by name: most questions are about a few of very many."""
        by_name: dict[str, list[Instruction]] = {}
        for instruction in self.instructions:
            by_name.setdefault(instruction.info.name, []).append(instruction)
        return by_name

    def to_bytes(self) -> bytes:
        """The module as a little-endian file."""
        words = [MAGIC, self.version, self.generator, self.bound, 0]
        for instruction in self.instructions:
            words.append((len(instruction.words) + 1) << 16 | instruction.info.number)
            words.extend(instruction.words)
        return struct.pack(f"<{len(words)}I", *words)


def parse(data: bytes) -> Module:
    """The module, or a SpirvError that says what is wrong with the file."""
    words = _words(data)
    version, generator, bound, schema = words[1:5]
    if not 0x00010000 <= version <= MAX_VERSION or version & 0xFF:
        raise refused(f"its version word is 0x{version:08x}, which is no SPIR-V version up to 1.6")
    if schema != 0:
        raise refused(f"its schema word is {schema} instead of 0")
    # Compilers number ids almost without gaps, so a far larger bound is a lie (and drivers allocate by it).
    if not 1 <= bound <= 4 * len(words):
        raise refused(f"its id bound is {bound}, absurd for {len(words)} words")
    module = Module(version, generator, bound, tuple(_instructions(words, bound)))
    _check_uses(module)
    return module


def text(words: tuple[int, ...]) -> bytes:
    """The literal string at the start of `words`, without its end mark."""
    data = struct.pack(f"<{len(words)}I", *words)
    end = data.find(b"\0")
    if end < 0:
        raise refused("it holds a string without an end")
    return data[:end]


def refused(why: str) -> SpirvError:
    """The error for a module that cannot be accepted."""
    return SpirvError(f"the SPIR-V module is refused: {why}.", _REBUILD)


def _check_uses(module: Module) -> None:
    defined = module.defined
    for instruction in module.instructions:
        # Types and constants are built from earlier ones; a circle among them would have no end.
        earlier = instruction.info.is_declared
        for number in instruction.used():
            if number not in defined:
                raise refused(f"{instruction.name} at word {instruction.at} uses id {number}, which nothing defines")
            if earlier and defined[number].at >= instruction.at:
                raise refused(f"{instruction.name} at word {instruction.at} uses id {number} before it is made")


def _words(data: bytes) -> tuple[int, ...]:
    if len(data) > MAX_BYTES:
        raise refused(f"it has {len(data)} bytes, more than the {MAX_BYTES} that a shader may have")
    if len(data) < 20 or len(data) % 4:
        raise refused(f"it has {len(data)} bytes, which is not a whole SPIR-V file (truncated?)")
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if words[0] == 0x03022307:
        raise refused("it is big-endian; dashi reads little-endian words")
    if words[0] != MAGIC:
        raise refused(f"it starts with 0x{words[0]:08x} instead of 0x{MAGIC:08x}")
    return words


def _instructions(words: tuple[int, ...], bound: int) -> Iterator[Instruction]:
    at = 5
    end = len(words)
    defined: set[int] = set()
    while at < end:
        length, op = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > end:
            raise refused(f"the instruction at word {at} claims {length} words, {end - at} are left (truncated?)")
        info = OPS.get(op)
        if info is None:
            raise refused(f"the instruction at word {at} has the number {op}, which no compute shader here may hold")
        instruction = Instruction(info, words[at + 1 : at + length], at)
        if length <= info.least or (info.exact and length != info.least + 1):
            raise refused(f"{instruction.name} at word {at} has {length - 1} operands instead of {info.least}")
        if info.has_result:
            result = words[at + 1 + info.has_type]
            if not 0 < result < bound:
                raise refused(f"{instruction.name} at word {at} defines id {result}, outside 1..{bound - 1}")
            if result in defined:
                raise refused(f"{instruction.name} at word {at} defines id {result} a second time")
            defined.add(result)
        yield instruction
        at += length
