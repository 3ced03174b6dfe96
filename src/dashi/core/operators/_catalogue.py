"""The kinds of operators by name, and how one comes back from its arrays and parameters."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from dashi._entry_points import OPERATORS, Registered
from dashi.core.operators.operator import Operator, Parameter
from dashi.errors import DashiError, InputError
from dashi.types import HostArray

KINDS: Final = Registered(OPERATORS, "operator", Operator, "kind")
"""The classes of operators by kind: the entry points `dashi.operators` of this project and of every other."""
_WIDER: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "linear": ("affine", frozenset({"b", "psi", "alpha", "low", "high"})),
}
"""For a kind, the one that has more, and what."""


def operator_class(kind: str) -> type[Operator]:
    """The class of a kind."""
    return KINDS[kind]


def restore(kind: str, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
    """The operator of that kind with these arrays and parameters: the inverse of its `arrays` and `parameters`.

    What the operator does not have is refused: nothing is left out of a run in silence.
    """
    restored = _restored(kind, arrays, parameters)
    _require_known("array", kind, arrays, restored.arrays)
    _require_known("parameter", kind, parameters, restored.parameters)
    for name, values in arrays.items():
        if values.shape != restored.arrays[name].shape:
            raise InputError(
                f"the array {name!r} of an operator {kind!r} has shape {values.shape}; {restored.arrays[name].shape} "
                "is used.",
                "write the file again with `save_operator` of dashi.core.",
            )
    for name, value in parameters.items():
        if isinstance(value, bool) or value != restored.parameters[name]:
            raise InputError(
                f"the parameter {name!r} of an operator {kind!r} is {value!r}, and would be used as "
                f"{restored.parameters[name]!r}.",
                "give numbers where numbers belong, and names where names do.",
            )
    return restored


def _restored(kind: str, arrays: Mapping[str, HostArray], parameters: Mapping[str, Parameter]) -> Operator:
    try:
        return operator_class(kind).restore(arrays, parameters)
    except DashiError:
        raise
    except KeyError as missing:
        near = _closest(str(missing.args[0]), [*arrays, *parameters])
        raise InputError(
            f"an operator {kind!r} needs {missing}, which is not there{f' (there is {near!r})' if near else ''}.",
            "give every array and parameter that defines it (`save_operator` of dashi.core writes them all).",
        ) from missing
    except (TypeError, ValueError, ArithmeticError, IndexError, AttributeError) as error:
        raise InputError(
            f"the arrays or parameters of an operator {kind!r} do not fit: {error}.",
            "give numbers where numbers belong.",
        ) from error


def _require_known(what: str, kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Refuses a name that the operator does not have; the fix names the nearest that it has."""
    own = [*known]
    unknown = sorted(set(names) - set(own))
    if not unknown:
        return
    near = _closest(unknown[0], own)
    fix = f"did you mean {near!r}?" if near else "leave it away."
    wider, more = _WIDER.get(kind, ("", frozenset[str]()))
    if unknown[0] in more:
        fix = f"use the kind {wider!r}, which has it, or leave it away."
    raise InputError(
        f"an operator {kind!r} has no {what} {unknown[0]!r}; it has {', '.join(map(repr, own)) or 'none'}.", fix
    )


def _closest(name: str, names: Iterable[str]) -> str | None:
    by_case = {one.lower(): one for one in names}
    near = difflib.get_close_matches(name.lower(), by_case, n=1)
    return by_case[near[0]] if near else None
