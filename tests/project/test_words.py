"""Claims about words: names say what a thing is, and docstrings can be read without the name above them.

Participles that say only that something happened (`made`, `found`, ...) may name what lives for three lines at most.
Each package has a ceiling of what is left there; it may fall, and must never rise.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dashi"
TESTS = Path(__file__).parents[1]
WORDS = frozenset({"made", "told", "found", "given", "kept", "seen", "wanted", "one"})
LONGEST = 3
BEGINNINGS = ("Of ", "The same", "All of them", "Its ", "Those ")

NAMES = {"core": 3, "flow/decode": 1}
"""Names from `WORDS` that live longer, by package; none in packages that are not here. Those of core and flow/decode
stay: `found` of a Divergence and of a Violation, and `wanted` of Parity, are keys of the JSON that commands print."""
NAMES_IN_TESTS = {
    "browser": 2, "cli": 1, "conftest.py": 1, "core": 2, "fft": 2, "flow": 18, "golden": 1, "io": 1, "kernels": 4,
    "lab": 6, "report": 2,
}  # fmt: skip
"""The tests' own, by folder."""
DOCSTRINGS: dict[str, int] = {}
"""Docstrings of modules, classes, functions and values that begin with one of `BEGINNINGS`, by package."""

Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def package(path: Path) -> str:
    """The room that a file is counted in: a package, or a package inside flow; the jobs and their commands are one.
    Tests are counted by their folders."""
    if path.is_relative_to(TESTS):
        return path.relative_to(TESTS).parts[0]
    inside = path.relative_to(SOURCE).with_suffix("").parts
    if inside[0] in ("cli", "lab"):
        return "cli, lab"
    return "/".join(inside[: 2 if inside[0] == "flow" and len(inside) > 2 else 1])


