"""Operators and models by name, from the entry points of this project and of any other distribution.

A distribution declares its own in its pyproject.toml, and `dashi` knows them once it is installed:

    [project.entry-points."dashi.models"]
    swirl = "swirl.model:Swirl"

A class is imported when its name is asked for, and not before. The declarations of this project are those of the
pyproject.toml beside `src/` where dashi runs from its source tree, installed or not, and of its metadata elsewhere.
"""

from __future__ import annotations

import importlib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeVar

from dashi.errors import DISTRIBUTION, EntryPointError, UnknownNameError, suggestion

OPERATORS: Final = "dashi.operators"
"""Classes of `dashi.core.operators.operator.Operator`, by `kind`."""
MODELS: Final = "dashi.models"
"""Classes of `dashi.flow.proxy.model.Model`, by `name`."""

T = TypeVar("T")


@dataclass(frozen=True)
class EntryPoint:
    """A name, the "module:Class" that it stands for, and who declares it."""

    name: str
    target: str
    distribution: str

    def load(self, group: str) -> object:
        """Imports what it stands for."""
        module, colon, path = self.target.partition(":")
        if not colon or not module or not path:
            raise self._fault(group, f"{self.target!r} is not of the form module:Class")
        try:
            loaded: object = importlib.import_module(module)
            for attribute in path.split("."):
                loaded = getattr(loaded, attribute)
        except (Exception, SystemExit) as error:  # whatever other people's modules do while they are imported
            raise self._fault(group, f"{type(error).__name__}: {error}") from error
        return loaded

    def _fault(self, group: str, why: str) -> EntryPointError:
        return EntryPointError(
            f"{self.distribution} declares {self.name!r} in {group}, and it cannot be loaded: {why}.",
            f"mend or uninstall {self.distribution}.",
        )


@dataclass(frozen=True)
class Declarations:
    """The entry points of a group by name, this project's first; and whose could not be read, with the reason."""

    by_name: Mapping[str, tuple[EntryPoint, ...]]
    unreadable: tuple[str, ...]


def declarations(group: str) -> Declarations:
    """The entry points of a group that the distributions on `sys.path` declare. Nothing is imported."""
    return _declarations(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _declarations(group: str, path: tuple[str, ...]) -> Declarations:
    """Reads them once for each `sys.path`, which `path` is."""
    unreadable: list[str] = []
    by_name: dict[str, list[EntryPoint]] = {}
    for entry in _own(group, unreadable):
        by_name.setdefault(entry.name, []).append(entry)
    others = _others(group, unreadable)
    for entry in sorted(others, key=lambda entry: (entry.name, entry.distribution)):
        by_name.setdefault(entry.name, []).append(entry)
    return Declarations({name: tuple(entries) for name, entries in by_name.items()}, tuple(unreadable))


def _own(group: str, unreadable: list[str]) -> list[EntryPoint]:
    """Entry points of this project, in the order of their names."""
    source_tree = Path(__file__).resolve().parents[1]
    declared = source_declarations(source_tree.parent, group) if source_tree.name == "src" else None
    if declared is None:
        try:
            declared = {e.name: e.value for e in metadata.distribution(DISTRIBUTION).entry_points if e.group == group}
        except metadata.PackageNotFoundError:
            unreadable.append(f"{DISTRIBUTION} (it is not installed, and no pyproject.toml lies beside src/)")
            declared = {}
    return [EntryPoint(name, target, DISTRIBUTION) for name, target in sorted(declared.items())]


def source_declarations(folder: Path, group: str) -> dict[str, str] | None:
    """Targets by name in the pyproject.toml of a folder; None where there is none, or another project's."""
    try:
        project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    except (OSError, KeyError):
        return None
    if project.get("name") != DISTRIBUTION:
        return None
    return dict(project.get("entry-points", {}).get(group, {}))


def _others(group: str, unreadable: list[str]) -> list[EntryPoint]:
    """Entry points of every other distribution; of two with one name on `sys.path`, those of the first."""
    entries: list[EntryPoint] = []
    names = {_normalized(DISTRIBUTION)}
    for distribution in metadata.distributions():
        shown = "a distribution without a name"
        try:
            shown = f"{distribution.metadata['Name']} {distribution.version}"
            name = _normalized(distribution.metadata["Name"])
            declared = [e for e in distribution.entry_points if e.group == group] if name not in names else []
        except Exception as error:  # files of others, damaged in whatever way
            unreadable.append(f"{shown} ({type(error).__name__}: {error})")
            continue
        names.add(name)
        entries += [EntryPoint(e.name, e.value, shown) for e in declared]
    return entries


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class Registered(Mapping[str, type[T]]):
    """The classes of a group by name. One that is asked for is imported, and held to its base class and to its
    name, which is its `attribute`; a name that two distributions declare is refused, this project's own names too."""

    def __init__(self, group: str, what: str, base: type[T], attribute: str) -> None:
        self._group, self._what, self._base, self._attribute = group, what, base, attribute

    def __iter__(self) -> Iterator[str]:
        return iter(declarations(self._group).by_name)

    def __len__(self) -> int:
        return len(declarations(self._group).by_name)

    def __contains__(self, name: object) -> bool:
        return name in declarations(self._group).by_name

    def __getitem__(self, name: str) -> type[T]:
        declared = declarations(self._group)
        entries = declared.by_name.get(name)
        if entries is None:
            raise self._unknown(name, declared.unreadable)
        first, *others = entries
        if others:
            both = " and ".join(entry.distribution for entry in entries)
            raise EntryPointError(
                f"the {self._what} {name!r} is declared by {both}; which of them is meant cannot be known.",
                f"uninstall {others[-1].distribution}, or ask its authors for another name.",
            )
        return self._class(first)

    def _class(self, entry: EntryPoint) -> type[T]:
        loaded = entry.load(self._group)
        if not isinstance(loaded, type) or not issubclass(loaded, self._base):
            raise EntryPointError(
                f"{entry.distribution} declares the {self._what} {entry.name!r} as {entry.target}, which is no class "
                f"of {self._base.__name__}.",
                f"mend or uninstall {entry.distribution}.",
            )
        own = getattr(loaded, self._attribute, None)
        if own != entry.name:
            raise EntryPointError(
                f"{entry.distribution} declares {entry.target} as the {self._what} {entry.name!r}, and the class calls "
                f"itself {own!r}.",
                f"mend or uninstall {entry.distribution}.",
            )
        return loaded

    def _unknown(self, name: str, unreadable: tuple[str, ...]) -> UnknownNameError:
        missing = f" (the entry points of these could not be read: {'; '.join(unreadable)})" if unreadable else ""
        return UnknownNameError(
            f"there is no {self._what} {name!r}{missing}.",
            f"{suggestion(name, self)}use one of {', '.join(self)}, or install the package that declares it.",
        )
