"""Functions of a compiled module replaced by others, without a compiler: templates with holes, filled at run time.

A `Template` is a module whose functions are known by name. An `Emission` gives some of them new bodies, made of calls
to functions that the module has already, constants, and values taken apart and put together. The result holds what its
entry point reaches and nothing else, numbered anew: the same template and the same bodies give the same bytes. It has
no float arithmetic but the template's, so what forbids contraction there stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from dashi.errors import SpirvError
from dashi.kernels.spirv._module import Instruction, Module, refused, text
from dashi.kernels.spirv._ops import OPS

_BY_NAME: Final = {op.name: op for op in OPS.values()}
_FUNCTION: Final = 7
_BUILTIN, _BINDING = 11, 33
_ABOUT: Final = frozenset({"Name", "MemberName", "Decorate", "MemberDecorate"})


@dataclass(frozen=True)
class Template:
    """A module in parts: what stands before the declarations, types, constants and variables, and functions by id."""

    module: Module

    @cached_property
    def head(self) -> tuple[Instruction, ...]:
        return tuple(i for i in self.module.instructions[: self._starts[0]])

    @cached_property
    def declared(self) -> tuple[Instruction, ...]:
        return tuple(self.module.instructions[self._starts[0] : self._starts[1]])

    @cached_property
    def functions(self) -> dict[int, tuple[Instruction, ...]]:
        listed: dict[int, list[Instruction]] = {}
        current: list[Instruction] = []
        for i in self.module.instructions[self._starts[1] :]:
            if i.info.name == "Function":
                current = listed[i.words[1]] = []
            current.append(i)
        return {number: tuple(body) for number, body in listed.items()}

    @cached_property
    def names(self) -> dict[str, int]:
        """Functions by the names that they have in the source."""
        called = ((text(i.words[1:]).decode(errors="replace"), i.words[0]) for i in self.module.all("Name"))
        return {name.split("(")[0]: number for name, number in called if number in self.functions}

    @cached_property
    def _starts(self) -> tuple[int, int]:
        """Where the declarations begin, and where the functions do."""
        listed = self.module.instructions
        first = next(n for n, i in enumerate(listed) if i.info.is_declared or i.info.name in ("Variable", "Undef"))
        return first, next(n for n, i in enumerate(listed) if i.info.name == "Function")

    def function(self, name: str) -> int:
        """The id of a function; a SpirvError if the template has none of that name."""
        if name not in self.names:
            raise SpirvError(f"the template has no function {name!r}.", "run `dashi kernels build`.")
        return self.names[name]

    def signature(self, function: int) -> tuple[int, ...]:
        """The types of its result and of its parameters."""
        return self.module.defined[self.functions[function][0].words[3]].words[1:]


@dataclass
class Emission:
    """New bodies for functions of a template."""

    template: Template
    _declared: list[Instruction] = field(default_factory=list[Instruction])
    _bodies: dict[int, tuple[Instruction, ...]] = field(default_factory=dict[int, tuple[Instruction, ...]])
    _constants: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])
    _next: int = 0

    def __post_init__(self) -> None:
        self._next = self.template.module.bound

    def fresh(self) -> int:
        """An id that nothing has."""
        self._next += 1
        return self._next - 1

    def constant(self, kind: int, words: Sequence[int]) -> int:
        """A constant of a number's type, as its words; the zero of any type where there are none."""
        key = (kind, *words)
        if key not in self._constants:
            number = self._constants[key] = self.fresh()
            self._declared.append(_instruction("Constant" if words else "ConstantNull", kind, number, *words))
        return self._constants[key]

    def body(self, name: str) -> Body:
        """The new body of a function, to be filled and finished."""
        return Body(self, self.template.function(name))

    def replace(self, function: int, body: tuple[Instruction, ...]) -> None:
        """Takes a finished body."""
        self._bodies[function] = body

    def module(self, bindings: Mapping[int, int]) -> Module:
        """What the entry point reaches; buffers get the bindings that `bindings` gives theirs."""
        template = self.template
        functions = {**template.functions, **self._bodies}
        entry = next(i for i in template.head if i.info.name == "EntryPoint")
        reached = _reached(functions, entry.words[1])
        bodies = [i for number, body in functions.items() if number in reached for i in body]
        declared = (*template.declared, *self._declared)
        needed = _needed(declared, [*bodies, *(i for i in template.head if _sizes_workgroup(i, declared))])
        used = [i for i in declared if i.words[i.info.has_type] in needed]
        defined = {i.words[i.info.has_type] for i in (*used, *bodies) if i.info.has_result}
        head = [h for i in template.head for h in _pruned(i, defined, bindings)]
        return _renumbered(Module(template.module.version, template.module.generator, 0, (*head, *used, *bodies)))


