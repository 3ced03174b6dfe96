"""The names that programs use: every package says what it offers, all of it is there, and none is imported unasked."""

from __future__ import annotations

import ast
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import dashi

ROOT = Path(__file__).parents[2]
PACKAGES = ["dashi"] + [module.name for module in pkgutil.walk_packages(dashi.__path__, "dashi.") if module.ispkg]
MACHINERY = {"dashi.core.metrics", "dashi.kernels.spirv"}
"""Packages of private modules alone, which offer nothing."""


def is_family(package: ModuleType) -> bool:
    """Whether a package holds kernels: each is found by its folder, and none is imported by name."""
    assert package.__file__ is not None
    return any(Path(package.__file__).parent.glob("*/kernel.py"))


FIRST = """
    open devices Device DeviceInfo Array Program Step Ticket kernel kernels Kernel errors Operator Linear Affine
    Quadratic Bands Csr BlockSparse Run rollout verify flow fft graph core report lab io runtime stream
    types bench __version__
"""


def bound(module: ModuleType) -> set[str]:
    """Public names that a package binds, as a type checker sees them."""
    assert module.__file__ is not None
    names: set[str] = set()
    body = ast.parse(Path(module.__file__).read_text()).body
    typed = [inner for block in body if isinstance(block, ast.If) for inner in block.body]
    for statement in (*body, *typed):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("dashi"):
            # For a type checker alone, `import X as X` offers a name and `import X` only uses it.
            names.update(alias.name for alias in statement.names if alias.asname or statement not in typed)
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
    return {name for name in names if not name.startswith("_")} - {"lazy_names"}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_says_what_it_offers_and_all_of_it_is_there(name: str) -> None:
    package = import_module(name)
    offered = list(getattr(package, "__all__", []) if is_family(package) else package.__all__)
    assert sorted(offered) == sorted(set(offered))
    assert [one for one in offered if not hasattr(package, one)] == []
    # What a type checker finds in it is what it offers.
    assert bound(package) == set(offered) - {"__version__"}
    assert bool(offered) is (name not in MACHINERY) or is_family(package)


@pytest.mark.parametrize("name", ["dashi", "dashi.core", "dashi.io", "dashi.report"])
def test_a_star_import_gives_what_is_offered(name: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {name} import *", names)
    assert names.keys() - {"__builtins__"} == set(import_module(name).__all__)


def test_importing_dashi_imports_neither_its_packages_nor_numpy() -> None:
    code = "import sys, dashi; dir(dashi); print(*sorted(m for m in sys.modules if m.startswith(('dashi', 'numpy'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["dashi", "dashi._lazy", "dashi.errors", "dashi.kernels"]


@pytest.mark.parametrize("package", ["core", "graph", "io", "report", "lab"])
def test_importing_a_package_imports_none_of_its_modules(package: str) -> None:
    code = f"import sys, dashi; dashi.{package}; print([m for m in sys.modules if m.startswith('dashi.{package}.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_first_names_are_those_of_the_packages() -> None:
    from dashi import core, runtime

    assert set(FIRST.split()) == set(dir(dashi))
    assert dashi.Array is runtime.Array
    assert dashi.Device is runtime.Device
    assert dashi.Linear is core.Linear
    assert dashi.Run is core.Run
    assert dashi.kernel("axpy") is dashi.kernels.get("axpy")


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    for name in ("dashi", "dashi.io", "dashi.report"):
        with pytest.raises(AttributeError, match=rf"^module '{name}' has no attribute 'nothing'$"):
            getattr(import_module(name), "nothing")  # noqa: B009  # to a type checker the name is a mistake


def exporting(package: ModuleType) -> set[str]:
    """Modules below a package from which it takes what it offers."""
    assert package.__file__ is not None
    offered, modules = set(getattr(package, "__all__", [])), set[str]()
    for statement in ast.walk(ast.parse(Path(package.__file__).read_text())):
        if isinstance(statement, ast.ImportFrom) and statement.module and not statement.module.startswith("_"):
            modules.update(statement.module for alias in statement.names if (alias.asname or alias.name) in offered)
    return modules


def test_a_module_that_is_not_for_users_begins_with_an_underscore() -> None:
    # For users: what a package takes its names from, and what a page of the docs imports. The command line and the
    # benches are programs, private as a whole; a kernel is found by its folder.
    offered = {module for name in PACKAGES for module in exporting(import_module(name))}
    pages = " ".join(page.read_text() for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    documented = set(re.findall(r"(?:from|import) (dashi(?:\.\w+)+)", pages))
    names = [module.name for module in pkgutil.walk_packages(dashi.__path__, "dashi.") if not module.ispkg]
    inside = [name for name in names if not name.startswith(("dashi.cli.", "dashi.bench."))]
    plain = {name for name in inside if "._" not in name and not name.endswith(".kernel")}
    assert plain - offered - documented == {"dashi.types", "dashi.errors"} - documented
