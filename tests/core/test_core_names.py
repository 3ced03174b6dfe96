"""The names of `dashi.core`: each where a program looks for it, none imported before it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dashi.core

TREE = ast.parse(Path(dashi.core.__file__).read_text())
TYPED = {
    alias.asname or alias.name: node.module
    for block in TREE.body
    if isinstance(block, ast.If)
    for node in block.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""What a type checker sees: names with their modules."""


def test_a_type_checker_and_a_program_find_the_same_names_in_the_same_places() -> None:
    by_name = {name: getattr(dashi.core, name) for name in dir(dashi.core) if name in TYPED}
    assert by_name.keys() == TYPED.keys() == set(dir(dashi.core))
    for name, module in TYPED.items():
        assert module is not None
        assert by_name[name] is getattr(import_module(module), name)


def test_importing_the_core_imports_none_of_its_parts() -> None:
    code = "import sys, dashi.core; print([m for m in sys.modules if m.startswith('dashi.core.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_a_name_that_is_not_there_is_said_as_python_says_it() -> None:
    with pytest.raises(AttributeError, match=r"^module 'dashi\.core' has no attribute 'Afine'$"):
        getattr(dashi.core, "Afine")  # noqa: B009  # to a type checker the name is a mistake, which is the point
    with pytest.raises(ImportError, match=r"cannot import name 'Afine' from 'dashi\.core'"):
        exec("from dashi.core import Afine", {})
