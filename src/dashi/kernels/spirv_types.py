"""Values are of the types that instructions ask for: what a compiler always gets right, and a damaged file does not.

Integers may differ in sign, everything else must agree: bits, lanes, pointers, members, arguments. Rules are those of
the SPIR-V specification, section 3.52. What is not looked at: layouts of matrices, cooperative matrices beyond their
being values, how loops and selections are nested, and the values of indices that are not constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from dashi.kernels.spirv import Instruction, Module, refused, text
from dashi.kernels.spirv_ops import OPS

Shape = tuple[str, int, int]
"""Of a scalar or vector: "i", "f" or "b", bits, lanes."""

_WORDS: Final = 32
_INTS: Final = "IAdd ISub IMul UDiv SDiv UMod SRem SMod SNegate BitwiseOr BitwiseXor BitwiseAnd Not BitReverse"
_FLOATS: Final = "FAdd FSub FMul FDiv FRem FMod FNegate"
_INT_TESTS: Final = (
    "IEqual INotEqual UGreaterThan SGreaterThan UGreaterThanEqual SGreaterThanEqual ULessThan SLessThan ULessThanEqual "
    "SLessThanEqual"
)
_FLOAT_TESTS: Final = (
    "FOrdEqual FUnordEqual FOrdNotEqual FUnordNotEqual FOrdLessThan FUnordLessThan FOrdGreaterThan FUnordGreaterThan "
    "FOrdLessThanEqual FUnordLessThanEqual FOrdGreaterThanEqual FUnordGreaterThanEqual IsNan IsInf"
)
_LOGIC: Final = "LogicalEqual LogicalNotEqual LogicalOr LogicalAnd LogicalNot"
_CONVERSIONS: Final = {
    "ConvertFToU": "fi", "ConvertFToS": "fi", "ConvertSToF": "if", "ConvertUToF": "if", "UConvert": "ii",
    "SConvert": "ii", "FConvert": "ff",
}  # fmt: skip
_ATOMIC_CHANGES: Final = (
    "AtomicExchange AtomicIAdd AtomicISub AtomicSMin AtomicUMin AtomicSMax AtomicUMax AtomicAnd AtomicOr AtomicXor "
    "AtomicFMinEXT AtomicFMaxEXT AtomicFAddEXT"
)
_SPECIALISED: Final = frozenset(
    f"{_INTS} {_INT_TESTS} {_LOGIC} ShiftLeftLogical ShiftRightLogical ShiftRightArithmetic Select CompositeExtract "
    "CompositeInsert VectorShuffle UConvert SConvert FConvert".split()
)
"""What may compute a specialisation constant."""
_DECORATIONS: Final = {
    0: 0, 1: 1, 2: 0, 4: 0, 5: 0, 6: 1, 7: 1, 11: 1, 18: 0, 19: 0, 20: 0, 21: 0, 23: 0, 24: 0, 25: 0, 33: 1, 34: 1,
    35: 1, 39: 1, 40: 1, 42: 0,
}  # fmt: skip
"""Decorations that compute shaders have, and the words that follow them."""
_MEMORY_WORDS: Final = 0b11010
"""Memory operands that are followed by a word."""
_LOOP_WORDS: Final = 0b111111000
_READ_ONLY: Final = frozenset({0, 1, 9})
"""Storage classes of constants, inputs and push constants."""
_VECTOR_BUILTINS: Final = frozenset({24, 26, 27, 28})


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
"""Those of matrices, lengths and parts of numbers: their arguments are only counted."""


def check_types(module: Module) -> None:
    """Raise a SpirvError for the first operand that is not of the type asked for. The module has passed
    `check_structure`."""
    _Types(module).check()


class _Types:
    """The types of one module, and of its values."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.defined = module.defined
        self.shapes: dict[int | None, Shape] = {}
        self.pointers: dict[int | None, tuple[int, int]] = {}
        self.values: dict[int, int] = {}
        """The type of every value by its id."""
        self.result = 0
        """The type that the function at hand returns."""
        self.parameters: list[int] = []
        """The types of the parameters that it still lacks."""

    def check(self) -> None:
        for i in self.module.instructions:
            if i.info.is_type:
                self._declare(i)
            elif i.info.has_type and i.info.name != "Function":
                if self.defined[i.words[0]].info.name in _NOT_OF_VALUES and i.info.name != "FunctionCall":
                    raise _wrong(i, f"is of the type {i.words[0]}, which no value has")
                self.values[i.words[1]] = i.words[0]
        for i in self.module.instructions:
            rule = _RULES.get(i.info.name)
            if rule is not None:
                rule(self, i)
            elif i.info.name not in _UNCHECKED and not i.info.is_type:
                self.require_values(i, i.used())

    # Types

    def _declare(self, i: Instruction) -> None:
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
            raise _wrong(i, "is no type that a kernel may have")

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
                return self._is_data(words[1]) and length.info.is_declared and not length.info.is_type and known
            case "TypeStruct" | "TypeRuntimeArray":
                return all(self._is_data(member) for member in words[1:])
            case "TypeCooperativeMatrixKHR":
                return words[1] in self.shapes and not any(self._is_type(number) for number in words[2:])
            case "TypePointer":
                return self._is_type(words[2])
            case _:
                return all(self._is_type(member) for member in words[1:])

    def _is_type(self, number: int) -> bool:
        return self.defined[number].info.is_type

    def _is_data(self, number: int) -> bool:
        """Whether it is a type that values in memory have."""
        return self._is_type(number) and self.defined[number].info.name not in _NOT_OF_VALUES

    # What operands are

    def require_values(self, i: Instruction, numbers: Iterable[int]) -> None:
        for number in numbers:
            if number not in self.values and number != (i.words[0] if i.info.has_type else None):
                raise _wrong(i, f"takes id {number} for a value")

    def shape(self, value: int) -> Shape | None:
        return self.shapes.get(self.values.get(value))

    def pointee(self, i: Instruction, value: int) -> int:
        found = self.pointers.get(self.values.get(value))
        if found is None:
            raise _wrong(i, f"takes id {value} for a pointer")
        return found[1]

    def constant(self, i: Instruction, value: int) -> None:
        made = self.defined[value]
        if not made.info.is_declared or made.info.is_type or self.shape(value) != ("i", 32, 1):
            raise _wrong(i, f"takes id {value} for a constant")

    def walk(self, i: Instruction, start: int, indices: Sequence[int], *, literal: bool) -> int:
        """The type that indices lead to, from one that has parts."""
        here = start
        for index in indices:
            made = self.defined[here]
            name = made.info.name
            known = index if literal else self._known(index)
            if not literal and (self.shape(index) or ("", 0, 0))[::2] != ("i", 1):
                raise _wrong(i, f"takes id {index} for an index")
            if name == "TypeStruct":
                if known is None or known >= len(made.operands):
                    raise _wrong(i, "asks for a member that its structure does not have")
                here = made.operands[known]
                continue
            if name not in _INDEXED:
                raise _wrong(i, f"asks for a part of the type {here}, which has none")
            length = made.operands[1] if name in ("TypeVector", "TypeMatrix") else None
            if name == "TypeArray":
                length = self._known(made.operands[1])
            if known is not None and length is not None and known >= length:
                raise _wrong(i, f"asks for part {known} of {length}")
            here = made.operands[0]
        return here

    def _known(self, number: int) -> int | None:
        made = self.defined[number]
        return made.words[2] if made.info.name == "Constant" else None

    # Rules

    def ints(self, i: Instruction) -> None:
        self._alike(i, i.words[2:], "i")

    def floats(self, i: Instruction) -> None:
        self._alike(i, i.words[2:], "f")

    def logic(self, i: Instruction) -> None:
        self._alike(i, i.words[2:], "b")

    def _alike(self, i: Instruction, numbers: Sequence[int], letter: str) -> None:
        wanted = self.shapes.get(i.words[0])
        if wanted is None or wanted[0] != letter or any(self.shape(number) != wanted for number in numbers):
            raise _wrong(i, _OPERANDS)

    def int_test(self, i: Instruction) -> None:
        self._test(i, "i")

    def float_test(self, i: Instruction) -> None:
        self._test(i, "f")

    def _test(self, i: Instruction, letter: str) -> None:
        made, first = self.shapes.get(i.words[0]), self.shape(i.words[2])
        if (
            made is None
            or first is None
            or (made[0], first[0], made[2]) != ("b", letter, first[2])
            or self.shape(i.words[-1]) != first
        ):
            raise _wrong(i, _OPERANDS)

    def all_lanes(self, i: Instruction) -> None:
        if self.shapes.get(i.words[0]) != ("b", 1, 1) or (self.shape(i.words[2]) or " ")[0] != "b":
            raise _wrong(i, _OPERANDS)

    def shift(self, i: Instruction) -> None:
        self._alike(i, i.words[2:3], "i")
        made, by = self.shapes[i.words[0]], self.shape(i.words[3])
        if by is None or (by[0], by[2]) != ("i", made[2]):
            raise _wrong(i, _OPERANDS)

    def bit_count(self, i: Instruction) -> None:
        made, given = self.shapes.get(i.words[0]), self.shape(i.words[2])
        if made is None or given is None or (made[0], given[0], made[2]) != ("i", "i", given[2]):
            raise _wrong(i, _OPERANDS)

    def bit_field(self, i: Instruction) -> None:
        whole = 2 if i.info.name == "BitFieldInsert" else 1
        self._alike(i, i.words[2 : 2 + whole], "i")
        if any((self.shape(number) or ("", 0, 0))[::2] != ("i", 1) for number in i.words[2 + whole :]):
            raise _wrong(i, _OPERANDS)

    def conversion(self, i: Instruction) -> None:
        made, given = self.shapes.get(i.words[0]), self.shape(i.words[2])
        letters = _CONVERSIONS[i.info.name]
        if made is None or given is None or (given[0] + made[0], given[2]) != (letters, made[2]):
            raise _wrong(i, _OPERANDS)
        if letters[0] == letters[1] and made[1] == given[1]:
            raise _wrong(i, "converts to the width that it has")

    def bitcast(self, i: Instruction) -> None:
        made, given = self.shapes.get(i.words[0]), self.shape(i.words[2])
        if made is None or given is None or "b" in made[0] + given[0] or made[1] * made[2] != given[1] * given[2]:
            raise _wrong(i, _OPERANDS)

    def select(self, i: Instruction) -> None:
        condition, a, b = i.words[2:]
        shape, made = self.shape(condition), self.shapes.get(i.words[0])
        lanes = made[2] if made is not None else 1
        same = self.values.get(a) == self.values.get(b) == i.words[0]
        if not same or shape is None or shape[0] != "b" or shape[2] not in (1, lanes):
            raise _wrong(i, _OPERANDS)

    def copy_object(self, i: Instruction) -> None:
        if self.values.get(i.words[2]) != i.words[0]:
            raise _wrong(i, _OPERANDS)

    def carry(self, i: Instruction) -> None:
        parts = self.defined[i.words[0]]
        kinds = {*parts.operands, *(self.values.get(number) for number in i.words[2:])}
        shape = self.shape(i.words[2])
        if parts.info.name != "TypeStruct" or len(parts.operands) != 2 or len(kinds) != 1 or (shape or " ")[0] != "i":
            raise _wrong(i, _OPERANDS)

    def variable(self, i: Instruction) -> None:
        pointer = self.pointers.get(i.words[0])
        if pointer is None or pointer[0] != i.words[2] or not self._is_data(pointer[1]) or len(i.words) > 4:
            raise _wrong(i, "is no variable of its type")
        if len(i.words) == 4 and (
            self.values.get(i.words[3]) != pointer[1] or not self.defined[i.words[3]].info.is_declared
        ):
            raise _wrong(i, "starts from what is no constant of its type")

    def load(self, i: Instruction) -> None:
        if self.pointee(i, i.words[2]) != i.words[0]:
            raise _wrong(i, "reads another type than the pointer's")
        self._memory(i, i.words[3:])

    def store(self, i: Instruction) -> None:
        if self.pointee(i, i.words[0]) != self.values.get(i.words[1]):
            raise _wrong(i, "writes another type than the pointer's")
        if self.pointers[self.values[i.words[0]]][0] in _READ_ONLY:
            raise _wrong(i, "writes to memory that is only read")
        self._memory(i, i.words[2:])

    def copy_memory(self, i: Instruction) -> None:
        if self.pointee(i, i.words[0]) != self.pointee(i, i.words[1]):
            raise _wrong(i, "writes another type than the pointer's")
        self._memory(i, i.words[2:])

    def _memory(self, i: Instruction, words: Sequence[int]) -> None:
        if words and (words[0] >= 1 << 6 or len(words) != 1 + (words[0] & _MEMORY_WORDS).bit_count()):
            raise _wrong(i, "has memory operands without their words")

    def access(self, i: Instruction) -> None:
        made, base = self.pointers.get(i.words[0]), self.pointers.get(self.values.get(i.words[2]))
        if made is None or base is None or made[0] != base[0]:
            raise _wrong(i, "goes from no pointer, or to one of another kind of memory")
        if self.walk(i, base[1], i.words[3:], literal=False) != made[1]:
            raise _wrong(i, "leads to another type than its own")

    def array_length(self, i: Instruction) -> None:
        block = self.defined[self.pointee(i, i.words[2])]
        last = len(block.operands) - 1
        if self.shapes.get(i.words[0]) != ("i", 32, 1) or block.info.name != "TypeStruct" or i.words[3] != last:
            raise _wrong(i, _OPERANDS)
        if self.defined[block.operands[last]].info.name != "TypeRuntimeArray":
            raise _wrong(i, _OPERANDS)

    def extract(self, i: Instruction) -> None:
        start = self.values.get(i.words[2])
        if start is None or len(i.words) < 4 or self.walk(i, start, i.words[3:], literal=True) != i.words[0]:
            raise _wrong(i, _OPERANDS)

    def insert(self, i: Instruction) -> None:
        part, whole, *indices = i.words[2:]
        good = self.values.get(whole) == i.words[0] and bool(indices)
        if not good or self.walk(i, i.words[0], indices, literal=True) != self.values.get(part):
            raise _wrong(i, _OPERANDS)

    def composite(self, i: Instruction) -> None:
        made, parts = self.defined[i.words[0]], i.words[2:]
        name = made.info.name
        wanted: Sequence[int] | None = None
        if name == "TypeStruct":
            wanted = made.operands
        elif name == "TypeArray":
            length = self._known(made.operands[1])
            wanted = [made.operands[0]] * (len(parts) if length is None else min(length, len(parts) + 1))
        elif name == "TypeMatrix":
            wanted = [made.operands[0]] * made.operands[1]
        elif name == "TypeVector":
            shapes = [self.shape(part) for part in parts]
            letter, bits, lanes = self.shapes[i.words[0]]
            if any(s is None or s[:2] != (letter, bits) for s in shapes) or sum(s[2] for s in shapes if s) != lanes:
                raise _wrong(i, _OPERANDS)
            return
        elif name == "TypeCooperativeMatrixKHR":
            self.require_values(i, parts)
            return
        if wanted is None or [self.values.get(part) for part in parts] != list(wanted):
            raise _wrong(i, _OPERANDS)

    def shuffle(self, i: Instruction) -> None:
        a, b = (self.shape(number) or ("", 0, 1) for number in i.words[2:4])
        made = self.shapes.get(i.words[0])
        lanes = i.words[4:]
        good = made is not None and a[:2] == b[:2] == made[:2] and made[2] == len(lanes) and min(a[2], b[2]) > 1
        if not good or any(lane >= a[2] + b[2] for lane in lanes):
            raise _wrong(i, _OPERANDS)

    def dynamic(self, i: Instruction) -> None:
        vector, *rest = i.words[2:]
        given, index = self.shape(vector), self.shape(rest[-1])
        part = self.shapes.get(i.words[0]) if i.info.name == "VectorExtractDynamic" else self.shape(rest[0])
        good = given is not None and given[2] > 1 and index is not None and index[::2] == ("i", 1)
        if not good or given is None or part != (given[0], given[1], 1):
            raise _wrong(i, _OPERANDS)
        if i.info.name == "VectorInsertDynamic" and self.values.get(vector) != i.words[0]:
            raise _wrong(i, _OPERANDS)

    def constant_value(self, i: Instruction) -> None:
        shape = self.shapes.get(i.words[0])
        if shape is None or shape[0] == "b" or shape[2] != 1 or len(i.words) - 2 != -(-shape[1] // _WORDS):
            raise _wrong(i, "is no number of its type")

    def constant_truth(self, i: Instruction) -> None:
        if self.shapes.get(i.words[0]) != ("b", 1, 1):
            raise _wrong(i, "is no truth value of its type")

    def constant_composite(self, i: Instruction) -> None:
        if not all(self.defined[part].info.is_declared for part in i.words[2:]):
            raise _wrong(i, "has parts that are no constants")
        self.composite(i)

    def specialised(self, i: Instruction) -> None:
        info = OPS.get(i.words[2])
        if info is None or info.name not in _SPECIALISED:
            raise _wrong(i, f"computes with instruction {i.words[2]}")
        computed = Instruction(info, (*i.words[:2], *i.words[3:]), i.at)
        count = len(computed.words)
        if count < info.least or (info.exact and count > info.least):
            raise _wrong(i, f"has {count} operands instead of {info.least}")
        for number in computed.used():
            made = self.defined.get(number)
            if made is None or made.at >= i.at or not made.info.is_declared:
                raise _wrong(i, f"takes id {number} for a constant")
        _RULES[info.name](self, computed)

    def function(self, i: Instruction) -> None:
        signature = self.defined[i.words[3]]
        if signature.info.name != "TypeFunction" or signature.words[1] != i.words[0]:
            raise _wrong(i, "has another type than it returns")
        if i.words[2] > 0b1111:
            raise _wrong(i, f"has the control {i.words[2]}")
        self.result = i.words[0]
        self.parameters = list(signature.words[2:])

    def parameter(self, i: Instruction) -> None:
        if not self.parameters or self.parameters.pop(0) != i.words[0]:
            raise _wrong(i, "is none of its function's type")

    def label(self, i: Instruction) -> None:
        if self.parameters:
            raise _wrong(i, "begins a function that lacks parameters of its type")

    def call(self, i: Instruction) -> None:
        callee = self.defined[i.words[2]]
        signature = self.defined[callee.words[3]].words if callee.info.name == "Function" else ()
        if (i.words[0], *map(self.values.get, i.words[3:])) != tuple(signature[1:]):
            raise _wrong(i, "has arguments of other types than its function")

    def returned(self, i: Instruction) -> None:
        if self.values.get(i.words[0]) != self.result:
            raise _wrong(i, "gives another type than its function returns")

    def returned_nothing(self, i: Instruction) -> None:
        if self.defined[self.result].info.name != "TypeVoid":
            raise _wrong(i, "gives nothing where its function returns a value")

    def phi(self, i: Instruction) -> None:
        if any(self.values.get(value) != i.words[0] for value in i.words[2::2]):
            raise _wrong(i, _OPERANDS)

    def branch(self, i: Instruction) -> None:
        if self.shape(i.words[0]) != ("b", 1, 1) or len(i.words) not in (3, 5):
            raise _wrong(i, "asks what is no truth value")

    def switch(self, i: Instruction) -> None:
        if (self.shape(i.words[0]) or ("", 0, 0))[::2] != ("i", 1):
            raise _wrong(i, "asks what is no integer")

    def loop(self, i: Instruction) -> None:
        if len(i.words) != 3 + (i.words[2] & _LOOP_WORDS).bit_count():
            raise _wrong(i, "has loop controls without their words")

    def extended(self, i: Instruction) -> None:
        number, arguments = i.words[3], i.words[4:]
        imported = self.defined[i.words[2]]
        if imported.info.name != "ExtInstImport" or text(imported.words[1:]) != b"GLSL.std.450":
            raise _wrong(i, "calls another set of functions than GLSL.std.450")
        if number in _GLSL_OTHER:
            given, made = _GLSL_OTHER[number]
            if [self.shape(a) for a in arguments] != [given] or self.shapes.get(i.words[0]) != made:
                raise _wrong(i, _OPERANDS)
            return
        if len(arguments) != _GLSL_ARITY.get(number, _GLSL_COUNTED.get(number)):
            raise _wrong(i, f"calls function {number} of GLSL.std.450 with {len(arguments)} arguments")
        if number in _GLSL_COUNTED:
            self.require_values(i, arguments)
        else:
            self._alike(i, arguments, "i" if number in _GLSL_INTS else "f")

    def atomic(self, i: Instruction) -> None:
        changes = i.info.name in _ATOMIC_CHANGES
        pointer, scope, semantics, *rest = i.words[2:]
        self.constant(i, scope)
        self.constant(i, semantics)
        if self.pointee(i, pointer) != i.words[0] or (changes and self.values.get(rest[0]) != i.words[0]):
            raise _wrong(i, _OPERANDS)
        if i.info.name == "AtomicCompareExchange":
            self.constant(i, rest[0])
            if any(self.values.get(number) != i.words[0] for number in rest[1:]):
                raise _wrong(i, _OPERANDS)
        if (self.shapes.get(i.words[0]) or ("", 0, 0))[2] != 1:
            raise _wrong(i, _OPERANDS)

    def atomic_store(self, i: Instruction) -> None:
        pointer, scope, semantics, value = i.words
        self.constant(i, scope)
        self.constant(i, semantics)
        if self.pointee(i, pointer) != self.values.get(value) or (self.shape(value) or ("", 0, 0))[2] != 1:
            raise _wrong(i, _OPERANDS)

    def barrier(self, i: Instruction) -> None:
        for number in i.words:
            self.constant(i, number)

    def subgroup(self, i: Instruction) -> None:
        self.constant(i, i.words[2])
        name = i.info.name.removeprefix("GroupNonUniform")
        if name.startswith(("Broadcast", "Shuffle", "QuadBroadcast")):
            if self.values.get(i.words[3]) != i.words[0]:
                raise _wrong(i, _OPERANDS)
            self.require_values(i, i.words[4:])
        elif name[0] in "ISUFBL" and not name.startswith(("Inverse", "Ballot")):
            if i.words[3] > 2 or len(i.words) != 5 or self.values.get(i.words[4]) != i.words[0]:
                raise _wrong(i, _OPERANDS)
        else:
            self.require_values(i, i.used())

    def decorate(self, i: Instruction) -> None:
        mark, rest = i.words[1], i.words[2:]
        if _DECORATIONS.get(mark) != len(rest):
            raise _wrong(i, f"is decoration {mark} with {len(rest)} words")
        made = self.defined[i.words[0]]
        if mark == 11 and made.info.name == "Variable":
            shape = self.shapes.get((self.pointers.get(made.words[0]) or (0, None))[1])
            if shape != ("i", 32, 3 if rest[0] in _VECTOR_BUILTINS else 1):
                raise _wrong(i, f"is built-in {rest[0]} of another type")

    def selection(self, i: Instruction) -> None:
        if i.words[1] > 2:
            raise _wrong(i, f"has the control {i.words[1]}")

    def member_name(self, i: Instruction) -> None:
        made = self.defined[i.words[0]]
        if made.info.name != "TypeStruct" or i.words[1] >= len(made.operands):
            raise _wrong(i, "is of a member that its structure does not have")

    def decorate_member(self, i: Instruction) -> None:
        made = self.defined[i.words[0]]
        if made.info.name != "TypeStruct" or i.words[1] >= len(made.operands):
            raise _wrong(i, "is of a member that its structure does not have")
        if _DECORATIONS.get(i.words[2]) != len(i.words) - 3:
            raise _wrong(i, f"is decoration {i.words[2]} with {len(i.words) - 3} words")

    def entry(self, i: Instruction) -> None:
        made = self.defined[i.words[1]]
        signature = self.defined[made.words[3]].words if made.info.name == "Function" else ()
        if len(signature) != 2 or self.defined[signature[1]].info.name != "TypeVoid":
            raise _wrong(i, "begins with a function that takes or returns something")
        if any(self.defined[number].info.name != "Variable" for number in list(i.used())[1:]):
            raise _wrong(i, "names what is no variable")

    def mode(self, i: Instruction) -> None:
        if i.words[1] != 17 or len(i.words) != 5:
            raise _wrong(i, f"is mode {i.words[1]}; kernels declare their workgroup size alone")

    def memory_model(self, i: Instruction) -> None:
        if i.words[0] != 0 or i.words[1] not in (1, 3):
            raise _wrong(i, "is no memory model of Vulkan")


_OPERANDS: Final = "has operands of the wrong type"
_NOT_OF_VALUES: Final = frozenset({"TypeVoid", "TypeFunction"})
_INDEXED: Final = frozenset({"TypeVector", "TypeMatrix", "TypeArray", "TypeRuntimeArray"})
_UNCHECKED: Final = frozenset(
    """
    Name String Line NoLine Nop Source SourceContinued SourceExtension Extension ExtInstImport Capability
    ModuleProcessed TypeVoid TypeBool TypeInt TypeFloat TypeVector TypeMatrix TypeArray TypeRuntimeArray TypeStruct
    TypePointer TypeFunction TypeCooperativeMatrixKHR Branch FunctionEnd Unreachable
    CooperativeMatrixLengthKHR
    """.split()
)
"""What has no values among its operands; types are looked at when they are declared, blocks by `spirv_scope`."""

_Rule = Callable[[_Types, Instruction], None]


def _rules() -> dict[str, _Rule]:
    t = _Types
    table: dict[str, _Rule] = {
        _INTS: t.ints, _FLOATS: t.floats, _LOGIC: t.logic, _INT_TESTS: t.int_test, _FLOAT_TESTS: t.float_test,
        "Any All": t.all_lanes, "ShiftLeftLogical ShiftRightLogical ShiftRightArithmetic": t.shift,
        "BitCount": t.bit_count, "BitFieldInsert BitFieldSExtract BitFieldUExtract": t.bit_field,
        " ".join(_CONVERSIONS): t.conversion, "Bitcast": t.bitcast, "Select": t.select, "CopyObject": t.copy_object,
        "IAddCarry ISubBorrow UMulExtended SMulExtended": t.carry, "Variable": t.variable, "Load": t.load,
        "Store": t.store, "CopyMemory": t.copy_memory, "AccessChain InBoundsAccessChain": t.access,
        "ArrayLength": t.array_length, "CompositeExtract": t.extract, "CompositeInsert": t.insert,
        "CompositeConstruct": t.composite, "VectorShuffle": t.shuffle,
        "VectorExtractDynamic VectorInsertDynamic": t.dynamic, "Constant SpecConstant": t.constant_value,
        "ConstantTrue ConstantFalse SpecConstantTrue SpecConstantFalse": t.constant_truth,
        "ConstantComposite SpecConstantComposite": t.constant_composite, "SpecConstantOp": t.specialised,
        "Function": t.function, "FunctionParameter": t.parameter, "Label": t.label, "FunctionCall": t.call,
        "ReturnValue": t.returned, "Return": t.returned_nothing,
        "Phi": t.phi, "BranchConditional": t.branch, "Switch": t.switch, "LoopMerge": t.loop, "ExtInst": t.extended,
        f"{_ATOMIC_CHANGES} AtomicLoad AtomicIIncrement AtomicIDecrement AtomicCompareExchange": t.atomic,
        "AtomicStore": t.atomic_store, "ControlBarrier MemoryBarrier": t.barrier, "Decorate": t.decorate,
        "MemberDecorate": t.decorate_member, "EntryPoint": t.entry, "ExecutionMode": t.mode,
        "MemoryModel": t.memory_model, "SelectionMerge": t.selection, "MemberName": t.member_name,
    }  # fmt: skip
    table[" ".join(info.name for info in OPS.values() if info.name.startswith("GroupNonUniform"))] = t.subgroup
    return {name: rule for names, rule in table.items() for name in names.split()}


_RULES: Final = _rules()


def _wrong(i: Instruction, why: str) -> Exception:
    return refused(f"{i.name} at word {i.at} {why}")
