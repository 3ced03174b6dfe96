"""Names of a package that are imported when they are first asked for, so that importing the package costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def lazy_names(
    package: str, modules: Mapping[str, str], *, more: Iterable[str] = ()
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package. `modules` names, for each module below it, what it gives,
    with blanks between; `more` are the names that the package defines itself. Its packages below can be had too."""
    places = {name: f"{package}.{module}" for module, names in modules.items() for name in names.split()}
    public = sorted({*places, *more})

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return public, get, lambda: public
