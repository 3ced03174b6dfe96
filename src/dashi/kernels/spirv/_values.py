"""Values are of the types that instructions ask for: what a compiler always gets right, and a damaged file does not.

What is not looked at: layouts of matrices, cooperative matrices beyond their being values, how selections and loops are
nested, and the values of indices that are not constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dashi.kernels.spirv._arithmetic import CONVERSIONS, Arithmetic
from dashi.kernels.spirv._module import Instruction, Module
from dashi.kernels.spirv._ops import OPS
from dashi.kernels.spirv._types import NOT_OF_VALUES, OPERANDS, wrong

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


def check_types(module: Module) -> None:
    """Raise a SpirvError for the first operand that is not of the type asked for. The module has passed
    `check_structure`."""
    _Values(module).check()


class _Values(Arithmetic):
    """The rules of memory, functions, jumps, atomics and decorations, and the pass over a module."""

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.module = module
        self.result = 0
        """The type that the function at hand returns."""
        self.parameters: list[int] = []
        """The types of the parameters that it still lacks."""

    def check(self) -> None:
        for i in self.module.instructions:
            if i.info.is_type:
                self.declare(i)
            elif i.info.has_type and i.info.name != "Function":
                if self.defined[i.words[0]].info.name in NOT_OF_VALUES and i.info.name != "FunctionCall":
                    raise wrong(i, f"is of the type {i.words[0]}, which no value has")
                self.values[i.words[1]] = i.words[0]
        for i in self.module.instructions:
            rule = _RULES.get(i.info.name)
            if rule is not None:
                rule(self, i)
            elif i.info.name not in _UNCHECKED and not i.info.is_type:
                self.require_values(i, i.used())

    def variable(self, i: Instruction) -> None:
        pointer = self.pointers.get(i.words[0])
        if pointer is None or pointer[0] != i.words[2] or not self.is_data(pointer[1]) or len(i.words) > 4:
            raise wrong(i, "is no variable of its type")
        if len(i.words) == 4 and (
            self.values.get(i.words[3]) != pointer[1] or not self.defined[i.words[3]].info.is_declared
        ):
            raise wrong(i, "starts from what is no constant of its type")

    def load(self, i: Instruction) -> None:
        if self.pointee(i, i.words[2]) != i.words[0]:
            raise wrong(i, "reads another type than the pointer's")
        self._memory(i, i.words[3:])

    def store(self, i: Instruction) -> None:
        if self.pointee(i, i.words[0]) != self.values.get(i.words[1]):
            raise wrong(i, "writes another type than the pointer's")
        if self.pointers[self.values[i.words[0]]][0] in _READ_ONLY:
            raise wrong(i, "writes to memory that is only read")
        self._memory(i, i.words[2:])

    def copy_memory(self, i: Instruction) -> None:
        if self.pointee(i, i.words[0]) != self.pointee(i, i.words[1]):
            raise wrong(i, "writes another type than the pointer's")
        self._memory(i, i.words[2:])

    def _memory(self, i: Instruction, words: Sequence[int]) -> None:
        if words and (words[0] >= 1 << 6 or len(words) != 1 + (words[0] & _MEMORY_WORDS).bit_count()):
            raise wrong(i, "has memory operands without their words")

    def access(self, i: Instruction) -> None:
        result, base = self.pointers.get(i.words[0]), self.pointers.get(self.values.get(i.words[2]))
        if result is None or base is None or result[0] != base[0]:
            raise wrong(i, "goes from no pointer, or to one of another kind of memory")
        if self.walk(i, base[1], i.words[3:], literal=False) != result[1]:
            raise wrong(i, "leads to another type than its own")

    def array_length(self, i: Instruction) -> None:
        block = self.defined[self.pointee(i, i.words[2])]
        last = len(block.operands) - 1
        if self.shapes.get(i.words[0]) != ("i", 32, 1) or block.info.name != "TypeStruct" or i.words[3] != last:
            raise wrong(i, OPERANDS)
        if self.defined[block.operands[last]].info.name != "TypeRuntimeArray":
            raise wrong(i, OPERANDS)

    def specialised(self, i: Instruction) -> None:
        info = OPS.get(i.words[2])
        if info is None or info.name not in _SPECIALISED:
            raise wrong(i, f"computes with instruction {i.words[2]}")
        computed = Instruction(info, (*i.words[:2], *i.words[3:]), i.at)
        count = len(computed.words)
        if count < info.least or (info.exact and count > info.least):
            raise wrong(i, f"has {count} operands instead of {info.least}")
        for number in computed.used():
            definition = self.defined.get(number)
            if definition is None or definition.at >= i.at or not definition.info.is_declared:
                raise wrong(i, f"takes id {number} for a constant")
        _RULES[info.name](self, computed)

    def function(self, i: Instruction) -> None:
        signature = self.defined[i.words[3]]
        if signature.info.name != "TypeFunction" or signature.words[1] != i.words[0]:
            raise wrong(i, "has another type than it returns")
        if i.words[2] > 0b1111:
            raise wrong(i, f"has the control {i.words[2]}")
        self.result = i.words[0]
        self.parameters = list(signature.words[2:])

    def parameter(self, i: Instruction) -> None:
        if not self.parameters or self.parameters.pop(0) != i.words[0]:
            raise wrong(i, "is none of its function's type")

    def label(self, i: Instruction) -> None:
        if self.parameters:
            raise wrong(i, "begins a function that lacks parameters of its type")

    def call(self, i: Instruction) -> None:
        callee = self.defined[i.words[2]]
        signature = self.defined[callee.words[3]].words if callee.info.name == "Function" else ()
        if (i.words[0], *map(self.values.get, i.words[3:])) != tuple(signature[1:]):
            raise wrong(i, "has arguments of other types than its function")

    def returned(self, i: Instruction) -> None:
        if self.values.get(i.words[0]) != self.result:
            raise wrong(i, "gives another type than its function returns")

    def returned_nothing(self, i: Instruction) -> None:
        if self.defined[self.result].info.name != "TypeVoid":
            raise wrong(i, "gives nothing where its function returns a value")

    def phi(self, i: Instruction) -> None:
        if any(self.values.get(value) != i.words[0] for value in i.words[2::2]):
            raise wrong(i, OPERANDS)

    def branch(self, i: Instruction) -> None:
        if self.shape(i.words[0]) != ("b", 1, 1) or len(i.words) not in (3, 5):
            raise wrong(i, "asks what is no truth value")

    def switch(self, i: Instruction) -> None:
        if (self.shape(i.words[0]) or ("", 0, 0))[::2] != ("i", 1):
            raise wrong(i, "asks what is no integer")

    def loop(self, i: Instruction) -> None:
        if len(i.words) != 3 + (i.words[2] & _LOOP_WORDS).bit_count():
            raise wrong(i, "has loop controls without their words")

    def atomic(self, i: Instruction) -> None:
        changes = i.info.name in _ATOMIC_CHANGES
        pointer, scope, semantics, *rest = i.words[2:]
        self.constant(i, scope)
        self.constant(i, semantics)
        if self.pointee(i, pointer) != i.words[0] or (changes and self.values.get(rest[0]) != i.words[0]):
            raise wrong(i, OPERANDS)
        if i.info.name == "AtomicCompareExchange":
            self.constant(i, rest[0])
            if any(self.values.get(number) != i.words[0] for number in rest[1:]):
                raise wrong(i, OPERANDS)
        if (self.shapes.get(i.words[0]) or ("", 0, 0))[2] != 1:
            raise wrong(i, OPERANDS)

    def atomic_store(self, i: Instruction) -> None:
        pointer, scope, semantics, value = i.words
        self.constant(i, scope)
        self.constant(i, semantics)
        if self.pointee(i, pointer) != self.values.get(value) or (self.shape(value) or ("", 0, 0))[2] != 1:
            raise wrong(i, OPERANDS)

    def barrier(self, i: Instruction) -> None:
        for number in i.words:
            self.constant(i, number)

    def subgroup(self, i: Instruction) -> None:
        self.constant(i, i.words[2])
        name = i.info.name.removeprefix("GroupNonUniform")
        if name.startswith(("Broadcast", "Shuffle", "QuadBroadcast")):
            if self.values.get(i.words[3]) != i.words[0]:
                raise wrong(i, OPERANDS)
            self.require_values(i, i.words[4:])
        elif name[0] in "ISUFBL" and not name.startswith(("Inverse", "Ballot")):
            if i.words[3] > 2 or len(i.words) != 5 or self.values.get(i.words[4]) != i.words[0]:
                raise wrong(i, OPERANDS)
        else:
            self.require_values(i, i.used())

    def decorate(self, i: Instruction) -> None:
        mark, rest = i.words[1], i.words[2:]
        if _DECORATIONS.get(mark) != len(rest):
            raise wrong(i, f"is decoration {mark} with {len(rest)} words")
        definition = self.defined[i.words[0]]
        if mark == 11 and definition.info.name == "Variable":
            shape = self.shapes.get((self.pointers.get(definition.words[0]) or (0, None))[1])
            if shape != ("i", 32, 3 if rest[0] in _VECTOR_BUILTINS else 1):
                raise wrong(i, f"is built-in {rest[0]} of another type")

    def selection(self, i: Instruction) -> None:
        if i.words[1] > 2:
            raise wrong(i, f"has the control {i.words[1]}")

    def member_name(self, i: Instruction) -> None:
        definition = self.defined[i.words[0]]
        if definition.info.name != "TypeStruct" or i.words[1] >= len(definition.operands):
            raise wrong(i, "is of a member that its structure does not have")

    def decorate_member(self, i: Instruction) -> None:
        definition = self.defined[i.words[0]]
        if definition.info.name != "TypeStruct" or i.words[1] >= len(definition.operands):
            raise wrong(i, "is of a member that its structure does not have")
        if _DECORATIONS.get(i.words[2]) != len(i.words) - 3:
            raise wrong(i, f"is decoration {i.words[2]} with {len(i.words) - 3} words")

    def entry(self, i: Instruction) -> None:
        definition = self.defined[i.words[1]]
        signature = self.defined[definition.words[3]].words if definition.info.name == "Function" else ()
        if len(signature) != 2 or self.defined[signature[1]].info.name != "TypeVoid":
            raise wrong(i, "begins with a function that takes or returns something")
        if any(self.defined[number].info.name != "Variable" for number in list(i.used())[1:]):
            raise wrong(i, "names what is no variable")

    def mode(self, i: Instruction) -> None:
        if i.words[1] != 17 or len(i.words) != 5:
            raise wrong(i, f"is mode {i.words[1]}; kernels declare their workgroup size alone")

    def memory_model(self, i: Instruction) -> None:
        if i.words[0] != 0 or i.words[1] not in (1, 3):
            raise wrong(i, "is no memory model of Vulkan")


_UNCHECKED: Final = frozenset(
    """
    Name String Line NoLine Nop Source SourceContinued SourceExtension Extension ExtInstImport Capability
    ModuleProcessed TypeVoid TypeBool TypeInt TypeFloat TypeVector TypeMatrix TypeArray TypeRuntimeArray TypeStruct
    TypePointer TypeFunction TypeCooperativeMatrixKHR Branch FunctionEnd Unreachable
    CooperativeMatrixLengthKHR
    """.split()
)
"""What has no values among its operands; types are looked at when they are declared, blocks by `scope`."""

_Rule = Callable[[_Values, Instruction], None]


def _rules() -> dict[str, _Rule]:
    t = _Values
    table: dict[str, _Rule] = {
        _INTS: t.ints, _FLOATS: t.floats, _LOGIC: t.logic, _INT_TESTS: t.int_test, _FLOAT_TESTS: t.float_test,
        "Any All": t.all_lanes, "ShiftLeftLogical ShiftRightLogical ShiftRightArithmetic": t.shift,
        "BitCount": t.bit_count, "BitFieldInsert BitFieldSExtract BitFieldUExtract": t.bit_field,
        " ".join(CONVERSIONS): t.conversion, "Bitcast": t.bitcast, "Select": t.select, "CopyObject": t.copy_object,
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
