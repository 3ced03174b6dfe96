"""Kernels from text with type variables beside T: one kernel for each choice of types, made when it is first needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from dashi.errors import AbiError, DTypeError
from dashi.kernels.abi import Kernel
from dashi.types import DTYPES

_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_TAKEN: Final = frozenset("T W V P LOCAL T_IS_F64 USE_F64".split())
_USED: Final = re.compile(r"(?P<operand>\w+):(?P<variable>\w+)")


@dataclass(frozen=True)
class TypeVariables:
    """The variables of a kernel, with the element types that each may stand for, and which of them each input has."""

    choices: Mapping[str, tuple[str, ...]]
    operands: Mapping[str, str]
    make: Callable[..., Kernel]

    def kernel(self, name: str, dtypes: Mapping[str, str]) -> Kernel:
        """The kernel for inputs of these element types, by operand; `name` is what errors call it."""
        chosen: dict[str, tuple[str, str]] = {}
        for operand, variable in self.operands.items():
            dtype = dtypes[operand]
            first, settled = chosen.setdefault(variable, (operand, dtype))
            if dtype != settled:
                raise DTypeError(
                    f"kernel {name!r}: {operand} is {dtype}, but {first} is {settled}, and both are {variable}.",
                    f"convert one of them, for instance {operand}.astype({settled!r}).",
                )
            if dtype not in self.choices[variable]:
                allowed = ", ".join(self.choices[variable])
                raise DTypeError(
                    f"kernel {name!r}: {operand} is {dtype}, but {variable} is one of {allowed}.",
                    f"convert it: {operand}.astype({self.choices[variable][0]!r}).",
                )
        return self.make(*(chosen[variable][1] for variable in self.choices))


def with_variables(
    make: Callable[[str, str, str, Mapping[str, str]], Kernel],
    types: Mapping[str, Any],
    inputs: str,
    outputs: str,
    scalars: str,
) -> Kernel:
    """The kernel of a text whose operands have type variables: that of the first choice of each, which others stand in
    for where arrays have other types. `make` takes inputs, outputs, scalars and the element types by variable."""
    choices = {variable: _choices(variable, listed) for variable, listed in types.items()}
    used = {match["operand"]: match["variable"] for match in _USED.finditer(inputs)}
    operands = {operand: variable for operand, variable in used.items() if variable in choices}
    if missing := [variable for variable in choices if variable not in operands.values()]:
        raise AbiError(
            f"no input has the type variable {missing[0]!r}, so that no call would say what it is.",
            f'give it to an input: inputs="x index:{missing[0]}".',
        )

    @cache
    def settled(*chosen: str) -> Kernel:
        by_variable = dict(zip(choices, chosen, strict=True))
        arrays, results, numbers = (_settled(text, by_variable) for text in (inputs, outputs, scalars))
        return make(arrays, results, numbers, by_variable)

    first = settled(*(listed[0] for listed in choices.values()))
    return replace(first, variables=TypeVariables(choices, operands, settled))


def _choices(variable: str, listed: Any) -> tuple[str, ...]:
    if not _VARIABLE.fullmatch(variable) or variable in _TAKEN:
        raise AbiError(
            f"{variable!r} is no name for a type variable.",
            f"use capitals, and none of {', '.join(sorted(_TAKEN))}: U, INDEX.",
        )
    names = (listed,) if isinstance(listed, str) else tuple(listed)
    unknown = [name for name in names if name not in DTYPES]
    if not names or unknown:
        raise AbiError(
            f"the type variable {variable!r} stands for {unknown[0] if unknown else 'nothing'!r}.",
            f"list element types: types={{{variable!r}: ('u32', 'u64')}}; there are {', '.join(DTYPES)}.",
        )
    return names


def _settled(text: str, chosen: Mapping[str, str]) -> str:
    """Operands in words, with types in the place of variables."""
    return _USED.sub(lambda match: f"{match['operand']}:{chosen.get(match['variable'], match['variable'])}", text)


def defines(chosen: Mapping[str, str]) -> str:
    """GLSL that names the types that variables stand for."""
    return "".join(f"#define {variable} {DTYPES[dtype].glsl}\n" for variable, dtype in chosen.items())


def variable_kernel(kernel: Kernel, dtypes: Sequence[str]) -> Kernel:
    """The kernel itself, or that of the inputs' element types, where it has type variables."""
    if kernel.variables is None or len(dtypes) != len(kernel.inputs):
        return kernel
    named = {operand.name: dtype for operand, dtype in zip(kernel.inputs, dtypes, strict=True)}
    return kernel.variables.kernel(kernel.name, named)
