"""Names of a package that are imported when they are first asked for, so that importing the package costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec


def lazy_names(
    package: str, modules: Mapping[str, str], *, more: Iterable[str] = ()
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package. `modules` names, for each module below it, what it gives,
    with blanks between; `more` are the names that the package defines itself. Modules and packages below it can be had
    too."""
    places = {name: f"{package}.{module}" for module, names in modules.items() for name in names.split()}
    public = sorted({*places, *more})

    def get(name: str) -> object:
        return getattr(import_module(places[name]), name) if name in places else below(package, name)

    return public, get, lambda: public


def below(package: str, name: str) -> object:
    """The module or package of that name below a package, imported now. Raises AttributeError where there is none that
    is for users."""
    if name.startswith("_") or find_spec(f"{package}.{name}") is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return import_module(f"{package}.{name}")
