"""Arithmetic, conversions, composites and constants of SPIR-V: whether their operands are of the types they ask for.

Integers may differ in sign, everything else must agree. Rules are those of the SPIR-V specification, section 3.52.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dashi.kernels._work import ceil_div
from dashi.kernels.spirv._module import Instruction, text
from dashi.kernels.spirv._types import OPERANDS, Shape, Types, wrong

_WORDS: Final = 32
CONVERSIONS: Final = {
    "ConvertFToU": "fi", "ConvertFToS": "fi", "ConvertSToF": "if", "ConvertUToF": "if", "UConvert": "ii",
    "SConvert": "ii", "FConvert": "ff",
}  # fmt: skip


def _numbers(words: str) -> frozenset[int]:
    return frozenset(map(int, words.split()))


_GLSL_ARITY: Final = {
    **dict.fromkeys(_numbers("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 27 28 29 30 31 32"), 1),
    **dict.fromkeys(_numbers("69 73 74 75"), 1),
    **dict.fromkeys(_numbers("25 26 37 38 39 40 41 42 48 68 79 80"), 2),
    **dict.fromkeys(_numbers("43 44 45 46 49 50 81"), 3),
}
"""Functions of GLSL.std.450 whose arguments have the type of the result."""
_GLSL_INTS: Final = _numbers("5 7 38 39 41 42 44 45 73 74 75")
_GLSL_OTHER: Final[dict[int, tuple[Shape, Shape]]] = {
    58: (("f", 32, 2), ("i", 32, 1)), 62: (("i", 32, 1), ("f", 32, 2)),
    59: (("i", 32, 2), ("f", 64, 1)), 65: (("f", 64, 1), ("i", 32, 2)),
}  # fmt: skip
"""Argument and result of those that pack and unpack."""
_GLSL_COUNTED: Final = {
    **dict.fromkeys(_numbers("33 34 36 52 54 55 56 57 60 61 63 64 66"), 1),
    **dict.fromkeys(_numbers("35 51 53 67 71"), 2),
    **dict.fromkeys(_numbers("70 72"), 3),
}
"""Functions of matrices, lengths and parts of numbers: their arguments are only counted."""


class Arithmetic(Types):
    """The rules of what computes."""

    def ints(self, i: Instruction) -> None:
        self.alike(i, i.words[2:], "i")

    def floats(self, i: Instruction) -> None:
        self.alike(i, i.words[2:], "f")

    def logic(self, i: Instruction) -> None:
        self.alike(i, i.words[2:], "b")

    def alike(self, i: Instruction, numbers: Sequence[int], letter: str) -> None:
        wanted = self.shapes.get(i.words[0])
        if wanted is None or wanted[0] != letter or any(self.shape(number) != wanted for number in numbers):
            raise wrong(i, OPERANDS)

    def int_test(self, i: Instruction) -> None:
        self._test(i, "i")

    def float_test(self, i: Instruction) -> None:
        self._test(i, "f")

    def _test(self, i: Instruction, letter: str) -> None:
        result, first = self.shapes.get(i.words[0]), self.shape(i.words[2])
        if (
            result is None
            or first is None
            or (result[0], first[0], result[2]) != ("b", letter, first[2])
            or self.shape(i.words[-1]) != first
        ):
            raise wrong(i, OPERANDS)

    def all_lanes(self, i: Instruction) -> None:
        if self.shapes.get(i.words[0]) != ("b", 1, 1) or (self.shape(i.words[2]) or " ")[0] != "b":
            raise wrong(i, OPERANDS)

    def shift(self, i: Instruction) -> None:
        self.alike(i, i.words[2:3], "i")
        result, by = self.shapes[i.words[0]], self.shape(i.words[3])
        if by is None or (by[0], by[2]) != ("i", result[2]):
            raise wrong(i, OPERANDS)

    def bit_count(self, i: Instruction) -> None:
        result, operand = self.shapes.get(i.words[0]), self.shape(i.words[2])
        if result is None or operand is None or (result[0], operand[0], result[2]) != ("i", "i", operand[2]):
            raise wrong(i, OPERANDS)

    def bit_field(self, i: Instruction) -> None:
        whole = 2 if i.info.name == "BitFieldInsert" else 1
        self.alike(i, i.words[2 : 2 + whole], "i")
        if any((self.shape(number) or ("", 0, 0))[::2] != ("i", 1) for number in i.words[2 + whole :]):
            raise wrong(i, OPERANDS)

    def conversion(self, i: Instruction) -> None:
        result, operand = self.shapes.get(i.words[0]), self.shape(i.words[2])
        letters = CONVERSIONS[i.info.name]
        if result is None or operand is None or (operand[0] + result[0], operand[2]) != (letters, result[2]):
            raise wrong(i, OPERANDS)
        if letters[0] == letters[1] and result[1] == operand[1]:
            raise wrong(i, "converts to the width that it has")

    def bitcast(self, i: Instruction) -> None:
        result, operand = self.shapes.get(i.words[0]), self.shape(i.words[2])
        if (
            result is None
            or operand is None
            or "b" in result[0] + operand[0]
            or result[1] * result[2] != operand[1] * operand[2]
        ):
            raise wrong(i, OPERANDS)

    def select(self, i: Instruction) -> None:
        condition, a, b = i.words[2:]
        shape, result = self.shape(condition), self.shapes.get(i.words[0])
        lanes = result[2] if result is not None else 1
        same = self.values.get(a) == self.values.get(b) == i.words[0]
        if not same or shape is None or shape[0] != "b" or shape[2] not in (1, lanes):
            raise wrong(i, OPERANDS)

    def copy_object(self, i: Instruction) -> None:
        if self.values.get(i.words[2]) != i.words[0]:
            raise wrong(i, OPERANDS)

    def carry(self, i: Instruction) -> None:
        parts = self.defined[i.words[0]]
        kinds = {*parts.operands, *(self.values.get(number) for number in i.words[2:])}
        shape = self.shape(i.words[2])
        if parts.info.name != "TypeStruct" or len(parts.operands) != 2 or len(kinds) != 1 or (shape or " ")[0] != "i":
            raise wrong(i, OPERANDS)

    def extract(self, i: Instruction) -> None:
        start = self.values.get(i.words[2])
        if start is None or len(i.words) < 4 or self.walk(i, start, i.words[3:], literal=True) != i.words[0]:
            raise wrong(i, OPERANDS)

    def insert(self, i: Instruction) -> None:
        part, whole, *indices = i.words[2:]
        good = self.values.get(whole) == i.words[0] and bool(indices)
        if not good or self.walk(i, i.words[0], indices, literal=True) != self.values.get(part):
            raise wrong(i, OPERANDS)

    def composite(self, i: Instruction) -> None:
        type_of_result, parts = self.defined[i.words[0]], i.words[2:]
        name = type_of_result.info.name
        types: Sequence[int] | None = None
        if name == "TypeStruct":
            types = type_of_result.operands
        elif name == "TypeArray":
            length = self.known(type_of_result.operands[1])
            types = [type_of_result.operands[0]] * (len(parts) if length is None else min(length, len(parts) + 1))
        elif name == "TypeMatrix":
            types = [type_of_result.operands[0]] * type_of_result.operands[1]
        elif name == "TypeVector":
            shapes = [self.shape(part) for part in parts]
            letter, bits, lanes = self.shapes[i.words[0]]
            if any(s is None or s[:2] != (letter, bits) for s in shapes) or sum(s[2] for s in shapes if s) != lanes:
                raise wrong(i, OPERANDS)
            return
        elif name == "TypeCooperativeMatrixKHR":
            self.require_values(i, parts)
            return
        if types is None or [self.values.get(part) for part in parts] != list(types):
            raise wrong(i, OPERANDS)

    def shuffle(self, i: Instruction) -> None:
        a, b = (self.shape(number) or ("", 0, 1) for number in i.words[2:4])
        result = self.shapes.get(i.words[0])
        lanes = i.words[4:]
        good = result is not None and a[:2] == b[:2] == result[:2] and result[2] == len(lanes) and min(a[2], b[2]) > 1
        if not good or any(lane >= a[2] + b[2] for lane in lanes):
            raise wrong(i, OPERANDS)

    def dynamic(self, i: Instruction) -> None:
        vector, *rest = i.words[2:]
        operand, index = self.shape(vector), self.shape(rest[-1])
        part = self.shapes.get(i.words[0]) if i.info.name == "VectorExtractDynamic" else self.shape(rest[0])
        good = operand is not None and operand[2] > 1 and index is not None and index[::2] == ("i", 1)
        if not good or operand is None or part != (operand[0], operand[1], 1):
            raise wrong(i, OPERANDS)
        if i.info.name == "VectorInsertDynamic" and self.values.get(vector) != i.words[0]:
            raise wrong(i, OPERANDS)

    def constant_value(self, i: Instruction) -> None:
        shape = self.shapes.get(i.words[0])
        if shape is None or shape[0] == "b" or shape[2] != 1 or len(i.words) - 2 != ceil_div(shape[1], _WORDS):
            raise wrong(i, "is no number of its type")

    def constant_truth(self, i: Instruction) -> None:
        if self.shapes.get(i.words[0]) != ("b", 1, 1):
            raise wrong(i, "is no truth value of its type")

    def constant_composite(self, i: Instruction) -> None:
        if not all(self.defined[part].info.is_declared for part in i.words[2:]):
            raise wrong(i, "has parts that are no constants")
        self.composite(i)

    def extended(self, i: Instruction) -> None:
        number, arguments = i.words[3], i.words[4:]
        imported = self.defined[i.words[2]]
        if imported.info.name != "ExtInstImport" or text(imported.words[1:]) != b"GLSL.std.450":
            raise wrong(i, "calls another set of functions than GLSL.std.450")
        if number in _GLSL_OTHER:
            operand, result = _GLSL_OTHER[number]
            if [self.shape(a) for a in arguments] != [operand] or self.shapes.get(i.words[0]) != result:
                raise wrong(i, OPERANDS)
            return
        if len(arguments) != _GLSL_ARITY.get(number, _GLSL_COUNTED.get(number)):
            raise wrong(i, f"calls function {number} of GLSL.std.450 with {len(arguments)} arguments")
        if number in _GLSL_COUNTED:
            self.require_values(i, arguments)
        else:
            self.alike(i, arguments, "i" if number in _GLSL_INTS else "f")