class Body:
    """A function's body in one block: values are ids."""

    def __init__(self, emission: Emission, function: int) -> None:
        self._emission, self._function = emission, function
        self._template = emission.template
        old = self._template.functions[function]
        self._start = [i for i in old if i.info.name in ("Function", "FunctionParameter")]
        self.parameters = [i.words[1] for i in self._start[1:]]
        """Pointers to what the function was called with."""
        self.result_type = self._template.signature(function)[0]
        self._variables: list[Instruction] = []
        self._code: list[Instruction] = []
        self._types: dict[int, int] = {i.words[1]: i.words[0] for i in self._start[1:]}

    def load(self, pointer: int) -> int:
        """What a pointer points to."""
        kind = self._template.module.defined[self._types[pointer]].words[2]
        return self._value("Load", kind, pointer)

    def extract(self, whole: int, index: int) -> int:
        """A member of a structure."""
        kind = self.members(self._types[whole])[index]
        return self._value("CompositeExtract", kind, whole, index)

    def construct(self, kind: int, parts: Sequence[int | None]) -> int:
        """A structure of its members; None is a zero."""
        listed = zip(self.members(kind), parts, strict=True)
        return self._value(
            "CompositeConstruct", kind, *(self._emission.constant(t, ()) if p is None else p for t, p in listed)
        )

    def members(self, kind: int) -> tuple[int, ...]:
        """The types of a structure's members."""
        return self._template.module.defined[kind].operands

    def constant(self, kind: int, words: Sequence[int]) -> int:
        """A number of a type, as its words."""
        number = self._emission.constant(kind, words)
        self._types[number] = kind
        return number

    def call(self, name: str, *arguments: int) -> int:
        """The result of a function of the template. Arguments are values, or pointers where it takes such."""
        function = self._template.function(name)
        result, *parameters = self._template.signature(function)
        if len(parameters) != len(arguments):
            raise SpirvError(
                f"{name} takes {len(parameters)} values, {len(arguments)} given.", "run `dashi kernels build`."
            )
        places = [self._place(p, a) for p, a in zip(parameters, arguments, strict=True)]
        return self._value("FunctionCall", result, function, *places)

    def _place(self, parameter: int, argument: int) -> int:
        """The argument as the parameter's type: compilers pass values in variables."""
        if self._types.get(argument) == parameter:
            return argument
        pointer = self._template.module.defined[parameter]
        if pointer.info.name != "TypePointer" or pointer.words[1:] != (_FUNCTION, self._types[argument]):
            raise refused("a function of its template takes values of another type")
        variable = self._emission.fresh()
        self._variables.append(_instruction("Variable", parameter, variable, _FUNCTION))
        self._code.append(_instruction("Store", variable, argument))
        return variable

    def _value(self, name: str, kind: int, *words: int) -> int:
        number = self._emission.fresh()
        self._types[number] = kind
        self._code.append(_instruction(name, kind, number, *words))
        return number

    def finish(self, value: int | None = None) -> None:
        """Ends the function, with a value if it returns one."""
        end = _instruction("Return") if value is None else _instruction("ReturnValue", value)
        label = _instruction("Label", self._emission.fresh())
        body = (*self._start, label, *self._variables, *self._code, end, _instruction("FunctionEnd"))
        self._emission.replace(self._function, body)


def _instruction(name: str, *words: int) -> Instruction:
    return Instruction(_BY_NAME[name], words)


def _reached(functions: Mapping[int, Iterable[Instruction]], entry: int) -> set[int]:
    reached: set[int] = set()
    waiting = [entry]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting.extend(i.words[2] for i in functions[number] if i.info.name == "FunctionCall")
    return reached


def _needed(declared: Sequence[Instruction], using: Iterable[Instruction]) -> set[int]:
    """Declarations that instructions use, and those that these are made of."""
    needed = {i.words[at] for i in using for at in id_places(i)}
    for i in reversed(declared):  # each is made of earlier ones
        if i.words[i.info.has_type] in needed:
            needed.update(i.words[at] for at in id_places(i))
    return needed


def _sizes_workgroup(i: Instruction, declared: Sequence[Instruction]) -> bool:
    """Whether it marks the constant that is the size of the workgroup, which nothing else need use."""
    if i.info.name != "Decorate" or i.words[1] != _BUILTIN:
        return False
    return any(d.info.name != "Variable" and d.words[d.info.has_type] == i.words[0] for d in declared)


def _pruned(i: Instruction, defined: set[int], bindings: Mapping[int, int]) -> Iterator[Instruction]:
    """An instruction of the head without what is gone."""
    name = i.info.name
    if name in _ABOUT:
        if i.words[0] in defined:
            bound = name == "Decorate" and i.words[1] == _BINDING
            yield i._replace(words=(*i.words[:2], bindings[i.words[2]])) if bound else i
    elif name == "EntryPoint":
        interface = [at for at in id_places(i) if at > 1]
        first = min(interface, default=len(i.words))
        yield i._replace(words=(*i.words[:first], *(i.words[at] for at in interface if i.words[at] in defined)))
    else:
        yield i


def _renumbered(module: Module) -> Module:
    numbers: dict[int, int] = {}
    listed: list[Instruction] = []
    at = 5
    for i in module.instructions:
        words = list(i.words)
        for place in id_places(i):
            words[place] = numbers.setdefault(words[place], len(numbers) + 1)
        listed.append(Instruction(i.info, tuple(words), at))
        at += len(words) + 1
    return Module(module.version, module.generator, len(numbers) + 1, tuple(listed))


def id_places(i: Instruction) -> list[int]:
    """Which of the words of an instruction are ids, its result among them."""
    name, words = i.info.name, i.words
    if name == "SpecConstantOp":
        computed = OPS[words[2]]
        return [0, 1, *(3 + at for at, letter in enumerate(computed.layout[2:]) if letter == "i")]
    if name == "Switch":
        if len(words) % 2:
            raise refused("it has a switch on numbers of 64 bits, which no template may have")
        return [0, 1, *range(3, len(words), 2)]
    places: list[int] = []
    at = 0
    for letter in i.info.layout:
        if letter == "s":
            at += len(text(words[at:])) // 4 + 1
        elif letter == "I":
            places.extend(range(at, len(words)))
        elif letter != "L":
            if letter in "TRi":
                places.append(at)
            at += 1
    return places
