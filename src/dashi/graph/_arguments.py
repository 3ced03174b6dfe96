"""Arguments of the functions that add ops, held to what their signatures say before anything is done with them: other
kinds of values are errors of graphs with the name of the function and of the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, wraps
from inspect import signature
from operator import index
from typing import Any, Final, ParamSpec, TypeVar, cast

import numpy as np

from dashi.errors import GraphError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_MOST_SHOWN: Final = 80


class _OtherKindError(Exception):
    """A value is not what is expected."""


def checked(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function, which takes no arguments of other kinds than its signature says. Numbers of NumPy become plain
    ones, and lists of them are lists of those."""
    signed = signature(function)
    kinds = {name: str(parameter.annotation) for name, parameter in signed.parameters.items()}

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        bound = signed.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            bound.arguments[name] = argument(function.__name__, name, kinds[name], value)
        return function(*bound.args, **bound.kwargs)

    return call


def argument(function: str, name: str, kinds: str, value: object) -> object:
    """A value as one of the kinds that an annotation names."""
    listed = _alternatives(_ALIASES.get(kinds, kinds))
    try:
        return _as_one_of(listed, value)
    except _OtherKindError:
        words = " or ".join(dict.fromkeys(_KINDS[_outer(kind)][1] for kind in listed if kind != "None"))
        more = ", or leave it away" if "None" in listed else ""
        raise GraphError(
            f"{function}: `{name}` is {_shown(value)}, and not {words}.", f"pass {words}{more}: {name}: {kinds}."
        ) from None


def _shown(value: object) -> str:
    """What a value is, in few words, whatever it says of itself."""
    try:
        return f"{value!r:.{_MOST_SHOWN}}"
    except Exception:  # a class of the caller's own may fail in any way
        return f"a {type(value).__name__}"


@cache
def _alternatives(kinds: str) -> tuple[str, ...]:
    """The parts of an annotation between bars outside of brackets."""
    return _split(kinds, " | ")


@cache
def _split(text: str, separator: str) -> tuple[str, ...]:
    parts, depth, begin = list[str](), 0, 0
    for place, letter in enumerate(text):
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if not depth and text.startswith(separator, place):
            parts.append(text[begin:place])
            begin = place + len(separator)
    return (*parts, text[begin:])


def _outer(kind: str) -> str:
    """An annotation without what stands in brackets; "object" where this module does not know it."""
    name = kind.partition("[")[0]
    return name if name in _KINDS else "object"


def _as_one_of(kinds: tuple[str, ...], value: object) -> object:
    for kind in kinds:
        try:
            return _as_kind(kind, value)
        except _OtherKindError:
            pass
    raise _OtherKindError


def _as_kind(kind: str, value: object) -> object:
    name, _, inner = kind.removesuffix("]").partition("[")
    if name not in ("Sequence", "tuple"):
        return _KINDS[_outer(name)][0](value)
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise _OtherKindError
    elements = list(cast("Iterable[object]", value))
    if inner.endswith(", ..."):
        return tuple(_as_one_of(_alternatives(inner.removesuffix(", ...")), element) for element in elements)
    if name == "Sequence":
        return [_as_one_of(_alternatives(inner), element) for element in elements]
    each = _split(inner, ", ")
    if len(each) != len(elements):
        raise _OtherKindError
    return tuple(_as_one_of(_alternatives(k), element) for k, element in zip(each, elements, strict=True))


def _whole(value: object) -> int:
    try:
        return int(index(cast("Any", value)))
    except (TypeError, AttributeError):
        raise _OtherKindError from None


def _number(value: Any) -> object:
    if isinstance(value, np.generic | np.ndarray) and np.ndim(cast("Any", value)) == 0:
        return _number(cast("Any", value).item())
    if not isinstance(value, int | float):
        raise _OtherKindError
    return value


def _truth(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | np.integer) and value in (0, 1)):
        return bool(value == 1)
    raise _OtherKindError


def _text(value: object) -> object:
    if isinstance(value, str):
        return value
    raise _OtherKindError


def _tensor(value: object) -> object:
    if _is_tensor(value):
        return value
    raise _OtherKindError


def _operand(value: object) -> object:
    """Tensors, numbers and arrays of numbers."""
    if _is_tensor(value) or isinstance(value, int | float | np.ndarray | np.generic):
        return cast("object", value)
    raise _OtherKindError


def _nothing(value: object) -> None:
    if value is not None:
        raise _OtherKindError


def _anything(value: object) -> object:
    return value


def _is_tensor(value: object) -> bool:
    """Whether it is a value of a graph that is being built; the Builder's own module rests on this one."""
    return hasattr(value, "builder") and hasattr(value, "node")


_KINDS: Final[dict[str, tuple[Callable[[object], object], str]]] = {
    "Tensor": (_tensor, "a Tensor of a Builder"),
    "Operand": (_operand, "a Tensor or a number"),
    "int": (_whole, "a whole number"),
    "float": (_number, "a number"),
    "bool": (_truth, "True or False"),
    "str": (_text, "text"),
    "None": (_nothing, "None"),
    "Sequence": (_anything, "a list"),
    "tuple": (_anything, "a tuple"),
    "object": (_anything, "what it takes"),
}
"""How a value of each declared kind is made plain, and what it is called; others pass, and are checked elsewhere."""
_ALIASES: Final = {
    "Values": "Sequence[Tensor]",
    "Axes": "tuple[Sequence[int], Sequence[int]]",
    "Padding": "int | Sequence[int] | Sequence[tuple[int, int]] | str",
    "PadMode": "str",
    "Join": "str",
}
"""Names of this package for annotations."""
