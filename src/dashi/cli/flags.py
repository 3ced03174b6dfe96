"""Errors and remarks of the library speak of Python parameters; here they become the flags of the command that runs.

In the library's texts a parameter is a keyword argument in backticks: `hash_every=`, `resume=True`, `device="cpu"`.
Nothing else looks like that, so prose, file names and commands in backticks stay as they are. Several values, or pairs,
become an option that is repeated: `dims={'time': 't'}` is --dims time=t. Which flag a parameter has is read off the
command itself; `OTHER_NAMES` lists the parameters that commands call otherwise.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from dashi.errors import DashiError

if TYPE_CHECKING:
    from typer._click import Parameter

OTHER_NAMES: Final[Mapping[str, str]] = {
    "portable=False": "no_portable", "stop_on_nonfinite=False": "keep_going",
    "variables": "variable", "snapshots": "snapshot", "initial_options": "options", "model_options": "option",
    "vorticity": "variable", "velocity": "variable", "baselines": "baseline", "fields": "field",
    "train": "train_seed", "validate": "validation_seeds", "first_seed": "eval_seed", "steps": "eval_steps",
}  # fmt: skip
"""Parameters of the library, or what is passed for them, by the names that commands have for that."""

FORMER_FLAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "--fast": ("--host-fft", "--no-portable"),
    "--way": ("--strategy",),
}
"""Flags that were renamed, and their names now: commands take both, and help shows the new one."""
USUAL_VALUES: Final[Mapping[str, tuple[str, ...]]] = {"--live": ("page", "terminal")}
"""Flags that may stand alone, and the values that they take: alone they mean the first."""
OTHER_COMMANDS: Final[Mapping[str, str]] = {
    "fields": "--field",
    "inputs": "--inputs",
    "resume": "--resume",
    "shard": "--shard",
}
"""Flags of parameters that errors of one command name, and that another command has."""

_ARGUMENT: Final = re.compile(r"`([A-Za-z]\w*)=([^`\n]*)`")
_SWITCHES: Final = ("", "True", "False")
_FLAGS: Final[ContextVar[Mapping[str, str]]] = ContextVar("dashi_flags", default=MappingProxyType({}))


def renamed_flags(words: list[str], flags: set[str]) -> list[str]:
    """The words of a command line with the names that flags have now, as far as the command has those."""
    end = words.index("--") if "--" in words else len(words)
    return [*(_renamed(word, flags) for word in words[:end]), *words[end:]]


def with_usual_values(words: list[str], flags: set[str]) -> list[str]:
    """The words of a command line with the values of flags that stand alone."""
    end = words.index("--") if "--" in words else len(words)
    full: list[str] = []
    for word, after in zip(words[:end], [*words[1:end], ""], strict=False):
        full.append(word)
        values = USUAL_VALUES.get(word, ()) if word in flags else ()
        full += values[:1] if values and after not in values else ()
    return [*full, *words[end:]]


def _renamed(word: str, flags: set[str]) -> str:
    flag, sign, value = word.partition("=")
    names = [name for name in FORMER_FLAGS.get(flag, ()) if name in flags and flag not in flags]
    return f"{names[0]}{sign}{value}" if names else word


@contextmanager
def speaking_of_flags(parameters: Iterable[Parameter]) -> Generator[None]:
    """While a command with these parameters runs, `in_flags` uses its flags; an error that ends it does too."""
    token = _FLAGS.set({one.name or "": _word(one) for one in parameters})
    try:
        yield
    except DashiError as error:
        error.what, error.fix = in_flags(error.what), in_flags(error.fix)
        raise
    finally:
        _FLAGS.reset(token)


def in_flags(text: str) -> str:
    """The text with flags of the command that runs instead of parameters; what is none of its parameters stays."""
    flags = _FLAGS.get()

    def flag(match: re.Match[str]) -> str:
        name, value = match[1], match[2].strip("\"'")
        word = flags.get(name) or flags.get(OTHER_NAMES.get(f"{name}={value}") or OTHER_NAMES.get(name, ""))
        word = word or (OTHER_COMMANDS.get(name) if flags else None)
        if word is None:
            return match[0]
        return word if value in _SWITCHES else " ".join(f"{word} {each}" for each in _values(value))

    return _ARGUMENT.sub(flag, text)


def _values(text: str) -> list[str]:
    """What an option is repeated with: the entries of a tuple or list, NAME=VALUE of a dict; else the text itself."""
    try:
        values: object = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return [text]
    if isinstance(values, dict):
        return [f"{name}={value}" for name, value in cast("dict[object, object]", values).items()]
    return [*map(str, cast("tuple[object, ...]", values))] if isinstance(values, tuple | list) else [text]


def _word(parameter: Parameter) -> str:
    """The flag of an option; the name of an argument as the usage line has it."""
    if parameter.param_type_name == "argument":
        return str(getattr(parameter, "metavar", None) or parameter.name or "").upper()
    return max(parameter.opts, key=len)
