"""The shape of a module: sections in order, functions made of blocks, blocks that end, no recursion.

`build.validate` says what else a binary from outside must pass before a driver sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dashi.kernels.spirv._module import Instruction, Module, refused

_SECTIONS: Final = (
    "Capability",
    "Extension",
    "ExtInstImport",
    "MemoryModel",
    "EntryPoint",
    "ExecutionMode",
    "String Source SourceContinued SourceExtension",
    "Name MemberName",
    "ModuleProcessed",
    "Decorate MemberDecorate",
)
_ORDER: Final = {name: n for n, names in enumerate(_SECTIONS) for name in names.split()}
_TYPES: Final = len(_SECTIONS)
_FUNCTIONS: Final = _TYPES + 1
_ANYWHERE: Final = frozenset({"Line", "NoLine", "Nop"})
_GLOBAL: Final = frozenset({"Variable", "Undef", "ExtInst"})
_ENDS: Final = frozenset({"Branch", "BranchConditional", "Switch", "Return", "ReturnValue", "Unreachable"})
_FUNCTION_STORAGE: Final = 7


@dataclass
class _Function:
    """One function while it is read."""

    start: Instruction
    labels: set[int] = field(default_factory=set[int])
    targets: list[int] = field(default_factory=list[int])
    calls: list[int] = field(default_factory=list[int])
    in_block: bool = False


def check_structure(module: Module) -> None:
    """Raise a SpirvError for the first thing out of place."""
    section = 0
    current: _Function | None = None
    functions: dict[int, _Function] = {}
    for instruction in module.instructions:
        if instruction.info.name in _ANYWHERE:
            continue
        _check_type(module, instruction)
        place = _place(instruction, inside=current is not None)
        if place < section:
            raise _misplaced(instruction, "comes after a later section")
        section = place
        if place == _FUNCTIONS:
            current = _step(module, instruction, current, functions)
    if current is not None:
        raise refused("its last function has no end")
    if next(module.all("MemoryModel"), None) is None:
        raise refused("it declares no memory model")
    _check_calls(functions)


def _place(instruction: Instruction, inside: bool) -> int:
    name = instruction.info.name
    if name in _ORDER:
        return _ORDER[name]
    if inside or name == "Function":
        return _FUNCTIONS
    if instruction.info.is_declared or name in _GLOBAL:
        return _TYPES
    raise _misplaced(instruction, "stands outside every function")


def _check_type(module: Module, instruction: Instruction) -> None:
    if instruction.info.has_type:
        made_by = module.defined[instruction.words[0]]
        if not made_by.info.is_type:
            raise _misplaced(instruction, f"has the type {instruction.words[0]}, which is an {made_by.name}")


def _step(
    module: Module, instruction: Instruction, current: _Function | None, functions: dict[int, _Function]
) -> _Function | None:
    """Take one instruction of the function section; returns the function that is open after it."""
    name = instruction.info.name
    if current is None or name == "Function":
        if current is not None or name != "Function":
            raise _misplaced(instruction, "does not begin a function where one must begin")
        current = _Function(instruction)
        functions[instruction.words[1]] = current
        return current
    if name == "FunctionEnd":
        _check_function(module, current)
        return None
    _step_inside(instruction, current)
    return current


def _step_inside(instruction: Instruction, current: _Function) -> None:
    name = instruction.info.name
    if name == "FunctionParameter":
        if current.labels:
            raise _misplaced(instruction, "comes after the first block")
    elif name == "Label":
        if current.in_block:
            raise _misplaced(instruction, "begins a block inside another")
        current.labels.add(instruction.words[0])
        current.in_block = True
    elif not current.in_block:
        raise _misplaced(instruction, "stands outside every block")
    elif instruction.info.is_declared:
        raise _misplaced(instruction, "stands inside a function")
    elif name == "Variable" and instruction.operands[0] != _FUNCTION_STORAGE:
        raise _misplaced(instruction, "is global, but stands inside a function")
    elif name in _ENDS:
        current.in_block = False
        current.targets.extend(_targets(instruction))
    elif name in ("LoopMerge", "SelectionMerge"):
        current.targets.extend(instruction.words[: 2 if name == "LoopMerge" else 1])
    elif name == "FunctionCall":
        current.calls.append(instruction.operands[0])


def _targets(instruction: Instruction) -> tuple[int, ...]:
    name, words = instruction.info.name, instruction.words
    if name == "Branch":
        return words[:1]
    if name == "BranchConditional":
        return words[1:3]
    # A switch on 64-bit values has pairs of three words; only its default is checked then.
    if name == "Switch":
        return (words[1], *words[3::2]) if len(words) % 2 == 0 else words[1:2]
    return ()


def _check_function(module: Module, function: _Function) -> None:
    if function.in_block or not function.labels:
        raise _misplaced(function.start, "has no block, or one without an end")
    for target in function.targets:
        if target not in function.labels:
            raise _misplaced(function.start, f"jumps to id {target}, which is no block of it")
    signature = module.defined[function.start.words[3]]
    if signature.info.name != "TypeFunction":
        raise _misplaced(function.start, f"has the type {signature.name}")


def _check_calls(functions: dict[int, _Function]) -> None:
    """Calls go to functions and never in a circle: a shader that recurses hangs or crashes drivers."""
    done: set[int] = set()
    for root in functions:
        path: list[int] = []
        stack = [(root, False)]
        while stack:
            number, leaving = stack.pop()
            if leaving:
                path.pop()
                done.add(number)
                continue
            if number in path:
                raise refused(f"its function {number} calls itself")
            if number in done:
                continue
            if number not in functions:
                raise refused(f"it calls id {number}, which is no function")
            path.append(number)
            stack.append((number, True))
            stack.extend((callee, False) for callee in functions[number].calls)


def _misplaced(instruction: Instruction, why: str) -> Exception:
    return refused(f"{instruction.name} at word {instruction.at} {why}")
