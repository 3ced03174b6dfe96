"""The directive `public-api`: everything that a package offers (its `__all__`), and its packages below, documented.

Nothing is listed by hand, so a name that a package gains is on its page with the next build. An object that several
packages offer is described once, under the first of them in the order of PACKAGES; the others point to it.
"""

from __future__ import annotations

import builtins
import inspect
import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.addnodes import pending_xref
from sphinx.util.nodes import nested_parse_with_titles

PACKAGES: Final = (
    "dashi",
    "dashi.errors",
    "dashi.types",
    "dashi.kernels",
    "dashi.runtime",
    "dashi.fft",
    "dashi.graph",
    "dashi.stream",
    "dashi.core",
    "dashi.flow",
    "dashi.filament",
    "dashi.report",
    "dashi.lab",
    "dashi.bench",
    "dashi.io",
)
"""One page each in docs/api."""


def public_names(module: ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or the public names that are defined in it or (lazily) below it."""
    if hasattr(module, "__all__"):
        return [*module.__all__]
    own = {name: getattr(module, name, None) for name in dir(module) if not name.startswith("_")}
    return [name for name, value in own.items() if str(getattr(value, "__module__", "")).startswith(module.__name__)]


def packages_below(module: ModuleType) -> list[ModuleType]:
    """Packages directly below a package that say what they offer; those of `dashi` itself have pages of their own."""
    if module.__name__ == "dashi" or not hasattr(module, "__path__"):
        return []
    inside = pkgutil.iter_modules(module.__path__, f"{module.__name__}.")
    names = [entry.name for entry in inside if entry.ispkg and not entry.name.rpartition(".")[2].startswith("_")]
    return [below for name in names if getattr(below := import_module(name), "__all__", ())]


def all_packages() -> list[ModuleType]:
    """Every documented package, those with pages before those below them."""
    pages = [import_module(name) for name in PACKAGES]
    below = [package for page in pages for package in packages_below(page)]
    return pages + below


def homes() -> dict[int, str]:
    """By identity, the full name under which each public class and function is described."""
    described: dict[int, str] = {}
    for package in all_packages():
        for name in public_names(package):
            value = getattr(package, name)
            if inspect.isclass(value) or inspect.isroutine(value):
                described.setdefault(id(value), f"{package.__name__}.{name}")
    return described


def lines_of(package: ModuleType, described: dict[int, str]) -> list[str]:
    """The description of a package in reStructuredText."""
    lines = [f".. automodule:: {package.__name__}", "   :no-members:", ""]
    elsewhere: list[str] = []
    for name in public_names(package):
        value, full = getattr(package, name), f"{package.__name__}.{name}"
        if inspect.ismodule(value):
            continue  # it has a page of its own, or is part of this one
        home = described.get(id(value), full)
        if home != full:
            elsewhere.append(f":py:obj:`{name} <{home}>`")
        elif inspect.isclass(value):
            bases = ["   :show-inheritance:"] if value.__bases__ != (object,) else []
            lines += [f".. autoclass:: {full}", *bases, ""]
        elif inspect.isroutine(value):
            lines += [f".. autofunction:: {full}", ""]
        else:
            lines += [f".. autodata:: {full}", "   :no-value:", ""]
    if elsewhere:
        lines += [f"Also here, described elsewhere: {', '.join(elsewhere)}.", ""]
    for below in packages_below(package):
        title = below.__name__
        lines += [title, "-" * len(title), "", *lines_of(below, described)]
    return lines


class PublicApi(Directive):
    """`.. public-api:: dashi.core`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The parsed description."""
        package = import_module(self.arguments[0])
        lines = StringList(lines_of(package, homes()), source=str(package.__file__))
        parent = nodes.section()
        parent.document = self.state.document
        nested_parse_with_titles(self.state, lines, parent)
        return parent.children


def unlink_builtins(_app: Any, doctree: nodes.document) -> None:
    """Names of Python itself in signatures (`type`) lead nowhere, and not to some attribute of that name."""
    for reference in [*doctree.findall(pending_xref)]:
        if reference.get("refdomain") == "py" and reference.get("reftarget") in vars(builtins):
            reference.replace_self(nodes.Text(reference["reftarget"]))


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("public-api", PublicApi)
    app.connect("doctree-read", unlink_builtins)
    return {"parallel_read_safe": True}