def nodes_of(scope: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Nodes below a module, class or function, and whether they lie in a function or class inside of it. Of a module
    or class those are left out: whatever it binds lives for ever, used or not."""
    uses = isinstance(scope, Function)
    stack = [(node, False) for node in ast.iter_child_nodes(scope)]
    while stack:
        node, inner = stack.pop()
        yield node, inner
        inner = inner or isinstance(node, (*Function, ast.ClassDef))
        if uses or not inner:
            stack.extend((below, inner) for below in ast.iter_child_nodes(node))


def bound_names(scope: ast.AST) -> Iterator[tuple[str, int, int]]:
    """Names from `WORDS` that a scope binds, with the lines of their first binding and of their last use."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for node, inner in nodes_of(scope):
        if isinstance(node, ast.arg) and not inner:
            first.setdefault(node.arg, node.lineno)
        elif isinstance(node, ast.Name):
            last[node.id] = max(last.get(node.id, 0), node.lineno)
            if isinstance(node.ctx, ast.Store) and not inner:
                first[node.id] = min(first.get(node.id, node.lineno), node.lineno)
    for name in sorted(WORDS & first.keys()):
        yield name, first[name], last.get(name, first[name])


def long_lived(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names from `WORDS` that live longer than `LONGEST` lines, each with its line. Names of functions and classes,
    fields, attributes and what a module binds live for ever."""
    for scope in ast.walk(tree):
        if isinstance(scope, Function):
            yield from ((line, name) for name, line, end in bound_names(scope) if end - line >= LONGEST)
        elif isinstance(scope, (ast.Module, ast.ClassDef)):
            yield from ((line, name) for name, line, _ in bound_names(scope))
        if isinstance(scope, (ast.FunctionDef, ast.ClassDef)) and scope.name.strip("_") in WORDS:
            yield scope.lineno, scope.name
        if isinstance(scope, ast.Attribute) and isinstance(scope.ctx, ast.Store) and scope.attr.strip("_") in WORDS:
            yield scope.lineno, f".{scope.attr}"


def unfinished_docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings, also those below a value, that complete the sentence of the name above them."""
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    for node in texts:
        value = cast("ast.Constant", node.value).value
        if isinstance(value, str) and value.startswith(BEGINNINGS):
            yield node.lineno, value.splitlines()[0]


def over_ceiling(places: dict[str, list[str]], ceilings: dict[str, int]) -> list[str]:
    """Packages that have more than their ceiling, each with all its places."""
    texts: list[str] = []
    for name, lines in sorted(places.items()):
        most = ceilings.get(name, 0)
        if len(lines) > most:
            texts += [f"{name}: {len(lines)}, more than {most}:", *lines]
    return texts


def collected(look: str, root: Path) -> dict[str, list[str]]:
    """What is left of the old words, by package. Files that do not have any as text are not parsed."""
    words = rf"\b_?({'|'.join(WORDS)})\b" if look == "names" else rf'"""({"|".join(BEGINNINGS)})'
    places: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        if not re.search(words, text):
            continue
        tree = ast.parse(text)
        lines = long_lived(tree) if look == "names" else unfinished_docstrings(tree)
        for line, name in sorted(set(lines)):
            places.setdefault(package(path), []).append(f"  {path.relative_to(root)}:{line} {name}")
    return places


@pytest.mark.parametrize(
    ("look", "root", "ceilings"),
    [("names", SOURCE, NAMES), ("names", TESTS, NAMES_IN_TESTS), ("docstrings", SOURCE, DOCSTRINGS)],
    ids=["names", "names in tests", "docstrings"],
)
def test_no_package_has_more_of_the_old_words_than_its_ceiling(look: str, root: Path, ceilings: dict[str, int]) -> None:
    too_many = over_ceiling(collected(look, root), ceilings)
    assert not too_many, "\n".join(["name what the thing is (docs/words.md):", *too_many])


SHARED_NAMES = {
    "Plan": {"fft/plans.py", "kernels/abi.py"},
    "Lowered": {"runtime/_cpu_device.py", "runtime/_null_device.py", "runtime/_vulkan_device.py"},
}
"""Names of classes that are defined in several files, and those files; docs/words.md says why."""


def test_classes_have_names_of_their_own() -> None:
    places: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for name in re.findall(r"^ *class (\w+)", path.read_text(), re.MULTILINE):
            places.setdefault(name, []).append(path.relative_to(SOURCE))
    twice = {name: [path.as_posix() for path in paths] for name, paths in places.items() if len(paths) > 1}
    unjustified = {name: paths for name, paths in twice.items() if {*paths} != SHARED_NAMES.get(name)}
    assert not unjustified, f"say what each is in its name: {unjustified}"
    assert twice.keys() == SHARED_NAMES.keys(), "a name that is defined once needs no reason any more"
    reasons = (SOURCE.parents[1] / "docs" / "words.md").read_text()
    assert not [name for name in SHARED_NAMES if f"`{name}` (" not in reasons]


def test_a_name_counts_by_the_lines_that_it_lives_for() -> None:
    brief = "def f(x):\n    made = x\n    y = 1\n    return made + y\n"
    assert not [*long_lived(ast.parse(brief))]
    assert [*long_lived(ast.parse(brief.replace("    y = 1\n", "    y = 1\n    y = 2\n")))] == [(2, "made")]
    assert [*long_lived(ast.parse("def f(x, given):\n    y = 1\n\n    return given\n"))] == [(1, "given")]


def test_fields_attributes_functions_and_constants_live_for_ever() -> None:
    for text, name in (
        ("class A:\n    kept: int\n", "kept"),
        ("class A:\n    def f(self):\n        self._seen = 1\n", "._seen"),
        ("def _found(): ...\n", "_found"),
        ("told = 1\n", "told"),
    ):
        assert [name for _, name in long_lived(ast.parse(text))] == [name]


def test_docstrings_of_values_count_too() -> None:
    text = '"""Words."""\nA = 1\n"""Of the figure."""\n\n\ndef f():\n    """The same again."""\n'
    assert [line for line, _ in unfinished_docstrings(ast.parse(text))] == [3, 7]
