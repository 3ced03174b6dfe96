"""What callers pass to jobs, held against the types that requests declare: other kinds of values are refused in words,
before anything is done with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, fields
from numbers import Real
from typing import Any, Final, cast

import numpy as np

from dashi.errors import InputError
from dashi.flow.equations import Flow
from dashi.runtime.device import Device


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


_KINDS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "int": (_is_whole, "a whole number"),
    "float": (_is_number, "a number"),
    "bool": (lambda value: isinstance(value, bool | np.bool_), "True or False"),
    "str": (lambda value: isinstance(value, str), "text"),
    "AnyPath": (lambda value: isinstance(value, str | os.PathLike), "a path, as a str or a pathlib.Path"),
    "Path": (lambda value: isinstance(value, os.PathLike), "a pathlib.Path"),
    "Mapping": (lambda value: isinstance(value, Mapping), "names with values, as a dict"),
    "Flow": (lambda value: isinstance(value, Flow), "a dashi.flow.Flow"),
    "Device": (lambda value: isinstance(value, Device), "an open device"),
}
"""How a value of each declared type is known, and what it is called; fields of other types are checked elsewhere."""


def require_types(request: Any) -> None:
    """Refuses a request in which a number, text, path or flow is something else. NumPy's whole numbers become plain."""
    for declared in fields(request):
        value: object = getattr(request, declared.name)
        require_type(declared, value)
        if isinstance(value, np.integer | np.bool_):
            object.__setattr__(request, declared.name, value.item())


def require_type(declared: Field[Any], value: object) -> None:
    """Refuses a value that is of none of the types that a field declares, where all of them are known."""
    names = [name.partition("[")[0] for name in str(declared.type).split(" | ")]
    known = [_KINDS[name] for name in names if name in _KINDS]
    if len(known) < len([name for name in names if name != "None"]) or (value is None and "None" in names):
        return
    if not any(is_one(value) for is_one, _ in known):
        words = " or ".join(word for _, word in known)
        less = ", or leave it away" if "None" in names else ""
        raise InputError(f"`{declared.name}=` is {value!r:.80}, and not {words}.", f"pass {words}{less}.")


def require_request(request: object, kind: type) -> None:
    """Refuses what is no request of this kind."""
    if not isinstance(request, kind):
        name = kind.__name__
        raise InputError(f"{request!r:.80} is no {name}.", f"pass one: dashi.lab.{name}(...).")


def require_events(events: object) -> None:
    """Refuses what cannot listen to a job."""
    if not (hasattr(events, "remark") and hasattr(events, "progress")):
        raise InputError(f"`events=` is {events!r:.80}.", "pass dashi.lab.PrintedEvents(), or leave it away.")


def several(name: str, values: Any) -> tuple[Any, ...]:
    """The values of a parameter that takes several; text is one of them."""
    if isinstance(values, str):
        return (values,)
    if not isinstance(values, Iterable):
        raise InputError(f"`{name}=` is {values!r:.80}, and several are expected.", f"pass a list: `{name}=[...]`.")
    return tuple(cast("Iterable[Any]", values))


def number_pairs(name: str, values: Any) -> tuple[tuple[str, float], ...]:
    """Names with a number each, from a mapping or from pairs."""
    pairs: Any = cast("Mapping[Any, Any]", values).items() if isinstance(values, Mapping) else several(name, values)
    try:
        return tuple((str(key), float(value)) for key, value in pairs)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"`{name}=` is {values!r:.80}: {error}.", f'pass names with numbers: `{name}={{"nu": 0.004}}`.'
        ) from error
