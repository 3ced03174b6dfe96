"""Values are made before they are used: on every path through a function, the definition comes first.

A value that is not defined on the way to its use is what drivers crash on: they look it up and find nothing. Dominance
follows K. D. Cooper, T. J. Harvey and K. Kennedy, "A simple, fast dominance algorithm", Rice University, 2001.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dashi.kernels.spirv._module import Instruction, Module, refused

_ANYWHERE: Final = frozenset({"Line", "NoLine", "Nop"})
_MERGES: Final = frozenset({"LoopMerge", "SelectionMerge"})
_BRANCHES: Final = {"LoopMerge": ("Branch", "BranchConditional"), "SelectionMerge": ("BranchConditional", "Switch")}
_VALUES: Final = {"Branch": 0, "BranchConditional": 1, "Switch": 1}
"""How many of the words that end a block are values; the others are blocks and numbers."""


@dataclass
class _Block:
    """A block of a function, with its place among the blocks."""

    label: int
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    before: list[int] = field(default_factory=list[int])
    """Places of the blocks that jump here."""
    after: list[int] = field(default_factory=list[int])
    """Places of the blocks that it jumps to."""


def check_scope(module: Module) -> None:
    """Raise a SpirvError for the first value that may be used before it is made, or where it is not known. The module
    has passed `check_structure`."""
    outside = {function.words[1] for function in module.all("Function")}
    blocks: list[_Block] = []
    parameters: set[int] = set()
    inside = False
    for instruction in module.instructions:
        name = instruction.info.name
        if name in _ANYWHERE:
            continue
        if name == "FunctionEnd":
            _check_function(module, blocks, outside | parameters)
            inside, blocks, parameters = False, [], set[int]()
        elif name == "Function":
            inside = True
        elif name == "FunctionParameter":
            parameters.add(instruction.words[1])
        elif name == "Label":
            blocks.append(_Block(instruction.words[0]))
        elif inside:
            blocks[-1].instructions.append(instruction)
        elif instruction.info.has_result:
            outside.add(instruction.words[instruction.info.has_type])


def branch_targets(module: Module, instruction: Instruction) -> tuple[int, ...]:
    """The blocks that the end of a block may go to."""
    name, words = instruction.info.name, instruction.words
    if name == "Branch":
        return words[:1]
    if name == "BranchConditional":
        return words[1:3]
    if name == "Switch":
        selector = module.defined[module.defined[words[0]].words[0]]
        step = 1 + (2 if selector.info.name == "TypeInt" and selector.words[1] > 32 else 1)
        if (len(words) - 2) % step:
            raise _at(instruction, "has a case without a block")
        return (words[1], *words[1 + step :: step])
    return ()


def _check_function(module: Module, blocks: list[_Block], known: set[int]) -> None:
    places = {block.label: place for place, block in enumerate(blocks)}
    for place, block in enumerate(blocks):
        block.after = [
            _place(places, block.instructions[-1], t) for t in branch_targets(module, block.instructions[-1])
        ]
        for target in block.after:
            blocks[target].before.append(place)
        _check_block_shape(block, first=place == 0)
    if blocks[0].before:
        raise refused(f"it jumps to the first block of a function (id {blocks[0].label})")
    function = _FunctionScope(blocks, places, known)
    _check_order(blocks, function.dominators)
    _check_loops(blocks, function.dominators)
    for place, block in enumerate(blocks):
        if function.dominators[place] >= 0:  # else nothing leads here
            function.check_block(place, block)


def _check_block_shape(block: _Block, *, first: bool) -> None:
    """Variables come first in the first block; a merge stands right before the branch that it belongs to."""
    names = [i.info.name for i in block.instructions]
    variables = names.count("Variable")
    if variables and not (first and all(name == "Variable" for name in names[:variables])):
        raise _at(block.instructions[names.index("Variable")], "does not stand at the start of its function")
    for merge, branches in _BRANCHES.items():
        if merge in names and (names.index(merge) != len(names) - 2 or names[-1] not in branches):
            raise _at(block.instructions[names.index(merge)], "does not stand before a branch")


def _check_order(blocks: list[_Block], dominators: list[int]) -> None:
    """A block stands behind the one that every way to it leads through."""
    for place, through in enumerate(dominators):
        if through > place:
            raise refused(f"block {blocks[place].label} stands before block {blocks[through].label}, which leads to it")


def _check_loops(blocks: list[_Block], dominators: list[int]) -> None:
    """A jump back goes to a block that declares a loop, from one place; and no block ends two constructs."""
    merged: set[int] = set()
    for place, block in enumerate(blocks):
        merge = block.instructions[-2] if len(block.instructions) > 1 else None
        if merge is not None and merge.info.name in _MERGES:
            if merge.words[0] in merged:
                raise _at(merge, f"ends at id {merge.words[0]}, as another does")
            merged.add(merge.words[0])
        back = [b for b in block.before if dominators[b] >= 0 and _above(dominators, place, b)]
        loop = merge is not None and merge.info.name == "LoopMerge"
        if len(back) > 1 or (back and not loop):
            raise refused(f"it jumps back to id {block.label}, which is no loop, or from several places")


def _above(dominators: list[int], above: int, below: int) -> bool:
    while below not in (above, 0):
        below = dominators[below]
    return below == above


def _place(places: Mapping[int, int], instruction: Instruction, label: int) -> int:
    if label not in places:
        raise _at(instruction, f"names id {label}, which is no block of its function")
    return places[label]


class _FunctionScope:
    """Where the values of a function are made, and which blocks come before others on every path."""

    def __init__(self, blocks: list[_Block], places: Mapping[int, int], known: set[int]) -> None:
        self.places, self.known = places, known
        self.dominators = _dominators(blocks)
        self.depths = _depths(self.dominators)
        self.homes = {
            i.words[i.info.has_type]: place
            for place, block in enumerate(blocks)
            for i in block.instructions
            if i.info.has_result
        }

    def check_block(self, place: int, block: _Block) -> None:
        known, ready = self.known, set[int]()
        for instruction in block.instructions:
            info, words = instruction.info, instruction.words
            if info.name == "Phi":
                self._check_phi(instruction)
            elif info.name not in _MERGES:
                for number in words[: _VALUES[info.name]] if info.name in _VALUES else instruction.used():
                    if number not in known and number not in ready:
                        self._require(instruction, number, place, within=True)
            if info.has_result:
                ready.add(words[info.has_type])

    def _check_phi(self, instruction: Instruction) -> None:
        pairs = instruction.operands
        if len(pairs) % 2:
            raise _at(instruction, "has a value without a block")
        for value, label in zip(pairs[::2], pairs[1::2], strict=True):
            place = _place(self.places, instruction, label)
            if value not in self.known:
                self._require(instruction, value, place, within=False)

    def _require(self, instruction: Instruction, number: int, place: int, *, within: bool) -> None:
        """A value must be made before the instruction; or, for a Phi, before the end of the block it comes from."""
        home = self.homes.get(number)
        if home is None:
            raise _at(instruction, f"uses id {number}, which its function does not know")
        late = within and home == place
        if late or (self.dominators[place] >= 0 and not self._dominates(home, place)):
            raise _at(instruction, f"uses id {number} where it may not have been made")

    def _dominates(self, above: int, below: int) -> bool:
        while self.depths[below] > self.depths[above] >= 0:
            below = self.dominators[below]
        return above == below


def _dominators(blocks: list[_Block]) -> list[int]:
    """The place of the immediate dominator of every block; its own for the first, -1 where nothing leads."""
    order: list[int] = []
    visited = {0}
    stack = [(0, iter(blocks[0].after))]
    while stack:
        place, following = stack[-1]
        for target in following:
            if target not in visited:
                visited.add(target)
                stack.append((target, iter(blocks[target].after)))
                break
        else:
            order.append(place)
            stack.pop()
    rank = {place: number for number, place in enumerate(order)}
    dominators = [-1] * len(blocks)
    dominators[0] = 0
    changed = True
    while changed:
        changed = False
        for place in reversed(order[:-1]):
            nearest = -1
            for before in blocks[place].before:
                if dominators[before] >= 0:
                    nearest = before if nearest < 0 else _common(dominators, rank, before, nearest)
            changed = changed or dominators[place] != nearest
            dominators[place] = nearest
    return dominators


def _common(dominators: list[int], rank: Mapping[int, int], a: int, b: int) -> int:
    while a != b:
        while rank[a] < rank[b]:
            a = dominators[a]
        while rank[b] < rank[a]:
            b = dominators[b]
    return a


def _depths(dominators: list[int]) -> list[int]:
    """How many blocks dominate every block; -1 where nothing leads."""
    depths = [0] + [-1] * (len(dominators) - 1)
    for start in range(len(dominators)):
        path: list[int] = []
        place = start
        while depths[place] < 0 <= dominators[place]:
            path.append(place)
            place = dominators[place]
        for distance, below in enumerate(reversed(path), start=1):
            depths[below] = depths[place] + distance
    return depths


def _at(instruction: Instruction, why: str) -> Exception:
    return refused(f"{instruction.name} at word {instruction.at} {why}")
