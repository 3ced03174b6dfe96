"""The interface of a compute module, read from its SPIR-V. `check` holds it against the ABI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dashi.kernels.spirv._module import Instruction, Module, refused, text
from dashi.kernels.spirv._ops import BUILTINS, CAPABILITIES

_GLCOMPUTE: Final = 5
_LOCAL_SIZE: Final = 17
_INPUT, _PUSH, _STORAGE = 1, 9, 12
_SHARED: Final = 4
_INTERNAL: Final = frozenset({_SHARED, 6, 7})  # shared memory, private and function variables
_SPEC_ID, _BLOCK, _ARRAY_STRIDE, _BUILTIN, _NON_WRITABLE, _NON_READABLE = 1, 2, 6, 11, 24, 25
_BINDING, _SET, _OFFSET = 33, 34, 35
_SIZES: Final = {
    "float": 4, "double": 8, "uint": 4, "int": 4, "uint64_t": 8, "int64_t": 8, "uvec2": 8, "float16_t": 2, "vec4": 16,
    "vec2": 8, "uvec4": 16, "ivec4": 16, "dvec2": 16, "u64vec2": 16, "i64vec2": 16,
}  # fmt: skip


_VECTORS: Final = {
    ("uint", 2): "uvec2", ("uint", 4): "uvec4", ("int", 4): "ivec4", ("float", 4): "vec4", ("float", 2): "vec2",
    ("double", 2): "dvec2",
    ("uint64_t", 2): "u64vec2", ("int64_t", 2): "i64vec2",
}  # fmt: skip


@dataclass(frozen=True)
class BufferVariable:
    """A storage buffer: an array of one GLSL type."""

    set: int
    binding: int
    element: str
    access: str


@dataclass(frozen=True)
class Reflection:
    """What a module asks of the host."""

    capabilities: frozenset[str]
    extensions: frozenset[str]
    entry: str
    local: tuple[int, int, int]
    local_ids: tuple[int | None, int | None, int | None]
    spec: Mapping[int, int]
    buffers: tuple[BufferVariable, ...]
    push: tuple[tuple[int, str], ...]
    builtins: frozenset[str]
    shared_bytes: int | None
    """Shared memory at the default specialisation; None if its size cannot be told."""


def reflect(module: Module) -> Reflection:
    """Read the interface; anything that no kernel here may have is a SpirvError."""
    return _Reader(module).read()


class _Reader:
    """The decorations of one module, looked up while its interface is read."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.decorations: dict[tuple[int, int], tuple[int, ...]] = {}
        self.members: dict[tuple[int, int, int], tuple[int, ...]] = {}
        for i in module.all("Decorate"):
            self.decorations[i.words[0], i.words[1]] = i.words[2:]
        for i in module.all("MemberDecorate"):
            self.members[i.words[0], i.words[1], i.words[2]] = i.words[3:]

    def read(self) -> Reflection:
        spec = self._spec()
        local, ids = self._local()
        push: tuple[tuple[int, str], ...] = ()
        buffers: list[BufferVariable] = []
        for variable in self.module.all("Variable"):
            storage = variable.operands[0]
            if storage == _STORAGE:
                buffers.append(self._buffer(variable))
            elif storage == _PUSH:
                if push:
                    raise refused("it has two push constant blocks")
                push = tuple(self._push(variable))
            elif storage == _INPUT:
                self._number(variable.words[1], _BUILTIN, "an input that is no built-in")
            elif storage not in _INTERNAL:
                raise refused(f"it has a variable of storage class {storage}; kernels use storage buffers alone")
        return Reflection(
            capabilities=frozenset(_named(CAPABILITIES, i.words[0]) for i in self.module.all("Capability")),
            extensions=frozenset(text(i.words).decode(errors="replace") for i in self.module.all("Extension")),
            entry=self._entry(),
            local=local,
            local_ids=ids,
            spec=spec,
            buffers=tuple(sorted(buffers, key=lambda b: (b.set, b.binding))),
            push=push,
            builtins=frozenset(self._builtins()),
            shared_bytes=self._shared(),
        )

    def _shared(self) -> int | None:
        total = 0
        for variable in self.module.all("Variable"):
            pointer = self.module.defined[variable.words[0]]
            if variable.operands[0] == _SHARED and pointer.info.name == "TypePointer":
                size = self._bytes(pointer.words[2])
                if size is None:
                    return None
                total += size
        return total

    def _bytes(self, number: int) -> int | None:
        """Size of a type; `parse` has made sure that types are made of earlier ones, so this ends."""
        definition = self.module.defined[number]
        match definition.info.name, definition.operands:
            case "TypeInt" | "TypeFloat", (bits, *_):
                return bits // 8
            case "TypeBool", _:
                return 4
            case "TypeVector" | "TypeMatrix", (part, count):
                times, inner = count, self._bytes(part)
            case "TypeArray", (part, length):
                times, inner = self._value(length, definition.at), self._bytes(part)
            case "TypeStruct", parts:
                sizes = [self._bytes(part) for part in parts]
                times, inner = 1, None if None in sizes else sum(size or 0 for size in sizes)
            case _:
                return None
        return None if times is None or inner is None else times * inner

    def _value(self, number: int, before: int) -> int | None:
        """A constant's value at the default specialisation, if it is simple enough. `before` bounds the recursion."""
        definition = self.module.defined.get(number)
        if definition is None or definition.at >= before:
            return None
        match definition.info.name, definition.operands:
            case "Constant" | "SpecConstant", (value, *_):
                return value
            case "SpecConstantOp", (128 | 130 | 132 as op, left, right):
                a, b = self._value(left, definition.at), self._value(right, definition.at)
                if a is None or b is None:
                    return None
                return a + b if op == 128 else a - b if op == 130 else a * b
            case "SpecConstantOp", (81, whole, index):
                parts = self.module.defined.get(whole)
                known = parts is not None and parts.info.name == "SpecConstantComposite" and index < len(parts.operands)
                return self._value(parts.operands[index], definition.at) if parts is not None and known else None
            case _:
                return None

    def _entry(self) -> str:
        points = list(self.module.all("EntryPoint"))
        if len(points) != 1 or points[0].words[0] != _GLCOMPUTE:
            raise refused(f"it has {len(points)} entry points; a kernel has one, a compute shader's")
        if self.module.defined[points[0].words[1]].info.name != "Function":
            raise refused("its entry point is no function")
        return text(points[0].words[2:]).decode(errors="replace")

    def _spec(self) -> dict[int, int]:
        values: dict[int, int] = {}
        for (target, decoration), words in self.decorations.items():
            if decoration != _SPEC_ID:
                continue
            constant = self.module.defined[target]
            if constant.info.name != "SpecConstant" or self._type(constant.words[0]) != "uint" or not words:
                raise refused(f"its specialisation constant {target} is no u32")
            if words[0] in values:
                raise refused(f"it has two specialisation constants of id {words[0]}")
            values[words[0]] = constant.operands[0]
        return values

    def _local(self) -> tuple[tuple[int, int, int], tuple[int | None, int | None, int | None]]:
        composite = next((t for (t, d), w in self.decorations.items() if d == _BUILTIN and w == (25,)), None)
        if composite is not None:
            parts = self.module.defined[composite]
            if parts.info.name not in ("ConstantComposite", "SpecConstantComposite") or len(parts.operands) != 3:
                raise refused("its workgroup size is no constant of three parts")
            x, y, z = (self._axis(number) for number in parts.operands)
            return (x[0], y[0], z[0]), (x[1], y[1], z[1])
        modes = [i for i in self.module.all("ExecutionMode") if i.words[1] == _LOCAL_SIZE]
        if len(modes) != 1 or len(modes[0].words) != 5:
            raise refused("it declares no workgroup size")
        _, _, x, y, z = modes[0].words
        return (x, y, z), (None, None, None)

    def _axis(self, number: int) -> tuple[int, int | None]:
        constant = self.module.defined[number]
        if constant.info.name not in ("Constant", "SpecConstant"):
            raise refused("its workgroup size is no constant")
        spec = self.decorations.get((number, _SPEC_ID))
        return constant.operands[0], spec[0] if spec else None

    def _block(self, variable: Instruction) -> Instruction:
        pointer = self.module.defined[variable.words[0]]
        if pointer.info.name != "TypePointer":
            raise refused(f"its variable {variable.words[1]} is no pointer")
        block = self.module.defined[pointer.words[2]]
        if block.info.name != "TypeStruct" or (block.words[0], _BLOCK) not in self.decorations:
            raise refused(f"its variable {variable.words[1]} is no block")
        return block

    def _buffer(self, variable: Instruction) -> BufferVariable:
        block = self._block(variable)
        array = self.module.defined[block.operands[0]] if len(block.operands) == 1 else None
        if array is None or array.info.name != "TypeRuntimeArray":
            raise refused(f"its storage buffer {variable.words[1]} is not one array of open length")
        element = self._type(array.operands[0])
        stride = self._number(array.words[0], _ARRAY_STRIDE, "an array without a stride")
        if stride != _SIZES.get(element) or self.members.get((block.words[0], 0, _OFFSET)) != (0,):
            raise refused(f"its storage buffer {variable.words[1]} is not a dense array of {element}")
        marks = {d for d in (_NON_WRITABLE, _NON_READABLE) if self._marked(block.words[0], variable.words[1], d)}
        access = "none" if len(marks) == 2 else "read" if _NON_WRITABLE in marks else "write" if marks else "readwrite"
        return BufferVariable(
            self._number(variable.words[1], _SET, "a storage buffer without a set"),
            self._number(variable.words[1], _BINDING, "a storage buffer without a binding"),
            element,
            access,
        )

    def _marked(self, block: int, variable: int, decoration: int) -> bool:
        return (block, 0, decoration) in self.members or (variable, decoration) in self.decorations

    def _push(self, variable: Instruction) -> Iterator[tuple[int, str]]:
        block = self._block(variable)
        for index, member in enumerate(block.operands):
            offset = self.members.get((block.words[0], index, _OFFSET))
            if not offset:
                raise refused(f"its push constant {index} has no offset")
            yield offset[0], self._type(member)

    def _builtins(self) -> Iterator[str]:
        for (_, decoration), words in self.decorations.items():
            if decoration == _BUILTIN:
                yield _named(BUILTINS, *words[:1])

    def _number(self, target: int, decoration: int, missing: str) -> int:
        words = self.decorations.get((target, decoration))
        if not words:
            raise refused(f"it has {missing} (id {target})")
        return words[0]

    def _type(self, number: int) -> str:
        """The GLSL name of a scalar or of a vector that buffers hold; anything else by its instruction."""
        definition = self.module.defined[number]
        match definition.info.name, definition.operands:
            case "TypeFloat", (16 | 32 | 64 as bits, *_):
                return {16: "float16_t", 32: "float", 64: "double"}[bits]
            case "TypeInt", (32 | 64 as bits, sign):
                return ("int" if sign else "uint") + ("" if bits == 32 else "64_t")
            case "TypeVector", (part, count) if (self._type(part), count) in _VECTORS:
                return _VECTORS[self._type(part), count]
            case _:
                return definition.name


def _named(table: Mapping[int, str], *number: int) -> str:
    return table.get(number[0], f"number {number[0]}") if number else "nothing"
