"""The types of a module and of its values: what the rules of `arithmetic` and `values` ask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dashi.kernels.spirv._module import Instruction, Module, refused

Shape = tuple[str, int, int]
"""What a scalar or vector is: "i", "f" or "b", bits, lanes."""

OPERANDS: Final = "has operands of the wrong type"
NOT_OF_VALUES: Final = frozenset({"TypeVoid", "TypeFunction"})
_INDEXED: Final = frozenset({"TypeVector", "TypeMatrix", "TypeArray", "TypeRuntimeArray"})


def wrong(i: Instruction, why: str) -> Exception:
    """The error for an instruction that asks for something else than it gets."""
    return refused(f"{i.name} at word {i.at} {why}")


class Types:
    """The types of one module, and of its values."""

    def __init__(self, module: Module) -> None:
        self.defined = module.defined
        self.shapes: dict[int | None, Shape] = {}
        self.pointers: dict[int | None, tuple[int, int]] = {}
        self.values: dict[int, int] = {}
        """The type of every value by its id."""

    def declare(self, i: Instruction) -> None:
        name, words = i.info.name, i.words
        part = self.shapes.get(words[1]) if name in ("TypeVector", "TypeMatrix") else None
        if name == "TypeInt":
            self.shapes[words[0]] = ("i", words[1], 1)
        elif name == "TypeFloat":
            self.shapes[words[0]] = ("f", words[1], 1)
        elif name == "TypeBool":
            self.shapes[words[0]] = ("b", 1, 1)
        elif name == "TypeVector" and part is not None:
            self.shapes[words[0]] = (part[0], part[1], words[2])
        elif name == "TypePointer":
            self.pointers[words[0]] = (words[1], words[2])
        if not self._is_sound(name, words, part):
            raise wrong(i, "is no type that a kernel may have")

    def _is_sound(self, name: str, words: Sequence[int], part: Shape | None) -> bool:
        """Whether a type is made of what it may be made of."""
        match name:
            case "TypeInt":
                return words[1] in (8, 16, 32, 64) and words[2] in (0, 1)
            case "TypeFloat":
                return words[1] in (16, 32, 64) and len(words) == 2
            case "TypeVector":
                return part is not None and part[2] == 1 and 2 <= words[2] <= 4
            case "TypeMatrix":
                return part is not None and part[0] == "f" and part[2] > 1 and 2 <= words[2] <= 4
            case "TypeArray":
                length = self.defined[words[2]]
                known = length.info.name != "Constant" or 0 < length.words[2] < 1 << 31
                return self.is_data(words[1]) and length.info.is_declared and not length.info.is_type and known
            case "TypeStruct" | "TypeRuntimeArray":
                return all(self.is_data(member) for member in words[1:])
            case "TypeCooperativeMatrixKHR":
                return words[1] in self.shapes and not any(self.is_type(number) for number in words[2:])
            case "TypePointer":
                return self.is_type(words[2])
            case _:
                return all(self.is_type(member) for member in words[1:])

    def is_type(self, number: int) -> bool:
        return self.defined[number].info.is_type

    def is_data(self, number: int) -> bool:
        """Whether it is a type that values in memory have."""
        return self.is_type(number) and self.defined[number].info.name not in NOT_OF_VALUES

    def require_values(self, i: Instruction, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number not in self.values and number != (i.words[0] if i.info.has_type else None):
                raise wrong(i, f"takes id {number} for a value")

    def shape(self, value: int) -> Shape | None:
        return self.shapes.get(self.values.get(value))

    def pointee(self, i: Instruction, value: int) -> int:
        pointer = self.pointers.get(self.values.get(value))
        if pointer is None:
            raise wrong(i, f"takes id {value} for a pointer")
        return pointer[1]

    def constant(self, i: Instruction, value: int) -> None:
        definition = self.defined[value]
        if not definition.info.is_declared or definition.info.is_type or self.shape(value) != ("i", 32, 1):
            raise wrong(i, f"takes id {value} for a constant")

    def walk(self, i: Instruction, start: int, indices: Sequence[int], *, literal: bool) -> int:
        """The type that indices lead to, from one that has parts."""
        here = start
        for index in indices:
            definition = self.defined[here]
            name = definition.info.name
            known = index if literal else self.known(index)
            if not literal and (self.shape(index) or ("", 0, 0))[::2] != ("i", 1):
                raise wrong(i, f"takes id {index} for an index")
            if name == "TypeStruct":
                if known is None or known >= len(definition.operands):
                    raise wrong(i, "asks for a member that its structure does not have")
                here = definition.operands[known]
                continue
            if name not in _INDEXED:
                raise wrong(i, f"asks for a part of the type {here}, which has none")
            length = definition.operands[1] if name in ("TypeVector", "TypeMatrix") else None
            if name == "TypeArray":
                length = self.known(definition.operands[1])
            if known is not None and length is not None and known >= length:
                raise wrong(i, f"asks for part {known} of {length}")
            here = definition.operands[0]
        return here

    def known(self, number: int) -> int | None:
        definition = self.defined[number]
        return definition.words[2] if definition.info.name == "Constant" else None
